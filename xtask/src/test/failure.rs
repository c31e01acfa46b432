//! The failure of a suite, repeated at the end of the output: suites end in any order, so that the
//! output of a failed one may be far above.

use std::process::ExitStatus;

use super::suite::Suite;

/// Lines of standard error, and of an output without a list of failed tests, that are repeated.
const LAST_LINES: usize = 40;

/// A suite that failed.
pub(super) struct Failure {
    pub suite: Suite,
    /// Names of the tests that failed; empty if the harness has not listed them.
    pub tests: Vec<String>,
    /// The part of its output about failed tests, or the reason why it did not run.
    pub reason: String,
}

impl Failure {
    /// The failure of a suite with this output and exit status.
    pub(super) fn new(suite: Suite, printed: &str, errors: &str, status: ExitStatus) -> Self {
        let reason = format!("{}{}{status}", failed_tests(printed), last_lines(errors));
        Self { suite, tests: names(printed), reason }
    }
}

/// The output of a test harness about its failed tests; the last lines if it has none.
fn failed_tests(printed: &str) -> String {
    let start = printed.find("\nfailures:\n");
    start.map_or_else(|| last_lines(printed), |start| printed[start + 1..].to_owned())
}

/// The names at the end of a test harness's output, in a second list of failures after the output
/// of each.
fn names(printed: &str) -> Vec<String> {
    let (_, list) = printed.rsplit_once("\nfailures:\n").unwrap_or_default();
    let names = list.lines().map_while(|line| line.strip_prefix("    "));
    names.map(String::from).collect()
}

fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    last.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::{failed_tests, names};

    #[test]
    fn failed_tests_are_repeated_and_otherwise_the_last_lines() {
        let harness = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b ----\nreason\n";
        assert_eq!(failed_tests(harness), "failures:\n\n---- b ----\nreason\n");
        let lines: String = (0..100).map(|line| format!("{line}\n")).collect();
        assert!(failed_tests(&lines).starts_with("60\n61\n"), "{}", failed_tests(&lines));
    }

    #[test]
    fn the_names_of_failed_tests_are_those_of_the_second_list() {
        let harness = "test a ... ok\ntest m::b ... FAILED\n\nfailures:\n\n-- b --\n    why\n\n\n\
                       failures:\n    m::b\n    m::c\n\ntest result: FAILED. 1 passed\n";
        assert_eq!(names(harness), ["m::b", "m::c"]);
        assert!(names("a crash\n").is_empty());
    }
}
