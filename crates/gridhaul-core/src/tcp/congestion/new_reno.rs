//! NewReno (RFC 6582): Reno's window with a new loss recovery.

use gridhaul_scenario::scenario::Recovery;

use super::{CongestionControl, Window};
use crate::tcp::params::StackParams;

/// NewReno.
#[derive(Debug, Clone)]
pub struct NewReno {
    window: Window,
}

impl CongestionControl for NewReno {
    type Storage = Self;
    const RECOVERY: Recovery = Recovery::NewReno;
    const ONLY_GROWS: bool = true;

    fn new(params: &StackParams) -> Self {
        Self { window: Window::new(params) }
    }
    own_window!();
}
