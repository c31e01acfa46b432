//! Cubic: under construction.

use gridhaul_scenario::scenario::Recovery;

use super::{CongestionControl, Window};
use crate::tcp::params::StackParams;

/// Cubic.
#[derive(Debug, Clone)]
pub struct Cubic {
    window: Window,
}

impl CongestionControl for Cubic {
    const RECOVERY: Recovery = Recovery::Sack;

    fn new(params: &StackParams) -> Self {
        Self { window: Window::new(params) }
    }
    #[inline]
    fn window(&self) -> &Window {
        &self.window
    }
    #[inline]
    fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }
}
