//! Captures with a known cause, whose parameters are drawn afresh for each seed.
//!
//! The rules were developed with the seeds below 1,000. The test has others, and
//! `GRIDHAUL_CAUSES=FIRST..END cargo test -p gridhaul-capture --test integration causes` any.

use gridhaul_capture::{Confidence, ConnectionExplanation, Limit};
use gridhaul_testing::Numbers;

use crate::support::{connection, simulate};

/// A simulation whose limit is known.
pub(crate) struct Case {
    limit: Limit,
    pub(crate) scenario: String,
    /// Links at which it is captured.
    points: &'static [&'static str],
}

/// The parts of a scenario of three links between `a` and `b`: the first and the last one are fast,
/// so that they are the networks of the sender and the receiver.
struct Parts {
    duration: f64,
    seed: u64,
    /// Direction of the line from `a` to `b`, and back.
    forward: String,
    reverse: String,
    stack: String,
    load: String,
    /// Keys of the node between the sender's network and the line.
    node: &'static str,
}

impl Parts {
    fn scenario(&self) -> String {
        let Self { duration, seed, forward, reverse, stack, load, node } = self;
        format!(
            "title = 'case'\nduration = '{duration} s'\nwarmup = '0 s'\nreplications = 1\nseed = \
             {seed}\n\
             record = {{ pcap = ['access', 'line', 'exit'] }}\n\
             [node]\na = {{}}\nm = {node}\nn = {{}}\nb = {{}}\n\
             [link.access]\nfrom = 'a'\nto = 'm'\nboth = {{ rate = '1 Gbit/s', delay = '20 us', \
             queue = '10000 packets' }}\n\
             [link.line]\nfrom = 'm'\nto = 'n'\nforward = {{ {forward} }}\nreverse = {{ \
             {reverse} }}\n\
             [link.exit]\nfrom = 'n'\nto = 'b'\nboth = {{ rate = '1 Gbit/s', delay = '20 us', \
             queue = '10000 packets' }}\n\
             [stack.t]\n{stack}\n\
             [flow.f]\nfrom = 'a'\nto = 'b'\nstack = 't'\nload = {load}\n"
        )
    }

    /// Random losses.
    fn lossy(&mut self, numbers: &mut Numbers, line: &Line) {
        // Mathis et al. 1997: the rate at this loss is less than a third of the line's.
        let loss = numbers.between(0.005, 0.03);
        let mathis = 1460.0 * 8.0 * 1.22 / (2.0 * line.delay * loss.sqrt());
        let rate = line.rate.max(3.0 * mathis);
        self.forward = format!(
            "rate = '{rate:.0} bit/s', delay = '{:.3} ms', loss = {{ bernoulli = '{:.3} %' }}",
            line.delay * 1e3,
            loss * 100.0
        );
        self.duration = 30.0;
    }

    /// An outage during a transfer.
    fn with_outage(&mut self, numbers: &mut Numbers, line: &Line) {
        // The last packets of each short transfer are lost: an outage in the middle of it.
        let start = line.delay * 2.0 + numbers.between(0.1, 0.4);
        self.load = "{ transfer = { size = '400 kB' } }".to_owned();
        let rate = numbers.between(2e6, 8e6);
        let length = numbers.between(4.0, 9.0);
        self.forward = format!(
            "rate = '{rate:.0} bit/s', delay = '{:.3} ms', outage = [{{ start = '{start:.3} s', \
             length = '{length:.3} s', mode = 'drop' }}]",
            line.delay * 1e3
        );
        self.duration = 60.0;
    }

    /// A window of one segment, whose acknowledgement is delayed.
    fn one_segment(&mut self, numbers: &mut Numbers, line: &Line) {
        let delay = numbers.between(0.1, 0.3);
        self.stack = format!(
            "profile = 'rfc'\ncongestion_control = 'fixed'\nfixed_window = '1 segments'\n\
             delayed_ack = '{:.0} ms'\nquick_ack = 8",
            delay * 1e3
        );
        let delay = numbers.between(0.005, 0.02);
        self.forward = format!("rate = '{:.0} bit/s', delay = '{:.3} ms'", line.rate, delay * 1e3);
        self.reverse = self.forward.clone();
    }
}

/// Points of a capture: the sender, the receiver, and the line, each direction at its start.
pub(crate) const SENDER: &[&str] = &["access"];
pub(crate) const RECEIVER: &[&str] = &["exit"];
const LINE: &[&str] = &["line"];

/// A line of 1 to 20 Mbit/s and 20 to 160 ms of round trip.
struct Line {
    rate: f64,
    delay: f64,
}

