//! `ack` between a receiver and a sender of `core/tcp`: a trace of acknowledgements leaves the
//! sender in the state in which it would be without the filter.
//!
//! A sender has a window of segments in flight, of which the network loses, delays and duplicates
//! some. The receiver answers with SACK and duplicate SACK, timestamps, ECN echoes, windows that
//! change, and its own data; the network loses and reorders its segments as well. One sender
//! receives them unchanged, the other one through the filter. Both must then have the same state,
//! with window and threshold equal to a segment, and must send the same segments.
//!
//! The sender transmits nothing meanwhile, so that its state depends on the trace alone. Measured
//! round-trip times, and the timers that follow from them, are not compared: the filter delays
//! acknowledgements by `max_ack_delay`. In some traces, the retransmission timer has expired before
//! the first acknowledgement arrives.

use std::ops::Range;
use std::sync::Arc;

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Profile, Recovery, Stack};
use gridhaul_scenario::units::{Bytes, Duration, Instant, WindowSize};

use super::ack_filter::filtered_after;
use crate::random::RandomStream;
use crate::tcp::{Connection, Flags, SackBlocks, Segment, StackParams};

const MSS: u32 = 100;

/// Initial sequence numbers of the sender, which wrap around, and of the receiver.
const ISNS: [u32; 2] = [u32::MAX - 1_000, 77];

/// A sender with data in flight, the segments that it has sent, and those that arrive from its
/// receiver.
struct Trace {
    sender: Connection,
    sent: Vec<(Instant, Segment)>,
    incoming: Vec<(Instant, Segment)>,
    max_ack_delay: Duration,
}

/// Random choices of a trace.
struct Choices(RandomStream);

impl Choices {
    fn new(seed: u64) -> Self {
        Self(RandomStream::named(seed, 0, "ack filter", 0, "trace"))
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    fn percent(&mut self, share: u64) -> bool {
        self.0.below(100) < share
    }

    fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }
}

/// How the sender detects losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LossDetection {
    /// By duplicates and SACK, not by time.
    Duplicates,
    /// By the retransmission timer, and too early: the acknowledgements come later. RACK, F-RTO and
    /// timestamps may show that (RFC 8985, RFC 5682, RFC 3522).
    SpuriousTimeout,
}

impl Trace {
    fn random(seed: u64, detection: LossDetection) -> Self {
        let mut choices = Choices::new(seed);
        let params = params(&mut choices, detection);
        let mut sender = Connection::established(Arc::clone(&params), ISNS[0], &params, ISNS[1]);
        sender.write(choices.between(1, 40) * u64::from(MSS));
        if choices.percent(20) {
            sender.close();
        }
        let (mut sent_at, mut sent) = (Instant::ZERO, Vec::new());
        if detection == LossDetection::SpuriousTimeout {
            // An echo of zero is none.
            sent_at += Duration::from_millis(5);
        }
        let flight = drain(&mut sender, sent_at);
        sent.extend(flight.iter().map(|segment| (sent_at, *segment)));
        if detection == LossDetection::SpuriousTimeout {
            while !sent.iter().skip(1).any(|(_, segment)| segment.seq == flight[0].seq) {
                sent_at = sender.next_deadline();
                sender.handle_timeout(sent_at);
                let more = drain(&mut sender, sent_at);
                sent.extend(more.into_iter().map(|segment| (sent_at, segment)));
            }
        }
        let receiver = Connection::established(Arc::clone(&params), ISNS[1], &params, ISNS[0]);
        let incoming = Receiver { connection: receiver, sent: Vec::new() }
            .receive(arrivals(&mut choices, &flight, sent_at), &mut choices);
        let incoming = impaired(&mut choices, incoming);
        Self { sender, sent, incoming, max_ack_delay: choices.millis(0, 60) }
    }

    /// The segments that arrive through the filter.
    fn filtered(&self) -> Vec<(Instant, Segment)> {
        filtered_after(self.max_ack_delay, &self.sent, &self.incoming)
    }

    /// The state of the sender without and with the filter.
    fn states(&self) -> [SenderState; 2] {
        [&self.incoming, &self.filtered()].map(|segments| {
            let mut sender = self.sender.clone();
            for (at, segment) in segments {
                sender.handle_segment(*at, segment);
            }
            SenderState::of(sender)
        })
    }
}

/// State of a sender that does not depend on times.
#[derive(Debug, PartialEq)]
struct SenderState {
    sent_and_acknowledged: (u64, u64),
    peer_window: u32,
    /// `None` in a recovery without SACK, in which the window grows with each acknowledgement (RFC
    /// 6582, section 3.2, step 3).
    cwnd: Option<u32>,
    ssthresh: u32,
    in_recovery: bool,
    in_flight: u64,
    fast_retransmits: u32,
    /// Bytes of the receiver's stream that have arrived.
    delivered: u64,
    /// The segments that it sends next. They show which ones it regards as lost, and the timestamp
    /// that it echoes.
    next: Vec<Segment>,
}

