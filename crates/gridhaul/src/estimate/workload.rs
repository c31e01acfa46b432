//! Workload of one replication of a scenario: connections, links, packets, samples.

use gridhaul_core::tcp::StackParams;
use gridhaul_data::pcapng::PcapngWriter;
use gridhaul_scenario::scenario::{Flow, Hop, Load, Scenario, Transport};
use gridhaul_scenario::units::{BitRate, QueueLimit};

/// Quantities that determine the run time and memory of a run. They are floating-point numbers, so
/// that products of counts do not overflow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Workload {
    pub(super) connections: f64,
    pub(super) directions: f64,
    /// Rows of the answer.
    pub(super) rows: f64,
    /// Transits of packets over links; a packet counts once for each link.
    pub(super) transits: f64,
    /// Rows of the recorded series.
    pub(super) samples: f64,
    /// Packets that are written to files.
    pub(super) captured: f64,
    /// Memory in bytes of messages and datagrams that wait at the end of the run because the load
    /// exceeds the capacity of the route.
    pub(super) backlog: f64,
    /// Simulated time.
    pub(super) seconds: f64,
}

/// Bytes of headers of a segment or datagram.
const HEADERS: f64 = 40.0;

/// Memory of a message that waits at its sender (measured: 10 million messages of 100 B need 350
/// MB).
const BYTES_PER_WAITING_MESSAGE: f64 = 40.0;

/// Memory of a datagram in a queue (measured: 10 million datagrams need 2.4 GB).
const BYTES_PER_QUEUED_DATAGRAM: f64 = 240.0;

/// Segments without data that open and close a connection.
const SEGMENTS_PER_CONNECTION: f64 = 7.0;

impl Workload {
    pub(super) fn of(scenario: &Scenario) -> Self {
        let scenario = &*scenario.with_floods();
        let seconds = scenario.duration.as_secs_f64();
        let mut work = Self { seconds, ..Self::default() };
        for link in scenario.link.values() {
            let sides = [link.forward(), link.reverse()].into_iter().flatten().count() as f64;
            work.directions += f64::from(scenario.link_members(link)) * sides;
            work.rows += sides;
        }
        for (name, flow) in &scenario.flow {
            work.rows += 1.0;
            work.connections += scenario.connections(flow) as f64;
            work.transits += transits(scenario, name, flow);
            work.backlog += backlog(scenario, name, flow);
        }
        if let Some(interval) = scenario.record.interval {
            let samples = seconds / interval.as_secs_f64().max(1e-9);
            work.samples = samples * work.rows;
        }
        let links = scenario.record.pcap.len() as f64;
        work.captured = (2.0 * links * PcapngWriter::PACKETS_MAX as f64).min(work.transits);
        work
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.each(other, |own, other| own + other);
    }

    /// Raises each number to that of another point.
    pub(super) fn raise(&mut self, other: &Self) {
        self.each(other, f64::max);
    }

    pub(super) fn scale(&mut self, factor: f64) {
        let own = *self;
        self.each(&own, |own, _| own * factor);
    }

    fn each(&mut self, other: &Self, combine: impl Fn(f64, f64) -> f64) {
        for (own, other) in [
            (&mut self.connections, other.connections),
            (&mut self.directions, other.directions),
            (&mut self.rows, other.rows),
            (&mut self.transits, other.transits),
            (&mut self.samples, other.samples),
            (&mut self.captured, other.captured),
            (&mut self.backlog, other.backlog),
            (&mut self.seconds, other.seconds),
        ] {
            *own = combine(*own, other);
        }
    }
}

/// Transits of the packets of a flow over links: the packets that the load offers or, for TCP, at
/// most those that the bottleneck of the route can carry.
pub(super) fn transits(scenario: &Scenario, name: &str, flow: &Flow) -> f64 {
    let Ok(routes) = scenario.routes(name) else { return 0.0 };
    let connections = scenario.connections(flow) as f64;
    let mss = f64::from(StackParams::named(scenario, flow.stack.as_ref(), flow.ip).mss);
    let active = scenario.duration.saturating_sub(flow.start).as_secs_f64();
    let (messages, bytes) = offered(&flow.load, active);
    let out = routes.forward.len() as f64;
    let segments = (bytes / mss).ceil().max(1.0);
    if flow.transport != Transport::Tcp {
        let hops = out + routes.reverse.len() as f64;
        return connections * messages * hops;
    }
    let carried = routes.forward.iter().map(|hop| capacity(scenario, *hop) * active);
    let carried = carried.fold(f64::INFINITY, f64::min) / (8.0 * (mss.min(bytes) + HEADERS));
    let data = (connections * messages * segments).min(carried);
    let packets = data + connections * SEGMENTS_PER_CONNECTION;
    packets * (out + routes.reverse.len() as f64)
}

/// Memory of the messages that a TCP sender keeps until they are sent, or of the datagrams in a
/// queue without limit. A queue with a limit drops the other datagrams, and greedy loads keep no
/// messages.
pub(super) fn backlog(scenario: &Scenario, name: &str, flow: &Flow) -> f64 {
    let Ok(routes) = scenario.routes(name) else { return 0.0 };
    let active = scenario.duration.saturating_sub(flow.start).as_secs_f64();
    let (messages, bytes) = offered(&flow.load, active);
    let messages = messages * scenario.connections(flow) as f64;
    if !messages.is_finite() || !bytes.is_finite() {
        return 0.0;
    }
    let is_tcp = flow.transport == Transport::Tcp;
    let unlimited = |hop: &&Hop| hop.direction(scenario).queue == QueueLimit::Unlimited;
    let limiting = routes.forward.iter().filter(|hop| is_tcp || unlimited(hop));
    let carried = limiting
        .map(|hop| capacity(scenario, *hop) * active / (8.0 * (bytes + HEADERS)))
        .fold(f64::INFINITY, f64::min);
    let waiting = (messages - carried).max(0.0);
    waiting * if is_tcp { BYTES_PER_WAITING_MESSAGE } else { BYTES_PER_QUEUED_DATAGRAM }
}