impl Line {
    fn new(numbers: &mut Numbers) -> Self {
        Self { rate: numbers.scale(1e6, 20e6), delay: numbers.between(0.010, 0.080) }
    }
    /// Bytes in flight that fill the line.
    fn product(&self) -> f64 {
        (self.rate / 8.0) * 2.0 * self.delay + 1512.0
    }
    fn keys(&self) -> String {
        format!(
            "rate = '{:.0} bit/s', delay = '{:.3} ms', queue = '1000 packets'",
            self.rate,
            self.delay * 1e3
        )
    }
}

pub(crate) fn case(limit: Limit, seed: u64) -> Case {
    let mut numbers = Numbers::new(seed.wrapping_mul(9) + limit as u64);
    let mut line = Line::new(&mut numbers);
    while limit == Limit::ReceiveWindow && line.product() < 40_000.0 {
        line = Line::new(&mut numbers);
    }
    let control = numbers.choice(&["cubic", "reno"]);
    let keys = line.keys();
    let mut parts = Parts {
        duration: 15.0,
        seed: seed + 1,
        forward: keys.clone(),
        reverse: keys,
        stack: format!("congestion_control = '{control}'"),
        load: "'bulk'".to_owned(),
        node: "{}",
    };
    let mut points = numbers.choice(&[SENDER, SENDER, LINE]);
    match limit {
        Limit::ReceiveWindow => {
            // Smaller windows interact with delayed acknowledgements, so that several limits hold.
            let window = (line.product() * numbers.between(0.15, 0.55)).max(12_000.0);
            parts.stack += &format!("\nreceive_window = '{window:.0} B'");
            points = numbers.choice(&[SENDER, RECEIVER, LINE]);
        }
        Limit::LinkRate => {
            let queue = (line.product() * numbers.between(0.8, 2.0) / 1512.0).max(20.0);
            parts.forward = parts.forward.replace("1000 packets", &format!("{queue:.0} packets"));
            points = numbers.choice(&[SENDER, RECEIVER, LINE]);
        }
        Limit::Loss => parts.lossy(&mut numbers, &line),
        Limit::CongestionWindow => {
            parts.forward = format!(
                "rate = '{:.0} bit/s', delay = '{:.3} ms'",
                numbers.scale(40e6, 200e6),
                line.delay * 1e3
            );
            parts.load =
                format!("{{ transfer = {{ size = '{:.0} kB' }} }}", numbers.between(60.0, 400.0));
        }
        Limit::Application => {
            parts.load = application(&mut numbers, line.delay);
            points = numbers.choice(&[SENDER, RECEIVER, LINE]);
        }
        Limit::Timeout => parts.with_outage(&mut numbers, &line),
        Limit::DelayedAck => {
            parts.one_segment(&mut numbers, &line);
            points = SENDER;
        }
        Limit::Nagle => {
            let every = line.delay * 2.0 / numbers.between(5.0, 15.0);
            parts.load = format!(
                "{{ periodic = {{ size = '{:.0} B', every = '{:.3} ms' }} }}",
                numbers.between(20.0, 60.0),
                every * 1e3
            );
            points = SENDER;
        }
        Limit::Proxy => {
            parts.node = "{ proxy = { mode = 'split', buffer = '64 KiB' } }";
            points = &["access", "line"];
        }
    }
    Case { limit, scenario: parts.scenario(), points }
}

/// Messages that leave the connection idle.
fn application(numbers: &mut Numbers, delay: f64) -> String {
    let every = 2.0 * delay * numbers.between(3.0, 10.0) + 0.05;
    match numbers.choice(&[0, 1, 2]) {
        0 => format!(
            "{{ periodic = {{ size = '{:.0} B', every = '{:.1} ms' }} }}",
            numbers.between(100.0, 4_000.0),
            every * 1e3
        ),
        1 => format!(
            "{{ poisson = {{ size = '{:.0} B', every = '{:.1} ms' }} }}",
            numbers.between(100.0, 1_000.0),
            2.0 * every * 1e3
        ),
        _ => format!(
            "{{ request_response = {{ request = '{:.0} B', response = '{:.0} B', think = '{:.0} \
             ms', pause = '{:.0} ms' }} }}",
            numbers.between(50.0, 400.0),
            numbers.between(50.0, 900.0),
            numbers.between(0.0, 200.0),
            numbers.between(20.0, 300.0)
        ),
    }
}

const LIMITS: [Limit; 9] = Limit::ALL;

