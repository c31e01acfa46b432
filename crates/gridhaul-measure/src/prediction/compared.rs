//! Prediction compared with measurement: what the network explains, and what the broker adds.

use anyhow::{Context, bail};
use gridhaul_protocols::overhead::amqp_0_9_1::Names;
use gridhaul_protocols::overhead::direct::{nanomsg, synchrophasor, zeromq};
use gridhaul_protocols::overhead::mqtt::Publish;
use gridhaul_report::TextTable;
use gridhaul_report::chart::{Axis, LineChart, LineSeries, Stroke};
use gridhaul_scenario::units::{Duration, Instant};
use serde_json::{Value, json};

use super::{Carriage, PathLatencies, Request, SimulatedBroker, predict};
use crate::measurement::{Measurement, ProtocolUnderTest, SubscriberEnd};
use crate::method::{Distribution, Stage};
use crate::place::LocalNetwork;
use crate::protocol::client_name;
use crate::report::{LATENCY_HEADERS, axis_for_range, distribution, distribution_row, millis};
use crate::run::Run;

/// A measured path and its prediction.
#[derive(Debug)]
pub struct Prediction {
    measured: PathLatencies,
    predicted: PathLatencies,
    /// Service time of the simulated broker.
    service: Option<Duration>,
    /// Quantile of the measured times that is the service time.
    basis: &'static str,
}

impl Prediction {
    /// Simulates the messages of a run. The simulated broker takes the median of the time that the
    /// broker took. With Nagle's algorithm this time contains waits for acknowledgements, which the
    /// simulator adds: then its 2nd percentile.
    ///
    /// # Errors
    /// The simulator does not support a key of the scenario.
    pub(crate) fn new(
        measurement: &Measurement,
        network: &LocalNetwork,
        run: &Run,
        measured: PathLatencies,
    ) -> anyhow::Result<Self> {
        let flow = network.flow.as_ref().context("the network is unknown")?;
        let Carried { carriage, delivered_bytes } = Carried::new(measurement)?;
        let connection = measurement.protocol.broker_connection();
        let nodelay = connection.is_none_or(|connection| connection.nodelay.at_broker());
        let (share, basis) = if nodelay { (0.5, "median") } else { (0.02, "2nd percentile") };
        let path = run.outcome.summary.path.as_deref();
        let service = path.and_then(|path| path.stage(Stage::Broker).quantile(share));
        let service = service.map(|quantile| quantile.value);
        let has_broker = connection.is_some();
        if has_broker && service.is_none() {
            bail!(
                "--predict: the time of the broker is unknown, because the captures do not contain its messages\n  help: let this \
                 program start the broker, or choose one at the address of the flow"
            );
        }
        let broker = service.filter(|_| has_broker).map(|service| SimulatedBroker {
            service,
            bytes: delivered_bytes,
            nodelay,
            is_at_subscriber: connection.is_some_and(|it| it.subscriber == SubscriberEnd::To),
        });
        let request = Request {
            scenario: &flow.scenario,
            flow: &flow.name,
            start: run.outcome.start.since(Instant::ZERO),
            schedule: run.plan.schedule,
            horizon: run.plan.horizon,
            carriage,
            broker,
        };
        let predicted = predict(&request)?;
        Ok(Self { measured, predicted, service: broker.map(|it| it.service), basis })
    }

    /// The table.
    pub(crate) fn table(&self) -> TextTable {
        let rows = self.parts().into_iter().flat_map(|(part, measured, predicted)| {
            [("measured", measured), ("predicted", predicted)].map(|(source, distribution)| {
                distribution_row(&format!("{part}, {source}"), distribution)
            })
        });
        TextTable {
            title: "Prediction beside measurement".into(),
            headers: LATENCY_HEADERS.map(String::from).to_vec(),
            rows: rows.collect(),
            key_columns: 1,
            note: Some(self.note()),
        }
    }

    /// Both as JSON.
    pub(crate) fn json(&self) -> Value {
        let path = |path: &PathLatencies| {
            json!({
                "to_broker": self.service.map(|_| distribution(&path.to_broker)),
                "from_broker": self.service.map(|_| distribution(&path.from_broker)),
                "whole": distribution(&path.whole),
                "lost": path.lost,
            })
        };
        json!({
            "service_s": self.service.map(Duration::as_secs_f64),
            "measured": path(&self.measured),
            "predicted": path(&self.predicted),
        })
    }

