//! Prediction of a measurement: the same messages over the same network in the packet simulator.
//!
//! The messages of the schedule go to the broker over TCP, and from there to the subscriber over
//! another connection, after the time that the broker took in the measurement. The simulator knows
//! nothing of programs: what it predicts is the share of network and TCP.

mod compared;
mod cross_traffic;
mod messages;

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use gridhaul::Engine;
use gridhaul::scenario::backend::NoProgress;
use gridhaul_protocols::capture::CapturePoint;
use gridhaul_scenario::scenario::{
    Flow, Load, Record, Replications, Scenario, Stack, Trace, Transport,
};
use gridhaul_scenario::units::{Duration, Instant};
use thiserror::Error;

use crate::method::{Distribution, Message, Phase, Schedule};
use crate::protocol::CrossTraffic;
use messages::{delays, write_trace};

pub use compared::Prediction;

/// Most messages of all flows of a prediction, of both legs together: the simulator records the
/// delays of a million messages. The rest is for those after the last message of the schedule.
const RECORDED_MAX: f64 = 800_000.0;

/// Names of the flows in the simulated scenario.
const TO_BROKER: &str = "to_broker";
const FROM_BROKER: &str = "from_broker";

/// Predicted quantity.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The network.
    pub scenario: &'a Scenario,
    /// The flow between whose ends the messages pass.
    pub flow: &'a str,
    /// Time from the start of the network to the start of the schedule.
    pub start: Duration,
    /// When messages are sent.
    pub schedule: Schedule,
    /// Time after which a message is lost.
    pub horizon: Duration,
    /// How messages are carried.
    pub carriage: Carriage,
    /// The broker; `None` for messages without one.
    pub broker: Option<SimulatedBroker>,
    /// Packets of other applications on the path.
    pub cross_traffic: &'a [CrossTraffic],
}

/// How messages are carried, with their bytes above the transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carriage {
    /// Each in a datagram.
    Datagram {
        /// Bytes of a message.
        bytes: u64,
    },
    /// In a stream.
    Tcp {
        /// Bytes of a message from the publisher.
        bytes: u64,
        /// Whether the clients turn Nagle's algorithm off.
        nodelay: bool,
    },
}

/// The broker of a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulatedBroker {
    /// Time from the arrival of a message to the hand-over to TCP.
    pub service: Duration,
    /// Bytes of a message from the broker.
    pub bytes: u64,
    /// Whether the broker turns Nagle's algorithm off.
    pub nodelay: bool,
    /// Whether the subscriber is at the end of the broker, so that no link is between them.
    pub is_at_subscriber: bool,
}

/// Latencies along the path, from captures or from the simulator, without the client of the
/// subscriber.
#[derive(Debug, Clone, Default)]
pub struct PathLatencies {
    /// From the hand-over to the protocol to the arrival at the broker; without a broker at the
    /// subscriber.
    pub to_broker: Distribution,
    /// From the arrival at the broker to the arrival at the subscriber.
    pub from_broker: Distribution,
    /// From the hand-over to the arrival at the subscriber.
    pub whole: Distribution,
    /// Messages that did not arrive.
    pub lost: u64,
}

