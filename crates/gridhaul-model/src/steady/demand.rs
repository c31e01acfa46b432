//! What one flow of a scenario takes: its law, and the link that holds it up.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{
    CongestionControlAlgorithm, Flow, Load, Recovery, Scenario, Stage, Transport,
};

use super::Connection;
use super::law::{Law, law_of};
use super::sawtooth::sawtooth_utilisation;
use super::way::Way;
use crate::rules::Rules;

/// A flow and what its connections take each.
#[derive(Debug, Clone)]
pub(super) struct Demand<'s> {
    pub name: &'s str,
    pub flow: &'s Flow,
    pub connections: u64,
    pub stack: StackParams,
    pub way: Way,
    pub connection: Connection,
    pub law: Law,
    pub limit: Limit,
    /// Segments a second that each connection sends.
    pub rate: f64,
    /// Mean round trip in seconds; `None` where the law does not say how long the queue is.
    pub rtt_s: Option<f64>,
    /// What a reader must know, beside the name of the law.
    pub notes: Vec<String>,
}

/// What holds a flow up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Limit {
    /// The loss of the way.
    Loss,
    /// The window that the receiver offers.
    Window,
    /// The buffer of the proxy at this node.
    Buffer(String),
    /// The rate of this direction.
    Link(String),
    /// The rate of this direction for the acknowledgements.
    Acknowledgements(String),
    /// Another of the connections that proxies make of the flow: what holds that one up.
    Piece(String),
}

impl Limit {
    /// Whether this direction is kept full.
    pub(super) fn fills(&self, direction: &str) -> bool {
        matches!(self, Self::Link(key) | Self::Acknowledgements(key) if key == direction)
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Loss => "the loss of the way".to_owned(),
            Self::Window => "the receive window".to_owned(),
            Self::Buffer(node) => format!("the buffer of the proxy at {node}"),
            Self::Link(key) => format!("the rate of {key}"),
            Self::Acknowledgements(key) => format!("the rate of {key} for acknowledgements"),
            Self::Piece(text) => text.clone(),
        }
    }
}

