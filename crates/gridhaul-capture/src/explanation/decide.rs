//! The limit of a connection, from the shares of its time.

use gridhaul_scenario::units::Duration;
use serde::Serialize;

use super::{ConnectionExplanation, Position, SATURATED};
use crate::Limit;
use crate::estimate::is_echo_of_sender;
use crate::limit::Account;
use crate::quantity::{percent, seconds};

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
    if let Some(reason) = doubt(facts, account, limit).or_else(|| doubtful_place(facts, limit)) {
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
    let utilisation = facts.utilisation.unwrap_or(0.0);
    let is_unknown = facts.link.rate_bit_per_s.is_none();
    if limit == Limit::CongestionWindow && is_unknown && facts.position == Position::Receiver {
        return Some(
            "either the congestion window or the rate of the link, whose queue does not show at \
             the receiver"
                .to_owned(),
        );
    }
    let is_slow = is_unknown && trip > 2.0 * handshake + 0.02;
    if limit == Limit::CongestionWindow && is_slow {
        return Some(
            "acknowledgements take longer than the handshake, because of a slow link or because \
             the receiver delays them"
                .to_owned(),
        );
    }
    // A window that is always full may have been chosen for this rate, or be slightly too small.
    let window = account.part(Limit::ReceiveWindow).time.as_secs_f64();
    let full = window / account.total.as_secs_f64();
    if limit == Limit::LinkRate && full >= NAMED && utilisation < SATURATED {
        return Some(format!(
            "the receive window was full in {}, and the connection used {} of the rate of the \
             link: a larger window would raise its goodput up to that rate",
            percent(full),
            percent(utilisation)
        ));
    }
    if limit == Limit::Loss && facts.counters.lost_packets == 0 {
        return Some(
            "the sender repaired losses, but no packet was lost: packets arrived late or out of \
             order"
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
    let pauses = account.part(Limit::Application).time.saturating_sub(account.doubtful_pauses);
    let may_be_link = account.doubtful_pauses > Duration::ZERO
        && pauses.as_secs_f64() < NAMED * account.total.as_secs_f64();
    if facts.position == Position::Receiver && limit == Limit::Application && may_be_link {
        return Some(format!(
            "pauses of {} may be those of the link, since data that had arrived was retransmitted \
             after them",
            seconds(account.doubtful_pauses.as_secs_f64())
        ));
    }
    None
}

/// The reason why a limit must not be named if the handshake shows no round trips: the analysis
/// assumes that the capture is at the sender, and waits for a sender that is far away look like
/// pauses of its application.
fn doubtful_place(facts: &ConnectionExplanation, limit: Limit) -> Option<String> {
    let is_seen_everywhere = match limit {
        Limit::ReceiveWindow => facts.counters.zero_windows > 0,
        Limit::Application => facts.counters.answered_waits * 2 > facts.counters.waits,
        Limit::Timeout => true,
        _ => false,
    };
    if facts.position != Position::Unknown || is_seen_everywhere {
        return None;
    }
    let missing = facts.handshake_gap.reason();
    let counters = &facts.counters;
    let has_few_losses = counters.lost_packets as f64 / (counters.packets as f64) < LOSSES_MIN;
    let is_window = limit == Limit::CongestionWindow || limit == Limit::Loss && has_few_losses;
    if is_window && facts.handshake_gap.hides_window_scale() {
        return Some(format!(
            "{missing}, so that the scale of the receive window is unknown: either window may \
             limit the sender"
        ));
    }
    let round_trip = facts.round_trip_s?;
    let is_sender = |echo: f64| {
        let [echo, to_receiver] = [echo, round_trip].map(Duration::from_secs_f64);
        is_echo_of_sender(echo, to_receiver)
    };
    match facts.echo_round_trip_s {
        Some(echo) if is_sender(echo) => None,
        Some(echo) => Some(format!(
            "{missing}, and echoed timestamps show a round trip of {} to the sender: capture at \
             the sender, or from the beginning",
            seconds(echo)
        )),
        None if round_trip < LOCAL_S => Some(format!(
            "{missing}, and the capture may be at the receiver: capture at the sender, or from \
             the beginning"
        )),
        None => None,
    }
}

/// Share of lost packets from which on they alone keep the window small: 27 segments at this share
/// (Mathis et al. 1997).
const LOSSES_MIN: f64 = 0.002;

/// A shorter round trip between point and receiver is one of a local network, or the point is the
/// receiver.
const LOCAL_S: f64 = 0.002;

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
