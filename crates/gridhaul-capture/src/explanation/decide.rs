//! The limit of a connection, from the shares of its time.

use gridhaul_scenario::units::Duration;
use serde::Serialize;

use super::doubt::Case;
use super::{ConnectionExplanation, Position};
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
pub(super) const NAMED: f64 = 0.5;
const CERTAIN: f64 = 0.7;

/// Largest share of data that a capture may miss.
const MISSING_MAX: f64 = 0.05;

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
    if counters.missing_byte as f64 / counters.payload_byte as f64 > MISSING_MAX {
        let limit = percent(MISSING_MAX);
        return Verdict::undecided(format!("the capture misses more than {limit} of the data"));
    }
    let round_trip = facts.round_trip_s.unwrap_or(0.0);
    let [first, second] = facts.shares.largest();
    let Some((limit, share)) = first.filter(|_| facts.transfer_s > 0.5 * round_trip) else {
        return Verdict::undecided("all data was sent within half a round trip".to_owned());
    };
    let second_share = second.map_or(0.0, |(_, share)| share).max(facts.shares.unexplained);
    let case = Case { facts, account, limit };
    if let Some(reason) = case.doubt().or_else(|| doubtful_place(facts, limit)) {
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
