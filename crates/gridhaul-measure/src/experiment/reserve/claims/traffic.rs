//! Statements about packets and bytes: section 4.4, Tables 4 and 5, and section 4.5. They are
//! counts, without an interval. Those of AMQP vary with the load of the machine: a kernel whose
//! program reads late acknowledges several segments at once. With MQTT, data carries the
//! acknowledgements, and only on a loaded machine are some sent alone, a few in 200 messages.

use gridhaul_report::verdict::{ValueRange, Verdict};

use super::Finding;
use super::estimate::{all, certain};
use crate::experiment::reserve::paper::{Column, Encoding, Protocol, Tables};
use crate::experiment::reserve::test_8::Measured;
use crate::message_sizes::{AMQP_NAMES, MQTT_PUBLISH};
use crate::traffic::{Phases, Traffic};

/// Number of messages from which shares of a message are those of a long series: opening the
/// connections matters less.
const LONG: u64 = 10_000;

/// Two packets of a message, and the packet in a thousand that is one of keep-alive or of the end
/// of a connection.
const TWO: f64 = 2.01;

/// Bytes of a MiB.
const MIB: f64 = 1_048_576.0;

/// A column of the tables, with its series through the report's broker.
type Pair<'a> = (&'a Column, &'a Measured);

/// The verdict of a statement; `None` for a name of another part.
pub(super) fn find(claim: &str, series: &[Measured], tables: &Tables) -> Option<Finding> {
    let measured = |column: &Column| {
        let own =
            |measured: &&Measured| measured.column == column.name && measured.broker != "mosquitto";
        series.iter().find(own).filter(|measured| measured.is_complete())
    };
    let pairs = tables.column.iter().filter_map(|column| Some((column, measured(column)?)));
    let pairs: Vec<Pair<'_>> = pairs.collect();
    let known = Series { pairs, all: tables.column.len() };
    let found = table_4(claim, &known).or_else(|| table_5(claim, &known));
    found.or_else(|| sentences(claim, &known))
}

/// The series that are complete.
struct Series<'a> {
    pairs: Vec<Pair<'a>>,
    /// Number of columns.
    all: usize,
}

