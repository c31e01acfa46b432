//! `spoof` by example.

use std::sync::Arc;

use gridhaul_scenario::units::{Bytes, Duration, Instant};

use super::stack;
use crate::pep::{MssLimit, Origin, Proxy, Side, Spoof};
use crate::tcp::{Flags, Segment};

/// An established connection with sequence numbers from 100 on, and segments of 100 bytes. Outgoing
/// segments are described as text: "data" with the sequence number if forwarded, "rtx" if
/// retransmitted, and "ack" with the number to the client.
struct Harness {
    spoof: Spoof,
    now: Instant,
}

impl Harness {
    fn new(buffer: u64) -> Self {
        let (params, hosts) = (stack(100, 1), stack(100, 5_000));
        let next = [&*Arc::clone(&hosts), &*hosts];
        let limit = MssLimit::of_hosts([hosts.mss; 2]);
        let spoof = Spoof::engaged(params, limit, Bytes::new(buffer), [99, 899], next);
        Self { spoof, now: Instant::ZERO }
    }

    fn data(&mut self, seq: u32) -> Vec<String> {
        let (flags, header) = (Flags::ACK, 40);
        let segment =
            Segment { seq, ack: 900, len: 100, window: 5_000, flags, header, ..Segment::default() };
        self.handle(Side::Client, &segment)
    }

    /// The first range that the acknowledgement of this segment of the client reports.
    fn first_range(&mut self, seq: u32) -> Option<(u32, u32)> {
        self.acknowledgement_of(seq).sack.as_slice().first().copied()
    }

    /// The acknowledgement of this segment of the client.
    fn acknowledgement_of(&mut self, seq: u32) -> Segment {
        let flags = Flags::ACK;
        let segment =
            Segment { seq, ack: 900, len: 100, window: 5_000, flags, ..Segment::default() };
        self.now += Duration::from_millis(1);
        self.spoof.handle_segment(self.now, Side::Client, &segment);
        let sent = std::iter::from_fn(|| self.spoof.poll_transmit(self.now));
        sent.filter(|out| out.to == Side::Client).last().expect("an ACK").segment
    }

    fn ack(&mut self, ack: u32) -> Vec<String> {
        self.handle(Side::Server, &acknowledgement(ack))
    }

    /// Measures a round trip of 51 ms: longer than the millisecond between two other events.
    fn measure_long_round_trip(&mut self) {
        self.data(100);
        self.now += Duration::from_millis(50);
        assert!(self.ack(200).is_empty());
    }

    fn handle(&mut self, from: Side, segment: &Segment) -> Vec<String> {
        self.now += Duration::from_millis(1);
        self.spoof.handle_segment(self.now, from, segment);
        self.sent()
    }

    fn sent(&mut self) -> Vec<String> {
        let mut sent = Vec::new();
        while let Some(out) = self.spoof.poll_transmit(self.now) {
            let segment = out.segment;
            sent.push(match (out.to, out.origin) {
                (Side::Client, _) => format!("ack {}", segment.ack),
                (Side::Server, Origin::Proxy) => format!("rtx {}", segment.seq),
                (Side::Server, _) => format!("data {}", segment.seq),
            });
        }
        sent
    }
}

fn acknowledgement(ack: u32) -> Segment {
    let (flags, header) = (Flags::ACK, 40);
    Segment { seq: 900, ack, window: 5_000, flags, header, ..Segment::default() }
}

#[test]
fn each_segment_is_forwarded_and_acknowledged_at_once() {
    let mut harness = Harness::new(10_000);
    for seq in [100, 200, 300] {
        assert_eq!(harness.data(seq), [format!("data {seq}"), format!("ack {}", seq + 100)]);
    }
    assert_eq!(harness.spoof.bytes_at_risk(), 300);
    assert!(harness.ack(300).is_empty(), "an acknowledgement of the next hop ends at the proxy");
    assert_eq!(harness.spoof.bytes_at_risk(), 100);
}

#[test]
fn a_segment_after_a_gap_is_forwarded_and_causes_a_duplicate_acknowledgement() {
    let mut harness = Harness::new(10_000);
    harness.data(100);
    assert_eq!(harness.data(300), ["data 300", "ack 200"]);
    assert_eq!(harness.data(400), ["data 400", "ack 200"]);
    assert_eq!(harness.spoof.bytes_at_risk(), 100, "data after a gap is not acknowledged");
    assert_eq!(harness.data(200), ["data 200", "ack 500"]);
    // A segment that is stored is acknowledged, but not forwarded again.
    assert_eq!(harness.data(300), ["ack 500"]);
}

