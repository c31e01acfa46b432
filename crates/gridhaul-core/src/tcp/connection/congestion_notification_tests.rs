//! Tests of explicit congestion notification.

use std::sync::Arc;

use gridhaul_scenario::scenario::{Profile, Recovery, Stack};
use gridhaul_scenario::units::{Bytes, Duration};

use super::super::pair::{Pair, at, resolve};
use super::*;
use crate::coverage_mark::covers;
use crate::tcp::StackParams;

const MSS: u32 = 1_000;

fn params(profile: Profile, ecn: bool) -> Arc<StackParams> {
    let mss = Some(Bytes::new(u64::from(MSS)));
    resolve(&Stack { profile, mss, ecn: Some(ecn), ..Stack::default() })
}

/// Ends with much data of the client, and what it sends after the handshake.
fn opened(params: &Arc<StackParams>) -> (Pair, Vec<Segment>) {
    let mut pair = Pair::unopened(params, params);
    pair.client.write(1_000_000);
    let flight = pair.open();
    (pair, flight)
}

/// RFC 3168, section 6.1.1.
#[test]
fn ecn_is_used_if_both_ends_request_it() {
    let [with, without] = [true, false].map(|ecn| params(Profile::Rfc, ecn));
    let syn_ack = Flags::SYN.with(Flags::ACK);
    let cases = [
        (&with, &with, Flags::SYN.with(SETUP), syn_ack.with(Flags::ECE)),
        (&with, &without, Flags::SYN.with(SETUP), syn_ack),
        (&without, &with, Flags::SYN, syn_ack),
    ];
    for (client, server, syn, answer) in cases {
        let mut pair = Pair::unopened(client, server);
        pair.client.write(10_000);
        let request = pair.client_segments();
        let reply = pair.deliver_to_server(&request);
        assert_eq!([request[0].flags, reply[0].flags], [syn, answer]);
        assert_eq!([request[0].ecn, reply[0].ecn], [EcnCodePoint::NotEct; 2]);
        let data = pair.deliver_to_client(&reply).into_iter().find(|segment| segment.len > 0);
        let is_capable = data.is_some_and(|data| data.ecn == EcnCodePoint::Ect0);
        assert_eq!(is_capable, answer.has(Flags::ECE));
    }
}

/// RFC 3168, section 6.1.1.1; both ends then do without ECN.
#[test]
fn a_retransmitted_syn_requests_no_ecn() {
    let params = params(Profile::Linux, true);
    let mut pair = Pair::unopened(&params, &params);
    pair.client.write(10_000);
    pair.client_segments();
    pair.expire_client_timer();
    let syn = pair.client_segments();
    assert_eq!(syn[0].flags, Flags::SYN);
    let answer = pair.deliver_to_server(&syn)[0];
    assert_eq!(answer.flags, Flags::SYN.with(Flags::ACK));
    // An answer to the first SYN, which has arrived after all, changes nothing.
    let late = Segment { flags: answer.flags.with(Flags::ECE), ..answer };
    let sent = pair.deliver_to_client(&[late]);
    assert!(sent.iter().all(|sent| sent.ecn == EcnCodePoint::NotEct));
}

/// RFC 3168, sections 6.1.2 and 6.1.3, with each recovery.
#[test]
fn the_window_is_reduced_once_for_the_marks_of_a_window() {
    covers!(ecn_echo);
    covers!(ecn_reduction);
    covers!(rack_reduces_for_mark);
    for (profile, sack) in [(Profile::Rfc, true), (Profile::Linux, true), (Profile::Linux, false)] {
        let params = params(profile, true);
        let stack = StackParams { sack, ..StackParams::clone(&params) };
        let recovery = if sack { stack.recovery } else { Recovery::NewReno };
        let params = Arc::new(StackParams { recovery, ..stack });
        let (mut pair, mut flight) = opened(&params);
        let before = pair.client.sender().unwrap().cwnd();
        let (mut echoes, mut reports) = (0, 0);
        // The third and the fifth segment of the first flight are marked.
        for round in 0..4 {
            let data = flight.iter_mut().filter(|segment| segment.len > 0);
            for (number, segment) in data.enumerate() {
                assert_eq!(segment.ecn, EcnCodePoint::Ect0, "new data");
                if round == 0 && (number == 2 || number == 4) {
                    segment.ecn = EcnCodePoint::Ce;
                }
                reports += u32::from(segment.flags.has(Flags::CWR));
            }
            let acks = pair.deliver_to_server(&flight);
            assert!(acks.iter().all(|ack| ack.ecn == EcnCodePoint::NotEct), "acknowledgements");
            echoes += acks.iter().filter(|ack| ack.flags.has(Flags::ECE)).count();
            flight = pair.deliver_to_client(&acks);
            assert!(round > 1 || pair.client.sender().unwrap().cwnd() < before * 2, "{round}");
        }
        assert_eq!(pair.client.sender().unwrap().ecn_reductions(), 1, "{profile:?} {sack}");
        assert_eq!((pair.server.congestion_marks(), reports), (2, 1), "{profile:?} {sack}");
        // All acknowledgements between the first mark and the report of the reduction.
        assert!(echoes > 2, "{echoes}");
        let ssthresh = pair.client.sender().unwrap().ssthresh();
        let window = ssthresh / MSS;
        assert!((5..10).contains(&window), "{profile:?} {sack}: {window} of 10 segments");
    }
}

