//! Rates that change, and shared media: the cases of the simulator on the kernel.

use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_testing::LinkCase;

use crate::{mean, run};

#[test]
fn links_have_the_results_that_are_known_by_hand() {
    for case in LinkCase::all() {
        let Some(answer) = run("", &case.scenario) else { return };
        check(&case, &answer);
    }
}

/// Checks the results of a case.
pub(crate) fn check(case: &LinkCase, answer: &Answer) {
    case.check(|row, column| {
        let metric = Metric::ALL.iter().find(|metric| metric.info().column == column)?;
        Some(mean(answer, row, *metric))
    });
}
