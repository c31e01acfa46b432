//! Control: every loss is a transmission error.

use super::LossClassifier;
use crate::link::LossCause;
use crate::tcp::event::Loss;
use crate::tcp::params::StackParams;

/// Never congestion.
#[derive(Debug, Clone)]
pub(crate) struct AlwaysError;

impl LossClassifier for AlwaysError {
    fn new(_params: &StackParams) -> Self {
        Self
    }

    fn classify(&mut self, _loss: &Loss) -> Option<LossCause> {
        Some(LossCause::Error)
    }
}
