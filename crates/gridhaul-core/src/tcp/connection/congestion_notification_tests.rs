//! Tests of explicit congestion notification.

use std::sync::Arc;

use gridhaul_scenario::scenario::{Profile, Recovery, Stack};
use gridhaul_scenario::units::{Bytes, Duration, Instant};

use super::*;
use crate::coverage_mark::covers;
use crate::tcp::StackParams;

const MSS: u32 = 1_000;

fn params(profile: Profile, ecn: bool) -> Arc<StackParams> {
    let mss = Some(Bytes::new(u64::from(MSS)));
    let stack = Stack { profile, mss, ecn: Some(ecn), ..Stack::default() };
    Arc::new(StackParams::resolve(&stack))
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A client and a server, and the flags of SYN and SYN-ACK.
fn opened(client: &Arc<StackParams>, server: &Arc<StackParams>) -> ([Connection; 2], [Flags; 2]) {
    let mut client = Connection::connect(Arc::clone(client), 3);
    let mut server = Connection::listen(Arc::clone(server), 7);
    client.write(1_000_000);
    let syn = client.poll_transmit(at(0)).unwrap();
    server.handle_segment(at(10), &syn);
    let answer = server.poll_transmit(at(10)).unwrap();
    assert_eq!([syn.ecn, answer.ecn], [EcnCodePoint::NotEct; 2]);
    client.handle_segment(at(20), &answer);
    ([client, server], [syn.flags, answer.flags])
}

fn all(end: &mut Connection, now: Instant) -> Vec<Segment> {
    std::iter::from_fn(|| end.poll_transmit(now)).collect()
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
        let ([mut client, _], flags) = opened(client, server);
        assert_eq!(flags, [syn, answer]);
        let data = all(&mut client, at(20)).into_iter().find(|segment| segment.len > 0);
        let is_capable = data.is_some_and(|data| data.ecn == EcnCodePoint::Ect0);
        assert_eq!(is_capable, answer.has(Flags::ECE));
    }
}

/// RFC 3168, section 6.1.1.1; both ends then do without ECN.
#[test]
fn a_retransmitted_syn_requests_no_ecn() {
    let params = params(Profile::Linux, true);
    let mut client = Connection::connect(Arc::clone(&params), 3);
    let mut server = Connection::listen(params, 7);
    client.write(10_000);
    client.poll_transmit(at(0)).unwrap();
    let due = client.next_deadline();
    client.handle_timeout(due);
    let syn = client.poll_transmit(due).unwrap();
    assert_eq!(syn.flags, Flags::SYN);
    server.handle_segment(due, &syn);
    let answer = server.poll_transmit(due).unwrap();
    assert_eq!(answer.flags, Flags::SYN.with(Flags::ACK));
    // An answer to the first SYN, which has arrived after all, changes nothing.
    let late = Segment { flags: answer.flags.with(Flags::ECE), ..answer };
    client.handle_segment(due, &late);
    assert!(all(&mut client, due).iter().all(|sent| sent.ecn == EcnCodePoint::NotEct));
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
        let ([mut client, mut server], _) = opened(&params, &params);
        let before = client.sender().unwrap().cwnd();
        let (mut ms, mut echoes, mut reports) = (20, 0, 0);
        let mut flight = all(&mut client, at(ms));
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
            let (mut acks, mut next) = (Vec::new(), Vec::new());
            for segment in &flight {
                server.handle_segment(at(ms + 10), segment);
                acks.extend(all(&mut server, at(ms + 10)));
            }
            for ack in &acks {
                assert_eq!(ack.ecn, EcnCodePoint::NotEct, "an acknowledgement");
                echoes += u32::from(ack.flags.has(Flags::ECE));
                client.handle_segment(at(ms + 20), ack);
                next.extend(all(&mut client, at(ms + 20)));
            }
            assert!(round > 1 || client.sender().unwrap().cwnd() < before * 2, "{round}");
            (flight, ms) = (next, ms + 20);
        }
        assert_eq!(client.sender().unwrap().ecn_reductions(), 1, "{profile:?} {sack}");
        assert_eq!((server.congestion_marks(), reports), (2, 1), "{profile:?} {sack}");
        // All acknowledgements between the first mark and the report of the reduction.
        assert!(echoes > 2, "{echoes}");
        let ssthresh = client.sender().unwrap().ssthresh();
        let window = ssthresh / MSS;
        assert!((5..10).contains(&window), "{profile:?} {sack}: {window} of 10 segments");
    }
}

