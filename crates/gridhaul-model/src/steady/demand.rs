//! The throughput of one flow: its throughput law and its bottleneck.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{
    CongestionControlAlgorithm, Flow, Load, Scenario, Stage, Transport,
};

use super::Connection;
use super::path::Path;
use super::sawtooth::sawtooth_utilisation;
use super::throughput_law::{ThroughputLaw, law_of};
use crate::model_rules::ModelRules;

/// A flow and the throughput of each of its connections.
#[derive(Debug, Clone)]
pub(super) struct Demand<'s> {
    pub name: &'s str,
    pub flow: &'s Flow,
    pub connections: u64,
    pub stack: StackParams,
    pub path: Path,
    pub connection: Connection,
    pub law: ThroughputLaw,
    pub limit: Bottleneck,
    /// Segments per second that each connection sends.
    pub rate: f64,
    /// Mean round-trip time in seconds; `None` if the law does not give the queue length.
    pub rtt_s: Option<f64>,
    /// Assumptions to be stated in warnings.
    pub notes: Vec<String>,
}

/// The bottleneck of a flow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Bottleneck {
    /// Packet loss on the path.
    Loss,
    /// The receive window.
    Window,
    /// The buffer of the proxy at this node.
    Buffer(String),
    /// The rate of this link direction.
    Link(String),
    /// The rate of this link direction, for the acknowledgements.
    Acknowledgements(String),
    /// The bottleneck of another connection of the chain.
    SplitConnection(String),
}

impl Bottleneck {
    /// Whether this link direction is saturated.
    pub(super) fn saturates(&self, direction: &str) -> bool {
        matches!(self, Self::Link(key) | Self::Acknowledgements(key) if key == direction)
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Loss => "packet loss on the path".to_owned(),
            Self::Window => "the receive window".to_owned(),
            Self::Buffer(node) => format!("the buffer of the proxy at {node}"),
            Self::Link(key) => format!("the rate of {key}"),
            Self::Acknowledgements(key) => format!("the rate of {key} for acknowledgements"),
            Self::SplitConnection(text) => text.clone(),
        }
    }
}

impl<'s> Demand<'s> {
    /// Applies the throughput law to one connection of a flow, without other flows.
    ///
    /// # Errors
    /// Each key for which there is no formula.
    pub(super) fn of(
        scenario: &'s Scenario,
        (name, flow): (&'s str, &'s Flow),
        stage: &Stage,
        stack: StackParams,
        rules: ModelRules,
    ) -> Result<Self, Vec<Unsupported>> {
        reject(scenario, name, flow)?;
        let one = |key: String, reason: &str| vec![Unsupported { key, reason: reason.to_owned() }];
        let path = Path::of(scenario, &stage.forward, &stage.reverse, stage.connections, &stack)?;
        let connection = Connection::of(&stack, &path, rules);
        let key = match &stage.stack {
            Some(stack) => format!("stack.{stack}.congestion_control"),
            None => format!("flow.{name}.stack"),
        };
        let law = law_of(stack.congestion_control, connection.loss, rules)
            .map_err(|why| one(key.clone(), why))?;
        let mut demand = Self {
            name,
            flow,
            connections: stage.connections,
            law,
            limit: if law.is_window_limited(&connection) {
                Bottleneck::Window
            } else {
                Bottleneck::Loss
            },
            rate: law.rate(&connection),
            rtt_s: Some(connection.rtt_s),
            notes: Vec::new(),
            stack,
            path,
            connection,
        };
        demand.apply_link_rates().map_err(|(key, why)| one(key, &why))?;
        let assumptions = demand.assumptions(scenario);
        demand.notes.extend(assumptions);
        Ok(demand)
    }

    /// Name of the formula and the bottleneck, in warnings.
    pub(super) fn law_and_limit(&self) -> (&'static str, String) {
        let stack = &self.stack;
        let is_fixed = stack.congestion_control == CongestionControlAlgorithm::Fixed
            && stack.fixed_window < stack.receive_window;
        if is_fixed && self.law == ThroughputLaw::Window && self.limit == Bottleneck::Window {
            let title = "the fixed window over the round-trip time, without loss";
            return (title, "the fixed window".to_owned());
        }
        (self.law.title(), self.limit.text())
    }

    /// Segments per second of each connection that are not lost.
    pub(super) fn arriving(&self) -> f64 {
        self.rate * (1.0 - self.connection.loss)
    }

    /// Segments per acknowledgement sent.
    pub(super) fn segments_per_ack(&self) -> f64 {
        if self.stack.delayed_ack.is_zero() { 1.0 } else { f64::from(self.stack.ack_every) }
    }