/// Why there is no prediction.
#[derive(Debug, Error)]
pub enum PredictionError {
    /// The simulator rejects the scenario.
    #[error(transparent)]
    Simulator(#[from] gridhaul::Error),
    /// The delays that the simulator has recorded cannot be read.
    #[error("the prediction: cannot read the recorded delays: {0}")]
    Series(std::io::Error),
    /// The messages cannot be written for the simulator.
    #[error("the prediction: cannot write {path}: {source}")]
    Trace {
        /// File or folder.
        path: String,
        /// Cause.
        source: std::io::Error,
    },
}

/// Simulates the messages.
///
/// # Errors
/// The simulator does not support a key of the scenario, or files cannot be written in the folder
/// for temporary files.
pub fn predict(request: &Request<'_>) -> Result<PathLatencies, PredictionError> {
    let failed = |source| PredictionError::Trace { path: "a temporary folder".into(), source };
    let folder = tempfile::tempdir().map_err(failed)?;
    let total = request.messages();
    let intended = |index: usize| request.schedule.intended(index as u64);
    let sent: Vec<_> = (0..total as usize).map(|index| (intended(index), index)).collect();
    let (bytes, _) = request.bytes();
    let mut scenario = request.network(folder.path());
    scenario.flow.insert(TO_BROKER.into(), request.first_leg());
    write_trace(folder.path(), TO_BROKER, &sent, bytes)?;
    let arrivals = request.simulate(&scenario, TO_BROKER, &sent)?;
    let Some(broker) = request.broker else {
        return Ok(latencies(request, |index| (arrivals[index], arrivals[index])));
    };
    if broker.is_at_subscriber {
        let whole = |index: usize| arrivals[index].map(|at| at + broker.service);
        return Ok(latencies(request, |index| (arrivals[index], whole(index))));
    }
    // The messages of the second leg load the links of the first one, at least with
    // acknowledgements: both are simulated.
    let mut forwarded: Vec<_> = arrivals
        .iter()
        .enumerate()
        .filter_map(|(index, arrival)| Some(((*arrival)? + broker.service, index)))
        .collect();
    forwarded.sort_unstable();
    scenario.flow.insert(FROM_BROKER.into(), request.second_leg());
    write_trace(folder.path(), FROM_BROKER, &forwarded, broker.bytes)?;
    let delivered = request.simulate(&scenario, FROM_BROKER, &forwarded)?;
    Ok(latencies(request, |index| (arrivals[index], delivered.get(index).copied().flatten())))
}

impl PathLatencies {
    /// Adds a message of the measurement, as captures saw it.
    pub fn add(&mut self, message: &Message) {
        let Some(sent) = message.sent.filter(|_| message.phase == Phase::Measured) else { return };
        let broker = message.captured.at(CapturePoint::BrokerArrival);
        let subscriber = message.captured.at(CapturePoint::SubscriberArrival);
        self.record(sent, broker.or(subscriber), subscriber);
    }

    fn record(&mut self, sent: Instant, broker: Option<Instant>, subscriber: Option<Instant>) {
        broker.into_iter().for_each(|at| self.to_broker.record(at.since(sent)));
        match (broker, subscriber) {
            (Some(broker), Some(at)) => {
                self.from_broker.record(at.since(broker));
                self.whole.record(at.since(sent));
            }
            _ => self.lost += 1,
        }
    }
}

/// The latencies of the messages after the warm-up, by the times of their arrivals at broker and
/// subscriber.
fn latencies(
    request: &Request<'_>,
    arrivals: impl Fn(usize) -> (Option<Instant>, Option<Instant>),
) -> PathLatencies {
    let mut latencies = PathLatencies::default();
    let schedule = request.schedule;
    for index in schedule.warm_up_messages()..request.messages() {
        let (broker, subscriber) = arrivals(index as usize);
        latencies.record(schedule.intended(index), broker, subscriber);
    }
    latencies
}

impl Request<'_> {
    /// Bytes of a message from the publisher, and whether Nagle's algorithm is off at the clients.
    const fn bytes(&self) -> (u64, bool) {
        match self.carriage {
            Carriage::Datagram { bytes } => (bytes, true),
            Carriage::Tcp { bytes, nodelay } => (bytes, nodelay),
        }
    }

    /// Number of the first messages of the schedule that are simulated.
    fn messages(&self) -> u64 {
        let cross: f64 =
            self.cross_traffic.iter().map(|load| 1.0 / load.every().as_secs_f64()).sum();
        // Both legs, and the packets of other applications between two messages.
        let each = 2.0 + cross / self.schedule.rate();
        self.schedule.total().min((RECORDED_MAX / each) as u64)
    }

    /// The network with its cross traffic, for a run that records the delay of each message.
    fn network(&self, folder: &Path) -> Scenario {
        let stack = |nodelay: bool| Stack { nagle: Some(!nodelay), ..Stack::default() };
        let (_, client) = self.bytes();
        let broker = self.broker.map_or(client, |broker| broker.nodelay);
        let last = self.schedule.intended(self.messages());
        // Series over time have few samples: only the delays of the messages are needed.
        let duration = self.start + last.since(Instant::ZERO) + self.horizon;
        Scenario {
            duration,
            warmup: Duration::ZERO,
            replications: Replications::Fixed(1),
            folder: Some(folder.display().to_string()),
            record: Record { interval: Some(duration), ..Record::default() },
            stack: match self.carriage {
                // Datagrams have no stack.
                Carriage::Datagram { .. } => [].into(),
                Carriage::Tcp { .. } => [("client", stack(client)), ("broker", stack(broker))]
                    .map(|(name, stack)| (name.to_owned(), stack))
                    .into(),
            },
            flow: self.cross_flows().collect(),
            sweep: Vec::new(),
            plan: None,
            ..self.scenario.clone()
        }
    }

