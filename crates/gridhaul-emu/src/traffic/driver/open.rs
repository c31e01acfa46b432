//! Opens the sockets of a run and creates its applications.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::MaybeUninit;
use std::sync::Arc;

use gridhaul_core::load::{
    Application, CoapRules, ConnectionManager, ConnectionRules, Demand, SessionRules, SharedLoad,
    StartSchedule,
};
use gridhaul_core::random::RandomStream;
use gridhaul_data::trace::Playback;
use gridhaul_linux::{EventFlags, Poll};
use gridhaul_scenario::answer::EventLogWriter;
use gridhaul_scenario::backend::{Progress, RunError};
use gridhaul_scenario::scenario::{Flow, Scenario, Transport};
use gridhaul_scenario::units::Instant;
use socket2::Socket;

use super::{BOTH_ON_CHANGE, LISTENER, Member, PLAYBACK, Traffic};
use crate::error::EmulationError;
use crate::kernel_congestion_control::KernelCongestionControls;
use crate::network::{FlowLayout, NetworkPlan, Testbed};
use crate::relay::Relays;
use crate::traffic::connection::Connection;
use crate::traffic::datagrams::Datagrams;
use crate::traffic::event_log::EventLogs;
use crate::traffic::managed::{ManagedConnections, OpenSocket};
use crate::traffic::row::RowTraffic;
use crate::traffic::socket;

impl<'a> Traffic<'a> {
    /// Opens the sockets of a run, each inside the namespace of its node.
    pub(crate) fn new(
        scenario: &Scenario,
        plan: &'a NetworkPlan,
        (testbed, controls): (&'a Testbed, &'a KernelCongestionControls),
        relays: &'a Relays<'a>,
        replication: u32,
        progress: &dyn Progress,
    ) -> Result<Self, RunError> {
        let mut traffic = Self {
            plan,
            testbed,
            controls,
            relays,
            relay_counters: Default::default(),
            members: Vec::new(),
            first: Vec::new(),
            listeners: Vec::new(),
            rows: Vec::new(),
            subscriptions: Vec::new(),
            playbacks: Vec::new(),
            loss_classifiers: Vec::new(),
            event_logs: EventLogs::default(),
            due: BinaryHeap::new(),
            poll: Poll::new().map_err(EmulationError::from)?,
            scratch: vec![MaybeUninit::uninit(); 1 << 18],
        };
        for (number, (name, flow)) in scenario.flow.iter().enumerate() {
            traffic.first.push(traffic.members.len());
            traffic.rows.push(RowTraffic::new(scenario, flow));
            let seed = |member: u32, purpose: &str| {
                RandomStream::named(scenario.seed, replication, name, u64::from(member), purpose)
            };
            let session = SessionRules::of(scenario, name, flow);
            traffic.open(number as u16, (flow, session.as_ref()), testbed, &seed)?;
            if replication == scenario.record.replication && scenario.record.events.contains(name) {
                let writer = EventLogWriter::new(name, progress.recording_file()?);
                let algorithm = plan.flows[number].stacks[0].congestion_control.name();
                traffic.event_logs.add(traffic.first[number], algorithm, writer);
            }
            let members = traffic.first[number] as u32..traffic.members.len() as u32;
            if let Some(playback) = Playback::open(scenario, name, members)? {
                let number = PLAYBACK + traffic.playbacks.len() as u32;
                traffic.due.push(Reverse((playback.at(), number)));
                traffic.playbacks.push(playback);
            }
        }
        traffic.open_subscriptions(scenario);
        Ok(traffic)
    }

