//! Vegas: under construction.

use gridhaul_scenario::scenario::Recovery;

use super::{CongestionControl, Window};
use crate::tcp::params::StackParams;

/// Vegas.
#[derive(Debug, Clone)]
pub struct Vegas {
    window: Window,
}

impl CongestionControl for Vegas {
    const RECOVERY: Recovery = Recovery::Reno;

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
