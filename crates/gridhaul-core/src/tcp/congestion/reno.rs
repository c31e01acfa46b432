//! Reno (RFC 5681): slow start, congestion avoidance, and half the window after a loss, all by the default
//! methods of the trait.

use gridhaul_scenario::scenario::Recovery;

use super::{CongestionControl, Window};
use crate::tcp::params::StackParams;

/// Reno.
#[derive(Debug, Clone)]
pub struct Reno {
    window: Window,
}

impl CongestionControl for Reno {
    type Storage = Self;
    const RECOVERY: Recovery = Recovery::Reno;
    const ONLY_GROWS: bool = true;

    fn new(params: &StackParams) -> Self {
        Self { window: Window::new(params) }
    }
    own_window!();
}
