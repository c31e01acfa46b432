//! A constant window: a sender without congestion control, as a baseline.

use gridhaul_scenario::scenario::Recovery;
use gridhaul_scenario::units::Instant;

use super::{CongestionControl, Window};
use crate::tcp::event::{Ack, Loss};
use crate::tcp::params::StackParams;

/// A fixed window.
#[derive(Debug, Clone)]
pub struct Fixed {
    window: Window,
}

impl CongestionControl for Fixed {
    type Storage = Self;
    const RECOVERY: Recovery = Recovery::Sack;

    fn new(params: &StackParams) -> Self {
        let mut window = Window::new(params);
        window.set_cwnd(f64::from(params.fixed_window));
        Self { window }
    }
    own_window!();
    fn on_ack(&mut self, _ack: &Ack) {}
    fn on_loss(&mut self, _loss: &Loss) {}
    fn on_timeout(&mut self, _loss: &Loss) {}
    fn on_idle_restart(&mut self, _now: Instant, _initial_window: u32) {}
    fn on_cwnd_unused(&mut self, _cwnd: u32) {}
}
