//! The prediction of a run: its messages in the simulator, with the broker as it was measured.

use anyhow::{Context, bail};
use gridhaul_protocols::overhead::amqp_0_9_1::Names;
use gridhaul_protocols::overhead::direct::{nanomsg, synchrophasor, zeromq};
use gridhaul_protocols::overhead::mqtt::Publish;
use gridhaul_scenario::units::{Duration, Instant};

use super::{Carriage, PathLatencies, Request, SimulatedBroker, predict};
use crate::measurement::{CrossTrafficSettings, Measurement, ProtocolUnderTest, SubscriberEnd};
use crate::method::Stage;
use crate::place::LocalNetwork;
use crate::protocol::{CrossTraffic, client_name};
use crate::transfer::{Outcome, Plan};

/// A measured path and its prediction.
#[derive(Debug)]
pub struct Prediction {
    pub(crate) measured: PathLatencies,
    pub(crate) predicted: PathLatencies,
    /// Service time of the simulated broker.
    pub(crate) service: Option<Duration>,
    /// Quantile of the measured times that is the service time.
    pub(crate) basis: &'static str,
}

impl Prediction {
    /// Simulates the messages of a plan, of which `outcome` is the measurement. The simulated
    /// broker takes the median of the time that the broker took. With Nagle's algorithm this time
    /// contains waits for acknowledgements, which the simulator adds: then its 2nd percentile.
    ///
    /// # Errors
    /// The simulator does not support a key of the scenario.
    pub(crate) fn new(
        measurement: &Measurement,
        network: &LocalNetwork,
        cross_traffic: &CrossTrafficSettings,
        plan: &Plan,
        outcome: &Outcome,
        measured: PathLatencies,
    ) -> anyhow::Result<Self> {
        let flow = network.flow.as_ref().context("the network is unknown")?;
        let Carried { carriage, delivered_bytes } = Carried::new(measurement)?;
        let connection = measurement.protocol.broker_connection();
        let nodelay = connection.is_none_or(|connection| connection.nodelay.at_broker());
        let (share, basis) = if nodelay { (0.5, "median") } else { (0.02, "2nd percentile") };
        let path = outcome.summary.path.as_deref();
        let service = path.and_then(|path| path.stage(Stage::Broker).quantile(share));
        let service = service.map(|quantile| quantile.value);
        let has_broker = connection.is_some();
        if has_broker && service.is_none() {
            bail!(
                "--predict: the time of the broker is unknown, because the captures do not \
                 contain its messages\n  help: let this \
                 program start the broker, or choose one at the address of the flow"
            );
        }
        let broker = service.filter(|_| has_broker).map(|service| SimulatedBroker {
            service,
            bytes: delivered_bytes,
            nodelay,
            is_at_subscriber: connection
                .is_some_and(|connection| connection.subscriber == SubscriberEnd::To),
        });
        let cross_traffic = CrossTraffic::requested(cross_traffic);
        let request = Request {
            scenario: &flow.scenario,
            flow: &flow.name,
            start: outcome.start.since(Instant::ZERO),
            schedule: plan.schedule,
            horizon: plan.horizon,
            carriage,
            broker,
            cross_traffic: &cross_traffic,
        };
        let predicted = predict(&request)?;
        Ok(Self { measured, predicted, service: broker.map(|broker| broker.service), basis })
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
        let of_clients =
            protocol.broker_connection().map(|connection| connection.nodelay.at_clients());
        let of_ends = protocol.direct_connection().map(|connection| connection.nodelay);
        let nodelay = of_clients.or(of_ends).unwrap_or(true);
        Ok(Self { carriage: Carriage::Tcp { bytes, nodelay }, delivered_bytes })
    }
}
