//! The likely reason for which a capture and its simulation part.

use super::side::Side;
use super::track::{Point, Track};
use crate::Limit;
use crate::quantity::{bit_rate, seconds};

/// The time in which the difference has grown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) since_s: f64,
    pub(super) at_s: f64,
}

/// A longer wait is the reason if it takes at least this share of the time in which the difference
/// has grown.
const DECISIVE: f64 = 0.3;

/// A rate is lower, and not only noisy, below this ratio.
const LOWER: f64 = 0.9;

/// The reason in plain words: a wait of the sender that the other one does not have, more
/// retransmissions, or a lower rate.
pub(super) fn likely(side: Side, behind: &Track, ahead: &Track, span: &Span) -> Option<String> {
    let name = side.noun();
    // A wait is known when it has ended.
    let Some(end) = behind.point_after(span.at_s) else {
        return Some(format!(
            "after {} no further data is acknowledged in {name}",
            seconds(behind.points().last().map_or(0.0, |point| point.time_s))
        ));
    };
    let [slow, fast] = [behind, ahead].map(|track| {
        let [first, last] = [span.since_s, end.time_s].map(|time_s| track.point_at(time_s));
        Change { first, last }
    });
    let time_s = end.time_s - span.since_s;
    let longest = Limit::ALL
        .into_iter()
        .map(|limit| (limit, slow.waited_s(limit) - fast.waited_s(limit)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let beginning = format!("from {} to {}", seconds(span.since_s), seconds(end.time_s));
    if let Some((limit, extra_s)) = longest.filter(|(_, extra_s)| *extra_s >= DECISIVE * time_s) {
        return Some(format!(
            "{beginning} {name} waits {} longer for {}{}",
            seconds(extra_s),
            waited_for(limit),
            hint(limit, side)
        ));
    }
    let other = side.other().noun();
    let (own, others) = (slow.retransmissions(), fast.retransmissions());
    if own > others + 3 && own > 2 * others {
        return Some(format!("{beginning} {name} has {own} retransmissions, and {other} {others}"));
    }
    let rates = [slow, fast].map(|change| change.bytes() * 8.0 / time_s);
    let cause = match side {
        Side::Measured => "other traffic, a rate that varies, or a smaller window".to_owned(),
        // The simulated link has no other traffic and a constant rate.
        Side::Simulated => format!(
            "its window is smaller, after {} retransmissions ({} in {other})",
            slow.last.retransmissions, fast.last.retransmissions
        ),
    };
    (rates[0] < LOWER * rates[1] && time_s > 0.0).then(|| {
        format!(
            "{beginning} data is acknowledged at {} in {name} and at {} in {other}, without a \
             longer wait: {cause}",
            bit_rate(rates[0]),
            bit_rate(rates[1])
        )
    })
}

/// The change between two points of a track.
#[derive(Debug, Clone, Copy)]
struct Change {
    first: Point,
    last: Point,
}

impl Change {
    fn waited_s(&self, limit: Limit) -> f64 {
        self.last.limits_s[limit as usize] - self.first.limits_s[limit as usize]
    }
    const fn retransmissions(&self) -> u64 {
        self.last.retransmissions - self.first.retransmissions
    }
    fn bytes(&self) -> f64 {
        self.last.bytes - self.first.bytes
    }
}

/// The noun after "waits for".
const fn waited_for(limit: Limit) -> &'static str {
    match limit {
        Limit::Loss => "the repair of losses",
        Limit::CongestionWindow => "acknowledgements, since its congestion window is full",
        Limit::ReceiveWindow => "space in the receive window",
        other => other.noun(),
    }
}

/// A difference between a simulation and a capture that may cause a wait.
const fn hint(limit: Limit, behind: Side) -> &'static str {
    match (limit, behind) {
        (Limit::Loss | Limit::Timeout, _) => "; the simulation draws its losses at random",
        (Limit::CongestionWindow, _) => {
            "; the capture does not show its congestion control, CUBIC is simulated"
        }
        (Limit::ReceiveWindow, Side::Measured) => "; the simulated receiver reads at once",
        _ => "",
    }
}