impl<'s> Demand<'s> {
    /// Reads a stage of a flow and applies the law of its stack as if it were alone.
    ///
    /// # Errors
    /// Each key for which there is no formula.
    pub(super) fn of(
        scenario: &'s Scenario,
        (name, flow): (&'s str, &'s Flow),
        stage: &Stage,
        stack: StackParams,
        rules: Rules,
    ) -> Result<Self, Vec<Unsupported>> {
        refuse(scenario, name, flow)?;
        let one = |key: String, reason: &str| vec![Unsupported { key, reason: reason.to_owned() }];
        let way = Way::of(scenario, (&stage.forward, &stage.reverse), stage.connections, &stack)?;
        let connection = Connection::of(&stack, &way, rules);
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
            limit: if law.is_window_limited(&connection) { Limit::Window } else { Limit::Loss },
            rate: law.rate(&connection),
            rtt_s: Some(connection.rtt_s),
            notes: Vec::new(),
            stack,
            way,
            connection,
        };
        demand.hold_up().map_err(|(key, why)| one(key, &why))?;
        demand.note_assumptions();
        Ok(demand)
    }

    /// Segments a second of each connection that are not lost.
    pub(super) fn arriving(&self) -> f64 {
        self.rate * (1.0 - self.connection.loss)
    }

    /// Segments for each acknowledgement on the wire, whatever it does to the window.
    pub(super) fn segments_for_each_ack(&self) -> f64 {
        if self.stack.delayed_ack.is_zero() { 1.0 } else { f64::from(self.stack.ack_every) }
    }

    fn note_assumptions(&mut self) {
        self.notes.extend(self.law.outside(&self.connection));
        let repairs_at_once =
            matches!(self.stack.recovery, Recovery::NewReno | Recovery::Sack | Recovery::Rack);
        if self.law == Law::Timeouts && repairs_at_once {
            self.notes.push(
                "the formula is Reno's, which waits for its timer after several losses in a window; this \
                 stack repairs them at once (NewReno, SACK, RACK) and is up to a quarter faster"
                    .to_owned(),
            );
        }
        if let Load::Transfer(_) = self.flow.load {
            self.notes.push(
                "completion time by slow start, first loss and steady state (Cardwell, Savage and \
                 Anderson 2000); that slow start overruns a queue is neglected"
                    .to_owned(),
            );
        }
        if self.way.is_bursty {
            self.notes.push(
                "loss in bursts counts with its mean, as if single packets were lost: bursts \
                 cost fewer reductions of the window and more timeouts"
                    .to_owned(),
            );
        }
        if self.way.ack_loss() > 0.0 {
            self.notes.push("lost acknowledgements are neglected".to_owned());
        }
        if self.way.jitter_deviation_s > 0.0 {
            self.notes.push(
                "jitter counts with its mean; that packets wait for the one before them is \
                 neglected"
                    .to_owned(),
            );
        }
    }

    /// Applies the rates of the links.
    fn hold_up(&mut self) -> Result<(), (String, String)> {
        let arriving = 1.0 - self.connection.loss;
        let each = self.segments_for_each_ack();
        let mut acks: Option<(f64, String)> = None;
        for hop in &self.way.back {
            // Everything is lost: no acknowledgements, no limit.
            let rate = hop.bits_per_s * each / (8.0 * self.way.ack_bytes * hop.sharers * arriving);
            if rate.is_finite() && acks.as_ref().is_none_or(|(least, _)| rate < *least) {
                acks = Some((rate, hop.key.clone()));
            }
        }
        let link = self
            .way
            .narrowest()
            .map(|(rate, hop)| (rate, hop.key.clone(), hop.queue / hop.sharers, hop.sharers));
        if let Some((rate, key)) = acks
            && rate < self.rate
            && link.as_ref().is_none_or(|(least, ..)| rate < *least)
        {
            return self.behind_acknowledgements(rate, key);
        }
        if self.law == Law::SquareRoot {
            // Paper `plc`, section V: "reaches the link capacity", and queues are not looked at.
            if let Some((rate, key, ..)) = link.filter(|(rate, ..)| *rate < self.rate) {
                (self.rate, self.limit, self.rtt_s) = (rate, Limit::Link(key), None);
            }
            return Ok(());
        }
        if let Some((rate, _, queue, _)) = &link
            && self.connection.loss > 0.0
        {
            self.wait_in_own_queue(*rate, *queue);
        }
        match link {
            Some((rate, key, queue, sharers)) if rate <= self.rate => {
                self.behind_link(rate, key, queue, sharers)
            }
            _ => Ok(()),
        }
    }

    /// Counts the time that the flow's own window waits in front of the narrowest link.
    fn wait_in_own_queue(&mut self, link: f64, queue: f64) {
        let round_s = self.law.round_s(&self.connection, link, queue);
        let mut slower = self.connection;
        slower.set_round(round_s, &self.stack, &self.way);
        self.rate = self.law.rate(&slower);
        self.rtt_s = Some(round_s);
    }

    /// The acknowledgements fill their link: what the window allows waits there.
    fn behind_acknowledgements(&mut self, rate: f64, key: String) -> Result<(), (String, String)> {
        let hop = self.way.back.iter().find(|hop| hop.key == key);
        let room = hop.map_or(0.0, |hop| hop.queue / hop.sharers) * self.segments_for_each_ack();
        let Connection { rtt_s, window, .. } = self.connection;
        if window > rate * rtt_s + room {
            let why = "acknowledgements overflow this queue, and no formula says which get \
                       through; enlarge it, lessen the receive window, or ask `--on sim`";
            return Err((format!("{key}.queue"), why.to_owned()));
        }
        self.rtt_s = (self.limit == Limit::Window).then(|| window / rate);
        self.rate = rate;
        self.limit = Limit::Acknowledgements(key);
        Ok(())
    }

    /// The data fills a link: what the window allows waits there, or overflows its queue.
    fn behind_link(
        &mut self,
        rate: f64,
        key: String,
        queue: f64,
        sharers: f64,
    ) -> Result<(), (String, String)> {
        let Connection { rtt_s, window, loss, .. } = self.connection;
        let pipe = rate * rtt_s;
        let (alpha, beta, _) = *self.stack.vegas;
        let overflow = |what: &str| {
            let why = format!(
                "{what} overflows this queue, and no law says what follows; \
                               enlarge it, lessen the receive window, or ask `--on sim`"
            );
            (format!("{key}.queue"), why)
        };
        if self.law == Law::Vegas && window > pipe + alpha {
            if beta > queue {
                return Err(overflow("what Vegas keeps in the queue"));
            }
            self.rtt_s = Some(rtt_s + (alpha + beta) / 2.0 / rate);
        } else if window <= pipe + queue && loss <= 0.0 {
            self.law = Law::Window;
            self.rtt_s = Some(window / rate);
        } else if window > pipe + queue {
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
                _ => return Err(overflow("the window")),
            };
            if rate * share > self.rate {
                // The loss of the way keeps the window away from the full queue.
                return Ok(());
            }
            self.rtt_s = None;
            self.fill(pipe, queue, sharers);
            self.rate = rate * share;
            self.limit = Limit::Link(key);
            return Ok(());
        }
        self.rate = rate;
        self.limit = Limit::Link(key);
        Ok(())
    }

    /// Names what stands for the share of the link, and where it is an upper bound.
    fn fill(&mut self, pipe: f64, queue: f64, sharers: f64) {
        let is_cubic = self.stack.congestion_control == CongestionControlAlgorithm::Cubic;
        self.law = if is_cubic || sharers > 1.0 { Law::FullLink } else { Law::Sawtooth };
        // CUBIC's window falls to 0.7 (RFC 9438, section 4.6), Reno's to one half.
        let kept = if is_cubic { 0.7 } else { 0.5 };
        if self.law == Law::FullLink && kept * (pipe + queue) < pipe {
            self.notes
                .push("the queue is too short to keep the link busy: an upper bound".to_owned());
        }
    }
}

/// Names each key of a flow and of the run that the formulas cannot honour.
fn refuse(scenario: &Scenario, name: &str, flow: &Flow) -> Result<(), Vec<Unsupported>> {
    let spread = flow.start_spread.unwrap_or_default();
    let late = flow.start + spread > scenario.warmup
        && !(flow.start.is_zero() && spread.is_zero())
        && flow.load == Load::Bulk;
    let steady = flow.load == Load::Bulk || matches!(flow.load, Load::Transfer(_));
    let sets = [
        (
            flow.transport != Transport::Tcp,
            format!("flow.{name}.transport"),
            "the steady state is that of TCP; ask `--on sim`",
        ),
        (
            !steady,
            format!("flow.{name}.load"),
            "there is no formula for this load beside bulk flows",
        ),
        (
            late,
            format!("flow.{name}.start"),
            "the steady state has to last for the whole measured time; lengthen `warmup`",
        ),
        (flow.to_stack.is_some(), format!("flow.{name}.to_stack"), "give both ends one stack"),
        (
            flow.deadline.is_some(),
            format!("flow.{name}.deadline"),
            "bulk data has no messages to judge",
        ),
    ];
    let unsupported: Vec<_> = sets
        .into_iter()
        .filter(|(is_set, ..)| *is_set)
        .map(|(_, key, reason)| Unsupported { key, reason: reason.to_owned() })
        .collect();
    if unsupported.is_empty() { Ok(()) } else { Err(unsupported) }
}