    fn first_leg(&self) -> Flow {
        self.leg(self.scenario.flow[self.flow].clone(), TO_BROKER, ["client", "broker"])
    }

    fn second_leg(&self) -> Flow {
        self.leg(self.reversed(), FROM_BROKER, ["broker", "client"])
    }

    /// The flow with both ends exchanged.
    fn reversed(&self) -> Flow {
        let flow = self.scenario.flow[self.flow].clone();
        Flow {
            from: flow.to.clone(),
            to: flow.from.clone(),
            route: flow.reverse_route.clone(),
            reverse_route: flow.route.clone(),
            ..flow
        }
    }

    fn leg(&self, flow: Flow, name: &str, stacks: [&str; 2]) -> Flow {
        let (transport, stacks) = match self.carriage {
            Carriage::Datagram { .. } => (Transport::Datagram, [None, None]),
            Carriage::Tcp { .. } => (Transport::Tcp, stacks.map(|name| Some(name.to_owned()))),
        };
        let [stack, to_stack] = stacks;
        Flow {
            count: 1,
            transport,
            stack,
            to_stack,
            load: Load::Trace(Trace { file: format!("{name}.csv") }),
            deadline: None,
            start: self.start,
            start_spread: None,
            ..flow
        }
    }

    /// Runs the simulator. Returns the time of the arrival of each message of a flow since the
    /// start of the schedule, by its index; `due` are the times and indices of the messages.
    fn simulate(
        &self,
        scenario: &Scenario,
        flow: &str,
        due: &[(Instant, usize)],
    ) -> Result<Vec<Option<Instant>>, PredictionError> {
        let answers = gridhaul::run(scenario, &Engine::default(), "prediction", &NoProgress)?;
        let mut waiting: BTreeMap<u64, VecDeque<usize>> = BTreeMap::new();
        for (at, index) in due {
            waiting.entry(at.as_nanos()).or_default().push_back(*index);
        }
        let messages = due.iter().map(|(_, index)| index + 1).max().unwrap_or(0);
        let mut arrivals = vec![None; messages];
        let delays: Result<Vec<_>, _> = answers.iter().map(|answer| delays(answer, flow)).collect();
        for (due, delay) in delays?.into_iter().flatten() {
            let since_start = Instant::ZERO + due.since(Instant::ZERO + self.start);
            // Messages that were due at the same time arrive in the order of their numbers.
            let index = waiting.get_mut(&since_start.as_nanos()).and_then(VecDeque::pop_front);
            if let Some(index) = index {
                arrivals[index] = Some(since_start + delay);
            }
        }
        Ok(arrivals)
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::BitRate;

    use super::*;
    use crate::protocol::Direction;

    fn scenario(forward: &str, reverse: &str) -> Scenario {
        let text = format!(
            "title = \"one link\"\nduration = \"60 s\"\n[node]\na = {{}}\nb = \
             {{}}\n[link.wan]\nfrom = \"a\"\nto = \"b\"\n\
             forward = {{ rate = \"8 Mbit/s\", {forward} }}\nreverse = {{ rate = \"8 Mbit/s\", \
             {reverse} }}\n\
             [flow.test]\nfrom = \"a\"\nto = \"b\"\nload = \"bulk\"\n"
        );
        Scenario::from_toml(&text, "one-link.toml").unwrap()
    }

    fn request(scenario: &Scenario, carriage: Carriage) -> Request<'_> {
        Request {
            scenario,
            flow: "test",
            start: Duration::from_millis(500),
            schedule: Schedule::new(100.0, 300),
            horizon: Duration::from_secs(2),
            carriage,
            broker: None,
            cross_traffic: &[],
        }
    }

