//! Control: every loss is congestion, as for Reno.

use super::LossClassifier;
use crate::link::LossCause;
use crate::tcp::event::Loss;
use crate::tcp::params::StackParams;

/// Always congestion.
#[derive(Debug, Clone)]
pub(crate) struct AlwaysCongestion;

impl LossClassifier for AlwaysCongestion {
    const NEEDS_DELAYS: bool = false;

    fn new(_params: &StackParams) -> Self {
        Self
    }

    fn classify(&mut self, _loss: &Loss) -> Option<LossCause> {
        Some(LossCause::Queue)
    }
}