/// A quantity in the report and in a series.
type Compared = fn(&Pair<'_>) -> [f64; 2];

/// Packets of 10,000 messages. The report's number contains the packets that open and close the
/// connections.
const PACKETS: Compared =
    |(column, measured)| [column.packets, scaled(measured, |phases| phases.total().packets)];

/// Traffic in MiB.
const TRAFFIC: Compared = |(column, measured)| {
    [column.traffic_mib, scaled(measured, |phases| phases.total().bytes()) / MIB]
};

/// Bytes of protocol and payload of a message.
const PROTOCOL: Compared = |(column, measured)| {
    [
        column.bytes.protocol + column.bytes.payload,
        measured.per_message(measured.phases.messages.application),
    ]
};

/// Bytes of the lower layers of a message.
const LOWER: Compared = |(column, measured)| {
    let bytes = &column.bytes;
    let found = measured.phases.messages;
    let found = found.ethernet + found.ip + found.transport;
    [bytes.ethernet + bytes.ip + bytes.transport, measured.per_message(found)]
};

/// A count of a series as one of 10,000 messages: what passes with the messages is multiplied, what
/// opens and closes the connections is not.
fn scaled(measured: &Measured, of: impl Fn(&Phases) -> u64) -> f64 {
    let phases = Phases { messages: Traffic::default(), ..measured.phases };
    let edges = of(&phases) as f64;
    edges + (of(&measured.phases) as f64 - edges) * LONG as f64 / measured.messages as f64
}

fn table_4(claim: &str, series: &Series<'_>) -> Option<Finding> {
    Some(match claim {
        "table-4-packets-mqtt" => series.close_despite_load(PACKETS, 0.01),
        "table-4-packets-amqp" => series.about(of_protocol(Protocol::Amqp), PACKETS, 0.1),
        "table-4-packets-sv" => series.close(of_protocol(Protocol::SampledValues), PACKETS, 0.0),
        "table-4-traffic-mqtt-json" => series.close(mqtt(Encoding::Json), TRAFFIC, 0.03),
        "table-4-traffic-mqtt-protobuf" => series.close(mqtt(Encoding::Protobuf), TRAFFIC, 0.03),
        "table-4-traffic-amqp" => series.about(of_protocol(Protocol::Amqp), TRAFFIC, 0.1),
        "table-4-traffic-sv" => series.close(of_protocol(Protocol::SampledValues), TRAFFIC, 0.01),
        _ => return None,
    })
}

fn table_5(claim: &str, series: &Series<'_>) -> Option<Finding> {
    Some(match claim {
        "table-5-protocol-json" => series.close(of_encoding(Encoding::Json), PROTOCOL, 0.03),
        "table-5-protocol-protobuf" => {
            series.close(of_encoding(Encoding::Protobuf), PROTOCOL, 0.03)
        }
        "table-5-besides-the-payload" => series.besides_the_payload(),
        "table-5-lower-layers-mqtt" => series.close_despite_load(LOWER, 0.01),
        "table-5-lower-layers-amqp" => series.about(of_protocol(Protocol::Amqp), LOWER, 0.1),
        _ => return None,
    })
}

fn sentences(claim: &str, series: &Series<'_>) -> Option<Finding> {
    let bytes = |measured: &Measured| measured.per_message(measured.phases.messages.bytes());
    let packets = |measured: &Measured| measured.per_message(measured.phases.messages.packets);
    let share = |measured: &Measured| {
        let found = measured.phases.messages;
        found.acknowledgements as f64 / found.packets as f64
    };
    let amqp_json =
        |column: &Column| column.protocol == Protocol::Amqp && column.encoding == Encoding::Json;
    let without_payload = |selected: &dyn Fn(&Column) -> bool| {
        let percent = |measured: &Measured| 100.0 * share(measured);
        series.each(selected, &percent, "% without payload", |value| value > 25.0)
    };
    let mqtt = |column: &Column| column.protocol == Protocol::Mqtt;
    let amqp = |column: &Column| column.protocol == Protocol::Amqp;
    let over_tcp = |column: &Column| column.protocol != Protocol::SampledValues;
    let overhead =
        |measured: &Measured, legs: f64| 1.0 - legs * measured.payload_bytes / bytes(measured);
    let sv = |of: &dyn Fn(&Measured) -> f64| {
        let own = series.pairs.iter().find(|(column, _)| !over_tcp(column));
        own.map_or(f64::NAN, |(_, measured)| of(measured))
    };
    Some(match claim {
        "sv-most-lightweight" => {
            let least = sv(&bytes);
            series.each(&over_tcp, &bytes, "B", |value| value > least)
        }
        "sv-98-bytes" => {
            let untagged = |measured: &Measured| {
                bytes(measured) - measured.per_message(measured.phases.messages.vlan)
            };
            series.each(&|column| !over_tcp(column), &untagged, "B", |value| value == 98.0)
        }
        "amqp-json-almost-a-kilobyte" => {
            series.each(&amqp_json, &bytes, "B", |value| (value / 993.0 - 1.0).abs() <= 0.1)
        }
        "amqp-overhead-70-percent" => {
            series.each(&amqp_json, &|pair| 100.0 * overhead(pair, 1.0), "%", is_70_percent)
        }
        "amqp-overhead-70-percent-of-both-legs" => {
            series.each(&amqp_json, &|pair| 100.0 * overhead(pair, 2.0), "%", is_70_percent)
        }
        "packets-two-to-three-times" => {
            series.each(&over_tcp, &packets, "packets a message", |value| {
                (1.9..=3.5).contains(&value)
            })
        }
        "mqtt-packets-are-acknowledgements" => without_payload(&mqtt),
        "amqp-packets-are-acknowledgements" => without_payload(&amqp),
        "tcp-twice-the-bandwidth" => {
            let least = sv(&bytes);
            series.each(&over_tcp, &bytes, "B", |value| value > 2.0 * least)
        }
        "amqp-twice-the-packets" => series.each(&amqp, &packets, "packets a message", is_above_two),
        "mqtt-twice-the-packets" => {
            let found = series.each(&mqtt, &packets, "packets a message", is_above_two);
            let idle = |pair: &Pair<'_>| despite_load(pair, |(_, measured)| packets(measured));
            let verdict = |pair: &Pair<'_>| idle(pair).within(TWO.next_up(), f64::INFINITY);
            series.decided_by_each(found, mqtt, verdict)
        }
        _ => return None,
    })
}

fn of_protocol(protocol: Protocol) -> impl Fn(&Column) -> bool {
    move |column| column.protocol == protocol
}

fn of_encoding(encoding: Encoding) -> impl Fn(&Column) -> bool {
    move |column| column.encoding == encoding
}

fn mqtt(encoding: Encoding) -> impl Fn(&Column) -> bool {
    move |column| column.protocol == Protocol::Mqtt && column.encoding == encoding
}

fn is_70_percent(percent: f64) -> bool {
    (65.0..=75.0).contains(&percent)
}

fn is_above_two(packets: f64) -> bool {
    packets > TWO
}

/// The series without the acknowledgements that were sent alone while messages passed. All packets
/// of a connection have headers of the same length then.
fn without_acknowledgements(measured: &Measured) -> Measured {
    let mut measured = measured.clone();
    let messages = &mut measured.phases.messages;
    let all = messages.packets.max(1);
    messages.packets -= messages.acknowledgements;
    for bytes in [&mut messages.ethernet, &mut messages.ip, &mut messages.transport] {
        *bytes = *bytes * messages.packets / all;
    }
    messages.acknowledgements = 0;
    measured
}

/// A count of MQTT as an idle machine would have it. A loaded one sends acknowledgements alone, and
/// for this reason several messages in one segment: the count of an idle one lies between those
/// with and without these acknowledgements.
fn despite_load((column, measured): &Pair<'_>, count: impl Fn(&Pair<'_>) -> f64) -> ValueRange {
    let [low, high] = [&without_acknowledgements(measured), *measured]
        .map(|measured| count(&(*column, measured)));
    ValueRange { low, high }
}

