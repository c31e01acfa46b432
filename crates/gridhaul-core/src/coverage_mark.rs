//! Coverage marks tie the line of a rule to the one test that shows the rule, so that neither can
//! go unnoticed.
//!
//! `mark!(name)` at the line notes in a test that it was reached; `covers!(name)` at the beginning
//! of the test fails at its end if it was not. A test of `xtask` checks that every mark has one
//! owner. Marks exist in the test build of the crate that has them: other builds contain no call.

use std::cell::RefCell;
use std::collections::BTreeSet;

pub use crate::{__covers as covers, __mark as mark};

/// Notes that a rule applies here, in tests; with `if`, only under a condition.
#[doc(hidden)]
#[macro_export]
macro_rules! __mark {
    ($name:ident) => {
        #[cfg(test)]
        {
            $crate::coverage_mark::hit(stringify!($name));
        }
    };
    ($name:ident if $condition:expr) => {
        #[cfg(test)]
        {
            if $condition {
                $crate::coverage_mark::hit(stringify!($name));
            }
        }
    };
}

/// Fails at the end of the test unless the mark of this name was reached.
#[doc(hidden)]
#[macro_export]
macro_rules! __covers {
    ($($name:ident),+ $(,)?) => {
        $(let _expectation = $crate::coverage_mark::expect(stringify!($name));)+
    };
}

thread_local! {
    /// Marks that this thread, which runs one test, has reached.
    static REACHED: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
}

/// Fails when it is dropped, unless the mark was reached.
#[derive(Debug)]
#[must_use = "a mark is expected until the value is dropped"]
pub struct Expectation(&'static str);

/// A test begins that must reach the mark.
pub fn expect(name: &'static str) -> Expectation {
    REACHED.with_borrow_mut(|reached| reached.remove(name));
    Expectation(name)
}

/// The line of a mark is reached.
pub fn hit(name: &'static str) {
    REACHED.with_borrow_mut(|reached| reached.insert(name));
}

impl Drop for Expectation {
    fn drop(&mut self) {
        let reached = REACHED.with_borrow(|reached| reached.contains(self.0));
        assert!(
            reached || std::thread::panicking(),
            "the test covers mark `{}` and has not reached it",
            self.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "has not reached it")]
    fn a_test_that_does_not_reach_its_mark_fails() {
        let _expected = expect("nowhere");
    }
}