    fn open(
        &mut self,
        number: u16,
        (flow, session): (&Flow, Option<&SessionRules>),
        testbed: &Testbed,
        seed: &impl Fn(u32, &str) -> RandomStream,
    ) -> Result<(), EmulationError> {
        let plan = &self.plan.flows[usize::from(number)];
        let [sender, receiver] = [plan.ends[0], plan.server].map(|node| &testbed.namespaces[node]);
        let tcp = plan.transport == Transport::Tcp;
        let rules = ConnectionRules::of(flow).map(Arc::new);
        let coap = CoapRules::of(flow).map(Arc::new);
        // Managed connections open their sockets during the run.
        let count = if rules.is_some() { 0 } else { plan.count };
        let opened: Result<Vec<Socket>, EmulationError> = sender.enter(|| {
            (0..count).map(|member| socket::sender(plan, number, member, self.controls)).collect()
        })?;
        let sender = opened?;
        let mut receivers = Vec::new();
        if tcp {
            let listener = receiver.enter(|| socket::listener(plan, number, self.controls))??;
            self.poll.watch(&listener, LISTENER + u64::from(number), EventFlags::IN)?;
            self.listeners.push(Some(listener));
        } else {
            self.listeners.push(None);
            let opened: Result<Vec<Socket>, EmulationError> = receiver.enter(|| {
                (0..plan.count)
                    .map(|member| socket::datagram_receiver(plan, number, member, self.controls))
                    .collect()
            })?;
            receivers = opened?;
        }
        let load = SharedLoad::from(&flow.load);
        let opening = StartSchedule::of(flow, u64::from(plan.count));
        let mut senders = sender.into_iter();
        let mut receivers = receivers.into_iter();
        for member in 0..plan.count {
            let mut random = seed(member, "start");
            let start = opening.load_begins(&mut random);
            let demand = Demand::of_member(&load, start, seed(member, "load"));
            let opens = opening.connection_opens(start, &demand, &mut random);
            let made = match (&rules, senders.next(), receivers.next()) {
                (Some(rules), ..) => {
                    let manager =
                        ConnectionManager::new(Arc::clone(rules), seed(member, "reconnect"));
                    let application = Application::new(demand.acknowledged(session), start, ());
                    self.rows[usize::from(number)].has_messages |= application.has_messages();
                    let connections =
                        ManagedConnections::new((number, member), manager, application, opens);
                    Member::Managed(Box::new(connections))
                }
                (None, Some(sender), receiver) => self
                    .add_sockets((number, member), (sender, receiver), demand, start, opens)?
                    .confirmed(coap.as_ref(), || seed(member, "coap")),
                (None, None, _) => unreachable!("each member has a socket"),
            };
            let index = self.members.len();
            if plan.classifies_losses() && rules.is_none() {
                self.loss_classifiers.push((index, 0));
                self.rows[usize::from(number)].classifications.get_or_insert_default();
            }
            self.members.push(made);
            self.schedule(index);
        }
        Ok(())
    }

    /// The next member, with sockets that stay open during the run.
    fn add_sockets(
        &mut self,
        identity: (u16, u32),
        (sender, receiver): (Socket, Option<Socket>),
        demand: Demand,
        start: Instant,
        opens: Instant,
    ) -> Result<Member, EmulationError> {
        let index = self.members.len() as u64;
        let row = usize::from(identity.0);
        self.poll.watch(&sender, 2 * index, BOTH_ON_CHANGE)?;
        if let Some(receiver) = receiver {
            self.poll.watch(&receiver, 2 * index + 1, BOTH_ON_CHANGE)?;
            let echo = self.plan.flows[row].transport == Transport::Echo;
            // In a valid scenario, datagrams have a source or a trace.
            let source = match demand {
                Demand::Open(source) => Some(source),
                _ => None,
            };
            let datagrams = Datagrams::new(identity, [sender, receiver], source, (start, echo));
            return Ok(Member::Datagram(datagrams));
        }
        let application = Application::new(demand, start, ());
        if application.is_greedy() {
            socket::write_one_by_one(&sender)?;
        }
        self.rows[row].has_messages |= application.has_messages();
        Ok(Member::Tcp(Connection::new(identity, sender, application, opens)))
    }
}

/// Opens sockets of a member during a run, inside the namespace of its node.
pub(super) struct MemberSockets<'a> {
    pub testbed: &'a Testbed,
    pub controls: &'a KernelCongestionControls,
    pub flow: &'a FlowLayout,
    pub poll: &'a Poll,
    /// Number of the flow, of the member in it, and of the member among all.
    pub identity: (u16, u32),
    pub index: usize,
}

impl OpenSocket for MemberSockets<'_> {
    fn open(&mut self) -> Result<Socket, String> {
        let (number, member) = self.identity;
        let namespace = &self.testbed.namespaces[self.flow.ends[0]];
        let opened = namespace.enter(|| socket::sender(self.flow, number, member, self.controls));
        let sender = opened.map_err(|error| error.to_string())?;
        let sender = sender.map_err(|error| error.to_string())?;
        let watched = self.poll.watch(&sender, 2 * self.index as u64, BOTH_ON_CHANGE);
        watched.map_err(|error| error.to_string())?;
        Ok(sender)
    }
}
