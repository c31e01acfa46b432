//! Events for tests of classifiers.

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, LossClassifier as Kind, Stack};
use gridhaul_scenario::units::{Duration, Instant};

use crate::link::LossCause;
use crate::tcp::StackParams;
use crate::tcp::event::{DelayReport, LinkEvent, LinkReport, Loss};

/// Payload of the segments of these tests.
pub(super) const LEN: u32 = 1000;

/// The parameters of a stack with this classifier.
pub(super) fn params(classifier: Kind) -> StackParams {
    StackParams::resolve(&Stack {
        congestion_control: Some(CongestionControlAlgorithm::Medx),
        medx_classifier: Some(classifier),
        ..Stack::default()
    })
}

/// This number of milliseconds after the start.
pub(super) fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// An acknowledgement at `now_ms` of a segment sent at `sent_ms`, with half of this time as one-way
/// delay.
pub(super) fn answer(sent_ms: u64, now_ms: u64) -> DelayReport {
    let one_way_us = ((now_ms - sent_ms) * 500) as u32;
    DelayReport { now: ms(now_ms), one_way_us, sent_at: Some(ms(sent_ms)) }
}

/// The loss of the segment at this position.
pub(super) fn loss_at(position: u64) -> Loss {
    Loss {
        now: ms(0),
        window: 20 * LEN,
        in_flight: u64::from(20 * LEN),
        una: position,
        sent_at: ms(0),
        transmits: 1,
        next: position + u64::from(20 * LEN),
        timed_out_before: false,
        mss: LEN,
    }
}

/// A link loses the segment at this position, sent at `sent_ms`.
pub(super) fn lost(position: u64, sent_ms: u64, cause: LossCause) -> LinkReport {
    let event = LinkEvent::Lost(cause);
    LinkReport { first: position as u32, len: LEN, sent_at: ms(sent_ms), event }
}
