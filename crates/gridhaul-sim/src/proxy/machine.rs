//! The machines that a unit may be.

use std::sync::Arc;

use gridhaul_core::pep::{Held, Outgoing, Pass, Proxy, Side};
use gridhaul_core::tcp::{Segment, StackParams};
use gridhaul_scenario::scenario::ProxyMode;
use gridhaul_scenario::units::{Bytes, Duration, Instant};

/// A machine of any mode.
#[derive(Debug)]
pub(super) enum Machine {
    Pass(Pass),
}

/// All that is needed to make a machine, also anew after a crash.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "the machines that need them follow")]
pub(super) struct Recipe {
    pub mode: ProxyMode,
    pub params: Arc<StackParams>,
    pub buffer: Bytes,
    pub hold: Duration,
    pub toward: Side,
    /// Initial sequence numbers of both ends.
    pub isns: [u32; 2],
    /// Whether the connection exists from the start.
    pub established: bool,
}

impl Recipe {
    /// The machine at the beginning of the run.
    pub(super) fn first(&self) -> Machine {
        self.make()
    }

    /// The machine that comes up after a crash: it knows nothing of the connection.
    pub(super) fn make(&self) -> Machine {
        Machine::Pass(Pass::default())
    }
}

impl Machine {
    fn proxy(&self) -> &dyn Proxy {
        match self {
            Self::Pass(machine) => machine,
        }
    }

    fn proxy_mut(&mut self) -> &mut dyn Proxy {
        match self {
            Self::Pass(machine) => machine,
        }
    }
}

impl Proxy for Machine {
    fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment) {
        self.proxy_mut().handle_segment(now, from, segment);
    }
    fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        self.proxy_mut().poll_transmit(now)
    }
    fn next_deadline(&self) -> Instant {
        self.proxy().next_deadline()
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.proxy_mut().handle_timeout(now);
    }
    fn held(&self, from: Side) -> Held {
        self.proxy().held(from)
    }
}