/// RFC 3168, section 6.1.5: a retransmission is not ECN-capable.
#[test]
fn retransmissions_are_not_ecn_capable() {
    for profile in [Profile::Rfc, Profile::Linux] {
        let (mut pair, mut flight) = opened(&params(profile, true));
        let first = flight.iter().position(|segment| segment.len > 0).unwrap();
        let lost = flight.remove(first);
        let sent = pair.exchange(&flight);
        let (again, new): (Vec<&Segment>, Vec<&Segment>) =
            sent.iter().partition(|segment| segment.seq == lost.seq);
        assert_eq!(again.len(), 1, "{profile:?}");
        assert_eq!(again[0].ecn, EcnCodePoint::NotEct);
        assert!(new.iter().all(|segment| segment.ecn == EcnCodePoint::Ect0));
        // A loss reduces the window as well, and is reported.
        let reports = new.iter().filter(|segment| segment.flags.has(Flags::CWR)).count();
        assert!(reports <= 1 && !again[0].flags.has(Flags::CWR));
    }
}

/// RFC 3168, section 6.1.2: a loss in a window of data whose mark has reduced the congestion window
/// reduces it no further, so there is no second reduction to report.
#[test]
fn a_loss_after_a_mark_of_the_same_window_is_not_reported() {
    for (profile, sack) in [(Profile::Rfc, true), (Profile::Linux, true), (Profile::Linux, false)] {
        let stack = Stack { profile, ecn: Some(true), sack: Some(sack), ..Stack::default() };
        let (mut pair, mut flight) = opened(&resolve(&stack));
        let data: Vec<usize> = (0..flight.len()).filter(|&at| flight[at].len > 0).collect();
        flight[data[0]].ecn = EcnCodePoint::Ce;
        flight.remove(data[3]);
        let (mut reports, mut retransmissions) = (0, 0);
        for _ in 0..3 {
            flight = pair.exchange(&flight);
            reports += flight.iter().filter(|sent| sent.flags.has(Flags::CWR)).count();
            retransmissions +=
                flight.iter().filter(|sent| sent.ecn == EcnCodePoint::NotEct).count();
        }
        assert_eq!((reports, retransmissions > 0), (1, true), "{profile:?} {sack}");
    }
}

/// RFC 3168, section 6.1.6.
#[test]
fn window_probes_are_not_ecn_capable() {
    let (mut pair, mut flight) = opened(&params(Profile::Rfc, true));
    let last = flight.pop().unwrap();
    let answer = pair.deliver_to_server(&[last]).pop().unwrap();
    let ack = last.seq.wrapping_add(last.len);
    let sent = pair.deliver_to_client(&[Segment { ack, window: 0, ..answer }]);
    assert_eq!(sent, [], "the window is closed");
    pair.expire_client_timer();
    let probe = pair.client_segments()[0];
    assert_eq!((probe.len, probe.ecn), (1, EcnCodePoint::NotEct));
    // The byte of the probe was not accepted: it is sent for the first time when it counts.
    let next = pair.deliver_to_client(&[Segment { ack, window: 50_000, ..answer }])[0];
    assert_eq!((next.seq, next.ecn), (ack, EcnCodePoint::Ect0));
}

/// RFC 3168, section 6.1.1: both flags in SYN and ECE alone in SYN-ACK request ECN. Other
/// combinations come from implementations that copy reserved bits.
#[test]
fn other_flags_request_no_ecn() {
    let params = params(Profile::Rfc, true);
    let mut pair = Pair::unopened(&params, &params);
    pair.client.write(10_000);
    let syn = pair.client_segments()[0];
    let only_echo = Segment { flags: Flags::SYN.with(Flags::ECE), ..syn };
    let answer = pair.deliver_to_server(&[only_echo])[0];
    assert_eq!(answer.flags, Flags::SYN.with(Flags::ACK));
    let copied = Segment { flags: answer.flags.with(SETUP), ..answer };
    let sent = pair.deliver_to_client(&[copied]);
    assert!(sent.iter().all(|sent| sent.ecn == EcnCodePoint::NotEct));
}