    fn broker(service_millis: u64) -> SimulatedBroker {
        SimulatedBroker {
            service: Duration::from_millis(service_millis),
            bytes: 148,
            nodelay: true,
            is_at_subscriber: false,
        }
    }

    fn median(distribution: &Distribution) -> f64 {
        distribution.quantile(0.5).unwrap().value.as_secs_f64() * 1e3
    }

    fn is_near(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 1e-3 * expected
    }

    /// A packet of 148 B and headers of 52 B (IPv4, TCP with timestamps) takes 0.2 ms at 8 Mbit/s.
    #[test]
    fn the_path_through_a_broker_is_two_links_and_the_service_time() {
        let scenario = scenario("delay = \"20 ms\"", "delay = \"30 ms\"");
        let carriage = Carriage::Tcp { bytes: 148, nodelay: true };
        let request = Request { broker: Some(broker(2)), ..request(&scenario, carriage) };
        let path = predict(&request).unwrap();
        assert_eq!((path.whole.count(), path.lost), (300, 0));
        assert!(is_near(median(&path.to_broker), 20.2), "{}", median(&path.to_broker));
        assert!(is_near(median(&path.from_broker), 32.2), "{}", median(&path.from_broker));
        assert!(is_near(median(&path.whole), 52.4), "{}", median(&path.whole));
    }

    #[test]
    fn a_subscriber_at_the_broker_waits_for_the_service_only() {
        let scenario = scenario("delay = \"20 ms\"", "delay = \"30 ms\"");
        let carriage = Carriage::Tcp { bytes: 148, nodelay: true };
        let at_subscriber = SimulatedBroker { is_at_subscriber: true, ..broker(2) };
        let path =
            predict(&Request { broker: Some(at_subscriber), ..request(&scenario, carriage) })
                .unwrap();
        assert!(is_near(median(&path.whole), 22.2), "{}", median(&path.whole));
    }

    /// Datagrams of 1000 B with headers take 1 ms: at 90 % of the rate, a message waits for several
    /// ms (M/D/1), and not at all in the other direction.
    #[test]
    fn messages_wait_for_the_cross_traffic_of_their_direction() {
        let scenario = scenario("delay = \"20 ms\"", "delay = \"20 ms\"");
        let medians = [Direction::Forward, Direction::Reverse].map(|direction| {
            let rate = BitRate::from_bits_per_sec(7_200_000);
            let load = CrossTraffic { direction, rate, packet: 1_000 };
            let request = request(&scenario, Carriage::Datagram { bytes: 172 });
            let path = predict(&Request { cross_traffic: &[load], ..request }).unwrap();
            assert_eq!((path.whole.count(), path.lost), (300, 0));
            median(&path.whole)
        });
        assert!((21.2..60.0).contains(&medians[0]), "{medians:?}");
        assert!(is_near(medians[1], 20.2), "{medians:?}");
    }

    /// Nagle's algorithm holds a message until the acknowledgement of the one before, 40 ms later.
    #[test]
    fn nagle_at_the_clients_delays_the_first_leg() {
        let scenario = scenario("delay = \"20 ms\"", "delay = \"20 ms\"");
        let carriage = Carriage::Tcp { bytes: 148, nodelay: false };
        let path = predict(&request(&scenario, carriage)).unwrap();
        assert!(median(&path.to_broker) > 30.0, "{}", median(&path.to_broker));
    }

    /// A datagram of 172 B and headers of 28 B takes 0.2 ms at 8 Mbit/s.
    #[test]
    fn datagrams_are_lost_and_never_late() {
        let scenario =
            scenario("delay = \"20 ms\", loss = { bernoulli = \"20 %\" }", "delay = \"20 ms\"");
        let path = predict(&request(&scenario, Carriage::Datagram { bytes: 172 })).unwrap();
        // 60 of 300; 99.9 % of the binomial distribution is between 38 and 84.
        assert!((38..=84).contains(&path.lost), "{}", path.lost);
        assert_eq!(path.whole.count() + path.lost, 300);
        assert!(is_near(median(&path.whole), 20.2), "{}", median(&path.whole));
        assert!(path.whole.max().unwrap().as_secs_f64() < 0.0203);
    }
}
