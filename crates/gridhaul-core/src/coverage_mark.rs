//! Coverage marks tie the line of a rule to the one test that shows the rule, so that neither can
//! go unnoticed.
//!
//! `mark!(name)` at the line notes in a test that it was reached; `covers!(name)` at the beginning
//! of the test fails at its end if it was not. A test of `xtask` checks that every mark has one
//! owner. Other builds contain nothing of it.

/// Notes that a rule applies here, in tests; with `if`, only under a condition.
macro_rules! mark {
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
#[cfg(test)]
pub(crate) use expectation::{covers, expect, hit};
pub(crate) use mark;

#[cfg(test)]
mod expectation {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    thread_local! {
        /// Marks that this thread, which runs one test, has reached.
        static REACHED: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
    }

    /// Fails when it is dropped, unless the mark was reached.
    pub(crate) struct Expectation(&'static str);

    /// A test begins that must reach the mark.
    pub(crate) fn expect(name: &'static str) -> Expectation {
        REACHED.with_borrow_mut(|reached| reached.remove(name));
        Expectation(name)
    }

    /// The line of a mark is reached.
    pub(crate) fn hit(name: &'static str) {
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

    #[test]
    #[should_panic(expected = "has not reached it")]
    fn a_test_that_does_not_reach_its_mark_fails() {
        let _expected = expect("nowhere");
    }

    /// Fails at the end of the test unless the mark of this name was reached.
    macro_rules! covers {
        ($($name:ident),+) => {
            $(let _expectation = $crate::coverage_mark::expect(stringify!($name));)+
        };
    }
    pub(crate) use covers;
}