/// RFC 3168, section 6.1.5: a retransmission is not ECN-capable.
#[test]
fn retransmissions_are_not_ecn_capable() {
    for profile in [Profile::Rfc, Profile::Linux] {
        let params = params(profile, true);
        let ([mut client, mut server], _) = opened(&params, &params);
        let flight = all(&mut client, at(20));
        let mut is_lost = true;
        let mut acks = Vec::new();
        for segment in &flight {
            // The first data segment is lost.
            if segment.len > 0 && std::mem::replace(&mut is_lost, false) {
                continue;
            }
            server.handle_segment(at(30), segment);
            acks.extend(all(&mut server, at(30)));
        }
        let mut sent = Vec::new();
        for ack in &acks {
            client.handle_segment(at(41), ack);
            sent.extend(all(&mut client, at(41)));
        }
        let first = flight.iter().find(|segment| segment.len > 0).unwrap().seq;
        let (again, new): (Vec<&Segment>, Vec<&Segment>) =
            sent.iter().partition(|segment| segment.seq == first);
        assert_eq!(again.len(), 1, "{profile:?}");
        assert_eq!(again[0].ecn, EcnCodePoint::NotEct);
        assert!(new.iter().all(|segment| segment.ecn == EcnCodePoint::Ect0));
        // A loss reduces the window as well, and is reported.
        let reports = new.iter().filter(|segment| segment.flags.has(Flags::CWR)).count();
        assert!(reports <= 1 && !again[0].flags.has(Flags::CWR));
    }
}

/// RFC 3168, section 6.1.6.
/// RFC 3168, section 6.1.2: a loss in a window of data whose mark has reduced the congestion window
/// reduces it no further, so there is no second reduction to report.
#[test]
fn a_loss_after_a_mark_of_the_same_window_is_not_reported() {
    for (profile, sack) in [(Profile::Rfc, true), (Profile::Linux, true), (Profile::Linux, false)] {
        let stack = Stack { profile, ecn: Some(true), sack: Some(sack), ..Stack::default() };
        let params = Arc::new(StackParams::resolve(&stack));
        let ([mut client, mut server], _) = opened(&params, &params);
        client.write(u64::MAX / 2);
        let mut flight = all(&mut client, at(20));
        let data: Vec<usize> = (0..flight.len()).filter(|&at| flight[at].len > 0).collect();
        flight[data[0]].ecn = EcnCodePoint::Ce;
        flight.remove(data[3]);
        let (mut now, mut reports, mut retransmissions) = (30, 0, 0);
        for _ in 0..3 {
            let acks: Vec<Segment> = flight
                .iter()
                .flat_map(|segment| {
                    server.handle_segment(at(now), segment);
                    all(&mut server, at(now))
                })
                .collect();
            flight = acks
                .iter()
                .flat_map(|ack| {
                    client.handle_segment(at(now + 10), ack);
                    all(&mut client, at(now + 10))
                })
                .collect();
            reports += flight.iter().filter(|sent| sent.flags.has(Flags::CWR)).count();
            retransmissions +=
                flight.iter().filter(|sent| sent.ecn == EcnCodePoint::NotEct).count();
            now += 20;
        }
        assert_eq!((reports, retransmissions > 0), (1, true), "{profile:?} {sack}");
    }
}

#[test]
fn window_probes_are_not_ecn_capable() {
    let params = params(Profile::Rfc, true);
    let ([mut client, mut server], _) = opened(&params, &params);
    let last = all(&mut client, at(20)).pop().unwrap();
    server.handle_segment(at(30), &last);
    let answer = all(&mut server, at(30)).pop().unwrap();
    let ack = last.seq.wrapping_add(last.len);
    client.handle_segment(at(40), &Segment { ack, window: 0, ..answer });
    assert_eq!(all(&mut client, at(40)), [], "the window is closed");
    let due = client.next_deadline();
    client.handle_timeout(due);
    let probe = client.poll_transmit(due).unwrap();
    assert_eq!((probe.len, probe.ecn), (1, EcnCodePoint::NotEct));
    // The byte of the probe was not accepted: it is sent for the first time when it counts.
    client.handle_segment(due, &Segment { ack, window: 50_000, ..answer });
    let next = client.poll_transmit(due).unwrap();
    assert_eq!((next.seq, next.ecn), (ack, EcnCodePoint::Ect0));
}