/// Total capacity of all links of a hop in bit/s.
fn capacity(scenario: &Scenario, hop: Hop) -> f64 {
    let members =
        scenario.link.get_index(hop.link).map_or(1, |(_, link)| scenario.link_members(link));
    let direction = hop.direction(scenario);
    let rate = match direction.trace {
        None => direction.mean_rate(scenario),
        Some(_) => RATE_OF_TRACE,
    };
    rate.as_bits_per_sec() as f64 * f64::from(members)
}

/// Assumed rate of a link with a trace, whose file is not read for an estimate: that of a good
/// radio link.
const RATE_OF_TRACE: BitRate = BitRate::from_bits_per_sec(50_000_000);

/// Messages of a connection within a time, and the bytes of each; infinite for greedy loads.
fn offered(load: &Load, seconds: f64) -> (f64, f64) {
    let every = |time: f64| seconds / time.max(1e-9) + 1.0;
    match &*load.plain() {
        Load::Transfer(transfer) => (1.0, transfer.size.get() as f64),
        Load::Periodic(load) => (every(load.every.as_secs_f64()), load.size.get() as f64),
        Load::Poisson(load) => (every(load.every.as_secs_f64()), load.size.get() as f64),
        Load::OnOff(load) => {
            let (on, off) = (load.on.as_secs_f64(), load.off.as_secs_f64());
            let share = on / (on + off).max(1e-9);
            let size = load.size.get() as f64;
            let rate = load.rate.map_or(f64::INFINITY, |rate| rate.as_bits_per_sec() as f64 / 8.0);
            (rate * seconds * share / size.max(1.0), size)
        }
        Load::RequestResponse(load) => {
            let cycle = load.think.as_secs_f64() + load.pause.as_secs_f64();
            // A round trip takes some time, however short the links.
            (every(cycle.max(1e-3)), (load.request.get() + load.response.get()) as f64)
        }
        Load::Exchange(load) => {
            let bytes = load.steps.iter().map(|step| step.size.get() as f64).sum();
            (every(load.cycle().as_secs_f64().max(1e-3)), bytes)
        }
        Load::Iec104(load) => (every(load.every.as_secs_f64()), load.frame_size() as f64),
        Load::Mqtt(load) => (every(load.every.as_secs_f64()), load.publish(load.qos) as f64),
        Load::Burst(load) => {
            let events = load.every.map_or(1.0, |time| every(time.as_secs_f64()));
            (events * f64::from(load.count) * load.share.ratio(), load.size.get() as f64)
        }
        // The trace file and the publications are not read here; one message per second is assumed.
        Load::Trace(_) | Load::MqttSubscription(_) => (seconds + 1.0, 200.0),
        // No backend runs this load without a program that sends the messages.
        Load::External => (0.0, 200.0),
        Load::Bulk | Load::Application(_) | Load::Modbus(_) | Load::Dlms(_) => {
            (f64::INFINITY, f64::INFINITY)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(load: &str, count: u32) -> Workload {
        let text = format!(
            "title = \"t\"\nduration = \"100 s\"\n[node]\na = {{ count = {count} }}\nb = {{}}\n\
             [link.up]\nfrom = \"a\"\nto = \"b\"\nboth.rate = \"1 Mbit/s\"\n\
             [flow.f]\nfrom = \"a\"\nto = \"b\"\n{load}\n"
        );
        Workload::of(&Scenario::from_toml(&text, "test.toml").expect("a scenario"))
    }

    #[test]
    fn transits_follow_from_the_load_and_the_links() {
        // 100 s of 1 Mbit/s are 8333 packets of 1500 B.
        let bulk = of("load = \"bulk\"", 1).transits;
        assert!((16_000.0..18_000.0).contains(&bulk), "{bulk}");
        // A message of two segments every 10 s, with acknowledgements, handshake and close.
        let meters = of("load.periodic = { size = \"2 kB\", every = \"10 s\" }", 1000);
        let per_connection = meters.transits / meters.connections;
        assert!((40.0..60.0).contains(&per_connection), "{per_connection}");
        // The offered load exceeds the capacity of the link.
        let flood = of("load.periodic = { size = \"1460 B\", every = \"1 us\" }", 1).transits;
        assert!((16_000.0..18_000.0).contains(&flood), "{flood}");
        let datagrams = of(
            "load.periodic = { size = \"100 B\", every = \"1 us\" }\ntransport = \"datagram\"",
            1,
        );
        assert!(datagrams.transits > 9e7, "{datagrams:?}");
    }

    #[test]
    fn messages_beyond_the_capacity_of_the_link_wait_at_the_sender() {
        // Ten million messages of 100 B, of which 1 Mbit/s carries less than one per cent.
        let flood = "load.periodic = { size = \"100 B\", every = \"10 us\" }";
        let backlog = of(flood, 1).backlog;
        assert!((3.9e8..4.0e8).contains(&backlog), "{backlog}");
        // A queue with a limit drops datagrams.
        let datagrams = format!("{flood}\ntransport = \"datagram\"");
        assert_eq!(of(&datagrams, 1).backlog, 0.0);
        assert_eq!(of("load = \"bulk\"", 1).backlog, 0.0);
        let meters = of("load.periodic = { size = \"100 B\", every = \"10 s\" }", 100);
        assert_eq!(meters.backlog, 0.0);
    }
}
