//! The places where a measurement opens its sockets.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use gridhaul_emu::StandaloneNetwork;
use gridhaul_linux::Clock;
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Duration;

/// One end of the network under test.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// Address of this end.
    pub address: IpAddr,
    /// The emulated network and the node in it; `None` on the network of this machine.
    node: Option<(&'a StandaloneNetwork, &'a str)>,
}

/// Both ends of the network under test.
#[derive(Debug, Clone, Copy)]
pub struct Sites<'a> {
    /// The end of the publisher; with a broker, that of the subscriber as well.
    pub from: Site<'a>,
    /// The end of the subscriber, or of the broker.
    pub to: Site<'a>,
    /// Clock of the network: the outages of a scenario follow it.
    pub clock: Clock,
}

impl Sites<'_> {
    /// Both ends on the loopback device of this machine.
    #[must_use]
    pub fn loopback() -> Self {
        let site = Site { address: IpAddr::V4(Ipv4Addr::LOCALHOST), node: None };
        Self { from: site, to: site, clock: Clock::starts_in(Duration::ZERO) }
    }
}

impl<'a> Sites<'a> {
    /// The ends of a flow of an emulated network, whose links follow `clock`.
    fn of_flow(network: &'a StandaloneNetwork, flow: &str, clock: Clock) -> Result<Self, RunError> {
        let ends = network.ends(flow);
        let ends = ends.ok_or_else(|| RunError::Invalid(format!("there is no flow `{flow}`")))?;
        let [from, to] = ends.map(|(node, address)| Site { address, node: Some((network, node)) });
        Ok(Self { from, to, clock })
    }
}

impl Site<'_> {
    /// Runs `work` where its sockets, threads and child processes belong to this end.
    ///
    /// # Errors
    /// The namespace of the node cannot be entered.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, RunError> {
        match self.node {
            Some((network, node)) => network.enter(node, work),
            None => Ok(work()),
        }
    }
}

/// Runs `work` between the ends of a flow, while the links of its network forward packets.
///
/// # Errors
/// The network cannot be made on this machine, there is no such flow, or a device was deleted.
pub fn on_network<T>(
    scenario: &Scenario,
    flow: &str,
    work: impl FnOnce(&Sites<'_>) -> T,
) -> Result<T, RunError> {
    let network = StandaloneNetwork::unnamed(scenario)?;
    let sites = Sites::of_flow(&network, flow, Clock::starts_in(Duration::ZERO))?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let forwarding = scope.spawn(|| network.run(sites.clock, || stop.load(Ordering::Relaxed)));
        let done = {
            let _stop = StopOnDrop(&stop);
            work(&sites)
        };
        match forwarding.join() {
            Ok(outcome) => outcome.map(|()| done),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Ends the forwarding thread, also when `work` panics: the scope waits for the thread.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