    /// Applies the limits of the link rates.
    fn apply_link_rates(&mut self) -> Result<(), (String, String)> {
        let arriving = 1.0 - self.connection.loss;
        let segments_per_ack = self.segments_per_ack();
        let mut acks: Option<(f64, String)> = None;
        for hop in &self.path.reverse {
            // With a loss of 100 % there are no acknowledgements and the rate is infinite.
            let rate = hop.bits_per_s * segments_per_ack
                / (8.0 * self.path.ack_bytes * hop.sharers * arriving);
            if rate.is_finite() && acks.as_ref().is_none_or(|(minimum, _)| rate < *minimum) {
                acks = Some((rate, hop.key.clone()));
            }
        }
        let link = self
            .path
            .bottleneck()
            .map(|(rate, hop)| (rate, hop.key.clone(), hop.queue / hop.sharers, hop.sharers));
        if let Some((rate, key)) = acks
            && rate < self.rate
            && link.as_ref().is_none_or(|(minimum, ..)| rate < *minimum)
        {
            return self.limit_by_acknowledgements(rate, key);
        }
        if self.law == ThroughputLaw::SquareRoot {
            // Paper `plc`, section V: "reaches the link capacity"; queues are ignored.
            if let Some((rate, key, ..)) = link.filter(|(rate, ..)| *rate < self.rate) {
                (self.rate, self.limit, self.rtt_s) = (rate, Bottleneck::Link(key), None);
            }
            return Ok(());
        }
        if let Some((rate, _, queue, _)) = &link
            && self.connection.loss > 0.0
        {
            self.add_own_queueing_delay(*rate, *queue);
        }
        match link {
            Some((rate, key, queue, sharers)) if rate <= self.rate => {
                self.limit_by_link(rate, key, queue, sharers)
            }
            _ => Ok(()),
        }
    }

    /// Adds the queueing delay that the flow's own window causes at the bottleneck link.
    fn add_own_queueing_delay(&mut self, link: f64, queue: f64) {
        let round_s = self.law.round_s(&self.connection, link, queue);
        let mut slower = self.connection;
        slower.set_round(round_s, &self.stack, &self.path);
        self.rate = self.law.rate(&slower);
        self.rtt_s = Some(round_s);
    }

    /// The acknowledgements saturate the reverse link; the rest of the window is queued there.
    fn limit_by_acknowledgements(
        &mut self,
        rate: f64,
        key: String,
    ) -> Result<(), (String, String)> {
        let hop = self.path.reverse.iter().find(|hop| hop.key == key);
        let queue_segments =
            hop.map_or(0.0, |hop| hop.queue / hop.sharers) * self.segments_per_ack();
        let Connection { rtt_s, window, .. } = self.connection;
        let [alpha, beta, _] = self.stack.vegas.thresholds();
        let pipe = rate * rtt_s;
        // Vegas holds alpha to beta segments in the queues of the path, in either direction.
        let holds_back = self.law == ThroughputLaw::Vegas && window > pipe + alpha;
        let in_flight = if holds_back { window.min(pipe + beta) } else { window };
        if in_flight > pipe + queue_segments {
            let why = "acknowledgements overflow this queue, and no formula gives their loss; \
                enlarge the queue, reduce the receive window, or use backend `sim`";
            return Err((format!("{key}.queue"), why.to_owned()));
        }
        self.rtt_s = match self.limit {
            _ if holds_back => Some(rtt_s + (alpha + beta) / 2.0 / rate),
            Bottleneck::Window => Some(window / rate),
            _ => None,
        };
        self.rate = rate;
        self.limit = Bottleneck::Acknowledgements(key);
        Ok(())
    }

