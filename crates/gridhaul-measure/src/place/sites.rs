//! The places where a measurement opens its sockets.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use gridhaul_core::link::LinkAccount;
use gridhaul_emu::{Forwarded, StandaloneNetwork};
use gridhaul_linux::Clock;
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Duration;

/// One end of the network under test.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// Address of this end.
    pub address: IpAddr,
    /// Device through which this end sends and receives Ethernet frames; `None` on an emulated
    /// network of IP packets.
    pub device: Option<&'a str>,
    /// The emulated network and the node in it; `None` on the network of this machine.
    node: Option<(&'a StandaloneNetwork, &'a str)>,
}

/// Both ends of the network under test.
#[derive(Debug, Clone, Copy)]
pub struct Sites<'a> {
    /// The end of the publisher.
    pub from: Site<'a>,
    /// The end of the subscriber without a broker, or of the broker.
    pub to: Site<'a>,
    /// The end of the subscriber with a broker: the `from` end, unless
    /// [`Sites::subscribing_at_broker`] was called.
    pub subscriber: Site<'a>,
    /// Clock of the network: the outages of a scenario follow it.
    pub clock: Clock,
    /// Whether sockets for datagrams and frames record the time at which the kernel received each.
    pub kernel_times: bool,
    /// Whether receivers of datagrams poll their sockets instead of sleeping.
    pub busy_poll: bool,
    /// Congestion control that routes of the emulated network set at the `from` end and at the `to`
    /// end.
    pub congestion_controls: [Option<&'a str>; 2],
}

/// Packets that the links of an emulated network carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Carrier {
    /// IP packets.
    #[default]
    Packets,
    /// Ethernet frames.
    Frames,
}

/// Counters of the directions of all links, with their names.
pub type LinkCounters = Vec<(String, LinkAccount)>;

impl Sites<'_> {
    /// Both ends on the loopback device of this machine.
    #[must_use]
    pub fn loopback() -> Self {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let site = Site { address, device: Some("lo"), node: None };
        let clock = Clock::starts_in(Duration::ZERO);
        Self {
            from: site,
            to: site,
            subscriber: site,
            clock,
            kernel_times: false,
            busy_poll: false,
            congestion_controls: [None, None],
        }
    }

    /// The same ends with the subscriber at the end of the broker: messages pass the network once.
    #[must_use]
    pub const fn subscribing_at_broker(self) -> Self {
        Self { subscriber: self.to, ..self }
    }

    /// The same ends, whose sockets record the receive times of the kernel where the protocol
    /// permits.
    #[must_use]
    pub const fn with_kernel_times(self) -> Self {
        Self { kernel_times: true, ..self }
    }

    /// The same ends, whose receivers of datagrams poll their sockets.
    #[must_use]
    pub const fn with_busy_poll(self) -> Self {
        Self { busy_poll: true, ..self }
    }
}

impl<'a> Sites<'a> {
    /// Settings of the kernel's TCP at both ends, with the names of `ip-sysctl.rst` for the
    /// buffers.
    ///
    /// # Errors
    /// The namespace of a node cannot be entered.
    pub fn tcp_settings(&self) -> Result<[(&'static str, String); 3], RunError> {
        let ends =
            [(self.from, self.congestion_controls[0]), (self.to, self.congestion_controls[1])];
        let read = |(site, route): (Site<'_>, Option<&str>)| {
            site.enter(|| {
                let control = route.map_or_else(|| sysctl("tcp_congestion_control"), str::to_owned);
                [control, sysctl("tcp_rmem"), sysctl("tcp_wmem")]
            })
        };
        let [from, to] = [read(ends[0])?, read(ends[1])?];
        let mut pairs = from.into_iter().zip(to);
        Ok(["congestion_control", "tcp_rmem", "tcp_wmem"].map(|name| {
            let (from, to) = pairs.next().unwrap_or_default();
            (name, if from == to { from } else { format!("{from} at `from`, {to} at `to`") })
        }))
    }

    /// Packets that the links of an emulated network have forwarded so far; none on the network of
    /// this machine.
    #[must_use]
    pub fn forwarded(&self) -> Forwarded {
        self.from.node.map(|(network, _)| network.forwarded()).unwrap_or_default()
    }

    /// The ends in different namespaces, each once.
    pub(crate) fn namespaces(&self) -> Vec<Site<'a>> {
        let node = |site: &Site<'_>| site.node.map(|(_, node)| node.to_owned());
        let mut sites = vec![self.from];
        if node(&self.to) != node(&self.from) {
            sites.push(self.to);
        }
        sites
    }

    /// The ends of a flow of an emulated network, whose links follow `clock`.
    fn of_flow(network: &'a StandaloneNetwork, flow: &str, clock: Clock) -> Result<Self, RunError> {
        let ends = network.ends(flow);
        let ends = ends.ok_or_else(|| RunError::Invalid(format!("there is no flow `{flow}`")))?;
        let devices = network.frame_devices();
        let [from, to] = [0, 1].map(|end| {
            let (node, address) = ends[end];
            let device = devices.map(|devices| devices[end]);
            Site { address, device, node: Some((network, node)) }
        });
        Ok(Self {
            from,
            to,
            subscriber: from,
            clock,
            kernel_times: false,
            busy_poll: false,
            congestion_controls: network.congestion_controls(flow),
        })
    }
}

impl<'a> Site<'a> {
    /// An end with this address on the network of this machine, whose other end is another machine.
    #[must_use]
    pub const fn at(address: IpAddr) -> Self {
        Self { address, device: None, node: None }
    }

    /// An end at a device of this machine, whose other end is another machine.
    #[must_use]
    pub const fn on_device(device: &'a str) -> Self {
        Self { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), device: Some(device), node: None }
    }

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

/// Runs `work` between the ends of a flow, and returns its result and what the links counted: the
/// losses, duplicates and errors that they made. Calls `prepare` before the links forward and their
/// clock starts: programs that start slowly do not delay the messages until after the outages of
/// the scenario. They may use the addresses of their own end only.
///
/// # Errors
/// The network cannot be made on this machine, there is no such flow, or a device was deleted.
pub fn on_links<P, T>(
    scenario: &Scenario,
    flow: &str,
    carrier: Carrier,
    prepare: impl FnOnce(&Sites<'_>) -> P,
    work: impl FnOnce(&Sites<'_>, P) -> T,
) -> Result<(T, LinkCounters), RunError> {
    let network = match carrier {
        Carrier::Packets => StandaloneNetwork::unnamed(scenario)?,
        Carrier::Frames => StandaloneNetwork::ethernet(scenario, flow)?,
    };
    let sites = || Sites::of_flow(&network, flow, Clock::starts_in(Duration::ZERO));
    let prepared = prepare(&sites()?);
    // The clock starts after the preparation: a broker takes seconds to start, in which outages of
    // the scenario would pass.
    let sites = sites()?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let forwarding = scope.spawn(|| network.run(sites.clock, || stop.load(Ordering::Relaxed)));
        let done = {
            let _stop = StopOnDrop(&stop);
            work(&sites, prepared)
        };
        match forwarding.join() {
            Ok(outcome) => outcome.map(|counters| (done, counters)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Ends the threads that run during `work`, also when `work` panics: the scope waits for the
/// threads.
#[derive(Debug)]
pub struct StopOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A setting of TCP in the network namespace of the calling thread; `unknown` if it cannot be read.
fn sysctl(name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}"));
    text.map_or_else(
        |_| "unknown".into(),
        |text| text.split_whitespace().collect::<Vec<_>>().join(" "),
    )
}
