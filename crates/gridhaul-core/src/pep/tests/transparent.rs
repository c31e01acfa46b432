//! Transparent proxies by example: when they join a connection, and which segments they then handle
//! themselves.

use std::sync::Arc;

use gridhaul_scenario::units::{Bytes, Duration, Instant};

use super::stack;
use crate::pep::{MssLimit, Origin, Outgoing, Proxy, Reflect, Side, Spoof};
use crate::tcp::{Flags, Segment};

const ISNS: [u32; 2] = [99, 899];

fn spoof() -> Spoof {
    Spoof::new(stack(100, 1), MssLimit::of_hosts([100; 2]), Bytes::new(10_000))
}

/// A proxy that has joined a connection.
fn engaged_spoof() -> Spoof {
    let hosts = stack(100, 5_000);
    let next = [&*Arc::clone(&hosts), &*hosts];
    Spoof::engaged(stack(100, 1), MssLimit::of_hosts([100; 2]), Bytes::new(10_000), ISNS, next)
}

fn engaged_reflect(buffer: u64) -> Reflect {
    let hosts = stack(100, 5_000);
    let next = [&*Arc::clone(&hosts), &*hosts];
    Reflect::engaged(stack(100, 1), MssLimit::of_hosts([100; 2]), Bytes::new(buffer), ISNS, next)
}

fn segment(seq: u32, ack: u32, flags: Flags) -> Segment {
    Segment { seq, ack, window: 5_000, flags, header: 40, ..Segment::default() }
}

/// The segments that a proxy sends after one from this side.
fn answers(proxy: &mut impl Proxy, from: Side, segment: &Segment) -> Vec<Outgoing> {
    proxy.handle_segment(Instant::ZERO, from, segment);
    std::iter::from_fn(|| proxy.poll_transmit(Instant::ZERO)).collect()
}

/// RFC 9293, section 3.10.7.4: a host may open another connection with the same ports.
#[test]
fn a_syn_with_another_number_replaces_one_that_was_not_answered() {
    let mut proxy = spoof();
    answers(&mut proxy, Side::Client, &segment(99, 0, Flags::SYN));
    answers(&mut proxy, Side::Client, &segment(499, 0, Flags::SYN));
    answers(&mut proxy, Side::Server, &segment(899, 500, Flags::SYN.with(Flags::ACK)));
    answers(&mut proxy, Side::Client, &segment(500, 900, Flags::ACK));
    assert_eq!(proxy.first_sequence_number(Side::Client), Some(500), "the proxy has joined");
}

/// The proxy joins an open connection after an acknowledgement that leaves no data outstanding; the
/// acknowledgement itself is forwarded.
#[test]
fn the_segment_after_which_the_proxy_joins_is_forwarded() {
    let mut proxy = spoof();
    let data = Segment { len: 100, ..segment(100, 900, Flags::ACK) };
    let forwarded = answers(&mut proxy, Side::Client, &data);
    assert_eq!(forwarded.iter().map(|out| out.segment).collect::<Vec<_>>(), [data]);
    let acknowledgement = segment(900, 200, Flags::ACK);
    let forwarded = answers(&mut proxy, Side::Server, &acknowledgement);
    assert_eq!(forwarded.iter().map(|out| out.segment).collect::<Vec<_>>(), [acknowledgement]);
    assert_eq!(proxy.first_sequence_number(Side::Client), Some(200), "the proxy has joined");
}

#[test]
fn an_acknowledgement_of_data_that_was_never_sent_resets_both_hosts() {
    fn resets(mut proxy: impl Proxy) -> Vec<Outgoing> {
        let data = Segment { len: 100, ..segment(100, 900, Flags::ACK) };
        answers(&mut proxy, Side::Client, &data);
        answers(&mut proxy, Side::Server, &segment(900, 5_000, Flags::ACK))
    }
    for resets in [resets(engaged_spoof()), resets(engaged_reflect(10_000))] {
        assert_eq!(resets.iter().map(|out| out.to).collect::<Vec<_>>(), Side::BOTH);
        assert!(resets.iter().all(|out| out.segment.flags.has(Flags::RST)));
    }
}

/// RFC 9293, section 3.1: the acknowledgement number is valid only with the ACK bit.
#[test]
fn a_reset_without_acknowledgement_number_is_forwarded_to_the_other_host_alone() {
    let mut proxy = engaged_spoof();
    answers(&mut proxy, Side::Client, &Segment { len: 100, ..segment(100, 900, Flags::ACK) });
    let resets = answers(&mut proxy, Side::Server, &segment(900, 0, Flags::RST));
    assert_eq!(resets.iter().map(|out| out.to).collect::<Vec<_>>(), [Side::Client]);
    assert!(resets[0].segment.flags.has(Flags::RST));
    // A reset in answer to that ends at the proxy, which may repeat its own.
    let sent = answers(&mut proxy, Side::Client, &segment(200, 0, Flags::RST));
    assert!(sent.iter().all(|out| out.origin == Origin::Proxy), "{sent:?}");
}

