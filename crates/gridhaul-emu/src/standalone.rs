//! A network for other programs, which exists until it is stopped.

use std::net::IpAddr;

use gridhaul_core::link::LinkAccount;
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{FlowEnd, Record, Scenario};
use gridhaul_scenario::units::Instant;

use crate::error::EmulationError;
use crate::kernel_congestion_control::KernelCongestionControls;
use crate::link_emulator::{Emulator, Forwarded, ForwardedCounter};
use crate::network::{Address, NetworkPlan, Testbed};
use crate::thread_wakeup::WakeupSchedule;
use crate::unsupported::unsupported_standalone_keys;
use gridhaul_linux::{
    Clock, NAMESPACE_NAME_MAX, NamespaceNames, raise_open_file_limit, require_congestion_control,
};

/// The network of a scenario, for other programs.
#[derive(Debug)]
pub struct StandaloneNetwork {
    scenario: Scenario,
    plan: NetworkPlan,
    testbed: Testbed,
    forwarded: ForwardedCounter,
    /// `None` if other programs do not have to find the namespaces.
    _names: Option<NamespaceNames>,
    /// Algorithms that routes refer to; they stay loaded as long as the routes exist.
    _controls: KernelCongestionControls,
}

/// Endpoints of a flow of the scenario, for other programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowEndpoints {
    /// Name of the flow.
    pub flow: String,
    /// Namespace and first address of the `from` end. The addresses of the other members follow.
    pub from: (String, IpAddr),
    /// Namespace and first address of the `to` end.
    pub to: (String, IpAddr),
    /// Number of members.
    pub count: u32,
    /// Whether there is a path from `to` to `from`: not for datagrams over one-way links.
    pub has_reverse_path: bool,
    /// Congestion control of TCP connections that `from` and `to` open; `None` if the program
    /// chooses.
    pub congestion_control: [Option<String>; 2],
}

impl StandaloneNetwork {
    /// Creates the network of a scenario, with namespaces `<prefix>-<node>`. Routes configure the
    /// connections of programs with the parameters of the stacks, as far as routes support them.
    ///
    /// # Errors
    /// A key that the kernel does not support, a name that exists or is too long, or an error of
    /// the machine.
    pub fn build(scenario: &Scenario, prefix: &str) -> Result<Self, RunError> {
        Self::with_names(scenario, Some(prefix), None)
    }

    /// Creates the network of a scenario for threads and child processes of this program, which
    /// [enter](Self::enter) its namespaces. The namespaces have no names, so that nothing remains
    /// when the program is killed.
    ///
    /// # Errors
    /// A key that the kernel does not support, or an error of the machine.
    pub fn unnamed(scenario: &Scenario) -> Result<Self, RunError> {
        Self::with_names(scenario, None, None)
    }

    /// As [`unnamed`](Self::unnamed), with Ethernet links, which carry the frames of a flow between
    /// its [devices](Self::frame_devices): all frames but those of IP and ARP. Between two links of
    /// its path, frames are switched by the emulator. A frame with detected bit errors is
    /// discarded, as by a network card; an undetected error changes its last byte.
    ///
    /// # Errors
    /// There is no such flow, a key that the kernel does not support, or an error of the machine.
    pub fn ethernet(scenario: &Scenario, flow: &str) -> Result<Self, RunError> {
        Self::with_names(scenario, None, Some(flow))
    }

    fn with_names(
        scenario: &Scenario,
        prefix: Option<&str>,
        frames: Option<&str>,
    ) -> Result<Self, RunError> {
        let unsupported = unsupported_standalone_keys(scenario);
        if !unsupported.is_empty() {
            return Err(RunError::Unsupported(unsupported));
        }
        raise_open_file_limit();
        let mut plan = NetworkPlan::new(scenario)?;
        if let Some(flow) = frames {
            let number = scenario.flow.get_index_of(flow);
            let unknown = || RunError::Invalid(format!("there is no flow `{flow}`"));
            plan.carry_frames(scenario, number.ok_or_else(unknown)?);
        }
        if let Some(prefix) = prefix {
            check_names(prefix, &plan.nodes)?;
        }
        let controls = KernelCongestionControls::load(&plan)?;
        plan.configure_routes_for_programs(scenario, |stack| controls.name(stack));
        for name in plan.flows.iter().flat_map(|flow| &flow.controls).flatten() {
            require_congestion_control(name).map_err(EmulationError::from)?;
        }
        let testbed = Testbed::build(&plan)?;
        let assign = |prefix: &str| {
            let names = plan.nodes.iter().map(|node| format!("{prefix}-{node}"));
            NamespaceNames::assign(names.zip(&testbed.namespaces)).map_err(EmulationError::from)
        };
        let names = prefix.map(assign).transpose()?;
        // Recordings have no reader, and captures would grow as long as the network exists.
        let scenario = Scenario { record: Record::default(), ..scenario.clone() };
        let forwarded = ForwardedCounter::default();
        Ok(Self { scenario, plan, testbed, forwarded, _names: names, _controls: controls })
    }

