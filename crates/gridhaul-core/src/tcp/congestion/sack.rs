//! Reno's window under the loss recovery of RFC 6675.

use gridhaul_scenario::scenario::Recovery;

use super::{CongestionControl, Window};
use crate::tcp::params::StackParams;

/// Reno with SACK.
#[derive(Debug, Clone)]
pub struct Sack {
    window: Window,
}

impl CongestionControl for Sack {
    type Storage = Self;
    const RECOVERY: Recovery = Recovery::Sack;
    const ONLY_GROWS: bool = true;

    fn new(params: &StackParams) -> Self {
        Self { window: Window::new(params) }
    }
    own_window!();
}
