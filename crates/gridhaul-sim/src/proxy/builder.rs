//! Building the state machine of a proxy instance.

use std::sync::Arc;

use gridhaul_core::pep::{
    AckFilter, MssLimit, PassThrough, Proxy, Reflect, Side, Snoop, Split, Spoof,
};
use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::ProxyMode;
use gridhaul_scenario::units::{Bytes, Duration};

/// The parameters of a proxy, from which it is built at the start and after each crash.
#[derive(Debug, Clone)]
pub(super) struct ProxyBuilder {
    pub mode: ProxyMode,
    pub params: Arc<StackParams>,
    pub buffer: Bytes,
    pub max_ack_delay: Duration,
    pub served_side: Side,
    /// The largest segments that both ends accept.
    pub hosts: MssLimit,
    /// Initial sequence numbers of both ends.
    pub isns: [u32; 2],
    /// Window scale toward each end, where the proxy takes the place of the other end: the scale
    /// that the other end has offered.
    pub window_shifts: [u8; 2],
    /// Stacks of the next hops on both sides, if the connection exists from the start.
    pub established: Option<[Arc<StackParams>; 2]>,
}

impl ProxyBuilder {
    /// The proxy at the beginning of the run.
    pub(super) fn build_initial(&self) -> Box<dyn Proxy> {
        let Some([left, right]) = &self.established else { return self.build_after_crash() };
        let (params, next) = (Arc::clone(&self.params), [&**left, &**right]);
        match self.mode {
            ProxyMode::Split => Box::new(Split::established(params, self.buffer, self.isns, next)),
            ProxyMode::Reflect => {
                self.scaled(Reflect::engaged(params, self.hosts, self.buffer, self.isns, next))
            }
            ProxyMode::Spoof => {
                self.scaled(Spoof::engaged(params, self.hosts, self.buffer, self.isns, next))
            }
            _ => self.build_after_crash(),
        }
    }

    /// A proxy that offers windows in whole units of the scales of the ends.
    fn scaled(&self, mut proxy: impl Proxy + 'static) -> Box<dyn Proxy> {
        for side in Side::BOTH {
            proxy.set_window_shift(side, self.window_shifts[side.index()]);
        }
        Box::new(proxy)
    }

    /// The proxy after a crash, without state of the connection.
    pub(super) fn build_after_crash(&self) -> Box<dyn Proxy> {
        let params = Arc::clone(&self.params);
        match self.mode {
            ProxyMode::None => Box::new(PassThrough::default()),
            // Toward each host the proxy takes the place of the other, so it uses the other's
            // initial sequence number.
            ProxyMode::Split => {
                let isns = [self.isns[1], self.isns[0]];
                Box::new(Split::new(params, self.buffer, isns))
            }
            ProxyMode::Reflect => self.scaled(Reflect::new(params, self.hosts, self.buffer)),
            ProxyMode::Spoof => self.scaled(Spoof::new(params, self.hosts, self.buffer)),
            ProxyMode::Snoop => Box::new(Snoop::new(self.served_side, self.buffer)),
            ProxyMode::Ack => Box::new(AckFilter::new(self.served_side, self.max_ack_delay)),
        }
    }
}
