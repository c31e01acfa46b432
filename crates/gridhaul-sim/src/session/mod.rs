//! Stepped simulation: another program sends messages, and advances the time in steps.
//!
//! A [`Session`] is the simulator without a plan of its own: the flows of load `external` carry the
//! messages that its caller sends, and the other flows of the scenario run beside them. The times
//! of delivery are those of a run whose flows play the same messages as a recorded trace, in
//! however many steps. `duration` and `warmup` of the scenario do not end a session.

mod address;
mod error;
mod failures;
mod link_change;

use gridhaul_core::link::{DirectionChange, LinkRandomStreams};
use gridhaul_scenario::backend::{NoProgress, Unsupported};
use gridhaul_scenario::scenario::{Load, Record, Scenario, Transport};
use gridhaul_scenario::units::Instant;

use address::ExternalFlows;
use failures::Failures;
use link_change::SelectedDirection;

use crate::build::build;
use crate::external_messages::{MessageId, MessageReport, QueuedMessage};
use crate::layout::Layout;
use crate::run::unsupported_keys;
use crate::world::{StepEnd, World};

pub use error::SessionError;
pub use link_change::LinkChange;

/// A simulation that its caller steps.
#[derive(Debug)]
pub struct Session {
    scenario: Scenario,
    layout: Layout,
    flows: ExternalFlows,
    replication: u32,
    state: Snapshot,
}

/// The state of a session at one time. Restoring it does not use it up.
#[derive(Debug)]
pub struct Snapshot {
    world: Box<World>,
    now: Instant,
    /// Number of messages sent.
    sent: u64,
    failures: Failures,
    /// Hash of the scenario and number of the replication of the session.
    session: String,
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// The messages that were delivered or lost, in order of time; empty if `interrupted`.
    pub reports: Vec<MessageReport>,
    /// Whether the step was ended before its time. [`Session::now`] is then the time reached, and
    /// the next step reports the messages of this one as well.
    pub interrupted: bool,
}

/// Events between two checks whether a step continues: about a millisecond.
const EVENTS_PER_SLICE: u32 = 2_000;

impl Session {
    /// Opens a session at time zero, with the random numbers of a replication.
    ///
    /// # Errors
    /// A key that a session does not support: sweeps, recordings, recorded traces, links that
    /// duplicate datagrams, and the keys that the simulator does not support; or no flow of load
    /// `external`.
    pub fn open(scenario: &Scenario, replication: u32) -> Result<Self, SessionError> {
        let unsupported = unsupported(scenario);
        if !unsupported.is_empty() {
            return Err(SessionError::Unsupported(unsupported));
        }
        let session = format!("{} {replication}", scenario.sha256());
        let scenario = scenario.with_floods().into_owned();
        let layout = Layout::new(&scenario)?;
        let mut world = Box::new(build(&scenario, &layout, replication, &NoProgress)?);
        world.begin();
        let failures = Failures::default();
        let state = Snapshot { world, now: Instant::ZERO, sent: 0, failures, session };
        let flows = ExternalFlows::new(&scenario);
        Ok(Self { scenario, layout, flows, replication, state })
    }

