//! The measurements of the latency: systems, protocols, rates, sizes and encodings.

use gridhaul_protocols::payload::{Encoding, Sample, Schema};
use gridhaul_scenario::units::{BitRate, Duration};
use serde::Serialize;

use super::extent::Extent;
use crate::experiment::cells::CellResult;
use crate::measurement::{
    Amqp091Settings, BrokerConnection, ConstantRate, CrossTrafficSettings, EmulatedNetwork,
    Experiment, Measurement, MqttBrokerSource, MqttSettings, Nodelay, Place, ProtocolUnderTest,
    Record, SampledValuesSettings, ScheduleSettings, StartedBroker, SubscriberEnd, UdpSettings,
};

/// Presets that represent the test systems of the report.
pub(super) const SYSTEMS: [&str; 3] = ["ethernet", "5g-prototype", "5g-ready"];

/// The protocols of the figures.
pub(super) const PROTOCOLS: [&str; 4] = ["udp", "sv", "mqtt", AMQP];

/// The version of AMQP in VILLASnode, by which the report measured.
pub(super) const AMQP: &str = "amqp-0-9-1";

/// Measured quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct CellKey {
    pub(super) system: &'static str,
    pub(super) protocol: &'static str,
    /// `protobuf` and `json` of VILLASnode; `float32` for Sampled Values.
    pub(super) encoding: &'static str,
    pub(super) values: u32,
    pub(super) rate_per_s: u32,
    /// Deviation from the matrix of the report.
    pub(super) variant: Variant,
}

/// Variable of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Variant {
    /// The uplink, through RabbitMQ if there is a broker, without Nagle's algorithm.
    Uplink,
    Downlink,
    /// Nagle's algorithm at the client of MQTT, its default and that of VILLASnode.
    Nagle,
    /// MQTT through mosquitto.
    Mosquitto,
    /// Cross traffic of 90 % of the uplink.
    BelowCapacity,
    /// Cross traffic of 105 % of the uplink.
    AboveCapacity,
}

/// A measurement with its repetitions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Cell {
    #[serde(flatten)]
    pub(super) key: CellKey,
    /// The command of one repetition, which is the key of its results in the folder.
    pub(super) command: String,
    /// One repetition.
    #[serde(skip)]
    pub(super) measurement: Measurement,
    /// Repetitions, those that the machine has disturbed included.
    pub(super) repetitions: Vec<CellResult>,
    /// Why a repetition failed.
    pub(super) error: Option<String>,
}

/// Measurements at one network with one broker.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    pub(super) cells: Vec<Cell>,
}

impl CellKey {
    /// A measurement of the matrix of the report with 10 values.
    pub(super) const fn uplink(
        system: &'static str,
        protocol: &'static str,
        rate_per_s: u32,
    ) -> Self {
        let encoding = encoding(protocol);
        Self { system, protocol, encoding, values: 10, rate_per_s, variant: Variant::Uplink }
    }

    pub(super) const fn with(self, variant: Variant) -> Self {
        Self { variant, ..self }
    }

