//! Admission by byte, by example.

use std::num::NonZeroU32;

use super::super::{Delimiter, FixedSize, FramingError};
use super::*;

fn limits(total: u64, own: u64, largest: u64) -> ByteLimits {
    ByteLimits::new(total, own, largest).unwrap()
}

fn lines(maximum: u32) -> Box<dyn Framer> {
    Box::new(Delimiter::new(b'\n', NonZeroU32::new(maximum).unwrap()))
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

#[test]
fn a_malformed_stream_ends_only_its_connection() {
    let mut aggregator = ByteAggregator::new(limits(100, 50, 8), 1);
    let [malformed, valid] = [(); 2].map(|()| aggregator.open(0, lines(8)).unwrap());
    aggregator.offer(Instant::ZERO, valid, &bytes("ab")).unwrap();
    let offered = aggregator.offer(Instant::ZERO, malformed, &bytes("one\ntwo"));
    assert_eq!(offered, Ok(Accepted { bytes: 7, messages: 1, incomplete: 3 }));
    let error = FramingError::DelimiterMissing { delimiter: b'\n', maximum: 8 };
    let accepted = Accepted::default();
    let ended = Ended { discarded: 3, undelivered: 4 };
    let offered = aggregator.offer(Instant::ZERO, malformed, &bytes("-and-more"));
    assert_eq!(offered, Err(OfferError::Malformed { error, accepted, ended }));
    assert_eq!(aggregator.offer(Instant::ZERO, malformed, &bytes("\n")), Err(OfferError::Ended));
    assert_eq!(aggregator.at_risk().value(), 6);
    // The complete message is still delivered, and the connection is removed afterwards.
    assert_eq!(aggregator.poll_transmit(0).unwrap().bytes, 4);
    assert!(aggregator.poll_delivered(Instant::ZERO, 0, 4).unwrap().is_finished);
    assert_eq!(aggregator.connection(malformed), None);
    let offered = aggregator.offer(Instant::ZERO, valid, &bytes("c\n")).unwrap();
    assert_eq!(offered.messages, 1);
}

#[test]
fn incomplete_messages_leave_the_reserve_to_one_connection() {
    // Three connections begin messages of 10 bytes, with space for 15.
    let mut aggregator = ByteAggregator::new(limits(15, 15, 10), 1);
    let [a, b, c] = [(); 3].map(|()| aggregator.open(0, lines(10)).unwrap());
    let mut offer = |id, text| aggregator.offer(Instant::ZERO, id, &bytes(text)).unwrap().bytes;
    assert_eq!(offer(a, "aaaaa"), 5);
    assert_eq!(offer(b, "bbb"), 3);
    // 8 bytes are incomplete, more than the 5 outside of the reserve: only b may continue.
    assert_eq!((offer(a, "aaaa\n"), offer(c, "ccc")), (0, 0));
    assert_eq!(offer(b, "bbbbbb\n"), 7);
    assert_eq!(aggregator.reserve_holder(), None);
    assert_eq!((aggregator.at_risk().value(), aggregator.poll_unblocked()), (15, None));
    aggregator.poll_transmit(0).unwrap();
    aggregator.poll_delivered(Instant::ZERO, 0, 10).unwrap();
    assert_eq!(aggregator.poll_unblocked(), Some(a), "first come, first served");
    assert_eq!(aggregator.poll_unblocked(), Some(c));
    assert_eq!(aggregator.poll_unblocked(), None);
}

#[test]
fn a_connection_at_its_own_limit_waits_for_its_own_messages() {
    let mut aggregator = ByteAggregator::new(limits(100, 10, 5), 2);
    let framer = || Box::new(FixedSize::new(NonZeroU32::new(5).unwrap()));
    let (a, b) = (aggregator.open(0, framer()).unwrap(), aggregator.open(1, framer()).unwrap());
    let accepted = aggregator.offer(Instant::ZERO, a, &Bytes::from(vec![1; 20])).unwrap();
    assert_eq!(accepted, Accepted { bytes: 10, messages: 2, incomplete: 0 });
    aggregator.offer(Instant::ZERO, b, &Bytes::from(vec![2; 5])).unwrap();
    aggregator.poll_transmit(1).unwrap();
    assert!(aggregator.poll_delivered(Instant::ZERO, 1, 5).is_some());
    assert_eq!(aggregator.poll_unblocked(), None);
    assert!(aggregator.poll_delivered(Instant::ZERO, 0, 5).is_none(), "not transmitted");
    let message = aggregator.poll_transmit(0).unwrap();
    assert!(aggregator.poll_delivered(Instant::ZERO, 0, 5).is_some());
    assert!(aggregator.read(&message).is_none(), "delivered payload is not stored");
    assert_eq!(aggregator.poll_unblocked(), Some(a));
}

#[test]
fn inconsistent_limits_are_rejected() {
    assert_eq!(ByteLimits::new(9, 9, 0), Err(LimitsError::NoMessage));
    let error = ByteLimits::new(9, 5, 6).unwrap_err();
    assert_eq!(
        error.to_string(),
        "messages of 6 bytes do not fit into the connection's limit of 5 bytes"
    );
    assert!(ByteLimits::new(4, 5, 5).is_err() && ByteLimits::new(1 << 31, 1 << 31, 5).is_err());
    let mut aggregator = ByteAggregator::new(limits(9, 9, 7), 1);
    let error = aggregator.open(0, lines(8)).unwrap_err();
    assert_eq!(error, OpenError::MessageTooLarge { bytes: 8, limit: 7 });
    assert_eq!(aggregator.open(1, lines(7)), Err(OpenError::NoUpstream { upstream: 1 }));
}