    /// The time up to which the simulation has advanced.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.state.now
    }

    /// Number of messages that were sent and are neither delivered nor lost.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.state.world.external.in_flight()
    }

    /// Sends a message of `bytes` from one node to another at a time, now or later. Members of
    /// groups are named with their number, such as `meter[3]`.
    ///
    /// # Errors
    /// An unknown node, nodes without an external flow from one to the other, a size of zero or
    /// above the largest datagram, and a time before [`now`](Self::now).
    pub fn send(
        &mut self,
        from: &str,
        to: &str,
        bytes: u64,
        at: Instant,
    ) -> Result<MessageId, SessionError> {
        let path = self.flows.path(&self.scenario, from, to)?;
        self.check_size(path.row, bytes)?;
        self.check_time(at)?;
        let id = MessageId(self.state.sent);
        self.state.sent += 1;
        let message = QueuedMessage { at, member: path.member, id, bytes };
        self.state.world.external.queue(path.row, message);
        Ok(id)
    }

    /// Advances to a time, its events included. `continues` is called about every millisecond; if
    /// it returns false, the step ends early. Messages that are sent at the time of the session
    /// follow all events of that time.
    ///
    /// # Errors
    /// A time before [`now`](Self::now).
    pub fn advance_to(
        &mut self,
        until: Instant,
        continues: impl FnMut() -> bool,
    ) -> Result<Step, SessionError> {
        self.advance(until, StepEnd::Time, continues)
    }

    /// Advances to the first time at which a message is delivered or lost, and to `until` at the
    /// latest; [`now`](Self::now) is then the time reached. The step reports all messages that end
    /// at that time. `continues` is as in [`advance_to`](Self::advance_to).
    ///
    /// # Errors
    /// A time before [`now`](Self::now).
    pub fn advance_to_report(
        &mut self,
        until: Instant,
        continues: impl FnMut() -> bool,
    ) -> Result<Step, SessionError> {
        self.advance(until, StepEnd::FirstReport, continues)
    }

    fn advance(
        &mut self,
        until: Instant,
        end: StepEnd,
        mut continues: impl FnMut() -> bool,
    ) -> Result<Step, SessionError> {
        self.check_time(until)?;
        let world = &mut self.state.world;
        world.schedule_external();
        loop {
            // A slice may have ended among the events of the time of the first report.
            let has_ended = end == StepEnd::FirstReport && world.external.has_reports();
            let limit = if has_ended { self.state.now } else { until };
            let reached = world.run_events(limit, end, EVENTS_PER_SLICE)?;
            if reached.is_complete {
                self.state.now = reached.now;
                break;
            }
            self.state.now = reached.now;
            if !continues() {
                // The next step has the reports of this one.
                return Ok(Step { reports: Vec::new(), interrupted: true });
            }
        }
        world.report_closed(self.state.now);
        Ok(Step { reports: world.external.take_reports(), interrupted: false })
    }

    /// The time of the next event, before which nothing is delivered or lost; `None` if nothing
    /// will happen without a further message.
    pub fn next_event(&mut self) -> Option<Instant> {
        let world = &mut self.state.world;
        let next = world.net.events.next_time().min(world.external.next_of_all());
        (next != Instant::NEVER).then_some(next)
    }

    /// Changes a link from now on: `feeder` or `feeder[3]` both directions, `feeder.forward` or
    /// `feeder.reverse[3]` one of them, and without a number all members of a group.
    ///
    /// # Errors
    /// An unknown link, or a rate of zero.
    pub fn set_link(&mut self, name: &str, change: &LinkChange) -> Result<(), SessionError> {
        let Self { scenario, layout, state, replication, .. } = self;
        let selected = link_change::select(scenario, &layout.directions, name)?;
        let change = change.checked(name)?;
        for direction in &selected {
            let mut change = change;
            if let Some(up) = change.up {
                state.failures.set_direction(direction.index, up);
                change.up = Some(state.failures.works(scenario, direction));
            }
            change_direction(state, scenario, *replication, direction, &change);
        }
        Ok(())
    }

    /// Makes a node fail or work again: `meter[3]`, or `meter` for all members of a group. While a
    /// node does not work, none of its links does.
    ///
    /// # Errors
    /// An unknown node, or one member of a group that shares a link with the others.
    pub fn set_node(&mut self, name: &str, up: bool) -> Result<(), SessionError> {
        let Self { scenario, layout, state, replication, .. } = self;
        let (node, _) = address::split_member(name);
        let directions = link_change::of_node(scenario, &layout.directions, node);
        let worked: Vec<bool> =
            directions.iter().map(|direction| state.failures.works(scenario, direction)).collect();
        state.failures.set_node(scenario, name, up)?;
        for (direction, worked) in directions.iter().zip(worked) {
            let works = state.failures.works(scenario, direction);
            if works != worked {
                let change = DirectionChange { up: Some(works), ..DirectionChange::default() };
                change_direction(state, scenario, *replication, direction, &change);
            }
        }
        Ok(())
    }

    /// The state of the session, to which [`restore`](Self::restore) returns.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.state.copy()
    }

    /// Returns to a state of this session, as often as needed. Messages that were sent since are
    /// forgotten, and their numbers used again.
    ///
    /// # Errors
    /// The snapshot is of another scenario or replication.
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SessionError> {
        if snapshot.session != self.state.session {
            return Err(SessionError::ForeignSnapshot);
        }
        self.state = snapshot.copy();
        Ok(())
    }

    fn check_time(&self, at: Instant) -> Result<(), SessionError> {
        let now = self.state.now;
        if at < now { Err(SessionError::TimeGoesBack { at, now }) } else { Ok(()) }
    }

    fn check_size(&self, row: usize, bytes: u64) -> Result<(), SessionError> {
        let refuse = |message: String| Err(SessionError::Size(message));
        if bytes == 0 {
            return refuse("a message of 0 B cannot be sent\n  help: send at least 1 B".to_owned());
        }
        let flow = &self.scenario.flow[row];
        let largest = self.scenario.datagram_payload_max(flow.ip).get();
        if flow.transport != Transport::Tcp && bytes > largest {
            return refuse(format!(
                "a message of {bytes} B exceeds the largest datagram of {largest} B\n  help: \
                 divide it, or use transport = \"tcp\""
            ));
        }
        Ok(())
    }
}

