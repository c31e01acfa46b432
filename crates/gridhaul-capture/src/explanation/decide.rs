//! The limit of a connection, from the shares of its time.

use serde::Serialize;

use super::{ConnectionExplanation, Position};
use crate::Limit;
use crate::limit::Account;

/// The limit of a connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The limit; `None`: undecided.
    pub limit: Option<Limit>,
    /// How certain the limit is.
    pub confidence: Confidence,
    /// The evidence, or the reason why no limit is named.
    pub evidence: String,
}

/// Certainty of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// No limit is named.
    Undecided,
    /// The limit held for at least half of the time, and half again as long as any other.
    Moderate,
    /// The limit held for at least 70 % of the time, and twice as long as any other.
    High,
}

/// Shares of the time from which on a limit is named, and is certain.
const NAMED: f64 = 0.5;
const CERTAIN: f64 = 0.7;

/// Fewest waits. A few timeouts or pauses may be the whole time of a short transfer, and do not
/// need more evidence than their length.
const WAITS_MIN: u64 = 5;

impl Verdict {
    pub(super) const fn undecided(reason: String) -> Self {
        Self { limit: None, confidence: Confidence::Undecided, evidence: reason }
    }
}

pub(super) fn verdict(
    facts: &ConnectionExplanation,
    account: &Account,
    is_one_sided: bool,
) -> Verdict {
    let counters = &facts.counters;
    if is_one_sided {
        return Verdict::undecided("only one direction was captured".to_owned());
    }
    if counters.payload_byte == 0 {
        return Verdict::undecided("no data was sent".to_owned());
    }
    if counters.missing_byte * 20 > counters.payload_byte {
        return Verdict::undecided("the capture misses more than 5 % of the data".to_owned());
    }
    let round_trip = facts.round_trip_s.unwrap_or(0.0);
    let [first, second] = facts.shares.largest();
    let Some((limit, share)) = first.filter(|_| facts.transfer_s > 0.5 * round_trip) else {
        return Verdict::undecided("all data was sent within half a round trip".to_owned());
    };
    let second_share = second.map_or(0.0, |(_, share)| share).max(facts.shares.unexplained);
    if let Some(reason) = doubt(facts, account, limit) {
        return Verdict::undecided(reason);
    }
    let confidence = if share >= CERTAIN && share >= 2.0 * second_share {
        Confidence::High
    } else if share >= NAMED && share >= 1.5 * second_share {
        Confidence::Moderate
    } else {
        return Verdict::undecided(mixture(facts));
    };
    Verdict { limit: Some(limit), confidence, evidence: limit.evidence(&facts.facts()) }
}

/// The reason why a limit with a large share must not be named.
fn doubt(facts: &ConnectionExplanation, account: &Account, limit: Limit) -> Option<String> {
    let needs_many = !matches!(limit, Limit::Timeout | Limit::Application);
    if needs_many && account.waits < WAITS_MIN {
        return Some(format!("the data was sent in {} steps only", account.waits + 1));
    }
    // A timer waits for a constant time; queues and other traffic do not.
    let varies = account.delay_variation().is_some_and(|variation| variation > 0.5);
    if limit == Limit::DelayedAck && varies {
        return Some("round trips of single segments vary too much for a timer".to_owned());
    }
    // Without the rate of the link, a constant delay may be the transmission of a full segment.
    let receiver_side = facts.sides.map(|[_, receiver]| receiver.as_secs_f64());
    let handshake = receiver_side.unwrap_or(f64::INFINITY);
    let trip = facts.round_trip_mean_s.unwrap_or(0.0);
    let is_slow = facts.link.rate_bit_per_s.is_none() && trip > 2.0 * handshake + 0.02;
    if limit == Limit::CongestionWindow && is_slow {
        return Some(
            "acknowledgements take longer than the handshake, because of a slow link or because \
             the receiver delays them"
                .to_owned(),
        );
    }
    // A tail loss before the point of the capture looks like a pause of the application.
    let may_be_loss = matches!(facts.position, Position::Receiver)
        && limit == Limit::Application
        && facts.counters.lost_packets * 50 > facts.counters.packets
        && facts.counters.lost_packets > 2;
    if may_be_loss {
        return Some(
            "pauses may be timeouts, since losses before the receiver do not show".to_owned(),
        );
    }
    None
}

/// The largest shares as a sentence.
fn mixture(facts: &ConnectionExplanation) -> String {
    let mut parts: Vec<_> = facts
        .shares
        .limits
        .iter()
        .take(3)
        .map(|(limit, share)| format!("{} {:.0} %", limit.noun(), 100.0 * share))
        .collect();
    if facts.shares.unexplained >= 0.1 {
        parts.push(format!(
            "pacing or the application {:.0} %, which packets do not distinguish",
            100.0 * facts.shares.unexplained
        ));
    }
    format!("no limit held most of the time: {}", parts.join(", "))
}
