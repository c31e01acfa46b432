//! Tahoe (Jacobson, Congestion Avoidance and Control, 1988, section 3): a loss indicated by
//! duplicate acknowledgements has the same response as a timeout, slow start from one segment.

use gridhaul_scenario::scenario::Recovery;

use super::{CongestionControl, Window};
use crate::tcp::event::Loss;
use crate::tcp::params::StackParams;

/// Tahoe.
#[derive(Debug, Clone)]
pub struct Tahoe {
    window: Window,
}

impl CongestionControl for Tahoe {
    type Storage = Self;
    const RECOVERY: Recovery = Recovery::GoBackN;
    const ONLY_GROWS: bool = true;

    fn new(params: &StackParams) -> Self {
        Self { window: Window::new(params) }
    }
    own_window!();

    fn on_loss(&mut self, loss: &Loss) {
        self.window.collapse(loss);
    }

    /// RFC 3168, section 6.1.2: "the source TCP halves its congestion window".
    fn on_congestion_mark(&mut self, loss: &Loss) {
        self.window.halve(loss);
    }
}
