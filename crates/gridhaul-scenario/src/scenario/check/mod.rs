//! Whether a scenario contradicts itself.

use super::Scenario;
use super::error::Problem;

/// All contradictions, in no particular order.
pub(super) fn problems(_scenario: &Scenario) -> Vec<Problem> {
    Vec::new()
}