/// RFC 3168, section 6.1.1: both flags in SYN and ECE alone in SYN-ACK request ECN. Other
/// combinations come from implementations that copy reserved bits.
#[test]
fn other_flags_request_no_ecn() {
    let params = params(Profile::Rfc, true);
    let mut client = Connection::connect(Arc::clone(&params), 3);
    let mut server = Connection::listen(params, 7);
    client.write(10_000);
    let syn = client.poll_transmit(at(0)).unwrap();
    let only_echo = Segment { flags: Flags::SYN.with(Flags::ECE), ..syn };
    server.handle_segment(at(10), &only_echo);
    let answer = server.poll_transmit(at(10)).unwrap();
    assert_eq!(answer.flags, Flags::SYN.with(Flags::ACK));
    let copied = Segment { flags: answer.flags.with(SETUP), ..answer };
    client.handle_segment(at(20), &copied);
    assert!(all(&mut client, at(20)).iter().all(|sent| sent.ecn == EcnCodePoint::NotEct));
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
    let params = Arc::new(params);
    let ([mut client, mut server], _) = opened(&params, &params);
    let flight = all(&mut client, at(20));
    let mut windows = Vec::new();
    for segment in &flight {
        server.handle_segment(at(30), segment);
        for ack in all(&mut server, at(30)) {
            let echo = Segment { flags: ack.flags.with(Flags::ECE), ..ack };
            client.handle_segment(at(40), &echo);
            windows.push(client.sender().unwrap().cwnd());
        }
    }
    assert!(windows.len() > 2, "{windows:?}");
    assert!(windows.iter().all(|window| *window == windows[0]), "{windows:?}");
    assert_eq!(client.sender().unwrap().ecn_reductions(), 1);
}

/// An echo that arrives when all data is acknowledged belongs to no window of data.
#[test]
fn an_echo_without_outstanding_data_changes_nothing() {
    let params = params(Profile::Rfc, true);
    let mut client = Connection::connect(Arc::clone(&params), 3);
    let mut server = Connection::listen(params, 7);
    client.write(u64::from(MSS));
    let syn = client.poll_transmit(at(0)).unwrap();
    server.handle_segment(at(10), &syn);
    client.handle_segment(at(20), &server.poll_transmit(at(10)).unwrap());
    for round in 0..2 {
        let now = at(30 + 50 * round);
        for segment in all(&mut client, now) {
            server.handle_segment(now, &segment);
        }
        server.write(1);
        let ack = all(&mut server, now).pop().unwrap();
        client.handle_segment(now, &ack);
        let echo = Segment { flags: ack.flags.with(Flags::ECE), ..ack };
        client.handle_segment(now, &echo);
        // The acknowledgement of the next round has no echo.
        client.write(u64::from(MSS));
    }
    assert_eq!(client.sender().unwrap().ecn_reductions(), 0);
}

/// A mark of a segment without data is not echoed: acknowledgements are not ECN-capable, so
/// that another host has set it (RFC 3168, section 6.1.4).
#[test]
fn a_mark_without_data_is_ignored() {
    let params = params(Profile::Rfc, true);
    let ([mut client, mut server], _) = opened(&params, &params);
    let data = all(&mut client, at(20)).pop().unwrap();
    let marked = Segment { len: 0, ecn: EcnCodePoint::Ce, flags: Flags::ACK, ..data };
    server.handle_segment(at(30), &marked);
    assert_eq!(server.congestion_marks(), 0);
}

/// Linux acknowledges the first marked segment and the next one at once, and a segment that
/// reports a reduction (`__tcp_ecn_check_ce`, `tcp_ecn_accept_cwr`).
#[test]
fn linux_acknowledges_marks_and_reductions_at_once() {
    let params = params(Profile::Linux, true);
    let ([mut client, mut server], _) = opened(&params, &params);
    let data = all(&mut client, at(20)).into_iter().find(|sent| sent.len == MSS).unwrap();
    let mut number = 0;
    let mut acks = |ecn: EcnCodePoint, flags: Flags| {
        let seq = data.seq.wrapping_add(number * MSS);
        let now = at(u64::from(30 + number));
        number += 1;
        server.handle_segment(now, &Segment { seq, ecn, flags, ..data });
        all(&mut server, now).len()
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
