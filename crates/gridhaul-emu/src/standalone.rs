//! A network that stands until somebody ends it, for programs that know nothing of gridhaul.

use std::net::IpAddr;

use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{Record, Scenario};
use gridhaul_scenario::units::{Duration, Instant};

use crate::error::EmulationError;
use crate::kernel_congestion_control::KernelCongestionControls;
use crate::link_emulator::Emulator;
use crate::network::{Address, FlowEnd, Plan, Testbed};
use crate::thread_wakeup::WakeupSchedule;
use crate::unsupported::refusals;
use gridhaul_linux::{
    Clock, NAMESPACE_NAME_MAX, NamespaceNames, raise_open_file_limit, require_congestion_control,
};

/// A network of a scenario that stands.
#[derive(Debug)]
pub struct StandaloneNetwork {
    scenario: Scenario,
    plan: Plan,
    testbed: Testbed,
    names: NamespaceNames,
    /// What routes name stays in the kernel as long as they do.
    controls: KernelCongestionControls,
}

/// A flow of the scenario, as programs of one's own can use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowEndpoints {
    /// Name of the flow.
    pub flow: String,
    /// Namespace and first address of its `from` end, and of its `to` end. The next members have the
    /// addresses behind.
    pub from: (String, IpAddr),
    /// See `from`.
    pub to: (String, IpAddr),
    /// Members.
    pub count: u32,
    /// Whether anything comes back from `to`: not where datagrams go over one-way links.
    pub answers: bool,
    /// Congestion control of TCP connections that begin at `from` and at `to`; `None` where programs
    /// choose.
    pub control: [Option<String>; 2],
}

impl StandaloneNetwork {
    /// Makes the network of a scenario, with namespaces `<prefix>-<node>`. Routes say to programs what
    /// stacks ask for, as far as routes can.
    ///
    /// # Errors
    /// A scenario that a kernel cannot honour, a name that is taken or too long, a machine that refuses.
    pub fn build(scenario: &Scenario, prefix: &str) -> Result<Self, RunError> {
        let refused = refusals(scenario);
        if !refused.is_empty() {
            return Err(RunError::Unsupported(refused));
        }
        raise_open_file_limit();
        let mut plan = Plan::new(scenario)?;
        check_names(prefix, &plan.nodes)?;
        let controls = KernelCongestionControls::load(&plan)?;
        plan.serve_programs(scenario, |stack| controls.name(stack));
        for name in plan.flows.iter().flat_map(|flow| &flow.controls).flatten() {
            require_congestion_control(name).map_err(EmulationError::from)?;
        }
        let testbed = Testbed::build(&plan)?;
        let named = plan.nodes.iter().map(|node| format!("{prefix}-{node}"));
        let names =
            NamespaceNames::assign(named.zip(&testbed.namespaces)).map_err(EmulationError::from)?;
        // Nobody asks for what is recorded, and captures would grow as long as the network stands.
        let scenario = Scenario { record: Record::default(), ..scenario.clone() };
        Ok(Self { scenario, plan, testbed, names, controls })
    }

    /// Between whom the scenario has flows.
    #[must_use]
    pub fn pairs(&self, prefix: &str) -> Vec<FlowEndpoints> {
        let pair = |(number, (name, flow)): (usize, (&String, &crate::network::FlowPlan))| {
            let end = |side: FlowEnd, node: usize| {
                let first = Address { flow: number as u16, side, number: 0 };
                (format!("{prefix}-{}", self.plan.nodes[node]), first.ip(flow.family))
            };
            FlowEndpoints {
                flow: name.clone(),
                from: end(FlowEnd::From, flow.ends[0]),
                to: end(FlowEnd::To, flow.ends[1]),
                count: flow.count,
                answers: !flow.paths[1].is_empty(),
                control: flow.controls.clone(),
            }
        };
        self.scenario.flow.keys().zip(&self.plan.flows).enumerate().map(pair).collect()
    }

    /// Carries packets until `stop` says so; then everything is removed.
    ///
    /// # Errors
    /// A device that is gone.
    pub fn carry(self, stop: impl Fn() -> bool) -> Result<(), RunError> {
        let emulator = Emulator::new(&self.scenario, &self.plan, &self.testbed.devices, 0, None)?;
        let clock = Clock::starts_in(Duration::ZERO);
        let outcome =
            emulator.run((clock, &WakeupSchedule::new()), (Instant::ZERO, Instant::NEVER), stop);
        drop(self.names);
        drop(self.controls);
        outcome?;
        Ok(())
    }
}

/// Checks that no name `<prefix>-<node>` is too long, before any namespace is made.
fn check_names(prefix: &str, nodes: &[String]) -> Result<(), EmulationError> {
    let Some(longest) = nodes.iter().max_by_key(|node| node.len()) else { return Ok(()) };
    let length = prefix.len() + 1 + longest.len();
    if length > NAMESPACE_NAME_MAX {
        return Err(EmulationError::NameTooLong {
            node: longest.clone(),
            length,
            most: NAMESPACE_NAME_MAX,
        });
    }
    Ok(())
}