    /// The data saturate a link; the rest of the window is queued there or overflows the queue.
    fn limit_by_link(
        &mut self,
        rate: f64,
        key: String,
        queue: f64,
        sharers: f64,
    ) -> Result<(), (String, String)> {
        let Connection { rtt_s, window, loss, .. } = self.connection;
        let pipe = rate * rtt_s;
        let held = self.held_by_path(rate, queue);
        let in_flight = self.largest_window();
        let [alpha, beta, _] = self.stack.vegas.thresholds();
        let overflow = |what: &str| {
            let why = format!(
                "{what} overflows this queue, and no formula gives the loss; enlarge the queue, \
                    reduce the receive window, or use backend `sim`"
            );
            (format!("{key}.queue"), why)
        };
        if self.law == ThroughputLaw::Vegas && window > pipe + alpha {
            if beta > queue {
                return Err(overflow("the backlog of Vegas (beta segments)"));
            }
            self.rtt_s = Some(rtt_s + (alpha + beta) / 2.0 / rate);
        } else if in_flight <= held && loss <= 0.0 {
            self.law = ThroughputLaw::Window;
            self.rtt_s = Some(window / rate);
        } else if in_flight > held {
            let share = match self.stack.congestion_control {
                CongestionControlAlgorithm::Reno
                | CongestionControlAlgorithm::NewReno
                | CongestionControlAlgorithm::Sack
                    if sharers <= 1.0 =>
                {
                    sawtooth_utilisation(pipe, queue)
                }
                CongestionControlAlgorithm::Reno
                | CongestionControlAlgorithm::NewReno
                | CongestionControlAlgorithm::Sack
                | CongestionControlAlgorithm::Cubic => 1.0,
                _ => return Err(overflow("the receive window")),
            };
            if rate * share > self.rate {
                // Packet loss on the path keeps the window below the overflow of the queue.
                return Ok(());
            }
            self.rtt_s = None;
            self.use_saturated_link(pipe, queue, sharers);
            self.notes.extend(self.of_recovery_window(held));
            self.rate = rate * share;
            self.limit = Bottleneck::Link(key);
            return Ok(());
        }
        self.rate = rate;
        self.limit = Bottleneck::Link(key);
        Ok(())
    }

    /// Segments that may be in flight, those included whose acknowledgement waits for the timer.
    pub(super) fn largest_window(&self) -> f64 {
        let StackParams { receive_window, fixed_window, mss, congestion_control, .. } = self.stack;
        let bytes = match congestion_control {
            CongestionControlAlgorithm::Fixed => receive_window.min(fixed_window),
            _ => receive_window,
        };
        self.connection.window.max(f64::from(bytes / mss))
    }

    /// Segments that the path and a queue hold. A delayed acknowledgement lengthens the round trip,
    /// but its segments are in neither.
    fn held_by_path(&self, rate: f64, queue: f64) -> f64 {
        rate * self.connection.rtt_s.min(self.path.rtt_s()) + queue
    }

    /// Selects the law for a saturated link, and notes where it is an upper bound.
    fn use_saturated_link(&mut self, pipe: f64, queue: f64, sharers: f64) {
        let is_cubic = self.stack.congestion_control == CongestionControlAlgorithm::Cubic;
        self.law = if is_cubic || sharers > 1.0 {
            ThroughputLaw::FullLink
        } else {
            ThroughputLaw::Sawtooth
        };
        let kept = self.kept_after_loss();
        if self.law == ThroughputLaw::FullLink && kept * (pipe + queue) < pipe {
            self.notes.push(
                "the queue is too short to keep the link saturated: the result is an upper \
                    bound"
                    .to_owned(),
            );
        }
    }
}

/// Rejects each key of a flow and of the run that the formulas do not support.
fn reject(scenario: &Scenario, name: &str, flow: &Flow) -> Result<(), Vec<Unsupported>> {
    let start_spread = flow.start_spread.unwrap_or_default();
    let is_late = flow.start + start_spread > scenario.warmup
        && !(flow.start.is_zero() && start_spread.is_zero())
        && flow.load == Load::Bulk;
    let steady = flow.load == Load::Bulk || matches!(flow.load, Load::Transfer(_));
    let sets = [
        (
            flow.transport != Transport::Tcp,
            format!("flow.{name}.transport"),
            "the steady-state formulas describe TCP only; use backend `sim`",
        ),
        (
            !steady,
            format!("flow.{name}.load"),
            "there is no formula for this load together with bulk flows; use backend `sim`",
        ),
        (
            is_late,
            format!("flow.{name}.start"),
            "the flow must be in steady state for the whole measurement; lengthen `warmup`",
        ),
        (
            flow.to_stack.is_some(),
            format!("flow.{name}.to_stack"),
            "the formulas assume one stack for both ends; remove `to_stack`",
        ),
        (
            flow.deadline.is_some(),
            format!("flow.{name}.deadline"),
            "bulk data have no messages with a deadline; remove `deadline`",
        ),
    ];
    let unsupported: Vec<_> = sets
        .into_iter()
        .filter(|(is_set, ..)| *is_set)
        .map(|(_, key, reason)| Unsupported { key, reason: reason.to_owned() })
        .collect();
    if unsupported.is_empty() { Ok(()) } else { Err(unsupported) }
}