/// RFC 1122, section 4.2.3.5: the time limit begins with the data, whatever time the connection was
/// idle before.
#[test]
fn the_limit_for_unacknowledged_data_does_not_begin_before_the_data() {
    let mut proxy = engaged_reflect(10_000);
    assert_eq!(proxy.poll_transmit(Instant::ZERO), None);
    let sent_at = Instant::ZERO + Duration::from_secs(200);
    let data = Segment { len: 100, ..segment(100, 900, Flags::ACK) };
    proxy.handle_segment(sent_at, Side::Client, &data);
    let mut now = sent_at;
    loop {
        let sent: Vec<_> = std::iter::from_fn(|| proxy.poll_transmit(now)).collect();
        if sent.iter().any(|out| out.segment.flags.has(Flags::RST)) {
            break;
        }
        now = proxy.next_deadline();
        assert!(now < Instant::NEVER, "the connection is aborted");
        proxy.handle_timeout(now);
    }
    assert!(now >= sent_at + Duration::from_secs(100), "{now:?}");
}

/// The client sends its first segment after the handshake; the server still waits for it.
#[test]
fn the_acknowledgement_of_syn_ack_reaches_the_server() {
    let limit = MssLimit::of_hosts([100; 2]);
    let reflect = Reflect::new(stack(100, 1), limit, Bytes::new(10_000));
    let proxies: [Box<dyn Proxy>; 2] = [Box::new(spoof()), Box::new(reflect)];
    for mut proxy in proxies {
        let mut handle = |from, segment: Segment| {
            proxy.handle_segment(Instant::ZERO, from, &segment);
            std::iter::from_fn(|| proxy.poll_transmit(Instant::ZERO)).collect::<Vec<_>>()
        };
        handle(Side::Client, segment(99, 0, Flags::SYN));
        handle(Side::Server, segment(899, 100, Flags::SYN.with(Flags::ACK)));
        let sent = handle(Side::Client, segment(100, 900, Flags::ACK));
        let numbers = |out: &Outgoing| (out.to, out.segment.seq, out.segment.ack, out.segment.len);
        let expected = [(Side::Server, 100, 900, 0)];
        assert_eq!(sent.iter().map(numbers).collect::<Vec<_>>(), expected);
        assert!(!proxy.is_over() && !proxy.is_finished());
    }
}

/// Another proxy has acknowledged the bytes before 500 and has crashed: the client retransmits from
/// 500 on, and the server expects 200.
#[test]
fn bytes_that_a_crashed_proxy_has_acknowledged_are_lost_and_both_hosts_are_reset() {
    let limit = MssLimit::of_hosts([100; 2]);
    let mut proxy = Spoof::observing(stack(100, 1), limit, Bytes::new(10_000));
    answers(&mut proxy, Side::Server, &segment(900, 200, Flags::ACK));
    let data = Segment { len: 100, ..segment(500, 900, Flags::ACK) };
    for second in 0..=6 {
        assert_eq!(proxy.lost(), 0);
        proxy.handle_segment(Instant::ZERO + Duration::from_secs(second), Side::Client, &data);
    }
    assert_eq!(proxy.lost(), 300);
    let sent: Vec<_> = std::iter::from_fn(|| proxy.poll_transmit(Instant::ZERO)).collect();
    let resets = sent.iter().filter(|out| out.segment.flags.has(Flags::RST));
    let numbers = |out: &Outgoing| (out.to, out.segment.seq, out.segment.ack);
    let expected = [(Side::Server, 200, 900), (Side::Client, 900, 200)];
    assert_eq!(resets.map(numbers).collect::<Vec<_>>(), expected);
}