#[test]
fn an_established_connection_has_ecn_if_both_stacks_do() {
    let [with, without] = [true, false].map(|ecn| params(Profile::Rfc, ecn));
    for (peer, expected) in [(&with, EcnCodePoint::Ect0), (&without, EcnCodePoint::NotEct)] {
        let mut end = Connection::established(Arc::clone(&with), 3, peer, 7);
        end.write(10_000);
        assert_eq!(end.poll_transmit(at(0)).unwrap().ecn, expected);
    }
}

/// The echoes after the reduction leave the window as it is.
#[test]
fn an_acknowledgement_with_an_echo_does_not_increase_the_window() {
    let params = params(Profile::Rfc, true);
    // Otherwise the window would not grow in this test anyway: it is not used up.
    let params = StackParams { grow_only_when_limited: false, ..StackParams::clone(&params) };
    let (mut pair, flight) = opened(&Arc::new(params));
    let mut windows = Vec::new();
    for ack in pair.deliver_to_server(&flight) {
        let echo = Segment { flags: ack.flags.with(Flags::ECE), ..ack };
        pair.client.handle_segment(pair.now, &echo);
        windows.push(pair.client.sender().unwrap().cwnd());
    }
    assert!(windows.len() > 2, "{windows:?}");
    assert!(windows.iter().all(|window| *window == windows[0]), "{windows:?}");
    assert_eq!(pair.client.sender().unwrap().ecn_reductions(), 1);
}

/// An echo that arrives when all data is acknowledged belongs to no window of data.
#[test]
fn an_echo_without_outstanding_data_changes_nothing() {
    let params = params(Profile::Rfc, true);
    let mut pair = Pair::unopened(&params, &params);
    pair.client.write(u64::from(MSS));
    let mut data = pair.open();
    for _ in 0..2 {
        pair.deliver_to_server(&data);
        pair.server.write(1);
        let ack = pair.server_segments().pop().unwrap();
        let echo = Segment { flags: ack.flags.with(Flags::ECE), ..ack };
        pair.deliver_to_client(&[ack, echo]);
        // The acknowledgement of the next round has no echo.
        pair.client.write(u64::from(MSS));
        data = pair.client_segments();
    }
    assert_eq!(pair.client.sender().unwrap().ecn_reductions(), 0);
}

/// A mark of a segment without data is not echoed: acknowledgements are not ECN-capable, so
/// that another host has set it (RFC 3168, section 6.1.4).
#[test]
fn a_mark_without_data_is_ignored() {
    let (mut pair, mut flight) = opened(&params(Profile::Rfc, true));
    let data = flight.pop().unwrap();
    let marked = Segment { len: 0, ecn: EcnCodePoint::Ce, flags: Flags::ACK, ..data };
    pair.deliver_to_server(&[marked]);
    assert_eq!(pair.server.congestion_marks(), 0);
}

/// Linux acknowledges the first marked segment and the next one at once, and a segment that
/// reports a reduction (`__tcp_ecn_check_ce`, `tcp_ecn_accept_cwr`).
#[test]
fn linux_acknowledges_marks_and_reductions_at_once() {
    let (mut pair, flight) = opened(&params(Profile::Linux, true));
    let data = flight.into_iter().find(|sent| sent.len == MSS).unwrap();
    pair.delay = Duration::from_millis(1);
    let mut number = 0;
    let mut acks = |ecn: EcnCodePoint, flags: Flags| {
        let seq = data.seq.wrapping_add(number * MSS);
        number += 1;
        pair.deliver_to_server(&[Segment { seq, ecn, flags, ..data }]).len()
    };
    let (mark, plain) = (EcnCodePoint::Ce, EcnCodePoint::Ect0);
    // Until the quick acknowledgements of the beginning are used up: then one for two segments.
    let early: usize = (0..41).map(|_| acks(plain, Flags::ACK)).sum();
    assert!((20..40).contains(&early), "{early} of 41");
    while acks(plain, Flags::ACK) == 0 {}
    assert_eq!([plain; 4].map(|ecn| acks(ecn, Flags::ACK)), [0, 1, 0, 1]);
    assert_eq!([mark, plain, plain, plain].map(|ecn| acks(ecn, Flags::ACK)), [1, 1, 0, 1]);
    assert_eq!([Flags::ACK.with(Flags::CWR), Flags::ACK].map(|flags| acks(plain, flags)), [1, 0]);
}
