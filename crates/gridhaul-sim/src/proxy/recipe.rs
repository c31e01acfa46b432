//! How the machine of a unit is made.

use std::sync::Arc;

use gridhaul_core::pep::{AckFilter, PassThrough, Proxy, Reflect, Side, Snoop, Split};
use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::ProxyMode;
use gridhaul_scenario::units::{Bytes, Duration};

/// All that is needed to make a machine, also anew after a crash.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    pub mode: ProxyMode,
    pub params: Arc<StackParams>,
    pub buffer: Bytes,
    pub hold: Duration,
    pub toward: Side,
    /// Initial sequence numbers of both ends.
    pub isns: [u32; 2],
    /// Stacks of the next hops on both sides, if the connection exists from the start.
    pub established: Option<[Arc<StackParams>; 2]>,
}

impl Recipe {
    /// The machine at the beginning of the run.
    pub(super) fn first(&self) -> Box<dyn Proxy> {
        let Some([left, right]) = &self.established else { return self.anew() };
        let (params, next) = (Arc::clone(&self.params), [&**left, &**right]);
        match self.mode {
            ProxyMode::Split => Box::new(Split::established(params, self.buffer, self.isns, next)),
            ProxyMode::Reflect => Box::new(Reflect::engaged(params, self.buffer, self.isns, next)),
            _ => self.anew(),
        }
    }

    /// The machine that comes up after a crash: it knows nothing of the connection.
    pub(super) fn anew(&self) -> Box<dyn Proxy> {
        let params = Arc::clone(&self.params);
        match self.mode {
            ProxyMode::None => Box::new(PassThrough::default()),
            // Toward each side it stands in for the other: any number does, why not theirs.
            ProxyMode::Split => {
                let isns = [self.isns[1], self.isns[0]];
                Box::new(Split::new(params, self.buffer, isns))
            }
            ProxyMode::Reflect => Box::new(Reflect::new(params, self.buffer)),
            ProxyMode::Snoop => Box::new(Snoop::new(self.toward, self.buffer)),
            ProxyMode::Ack => Box::new(AckFilter::new(self.toward, self.hold)),
        }
    }
}