fn seeds() -> std::ops::Range<u64> {
    let Ok(range) = std::env::var("GRIDHAUL_CAUSES") else { return 1_000..1_005 };
    let (first, end) = range.split_once("..").unwrap();
    first.parse().unwrap()..end.parse().unwrap()
}

#[test]
fn at_least_28_of_30_limits_are_found_and_none_is_wrong() {
    let mut outcomes: Vec<(Limit, u64, ConnectionExplanation)> = Vec::new();
    for seed in seeds() {
        for limit in LIMITS {
            let case = case(limit, seed);
            let found = connection(&simulate(&case.scenario), case.points);
            outcomes.push((case.limit, seed, found));
        }
    }
    let print = |(limit, seed, found): &(Limit, u64, ConnectionExplanation)| {
        format!("{limit:?} with seed {seed}: {}\n{}", found.verdict.evidence, found.details())
    };
    let wrong: Vec<_> = outcomes
        .iter()
        .filter(|(limit, _, found)| found.verdict.limit.is_some_and(|named| named != *limit))
        .map(print)
        .collect();
    let undecided: Vec<_> = outcomes
        .iter()
        .filter(|(_, _, found)| found.verdict.confidence == Confidence::Undecided)
        .map(print)
        .collect();
    let right = outcomes.len() - wrong.len() - undecided.len();
    println!(
        "{right} of {} right, {} undecided, {} wrong",
        outcomes.len(),
        undecided.len(),
        wrong.len()
    );
    println!("{}", undecided.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        right * 30 >= outcomes.len() * 28,
        "{right} of {}: {}",
        outcomes.len(),
        undecided.join("\n")
    );
}

/// A load over a line with these keys in both directions, captured at a point.
fn captured(line: &str, load: String, point: &[&str]) -> ConnectionExplanation {
    let parts = Parts {
        duration: 10.0,
        seed: 1,
        forward: line.to_owned(),
        reverse: line.to_owned(),
        stack: "profile = 'linux'".to_owned(),
        load,
        node: "{}",
    };
    connection(&simulate(&parts.scenario()), point)
}

fn transfer(line: &str, point: &[&str]) -> ConnectionExplanation {
    captured(line, "{ transfer = { size = '900 kB' } }".to_owned(), point)
}

#[test]
fn packets_out_of_order_are_no_losses() {
    let line = "rate = '10 Mbit/s', delay = '50 ms', queue = '1000 packets', \
                reorder = { probability = '5 %', delay = '20 ms' }";
    for point in [SENDER, RECEIVER, LINE] {
        let found = transfer(line, point);
        assert_eq!(found.counters.payload_byte, 900_000, "{}", found.details());
        assert_eq!(found.counters.lost_packets, 0, "{}", found.details());
        assert!(found.shares.of(Limit::Loss) < 0.2, "{}", found.details());
        assert_ne!(found.verdict.limit, Some(Limit::Loss), "{}", found.details());
    }
}

#[test]
fn a_link_that_holds_packets_back_is_no_pause_of_the_application() {
    let line = "rate = '5 Mbit/s', delay = '30 ms', queue = '200 packets', \
                outage = [{ start = '1 s', length = '2 s', mode = 'hold' }]";
    let found = transfer(line, RECEIVER);
    assert!(found.shares.of(Limit::Application) > 0.5, "{}", found.details());
    assert_eq!(found.verdict.limit, None, "{}", found.details());
    assert!(found.verdict.evidence.contains("may be those of the link"), "{}", found.details());
}

#[test]
fn data_that_fills_gaps_is_data_and_part_of_its_message() {
    let line = "rate = '10 Mbit/s', delay = '20 ms', loss = { bernoulli = '2 %' }";
    let found = transfer(line, RECEIVER);
    let messages: u64 = found.messages[0].iter().map(|message| message.bytes).sum();
    assert!(found.counters.lost_packets > 5, "{}", found.details());
    assert_eq!((found.counters.payload_byte, messages), (900_000, 900_000), "{}", found.details());
}

/// The last segment of each message is short, and follows a full one over the last link sooner than
/// it leaves the bottleneck.
#[test]
fn a_short_segment_after_a_full_one_does_not_show_the_rate() {
    let line = "rate = '10 Mbit/s', delay = '30 ms'";
    for size in ["3 kB", "12 kB", "16 kB"] {
        let load = format!("{{ periodic = {{ size = '{size}', every = '150 ms' }} }}");
        let found = captured(line, load, SENDER);
        let rate = found.link.rate_bit_per_s;
        let is_right = rate.is_none_or(|rate| rate.interval.contains(1e7));
        assert!(is_right, "{size}: {}", found.details());
    }
}