/// RFC 2018, section 4: "the first SACK block [...] MUST specify the contiguous block of data
/// containing the segment which triggered this ACK", and the option "SHOULD be filled out by
/// repeating the most recently reported SACK blocks".
#[test]
fn the_first_range_is_the_most_recent_one_also_after_an_old_segment() {
    let mut harness = Harness::new(10_000);
    harness.data(100);
    assert_eq!(harness.first_range(300), Some((300, 400)));
    assert_eq!(harness.first_range(700), Some((700, 800)));
    assert_eq!(harness.first_range(500), Some((500, 600)));
    assert!(harness.ack(200).is_empty());
    assert_eq!(harness.first_range(100), Some((500, 600)), "a duplicate of old data");
}

/// The same for a FIN that arrives twice.
#[test]
fn a_second_fin_is_reported_by_the_first_range() {
    let mut harness = Harness::new(10_000);
    harness.data(100);
    let fin = |seq, len| {
        let flags = Flags::ACK.with(Flags::FIN);
        Segment { seq, ack: 900, len, window: 5_000, flags, ..Segment::default() }
    };
    harness.handle(Side::Client, &fin(500, 100));
    assert_eq!(harness.first_range(300), Some((300, 400)));
    harness.now += Duration::from_millis(1);
    harness.spoof.handle_segment(harness.now, Side::Client, &fin(600, 0));
    let answer = std::iter::from_fn(|| harness.spoof.poll_transmit(harness.now)).last();
    let blocks = answer.expect("an acknowledgement").segment.sack;
    assert_eq!(blocks.as_slice(), [(500, 601), (300, 400)]);
}

/// RFC 9293, section 3.10.7.4, fifth check: "if the ACK bit is off, drop the segment and return".
#[test]
fn data_without_an_acknowledgement_number_is_not_accepted() {
    let mut harness = Harness::new(10_000);
    let data = Segment { seq: 100, len: 100, flags: Flags::ACK, ..Segment::default() };
    assert_eq!(harness.spoof.accepts(Side::Client, &data), Some((100, 100)));
    let data = Segment { flags: Flags::NONE, ..data };
    assert_eq!(harness.spoof.accepts(Side::Client, &data), None);
    assert!(harness.handle(Side::Client, &data).is_empty());
    assert_eq!(harness.spoof.buffer_status(Side::Client).bytes, 0);
}

#[test]
fn the_third_duplicate_triggers_a_local_retransmission() {
    let mut harness = Harness::new(10_000);
    (1..=6).for_each(|index| drop(harness.data(100 * index)));
    assert!(harness.ack(200).is_empty());
    assert!(harness.ack(200).is_empty());
    assert!(harness.ack(200).is_empty());
    assert_eq!(harness.ack(200), ["rtx 200"]);
    // The segments sent before the retransmission cause two more duplicates.
    assert!(harness.ack(200).is_empty());
    assert!(harness.ack(200).is_empty());
    // The next hole was sent before the retransmission that has arrived.
    assert!(harness.ack(700).is_empty());
    assert_eq!(harness.spoof.statistics().retransmissions, [0, 1]);
}

#[test]
fn the_timer_retransmits_the_first_segment_of_the_hop() {
    let mut harness = Harness::new(10_000);
    harness.data(100);
    harness.data(200);
    harness.now = harness.spoof.next_deadline();
    assert_eq!(harness.now.as_nanos(), 1_001_000_000, "RFC 6298, section 2.1");
    harness.spoof.handle_timeout(harness.now);
    assert_eq!(harness.sent(), ["rtx 100"]);
}

#[test]
fn segments_beyond_the_buffer_are_neither_forwarded_nor_acknowledged() {
    let mut harness = Harness::new(250);
    harness.data(100);
    harness.data(200);
    // The last 50 bytes of the buffer.
    assert_eq!(harness.data(300), ["data 300", "ack 350"]);
    assert_eq!(harness.data(400), ["ack 350"]);
    assert_eq!(harness.spoof.buffer_status(Side::Client).bytes, 250);
}

/// The segment at 300 has overtaken that at 200 before the proxy, and has not arrived with it. That
/// the answer takes less time than earlier ones is no doubt: the segment was sent once.
#[test]
fn a_segment_sent_before_one_that_has_arrived_is_lost() {
    let mut harness = Harness::new(10_000);
    harness.measure_long_round_trip();
    harness.data(300);
    harness.data(200);
    assert_eq!(harness.ack(300), ["rtx 300"]);
}

#[test]
fn a_segment_sent_before_one_that_is_selectively_acknowledged_is_lost() {
    let mut harness = Harness::new(10_000);
    harness.measure_long_round_trip();
    harness.data(200);
    harness.data(300);
    let mut segment = acknowledgement(200);
    segment.sack.push(300, 400);
    assert_eq!(harness.handle(Side::Server, &segment), ["rtx 200"]);
}

