//! Defines a congestion control algorithm and drives it with acknowledgements and a loss, without a
//! connection.
//!
//! An algorithm implements the differences to Reno only. CONTRIBUTING.md lists what makes it
//! selectable in scenarios.
//!
//! `cargo run --release -p gridhaul-core --example congestion-control`

use gridhaul_core::tcp::congestion::{CongestionControl, Window};
use gridhaul_core::tcp::{Ack, Loss, StackParams};
use gridhaul_scenario::scenario::{Recovery, Stack};
use gridhaul_scenario::units::Instant;

/// Reno with a smaller reduction after a loss: to 0.8 instead of half of the window.
struct Gentle {
    window: Window,
}

impl CongestionControl for Gentle {
    type Storage = Self;
    const RECOVERY: Recovery = Recovery::Sack;

    fn new(params: &StackParams) -> Self {
        Self { window: Window::new(params) }
    }

    fn window(&self) -> &Window {
        &self.window
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    fn on_loss(&mut self, loss: &Loss) {
        let reduced = 0.8 * f64::from(loss.window);
        self.window.set_ssthresh(reduced);
        self.window.set_cwnd(reduced);
    }
}

pub(crate) fn main() {
    let params = StackParams::resolve(&Stack::default());
    let mut control = Gentle::new(&params);
    let mss = control.window().mss() as u32;
    println!("start {:>3} segments", control.window().cwnd() / mss);
    for round in 1..=8 {
        for _ in 0..control.window().cwnd() / mss {
            control.on_ack(&acknowledgement(mss));
        }
        if round == 3 {
            control.on_loss(&loss(control.window().cwnd(), mss));
        }
        let phase = if control.window().in_slow_start() { "slow start" } else { "avoidance" };
        println!("round {round} {:>3} segments  {phase}", control.window().cwnd() / mss);
    }
}

/// An acknowledgement of one segment, by a sender that its window limits. A connection fills in the
/// other fields for algorithms that measure.
fn acknowledgement(mss: u32) -> Ack {
    Ack {
        delivered: mss,
        slow_start_credit: mss,
        avoidance_credit: mss,
        prior_in_flight: mss.into(),
        window_limited: true,
        mss,
        ..Ack::default()
    }
}

/// The loss of a segment that was sent once, when `window` bytes were in flight.
fn loss(window: u32, mss: u32) -> Loss {
    Loss {
        now: Instant::ZERO,
        window,
        in_flight: window.into(),
        una: 0,
        sent_at: Instant::ZERO,
        transmits: 1,
        next: u64::from(window),
        timed_out_before: false,
        mss,
    }
}