/// Changes a direction from the time of the session on.
fn change_direction(
    state: &mut Snapshot,
    scenario: &Scenario,
    replication: u32,
    direction: &SelectedDirection<'_>,
    change: &DirectionChange,
) {
    let SelectedDirection { index, row_name, member, keys, .. } = direction;
    let random = LinkRandomStreams::named(scenario.seed, replication, row_name, *member);
    let entry = state.world.net.links.entry_mut(*index);
    entry.direction.change(state.now, change, keys, random);
}

impl Snapshot {
    fn copy(&self) -> Self {
        let Self { world, now, sent, failures, session } = self;
        Self {
            world: Box::new(world.copy()),
            now: *now,
            sent: *sent,
            failures: failures.clone(),
            session: session.clone(),
        }
    }

    /// The time of the state.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }
}

/// The keys that a session does not support.
fn unsupported(scenario: &Scenario) -> Vec<Unsupported> {
    let mut unsupported = unsupported_keys(scenario);
    let mut refuse = |key: String, reason: &str| {
        unsupported.push(Unsupported { key, reason: reason.to_owned() });
    };
    if !scenario.sweep.is_empty() {
        refuse("sweep".into(), "a session simulates one point; set the swept keys instead");
    }
    if scenario.record != Record::default() {
        refuse("record".into(), "a session records no files; remove the keys of this table");
    }
    let mut has_external = false;
    for (name, flow) in &scenario.flow {
        let is_external = address::is_external(&flow.load);
        has_external |= is_external;
        if matches!(flow.load, Load::Trace(_)) {
            let reason =
                "a session plays no recorded traces; use load `external` and send the rows";
            refuse(format!("flow.{name}.load"), reason);
        }
        if is_external && flow.count != 1 {
            refuse(
                format!("flow.{name}.count"),
                "an external flow has one connection; leave it out",
            );
        }
        if is_external && !flow.start.is_zero() {
            let reason = "the times of external messages are those of their calls; leave it out";
            refuse(format!("flow.{name}.start"), reason);
        }
    }
    if !has_external {
        let reason = "no flow has load = \"external\", so that there is nothing to send over";
        refuse("flow".into(), reason);
    }
    let datagrams = scenario
        .flow
        .values()
        .any(|flow| address::is_external(&flow.load) && flow.transport != Transport::Tcp);
    for (name, link) in scenario.link.iter().filter(|_| datagrams) {
        if [link.forward(), link.reverse()]
            .into_iter()
            .flatten()
            .any(|direction| direction.duplicate.is_some())
        {
            let reason = "of a duplicated datagram, one copy may arrive after the loss of another";
            refuse(format!("link.{name}.duplicate"), reason);
        }
    }
    unsupported
}