/// A time at which all segments have arrived.
const END: Instant = Instant::from_nanos(20_000_000_000);

impl SenderState {
    fn of(mut connection: Connection) -> Self {
        let sender = connection.sender().expect("it has data");
        let (in_recovery, in_flight) = (sender.in_recovery(), sender.in_flight());
        let counts_acknowledgements = in_recovery && !connection.params().sack;
        let cwnd = (!counts_acknowledgements).then(|| sender.cwnd());
        let ssthresh = sender.ssthresh();
        let fast_retransmits = sender.stats().fast_retransmits;
        Self {
            sent_and_acknowledged: connection.sent_and_acknowledged(),
            peer_window: connection.peer_window(),
            cwnd,
            ssthresh,
            in_recovery,
            in_flight,
            fast_retransmits,
            delivered: connection.receiver().delivered(),
            next: match cwnd {
                Some(_) => drain(&mut connection, END),
                None => connection.poll_transmit(END).into_iter().collect(),
            },
        }
    }
}

impl SenderState {
    /// Takes the window and the threshold of the other state if they differ by at most a segment.
    /// Each acknowledgement rounds the growth of the window to whole bytes (congestion avoidance),
    /// and ends slow start at most a segment above the threshold: fewer acknowledgements of the
    /// same bytes round less often.
    fn take_rounding_of(&mut self, other: &Self) {
        if let (Some(own), Some(theirs)) = (self.cwnd, other.cwnd)
            && own.abs_diff(theirs) <= MSS
        {
            self.cwnd = other.cwnd;
        }
        if self.ssthresh.abs_diff(other.ssthresh) <= MSS {
            self.ssthresh = other.ssthresh;
        }
    }
}

/// The window grows with acknowledged bytes (RFC 3465), as that of Linux: with the other rule of
/// RFC 5681, each filtered acknowledgement is a smaller step.
fn params(choices: &mut Choices, detection: LossDetection) -> Arc<StackParams> {
    let segments = choices.between(4, 40);
    let stack = Stack {
        profile: Profile::Linux,
        congestion_control: Some(CongestionControlAlgorithm::Reno),
        recovery: (detection == LossDetection::Duplicates).then_some(Recovery::Sack),
        hystart: Some(false),
        mss: Some(Bytes::new(MSS.into())),
        initial_window: Some(WindowSize::Bytes(Bytes::new(segments * u64::from(MSS)))),
        // In slow start, Linux checks with each acknowledgement whether more of the window would be
        // used, so that one that covers more may exceed the limit.
        initial_ssthresh: Some(WindowSize::Segments(2)),
        receive_window: Some(WindowSize::Bytes(Bytes::new(
            u64::from(MSS) * choices.between(segments, 80),
        ))),
        sack: Some(choices.percent(85)),
        timestamps: Some(choices.percent(50)),
        delayed_ack: Some(choices.millis(0, 1) * 40),
        ..Stack::default()
    };
    Arc::new(StackParams::resolve(&stack))
}

fn drain(connection: &mut Connection, now: Instant) -> Vec<Segment> {
    std::iter::from_fn(|| connection.poll_transmit(now)).take(200).collect()
}

/// A segment that arrives at the receiver.
struct Arrival {
    at: Instant,
    segment: Segment,
    is_duplicate: bool,
}

/// The segments of a flight that arrive after `sent_at`, in the order of their arrivals.
fn arrivals(choices: &mut Choices, flight: &[Segment], sent_at: Instant) -> Vec<Arrival> {
    let mut found = Vec::new();
    let mut at = sent_at + Duration::from_millis(20);
    for segment in flight {
        at += choices.millis(0, 5);
        if choices.percent(10) {
            continue;
        }
        let late = if choices.percent(8) { choices.millis(1, 40) } else { Duration::ZERO };
        found.push(Arrival { at: at + late, segment: *segment, is_duplicate: false });
        if choices.percent(6) {
            let at = at + late + choices.millis(0, 30);
            found.push(Arrival { at, segment: *segment, is_duplicate: true });
        }
    }
    found.sort_by_key(|arrival| arrival.at);
    found
}

/// The receiver, and the segments that it has sent.
struct Receiver {
    connection: Connection,
    sent: Vec<(Instant, Segment)>,
}

impl Receiver {
    /// Handles all arrivals. Returns the segments that the receiver sends.
    fn receive(mut self, arrivals: Vec<Arrival>, choices: &mut Choices) -> Vec<(Instant, Segment)> {
        let reads_slowly = choices.percent(30);
        if reads_slowly {
            self.connection.read_on_demand();
        }
        let mut read = 0;
        for Arrival { at, segment, is_duplicate } in arrivals {
            self.expire_timers(at);
            self.connection.handle_segment(at, &segment);
            let unread = self.connection.receiver().delivered() - read;
            if reads_slowly && unread > 0 && choices.percent(40) {
                let bytes = choices.between(1, unread);
                self.connection.read(bytes);
                read += bytes;
            }
            if choices.percent(5) {
                self.connection.write(choices.between(1, 120));
            }
            let first = self.sent.len();
            self.transmit(at);
            if let Some((_, answer)) = self.sent.get_mut(first).filter(|_| is_duplicate) {
                report_duplicate(answer, &segment);
            }
        }
        // Delayed acknowledgements follow; its own data is not retransmitted so soon.
        let end = self.sent.last().map_or(Instant::ZERO, |(at, _)| *at) + Duration::from_millis(90);
        self.expire_timers(end);
        self.sent
    }