    /// The options of the variant.
    const fn options(&self) -> &'static str {
        match self.variant {
            Variant::Uplink | Variant::Mosquitto => "",
            Variant::Downlink => " --reverse",
            Variant::Nagle => " --nodelay broker",
            // The uplink of 5G-ready has 20 Mbit/s.
            Variant::BelowCapacity => " --cross-traffic 18Mbit/s",
            Variant::AboveCapacity => " --cross-traffic 21Mbit/s --horizon 30s",
        }
    }

    /// The measurement of one repetition.
    fn measurement(&self, extent: &Extent) -> Measurement {
        let (messages, warm_up) = extent.messages(self.rate_per_s);
        let schedule = ScheduleSettings {
            rate: f64::from(self.rate_per_s),
            messages: u64::from(messages),
            warm_up: Some(u64::from(warm_up)),
        };
        let mbit = |rate: u64| Some(BitRate::from_bits_per_sec(rate * 1_000_000));
        let forward = match self.variant {
            Variant::BelowCapacity => mbit(18),
            Variant::AboveCapacity => mbit(21),
            _ => None,
        };
        let cross_traffic = CrossTrafficSettings { forward, ..CrossTrafficSettings::default() };
        let record = Record { floor: false, ..Record::default() };
        let run = ConstantRate { schedule, cross_traffic, record, ..ConstantRate::default() };
        let is_nagle = self.variant == Variant::Nagle;
        let connection = BrokerConnection {
            nodelay: if is_nagle { Nodelay::Broker } else { Nodelay::Both },
            subscriber: SubscriberEnd::To,
            ..BrokerConnection::default()
        };
        let protocol = protocol(self.protocol, self.variant == Variant::Mosquitto, connection);
        let mut measurement = Measurement::new(Experiment::Latency(run), protocol);
        measurement.message.bytes = self.bytes();
        if self.variant == Variant::AboveCapacity {
            measurement.message.horizon = Duration::from_secs(30);
        }
        let reverse = self.variant == Variant::Downlink;
        let network = EmulatedNetwork { reverse, ..EmulatedNetwork::system(self.system) };
        measurement.place = Place::Emulated(network);
        measurement
    }

    /// Words of the table.
    pub(super) const fn note(&self) -> &'static str {
        match self.variant {
            Variant::Uplink => "",
            Variant::Downlink => "downlink",
            Variant::Nagle => "Nagle's algorithm",
            Variant::Mosquitto => "mosquitto",
            Variant::BelowCapacity => "cross traffic 18 Mbit/s",
            Variant::AboveCapacity => "cross traffic 21 Mbit/s",
        }
    }

    /// Bytes of a message.
    fn bytes(&self) -> usize {
        let values = self.values as usize;
        match self.encoding {
            "json" => Encoding::Json.encode(&Sample::typical(values)).len(),
            "float32" => 4 * values,
            _ => Encoding::Protobuf(Schema::Float64).encode(&Sample::typical(values)).len(),
        }
    }
}

impl Cell {
    pub(super) fn new(key: CellKey, extent: &Extent) -> Self {
        let CellKey { system, protocol, rate_per_s, variant, .. } = key;
        let (messages, warm_up) = extent.messages(rate_per_s);
        let broker = if protocol == "mqtt" && variant != Variant::Mosquitto {
            " --broker-program rabbitmq"
        } else {
            ""
        };
        let command = format!(
            "gridhaul measure latency {protocol} --system {system} --subscriber to --rate \
             {rate_per_s} --messages {messages} --warm-up {warm_up} --bytes {}{broker}{}",
            key.bytes(),
            key.options()
        );
        let measurement = key.measurement(extent);
        Self { key, command, measurement, repetitions: Vec::new(), error: None }
    }

    /// Repetitions that the machine has not disturbed.
    pub(super) fn valid(&self) -> impl Iterator<Item = &CellResult> {
        self.repetitions.iter().filter(|repetition| repetition.invalid.is_empty())
    }

    /// Number of repetitions that the machine has disturbed: they are not evaluated.
    pub(super) fn disturbed(&self) -> usize {
        self.repetitions.len() - self.valid().count()
    }
}

/// A protocol of the report by its name on the command line. MQTT passes RabbitMQ as in the report,
/// or mosquitto.
pub(super) fn protocol(
    name: &str,
    mosquitto: bool,
    connection: BrokerConnection,
) -> ProtocolUnderTest {
    let started = StartedBroker::default();
    match name {
        "sv" => ProtocolUnderTest::SampledValues(SampledValuesSettings::default()),
        "mqtt" => {
            let broker = if mosquitto {
                MqttBrokerSource::Mosquitto(started)
            } else {
                MqttBrokerSource::Rabbitmq(started)
            };
            ProtocolUnderTest::Mqtt(MqttSettings { broker, connection, ..MqttSettings::default() })
        }
        AMQP => {
            let settings = Amqp091Settings { connection, ..Amqp091Settings::default() };
            ProtocolUnderTest::Amqp091(settings)
        }
        // The last one of `PROTOCOLS`.
        _ => ProtocolUnderTest::Udp(UdpSettings::default()),
    }
}

