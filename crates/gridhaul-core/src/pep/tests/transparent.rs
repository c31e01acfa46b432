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
    let mut proxy = engaged_spoof();
    answers(&mut proxy, Side::Client, &Segment { len: 100, ..segment(100, 900, Flags::ACK) });
    let resets = answers(&mut proxy, Side::Server, &segment(900, 5_000, Flags::ACK));
    assert_eq!(resets.iter().map(|out| out.to).collect::<Vec<_>>(), Side::BOTH);
    assert!(resets.iter().all(|out| out.segment.flags.has(Flags::RST)));
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
    let hosts = stack(100, 5_000);
    let next = [&*Arc::clone(&hosts), &*hosts];
    let limit = MssLimit::of_hosts([100; 2]);
    let mut proxy = Reflect::engaged(stack(100, 1), limit, Bytes::new(10_000), ISNS, next);
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