    /// Cumulative distributions of both.
    pub(crate) fn chart(&self) -> LineChart {
        let both = [&self.measured.whole, &self.predicted.whole];
        let values = both.into_iter().flat_map(Distribution::cumulative);
        let values = values.map(|(value, _)| value.as_secs_f64());
        let chart = LineChart::new(
            "Publisher to subscriber: prediction beside measurement",
            axis_for_range(Axis::new("latency", "s"), values),
            Axis::new("share of the messages", "").including(0.0),
        );
        let series = |name: &str, distribution: &Distribution| {
            let points = distribution.cumulative().map(|(it, share)| (it.as_secs_f64(), share));
            LineSeries::new(name, points).stroke(Stroke::Step)
        };
        [("measured", &self.measured.whole), ("predicted", &self.predicted.whole)]
            .into_iter()
            .filter(|(_, distribution)| distribution.count() > 0)
            .fold(chart, |chart, (name, distribution)| chart.with(series(name, distribution)))
    }

    /// The parts that both know.
    fn parts(&self) -> Vec<(&'static str, &Distribution, &Distribution)> {
        let Self { measured, predicted, service, .. } = self;
        let mut parts = Vec::new();
        if service.is_some() {
            parts.push(("publisher to broker", &measured.to_broker, &predicted.to_broker));
            parts.push(("broker to subscriber", &measured.from_broker, &predicted.from_broker));
        }
        parts.push(("publisher to subscriber", &measured.whole, &predicted.whole));
        parts
    }

    /// How much of the latency the network explains.
    fn note(&self) -> String {
        let mut note = String::from(
            "from the hand-over to the protocol to the arrival at the subscriber; predicted by the simulator with TCP of profile linux",
        );
        if let Some(service) = self.service {
            note += &format!(
                "\nthe simulated broker takes {} ms for each message, the {} of the measurement",
                millis(Some(service)),
                self.basis
            );
        }
        let service = self.service.unwrap_or(Duration::ZERO);
        for (share, name) in [(0.5, "median"), (0.98, "98th percentile")] {
            let at = |distribution: &Distribution| {
                distribution.quantile(share).map(|it| it.value.as_secs_f64() * 1e3)
            };
            let both = at(&self.measured.whole).zip(at(&self.predicted.whole));
            let Some((measured, predicted)) = both else { continue };
            let broker = service.as_secs_f64() * 1e3;
            note += &format!(
                "\n{name} of {measured:.3} ms: the network explains {:.3} ms, the service of the broker {broker:.3} ms; {:+.3} ms remain",
                predicted - broker,
                measured - predicted
            );
        }
        if self.measured.lost + self.predicted.lost > 0 {
            note += &format!(
                "\nmessages without an arrival: {} measured, {} predicted",
                self.measured.lost, self.predicted.lost
            );
        }
        note
    }
}

/// How a protocol carries a message, and the bytes of a message from the broker.
struct Carried {
    carriage: Carriage,
    delivered_bytes: u64,
}

impl Carried {
    fn new(measurement: &Measurement) -> anyhow::Result<Self> {
        let payload = measurement.message_bytes() as u64;
        let topic = client_name().len() as u64;
        let mqtt = |version_5, qos| {
            let publish = Publish { topic, version_5, identified: qos > 0 };
            let bytes = payload + publish.overhead(payload);
            (bytes, bytes)
        };
        let protocol = &measurement.protocol;
        let (bytes, delivered_bytes) = match protocol {
            ProtocolUnderTest::Udp(_) => {
                let carriage = Carriage::Datagram { bytes: payload };
                return Ok(Self { carriage, delivered_bytes: 0 });
            }
            ProtocolUnderTest::Mqtt(settings) => mqtt(false, settings.qos),
            ProtocolUnderTest::Mqtt5(settings) => mqtt(true, settings.qos),
            ProtocolUnderTest::Amqp091(_) => {
                // RabbitMQ assigns a consumer tag of 31 characters.
                let names = Names { exchange: 0, routing_key: topic, consumer_tag: 31 };
                (payload + names.publish_overhead(), payload + names.deliver_overhead())
            }
            ProtocolUnderTest::Zeromq(_) | ProtocolUnderTest::ZeromqPubSub(_) => {
                (payload + zeromq(payload), 0)
            }
            ProtocolUnderTest::Nanomsg(_) => (payload + nanomsg(payload), 0),
            ProtocolUnderTest::C37118(_) => (payload + synchrophasor(payload), 0),
            _ => bail!("messages of {} cannot be simulated", protocol.name()),
        };
        let of_clients = protocol.broker_connection().map(|it| it.nodelay.at_clients());
        let of_ends = protocol.direct_connection().map(|connection| connection.nodelay);
        let nodelay = of_clients.or(of_ends).unwrap_or(true);
        Ok(Self { carriage: Carriage::Tcp { bytes, nodelay }, delivered_bytes })
    }
}