/// The encoding of the matrix: 32-bit floats in Sampled Values, and the Protobuf of VILLASnode.
const fn encoding(protocol: &str) -> &'static str {
    // Strings cannot be compared in a constant function; the name of no other protocol begins with
    // this letter.
    if protocol.as_bytes()[0] == b's' { "float32" } else { "protobuf" }
}

/// All measurements. Those on which statements depend are first, so that an interruption costs the
/// others.
pub(super) fn groups(extent: &Extent) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut add = |keys: Vec<CellKey>| {
        if !keys.is_empty() {
            groups.push(Group {
                cells: keys.into_iter().map(|key| Cell::new(key, extent)).collect(),
            });
        }
    };
    let at_rates = |key: CellKey| {
        extent
            .rates
            .iter()
            .map(move |&rate_per_s| CellKey { rate_per_s, ..key })
            .collect::<Vec<_>>()
    };
    let is_frame = |protocol: &str| protocol == "sv";
    for (system, protocols) in SYSTEMS.into_iter().zip(extent.protocols) {
        let keys = |frames: bool| {
            let own = protocols.iter().filter(move |protocol| is_frame(protocol) == frames);
            own.flat_map(|protocol| at_rates(CellKey::uplink(system, protocol, 0)))
        };
        let mut packets: Vec<_> = keys(false).collect();
        let mut frames: Vec<_> = keys(true).collect();
        if system == "5g-ready" {
            packets.extend(at_rates(CellKey::uplink(system, "mqtt", 0).with(Variant::Nagle)));
            let fast = extent.fast_rates.iter();
            frames.extend(fast.map(|&rate| CellKey::uplink(system, "sv", rate)));
        }
        add(packets);
        add(frames);
    }
    for variant in extent.variants {
        let system = if *variant == Variant::Downlink { "5g-prototype" } else { "5g-ready" };
        let protocols: &[_] =
            if *variant == Variant::Downlink { &["udp", "mqtt", AMQP] } else { &["udp", "mqtt"] };
        let key = |protocol| CellKey::uplink(system, protocol, 100).with(*variant);
        let keys = protocols.iter().map(|protocol| key(*protocol));
        add(match variant {
            Variant::Downlink => keys.flat_map(at_rates).collect(),
            _ => keys.collect(),
        });
    }
    if extent.encodings {
        sizes_and_encodings(extent, &at_rates, &mut add);
    }
    groups
}

/// 100 values, JSON, and MQTT through mosquitto.
fn sizes_and_encodings(
    extent: &Extent,
    at_rates: &dyn Fn(CellKey) -> Vec<CellKey>,
    add: &mut dyn FnMut(Vec<CellKey>),
) {
    let json = |key: CellKey| CellKey { encoding: "json", ..key };
    let large = |key: CellKey| CellKey { values: 100, ..key };
    for (system, protocols) in SYSTEMS.into_iter().zip(extent.protocols) {
        let with_broker = protocols.iter().filter(|protocol| ["mqtt", AMQP].contains(*protocol));
        let jsons = with_broker.flat_map(|protocol| {
            let key = json(CellKey::uplink(system, protocol, 100));
            [key, large(key)]
        });
        let packets = protocols.iter().filter(|protocol| **protocol != "sv");
        let packets =
            packets.flat_map(|protocol| at_rates(large(CellKey::uplink(system, protocol, 0))));
        add(jsons.chain(packets).collect());
        let frames = protocols.iter().filter(|protocol| **protocol == "sv");
        add(frames
            .flat_map(|protocol| at_rates(large(CellKey::uplink(system, protocol, 0))))
            .collect());
    }
    add(at_rates(CellKey::uplink("ethernet", "mqtt", 0).with(Variant::Mosquitto)));
}