    /// The endpoints of each flow of the scenario.
    #[must_use]
    pub fn pairs(&self, prefix: &str) -> Vec<FlowEndpoints> {
        let pair = |(number, (name, flow)): (usize, (&String, &crate::network::FlowLayout))| {
            let end = |side: FlowEnd, node: usize| {
                let first = Address { flow: number as u16, side, number: 0 };
                (format!("{prefix}-{}", self.plan.nodes[node]), first.ip(flow.family))
            };
            FlowEndpoints {
                flow: name.clone(),
                from: end(FlowEnd::From, flow.ends[0]),
                to: end(FlowEnd::To, flow.ends[1]),
                count: flow.count,
                has_reverse_path: !flow.paths[1].is_empty(),
                congestion_control: flow.controls.clone(),
            }
        };
        self.scenario.flow.keys().zip(&self.plan.flows).enumerate().map(pair).collect()
    }

    /// Node and first address of the `from` end and of the `to` end of a flow; `None` if there is
    /// no such flow.
    #[must_use]
    pub fn ends(&self, flow: &str) -> Option<[(&str, IpAddr); 2]> {
        let number = self.scenario.flow.get_index_of(flow)?;
        let layout = &self.plan.flows[number];
        let end = |side: FlowEnd| {
            let first = Address { flow: number as u16, side, number: 0 };
            (self.plan.nodes[layout.ends[side as usize]].as_str(), first.ip(layout.family))
        };
        Some([end(FlowEnd::From), end(FlowEnd::To)])
    }

    /// Kernel names of the congestion control that routes give to connections of a flow at its
    /// `from` end and at its `to` end; `None` for the default, or if there is no such flow.
    #[must_use]
    pub fn congestion_controls(&self, flow: &str) -> [Option<&str>; 2] {
        let number = self.scenario.flow.get_index_of(flow);
        let controls = number.map(|number| self.plan.flows[number].controls.each_ref());
        controls.map_or([None, None], |controls| controls.map(|name| name.as_deref()))
    }

    /// Devices of an [Ethernet](Self::ethernet) network at the `from` end and at the `to` end of
    /// its flow, in the namespaces of their nodes; `None` for a network of IP packets.
    #[must_use]
    pub fn frame_devices(&self) -> Option<[&str; 2]> {
        self.plan.end_devices(&self.plan.flows[self.plan.frames()?])
    }

    /// Runs `work` in the namespace of a node, on a new thread. Its sockets, threads and child
    /// processes stay in this namespace.
    ///
    /// # Errors
    /// There is no node of this name, or its namespace cannot be entered.
    pub fn enter<T: Send>(
        &self,
        node: &str,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, RunError> {
        let number = self.plan.nodes.iter().position(|name| name == node);
        let number = number.ok_or_else(|| RunError::Invalid(format!("no node `{node}`")))?;
        Ok(self.testbed.namespaces[number].enter(work).map_err(EmulationError::from)?)
    }

    /// Packets that the links have forwarded so far.
    #[must_use]
    pub fn forwarded(&self) -> Forwarded {
        self.forwarded.read()
    }

    /// Forwards packets until `stop` returns `true`, and returns the counters of each direction of
    /// a link with its name. The network exists as long as this value. Outages and other events of
    /// the scenario follow `clock`.
    ///
    /// # Errors
    /// A device was deleted.
    pub fn run(
        &self,
        clock: Clock,
        stop: impl Fn() -> bool,
    ) -> Result<Vec<(String, LinkAccount)>, RunError> {
        let emulator = Emulator::new(&self.scenario, &self.plan, &self.testbed.devices, 0, None)?;
        let emulator = emulator.counted_by(&self.forwarded);
        let (warmup, end) = (Instant::ZERO, Instant::NEVER);
        let done = emulator.run((clock, &WakeupSchedule::new()), warmup, end, stop)?;
        let directions = &self.plan.directions;
        let rows = directions.answer_rows();
        let numbers = directions.row_of().iter().chain(directions.row_of_class());
        let names = numbers.map(|&row| rows[row as usize].0.clone());
        Ok(names.zip(done.after.links).collect())
    }
}

/// Checks that no name `<prefix>-<node>` is too long, before any namespace is created.
fn check_names(prefix: &str, nodes: &[String]) -> Result<(), EmulationError> {
    let Some(longest) = nodes.iter().max_by_key(|node| node.len()) else { return Ok(()) };
    let length = prefix.len() + 1 + longest.len();
    if length > NAMESPACE_NAME_MAX {
        return Err(EmulationError::NameTooLong {
            node: longest.clone(),
            length,
            maximum: NAMESPACE_NAME_MAX,
        });
    }
    Ok(())
}