/// The former proxy had sent the bytes from 200 to 300 before it crashed, and the server holds them
/// beyond a gap (RFC 2018). The new proxy fills the gap.
#[test]
fn an_acknowledgement_of_data_that_the_server_held_beyond_a_gap_resets_nobody() {
    fn sent(mut proxy: impl Proxy) -> (Vec<Outgoing>, u64) {
        let old = Segment { len: 50, ..segment(50, 900, Flags::ACK) };
        answers(&mut proxy, Side::Client, &old);
        let mut held = segment(900, 100, Flags::ACK);
        held.sack.push(200, 300);
        answers(&mut proxy, Side::Server, &held);
        assert_eq!(proxy.first_sequence_number(Side::Client), Some(100), "the proxy has joined");
        let data = Segment { len: 100, ..segment(100, 900, Flags::ACK) };
        answers(&mut proxy, Side::Client, &data);
        assert_eq!(proxy.bytes_at_risk(), 100);
        let mut sent = answers(&mut proxy, Side::Server, &segment(900, 300, Flags::ACK));
        let later = Segment { len: 100, ..segment(200, 900, Flags::ACK) };
        sent.extend(answers(&mut proxy, Side::Client, &later));
        sent.extend(answers(&mut proxy, Side::Server, &segment(900, 300, Flags::ACK)));
        (sent, proxy.bytes_at_risk())
    }
    let limit = MssLimit::of_hosts([100; 2]);
    let reflect = Reflect::new(stack(100, 1), limit, Bytes::new(10_000));
    for (sent, at_risk) in [sent(spoof()), sent(reflect)] {
        assert_eq!(at_risk, 0);
        assert!(!sent.iter().any(|out| out.segment.flags.has(Flags::RST)), "{sent:?}");
    }
}

#[test]
fn only_syn_of_the_client_begins_the_next_connection_after_a_reset() {
    let mut proxy = engaged_spoof();
    answers(&mut proxy, Side::Client, &segment(100, 900, Flags::RST));
    assert!(proxy.is_over());
    answers(&mut proxy, Side::Server, &segment(5_000, 0, Flags::SYN));
    answers(&mut proxy, Side::Client, &segment(5_000, 900, Flags::SYN.with(Flags::ACK)));
    assert!(proxy.first_sequence_number(Side::Client).is_some());
    answers(&mut proxy, Side::Client, &segment(5_000, 0, Flags::SYN));
    assert_eq!(proxy.first_sequence_number(Side::Client), None);
}

/// RFC 9293, section 3.7.1, MUST-16: no segment is larger than the other host accepts.
#[test]
fn segments_are_no_larger_than_the_limit_that_the_hosts_have_stated() {
    let limit = MssLimit::of_hosts([100; 2]);
    let mut proxy = Reflect::new(stack(100, 1), limit, Bytes::new(10_000));
    answers(&mut proxy, Side::Client, &segment(99, 0, Flags::SYN));
    proxy.limit_mss(MssLimit::of_hosts([40; 2]));
    answers(&mut proxy, Side::Server, &segment(899, 100, Flags::SYN.with(Flags::ACK)));
    let data = Segment { len: 100, ..segment(100, 900, Flags::ACK) };
    let sent = answers(&mut proxy, Side::Client, &data);
    let lens = sent.iter().filter(|out| out.to == Side::Server).map(|out| out.segment.len);
    assert_eq!(lens.collect::<Vec<_>>(), [40, 40, 20]);
}

/// The last window that the proxy offers to the client within 50 ms after a segment.
fn window_after(proxy: &mut Reflect, now: &mut Instant, from: Side, segment: &Segment) -> u32 {
    proxy.handle_segment(*now, from, segment);
    let until = *now + Duration::from_millis(50);
    let mut window = None;
    loop {
        while let Some(out) = proxy.poll_transmit(*now) {
            if out.to == Side::Client {
                window = Some(out.segment.window);
            }
        }
        if proxy.next_deadline() > until {
            break;
        }
        *now = proxy.next_deadline();
        proxy.handle_timeout(*now);
    }
    *now = until;
    window.unwrap_or(0)
}

/// RFC 5681, section 2: only an acknowledgement with an unchanged window is a duplicate. The server
/// acknowledges the first segment after the window was offered.
#[test]
fn the_window_stays_the_same_while_a_segment_is_missing() {
    let (mut proxy, mut now) = (engaged_reflect(1_000), Instant::ZERO);
    let data = |seq| Segment { len: 100, ..segment(seq, 900, Flags::ACK) };
    let windows =
        [100, 300].map(|seq| window_after(&mut proxy, &mut now, Side::Client, &data(seq)));
    assert_eq!(windows, [900, 900]);
    window_after(&mut proxy, &mut now, Side::Server, &segment(900, 200, Flags::ACK));
    assert_eq!(window_after(&mut proxy, &mut now, Side::Client, &data(400)), 900);
}

/// RFC 7323, section 2.3: here units of 16 bytes.
#[test]
fn the_windows_of_reflect_are_whole_units_of_the_scale() {
    let (mut proxy, mut now) = (engaged_reflect(1_003), Instant::ZERO);
    proxy.set_window_shift(Side::Client, 4);
    let data = Segment { len: 100, ..segment(100, 900, Flags::ACK) };
    assert_eq!(window_after(&mut proxy, &mut now, Side::Client, &data), 896);
}