    fn expire_timers(&mut self, until: Instant) {
        while self.connection.next_deadline() <= until {
            let now = self.connection.next_deadline();
            self.connection.handle_timeout(now);
            self.transmit(now);
        }
    }

    fn transmit(&mut self, now: Instant) {
        let segments = drain(&mut self.connection, now);
        self.sent.extend(segments.into_iter().map(|segment| (now, segment)));
    }
}

/// Reports a segment that has arrived twice by the first SACK block (RFC 2883, section 4).
fn report_duplicate(answer: &mut Segment, segment: &Segment) {
    let mut blocks = SackBlocks::default();
    blocks.push(segment.seq, segment.seq.wrapping_add(segment.len));
    let space = if answer.timestamps.is_some() { 2 } else { 3 };
    for (left, right) in answer.sack.as_slice().iter().take(space) {
        blocks.push(*left, *right);
    }
    answer.sack = blocks;
}

/// The segments of the receiver as they arrive: some with the echo of ECN (RFC 3168, section
/// 6.1.3), some lost, some late.
fn impaired(choices: &mut Choices, sent: Vec<(Instant, Segment)>) -> Vec<(Instant, Segment)> {
    let mut echoes = 0;
    let mut found = Vec::new();
    for (at, mut segment) in sent {
        if choices.percent(4) {
            echoes = choices.between(1, 8);
        }
        if echoes > 0 {
            echoes -= 1;
            segment.flags = segment.flags.with(Flags::ECE);
        }
        if choices.percent(2) {
            segment.flags = segment.flags.with(Flags::CWR);
        }
        if choices.percent(8) {
            continue;
        }
        let late = if choices.percent(5) { choices.millis(1, 30) } else { Duration::ZERO };
        found.push((at + Duration::from_millis(20) + late, segment));
    }
    found.sort_by_key(|(at, _)| *at);
    found
}

fn the_filter_leaves_the_state_of_the_sender(traces: Range<u64>, detection: LossDetection) {
    let (mut filtered_out, mut all) = (0, 0);
    for seed in traces {
        let trace = Trace::random(seed, detection);
        let [without, mut with] = trace.states();
        with.take_rounding_of(&without);
        let through = trace.filtered();
        if without != with {
            for (at, segment) in &trace.incoming {
                eprintln!("without: {at:?} {segment:?}");
            }
            for (at, segment) in &through {
                eprintln!("with:    {at:?} {segment:?}");
            }
            panic!("trace {seed}:\n{without:?}\n{with:?}");
        }
        let flagged = |segments: &[(Instant, Segment)]| {
            segments.iter().filter(|(_, segment)| segment.flags != Flags::ACK).count()
        };
        assert_eq!(flagged(&trace.incoming), flagged(&through), "trace {seed}: ECN echoes");
        all += trace.incoming.len();
        filtered_out += trace.incoming.len() - through.len();
    }
    println!("{filtered_out} of {all} segments were filtered out");
    let filters = detection == LossDetection::Duplicates && all > 1_000;
    assert!(!filters || filtered_out * 20 > all, "the filter has something to do");
}

#[test]
fn a_trace_of_acknowledgements_leaves_the_same_state_with_the_filter() {
    the_filter_leaves_the_state_of_the_sender(0..2_000, LossDetection::Duplicates);
}

#[test]
fn a_spurious_timeout_is_detected_with_the_filter_as_without() {
    the_filter_leaves_the_state_of_the_sender(0..500, LossDetection::SpuriousTimeout);
}

/// Data with SACK blocks and the number of the delayed acknowledgement is a duplicate only if that
/// acknowledgement arrives before.
#[test]
fn a_duplicate_with_data_counts_with_the_filter_as_without() {
    the_filter_leaves_the_state_of_the_sender(271_285..271_286, LossDetection::Duplicates);
}

/// `GRIDHAUL_TRACES=271285..271286` runs this trace alone.
#[test]
#[ignore = "a million traces: some minutes"]
fn a_million_traces_leave_the_same_state_with_the_filter() {
    let range = std::env::var("GRIDHAUL_TRACES").unwrap_or_else(|_| "0..1000000".to_owned());
    let ends = range.split_once("..").map(|(first, end)| [first, end].map(str::parse));
    let Some([Ok(first), Ok(end)]) = ends else {
        panic!("GRIDHAUL_TRACES is a range such as 271285..271286, not {range:?}")
    };
    the_filter_leaves_the_state_of_the_sender(first..end, LossDetection::Duplicates);
    the_filter_leaves_the_state_of_the_sender(first..end, LossDetection::SpuriousTimeout);
}