/// RFC 6298, section 3: the sample is that of the segment that has caused the acknowledgement.
#[test]
fn the_round_trip_is_that_of_the_last_of_several_acknowledged_segments() {
    let mut harness = Harness::new(10_000);
    harness.data(100);
    harness.now += Duration::from_millis(500);
    harness.data(200);
    assert!(harness.ack(300).is_empty());
    harness.data(300);
    // The minimum timeout of 20 ms, and 200 ms for the delayed acknowledgement of one segment.
    let timeout = harness.spoof.next_deadline().since(harness.now);
    assert_eq!(timeout, Duration::from_millis(220));
}

#[test]
fn the_window_of_the_next_hop_is_offered_while_no_data_is_missing() {
    let mut harness = Harness::new(10_000);
    let mut window_after = |seq| {
        let (flags, header) = (Flags::ACK, 40);
        let segment =
            Segment { seq, ack: 900, len: 100, window: 5_000, flags, header, ..Segment::default() };
        harness.now += Duration::from_millis(1);
        harness.spoof.handle_segment(harness.now, Side::Client, &segment);
        let sent = std::iter::from_fn(|| harness.spoof.poll_transmit(harness.now)).last();
        sent.expect("an acknowledgement").segment.window
    };
    assert_eq!(window_after(100), 5_000);
    assert_eq!(window_after(200), 5_000);
    // Only an acknowledgement with an unchanged window is a duplicate.
    assert_eq!(window_after(400), 5_000);
    assert_eq!(window_after(500), 5_000);
}

/// RFC 9293, section 3.8.6.2.2: an update while the sender may still send a full segment waits
/// until half of the buffer is free.
#[test]
fn a_sender_that_may_send_a_segment_receives_no_update_of_a_few_bytes() {
    let mut harness = Harness::new(1_000);
    (1..=9).for_each(|index| drop(harness.data(100 * index)));
    assert!(harness.ack(200).is_empty(), "100 bytes were offered, 200 are free");
    assert!(harness.ack(500).is_empty(), "500 are free");
    assert_eq!(harness.ack(600), ["ack 1000"], "600 are free");
}

/// RFC 2018, section 3: 2 + 8n bytes, and 2 bytes of padding.
#[test]
fn each_reported_range_takes_eight_bytes_of_the_header() {
    let mut harness = Harness::new(10_000);
    let without = harness.acknowledgement_of(100).header;
    let more = [300, 500].map(|seq| harness.acknowledgement_of(seq).header - without);
    assert_eq!(more, [4 + 8, 4 + 2 * 8]);
}

#[test]
fn all_segments_sent_before_a_selectively_acknowledged_one_are_lost() {
    let mut harness = Harness::new(10_000);
    (1..=4).for_each(|index| drop(harness.data(100 * index)));
    let mut segment = acknowledgement(100);
    segment.sack.push(200, 300);
    segment.sack.push(400, 500);
    assert_eq!(harness.handle(Side::Server, &segment), ["rtx 100", "rtx 300"]);
}

#[test]
fn a_segment_waits_for_the_window_of_the_next_hop() {
    let mut harness = Harness::new(10_000);
    let window = |ack| Segment { window: 150, ..acknowledgement(ack) };
    harness.handle(Side::Server, &window(100));
    assert_eq!(harness.data(100), ["data 100", "ack 200"]);
    assert_eq!(harness.data(200), ["ack 300"], "150 bytes are free, and 100 of them used");
    assert_eq!(harness.handle(Side::Server, &window(200)), ["rtx 200"]);
}

/// RFC 9293, section 3.8.6.1: "at least one octet of new data".
#[test]
fn the_timer_probes_a_closed_window_with_a_byte() {
    let mut harness = Harness::new(10_000);
    harness.data(100);
    harness.handle(Side::Server, &Segment { window: 0, ..acknowledgement(100) });
    harness.now = harness.spoof.next_deadline();
    harness.spoof.handle_timeout(harness.now);
    let probe = harness.spoof.poll_transmit(harness.now).expect("a probe").segment;
    assert_eq!((probe.seq, probe.len), (100, 1));
}

#[test]
fn fin_is_acknowledged_after_the_next_hop_has_acknowledged_it() {
    let mut harness = Harness::new(10_000);
    let flags = Flags::ACK.with(Flags::FIN);
    let fin = Segment { seq: 100, ack: 900, len: 100, window: 5_000, flags, ..Segment::default() };
    assert_eq!(harness.handle(Side::Client, &fin), ["data 100", "ack 200"]);
    assert_eq!(harness.ack(201), ["ack 201"]);
    let mut harness = Harness::new(10_000);
    let alone = Segment { len: 0, ..fin };
    assert_eq!(harness.spoof.accepts(Side::Client, &alone), None, "FIN has no payload");
    assert_eq!(harness.handle(Side::Client, &alone), ["data 100", "ack 100"]);
}

