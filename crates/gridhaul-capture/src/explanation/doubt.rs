//! The reasons why a limit with a large share of the time must not be named.

use gridhaul_scenario::units::Duration;

use super::decide::NAMED;
use super::{ConnectionExplanation, Position, SATURATED};
use crate::Limit;
use crate::limit::Account;
use crate::quantity::{percent, seconds};

/// A connection, and the limit with the largest share of its time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) facts: &'a ConnectionExplanation,
    pub(super) account: &'a Account,
    pub(super) limit: Limit,
}

/// A rule: the reason why the limit must not be named, if it holds.
type Doubt = fn(&Case<'_>) -> Option<String>;

/// The rules in the order in which their reasons are given.
const DOUBTS: [Doubt; 7] = [
    few_waits,
    varying_delay,
    unknown_rate_at_receiver,
    slow_acknowledgements,
    full_window,
    no_lost_packet,
    pauses_at_receiver,
];

/// Fewest waits. A few timeouts or pauses may be the whole time of a short transfer, and do not
/// need more evidence than their length.
const WAITS_MIN: u64 = 5;

/// Variation of the delay of acknowledgements that a timer does not have.
const VARIATION_MAX: f64 = 0.5;

/// Time in s by which acknowledgements take longer than two handshakes before they count as slow:
/// half of the shortest time for which Linux delays them (`TCP_DELACK_MIN`, 40 ms).
const HANDSHAKE_EXCESS_S: f64 = 0.02;

/// Share of lost packets above which losses before a receiver, which do not show, are likely as
/// well.
const LOSSES_AT_RECEIVER_MIN: f64 = 0.02;

/// Fewest lost packets of which the share counts.
const LOST_PACKETS_MIN: u64 = 3;

impl Case<'_> {
    /// The first reason why the limit must not be named.
    pub(super) fn doubt(&self) -> Option<String> {
        DOUBTS.iter().find_map(|doubt| doubt(self))
    }

    fn is_rate_unknown(&self) -> bool {
        self.facts.link.rate_bit_per_s.is_none()
    }

    fn is_at_receiver(&self) -> bool {
        self.facts.position == Position::Receiver
    }
}

fn few_waits(case: &Case<'_>) -> Option<String> {
    let needs_many = !matches!(case.limit, Limit::Timeout | Limit::Application);
    let waits = case.account.waits;
    (needs_many && waits < WAITS_MIN)
        .then(|| format!("the data was sent in {} steps only", waits + 1))
}

/// A timer waits for a constant time; queues and other traffic do not.
fn varying_delay(case: &Case<'_>) -> Option<String> {
    let variation = case.account.delay_variation();
    let varies = variation.is_some_and(|variation| variation > VARIATION_MAX);
    (case.limit == Limit::DelayedAck && varies)
        .then(|| "round trips of single segments vary too much for a timer".to_owned())
}

fn unknown_rate_at_receiver(case: &Case<'_>) -> Option<String> {
    let is_window = case.limit == Limit::CongestionWindow;
    (is_window && case.is_rate_unknown() && case.is_at_receiver()).then(|| {
        "either the congestion window or the rate of the link, whose queue does not show at the \
         receiver"
            .to_owned()
    })
}

/// Without the rate of the link, a constant delay may be the transmission of a full segment.
fn slow_acknowledgements(case: &Case<'_>) -> Option<String> {
    let to_receiver = case.facts.sides.map(|[_, to_receiver]| to_receiver.as_secs_f64());
    let round_trip_mean_s = case.facts.round_trip_mean_s.unwrap_or(0.0);
    let is_slow = to_receiver
        .is_some_and(|handshake| round_trip_mean_s > 2.0 * handshake + HANDSHAKE_EXCESS_S);
    (case.limit == Limit::CongestionWindow && case.is_rate_unknown() && is_slow).then(|| {
        "acknowledgements take longer than the handshake, because of a slow link or because the \
         receiver delays them"
            .to_owned()
    })
}

/// A window that is always full may have been chosen for this rate, or be slightly too small.
fn full_window(case: &Case<'_>) -> Option<String> {
    let window = case.account.part(Limit::ReceiveWindow).time;
    let full = window.as_secs_f64() / case.account.total.as_secs_f64();
    let utilisation = case.facts.utilisation.unwrap_or(0.0);
    (case.limit == Limit::LinkRate && full >= NAMED && utilisation < SATURATED).then(|| {
        format!(
            "the receive window was full in {}, and the connection used {} of the rate of the \
             link: a larger window would raise its goodput up to that rate",
            percent(full),
            percent(utilisation)
        )
    })
}

fn no_lost_packet(case: &Case<'_>) -> Option<String> {
    (case.limit == Limit::Loss && case.facts.counters.lost_packets == 0).then(|| {
        "the sender repaired losses, but no packet was lost: packets arrived late or out of order"
            .to_owned()
    })
}

fn pauses_at_receiver(case: &Case<'_>) -> Option<String> {
    if case.limit != Limit::Application || !case.is_at_receiver() {
        return None;
    }
    // A tail loss before the point of the capture looks like a pause of the application.
    let lost = case.facts.counters.lost_packets;
    let share = lost as f64 / case.facts.counters.packets as f64;
    if share > LOSSES_AT_RECEIVER_MIN && lost >= LOST_PACKETS_MIN {
        return Some(
            "pauses may be timeouts, since losses before the receiver do not show".to_owned(),
        );
    }
    let Account { doubtful_pauses, total, .. } = case.account;
    let pauses = case.account.part(Limit::Application).time.saturating_sub(*doubtful_pauses);
    let may_be_link =
        *doubtful_pauses > Duration::ZERO && pauses.as_secs_f64() < NAMED * total.as_secs_f64();
    may_be_link.then(|| {
        format!(
            "pauses of {} may be those of the link, since data that had arrived was retransmitted \
             after them",
            seconds(doubtful_pauses.as_secs_f64())
        )
    })
}