impl Series<'_> {
    /// As [`Self::close`], for MQTT on a machine that may be loaded.
    fn close_despite_load(&self, compared: Compared, share: f64) -> Finding {
        let idle = |pair: &Pair<'_>| despite_load(pair, |pair| compared(pair)[1]);
        let verdict = |pair: &Pair<'_>, low, high| idle(pair).within(low, high);
        self.close_by(of_protocol(Protocol::Mqtt), compared, share, verdict)
    }

    /// A quantity is as in the report within a share, in all of these columns.
    fn close(&self, selected: impl Fn(&Column) -> bool, compared: Compared, share: f64) -> Finding {
        let own: Vec<_> = self.pairs.iter().filter(|(column, _)| selected(column)).collect();
        let text = |pair: &&Pair<'_>| {
            let [report, measured] = compared(pair);
            format!("{} {} (report {report})", pair.0.name, rounded(measured))
        };
        let is_close = |pair: &&Pair<'_>| {
            let [report, measured] = compared(pair);
            (measured - report).abs() <= share * report
        };
        self.finding(own.iter().all(is_close), &own.iter().map(text).collect::<Vec<_>>())
    }

    /// As [`Self::close`], for counts that vary between runs: undecided too close to the limit.
    fn about(&self, selected: impl Fn(&Column) -> bool, compared: Compared, share: f64) -> Finding {
        let exact = |pair: &Pair<'_>| ValueRange::exact(compared(pair)[1]);
        let verdict = |pair: &Pair<'_>, low, high| exact(pair).measured_within(low, high);
        self.close_by(selected, compared, share, verdict)
    }

    /// As [`Self::close`], with a verdict on each column for the accepted range.
    fn close_by(
        &self,
        selected: impl Fn(&Column) -> bool,
        compared: Compared,
        share: f64,
        verdict: impl Fn(&Pair<'_>, f64, f64) -> Verdict,
    ) -> Finding {
        let found = self.close(&selected, compared, share);
        self.decided_by_each(found, selected, |pair| {
            let [report, _] = compared(pair);
            verdict(pair, report * (1.0 - share), report * (1.0 + share))
        })
    }

    /// The verdicts on all of these columns together, in the place of that of a finding that is
    /// complete.
    fn decided_by_each(
        &self,
        (found, about): Finding,
        selected: impl Fn(&Column) -> bool,
        verdict: impl Fn(&Pair<'_>) -> Verdict,
    ) -> Finding {
        if found == Verdict::Unknown {
            return (found, about);
        }
        let own = self.pairs.iter().filter(|(column, _)| selected(column));
        (all(own.map(verdict)), about)
    }

    /// A quantity satisfies a condition in all of these columns.
    fn each(
        &self,
        selected: &dyn Fn(&Column) -> bool,
        of: &dyn Fn(&Measured) -> f64,
        unit: &str,
        holds: impl Fn(f64) -> bool,
    ) -> Finding {
        let own: Vec<_> = self.pairs.iter().filter(|(column, _)| selected(column)).collect();
        let text = |(column, measured): &&Pair<'_>| {
            format!("{} {} {unit}", column.name, rounded(of(measured)))
        };
        let all = own.iter().all(|(_, measured)| holds(of(measured)));
        self.finding(all, &own.iter().map(text).collect::<Vec<_>>())
    }

    /// The bytes of both legs besides the payload are those of the formula, to the byte that
    /// packets of keep-alive take.
    fn besides_the_payload(&self) -> Finding {
        let over_tcp =
            self.pairs.iter().filter(|(column, _)| column.protocol != Protocol::SampledValues);
        let deviation = |(column, measured): &Pair<'_>| {
            let bytes = measured.per_message(measured.phases.messages.application)
                - 2.0 * measured.payload_bytes;
            let expected = match column.protocol {
                Protocol::Amqp => AMQP_NAMES.publish_overhead() + AMQP_NAMES.deliver_overhead(),
                _ => 2 * MQTT_PUBLISH.overhead(measured.payload_bytes as u64),
            };
            (column.name.clone(), bytes, expected as f64)
        };
        let found: Vec<_> = over_tcp.map(deviation).collect();
        let holds = found.iter().all(|(_, bytes, expected)| (bytes - expected).abs() <= 1.0);
        let text = |(name, bytes, _): &(String, f64, f64)| format!("{name} {} B", rounded(*bytes));
        self.finding(holds, &found.iter().map(text).collect::<Vec<_>>())
    }

    /// Without all columns nothing is decided.
    fn finding(&self, holds: bool, texts: &[String]) -> Finding {
        let is_complete = self.pairs.len() == self.all && !texts.is_empty();
        let about = if texts.is_empty() { "not measured".into() } else { texts.join(", ") };
        (certain(is_complete.then_some(holds)), about)
    }
}

fn rounded(value: f64) -> String {
    if value >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