/// RFC 9293, section 3.10.7.4, second check: only a reset within the window is valid. The receiver
/// expects the first byte that it has not acknowledged.
#[test]
fn a_reset_within_the_window_is_forwarded_with_the_numbers_that_the_receiver_expects() {
    let mut harness = Harness::new(10_000);
    let header = harness.acknowledgement_of(100).header;
    let reset = |seq| Segment { seq, flags: Flags::RST, ..Segment::default() };
    assert!(harness.handle(Side::Client, &reset(10_101)).is_empty(), "beyond the buffer");
    harness.spoof.handle_segment(harness.now, Side::Client, &reset(200));
    let out = harness.spoof.poll_transmit(harness.now).expect("a reset");
    let numbers = (out.segment.seq, out.segment.ack, out.segment.flags);
    assert_eq!((out.to, numbers), (Side::Server, (100, 900, Flags::RST.with(Flags::ACK))));
    assert_eq!(out.segment.header, header, "without options");
    assert_eq!((harness.spoof.bytes_at_risk(), harness.spoof.lost()), (0, 100));
}

/// RFC 7323, section 2.3: the peer reads windows in whole units, here of 16 bytes.
#[test]
fn windows_are_whole_units_of_the_scale_also_at_the_end_of_the_proxy() {
    let mut harness = Harness::new(1_003);
    harness.spoof.set_window_shift(Side::Client, 4);
    assert_eq!(harness.acknowledgement_of(100).window, 896, "56 units of the 903 bytes left");
    harness.spoof.drain(harness.now);
    harness.spoof.handle_segment(harness.now, Side::Server, &acknowledgement(200));
    let sent = std::iter::from_fn(|| harness.spoof.poll_transmit(harness.now));
    let window = sent.last().expect("a window update").segment.window;
    assert_eq!(window, 992, "62 units of 1,003 bytes");
}

/// The acknowledgement is withheld until the next hop has acknowledged the data; old data is
/// acknowledged at once.
#[test]
fn a_proxy_that_ends_acknowledges_what_the_next_hop_has_acknowledged() {
    let mut harness = Harness::new(10_000);
    assert_eq!(harness.data(100), ["data 100", "ack 200"]);
    harness.spoof.drain(harness.now);
    assert_eq!(harness.data(200), ["data 200"]);
    assert!(harness.ack(200).is_empty());
    assert_eq!(harness.ack(300), ["ack 300"]);
    assert_eq!(harness.data(100), ["ack 300"]);
}

/// RFC 8985, section 6.2, step 2: an acknowledgement that arrives sooner than the minimum round
/// trip after a retransmission is that of the original, and proves nothing about the other one.
#[test]
fn an_early_selective_acknowledgement_does_not_prove_that_a_retransmission_has_arrived() {
    let retransmitted = |after: Duration| {
        let mut harness = Harness::new(10_000);
        harness.measure_long_round_trip();
        (2..=5).for_each(|index| drop(harness.data(100 * index)));
        harness.now += Duration::from_millis(50);
        let mut segment = acknowledgement(200);
        segment.sack.push(400, 600);
        assert_eq!(harness.handle(Side::Server, &segment), ["rtx 200", "rtx 300"]);
        harness.now += after;
        let mut segment = acknowledgement(200);
        segment.sack.push(300, 600);
        harness.handle(Side::Server, &segment)
    };
    assert!(retransmitted(Duration::ZERO).is_empty());
    assert_eq!(retransmitted(Duration::from_millis(60)), ["rtx 200"]);
}

/// RFC 5681, section 2: only an acknowledgement with an unchanged window is a duplicate, although
/// the next hop has acknowledged a segment since.
#[test]
fn the_window_stays_the_same_while_a_segment_is_missing() {
    let mut harness = Harness::new(1_000);
    let windows = [100, 300].map(|seq| harness.acknowledgement_of(seq).window);
    assert_eq!(windows, [900, 900]);
    harness.ack(200);
    assert_eq!(harness.acknowledgement_of(400).window, 900);
}

/// A FIN before data that is stored would end the stream in the middle.
#[test]
fn a_fin_before_stored_data_is_ignored() {
    let mut harness = Harness::new(10_000);
    harness.data(100);
    harness.data(300);
    let flags = Flags::ACK.with(Flags::FIN);
    let fin = Segment { seq: 200, ack: 900, len: 50, window: 5_000, flags, ..Segment::default() };
    assert_eq!(harness.handle(Side::Client, &fin), ["data 200", "ack 250"]);
    let rest = Segment { seq: 250, flags: Flags::ACK, ..fin };
    assert_eq!(harness.handle(Side::Client, &rest), ["data 250", "ack 400"]);
}
