//! The facts about a connection.

use gridhaul_scenario::units::{Duration, Instant};

use super::{ConnectionExplanation, Position, SATURATED, Verdict, decide};
use crate::connection::{Connection, Direction};
use crate::estimate::{Basis, DelayBasis};
use crate::limit::{Account, Counters, Facts, Leg, is_masked};
use crate::quantity::seconds;
use crate::{Estimate, Limit, LinkEstimate, Shares};

/// The capture of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) number: usize,
    /// Time of the first segment of the capture.
    pub(crate) start: Instant,
    pub(crate) point_number: u32,
    /// Name of the point, and unit of its times in nanoseconds.
    pub(crate) point: (&'a str, u64),
}

/// [`SATURATED`] at the receiver, where no queue shows.
const SATURATED_AT_RECEIVER: f64 = 0.75;

impl ConnectionExplanation {
    pub(crate) fn new(connection: &Connection, context: Context<'_>) -> Self {
        let sender = connection.main_sender();
        let direction = &connection.directions()[sender];
        let trips = connection.handshake().round_trips();
        let sides = trips.map(|trips| if sender == 0 { trips } else { [trips[1], trips[0]] });
        let position = Position::new(sides);
        let traffic = direction.traffic();
        let basis = Basis {
            samples: direction.link(),
            round_trips: direction.round_trips(),
            position,
            sides,
            echo: direction.echo_round_trip(),
            acknowledged: traffic.acknowledged,
            delivery: traffic.delivery(),
            packets: traffic.packets,
            bytes: traffic.bytes,
            losses: direction.losses(),
            unnecessary: traffic.unnecessary,
            time_unit_nanos: context.point.1,
        };
        let link = LinkEstimate::new(&basis);
        let account = direction.account();
        let transfer_s = account.total.as_secs_f64();
        let rate = link.rate_bit_per_s.map(|rate| rate.value);
        let utilisation = rate
            .filter(|_| transfer_s > 0.0)
            .map(|rate| traffic.bytes as f64 * 8.0 / (rate * transfer_s));
        let shares = shares(direction, &link, utilisation, position);
        let [first, last] = connection.times();
        let base = direction.round_trips().base();
        let sender_s = sides.map_or(0.0, |[sender, _]| sender.as_secs_f64());
        let from_sender = |trip: Duration| trip.as_secs_f64() + sender_s;
        let mut explanation = Self {
            number: context.number,
            ends: connection.ends(),
            point: context.point.0.to_owned(),
            is_upload: sender == 0,
            start_s: first.since(context.start).as_secs_f64(),
            duration_s: last.since(first).as_secs_f64(),
            transfer_s,
            goodput_bit_per_s: traffic.goodput_bit_per_s(),
            position,
            verdict: Verdict::undecided(String::new()),
            shares,
            counters: counters(direction),
            round_trip_s: base.map(from_sender),
            round_trip_mean_s: direction.round_trips().mean().map(from_sender),
            queueing_mean_s: direction.link().queueing().mean_s(),
            utilisation,
            link,
            proxied_by: None,
            notes: notes(connection, direction, position),
            first_at: first,
            messages: connection
                .directions()
                .each_ref()
                .map(|direction| direction.messages().to_vec()),
            capture_start_at: context.start,
            histories: connection.histories(),
            initial_numbers: connection.handshake().numbers(),
            point_number: context.point_number,
            last_at: last,
            sides,
            handshake_gap: connection.handshake().gap(),
            delay_basis: DelayBasis::for_later(&basis),
            echo_round_trip_s: direction.echo_round_trip().times[0].map(Duration::as_secs_f64),
        };
        let is_one_sided = connection.segments().contains(&0);
        explanation.verdict = decide::verdict(&explanation, account, is_one_sided);
        explanation
    }

    /// Propagation delay of both directions in s, if the bottleneck has this rate in bit/s: for a
    /// connection that does not show the rate, or another rate.
    #[must_use]
    pub fn round_trip_at(&self, rate: f64) -> Option<Estimate> {
        self.delay_basis.at_rate(rate)
    }

    /// Time of the last segment.
    pub(crate) const fn last_at(&self) -> Instant {
        self.last_at
    }

    /// Names a proxy, whose buffer is the receive window that limits the connection.
    pub(crate) fn set_proxy(&mut self, leg: Leg) {
        self.proxied_by = Some(leg);
        for (limit, _) in &mut self.shares.limits {
            if *limit == Limit::ReceiveWindow {
                *limit = Limit::Proxy;
            }
        }
        self.verdict.limit = Some(Limit::Proxy);
        self.verdict.evidence = Limit::Proxy.evidence(&self.facts());
    }

    pub(super) fn facts(&self) -> Facts<'_> {
        Facts {
            shares: &self.shares,
            counters: &self.counters,
            transfer_s: self.transfer_s,
            round_trip_s: self.round_trip_s,
            queueing_mean_s: self.queueing_mean_s,
            rate_bit_per_s: self.link.rate_bit_per_s.map(|rate| rate.value),
            utilisation: self.utilisation,
            proxied_by: self.proxied_by.as_ref(),
        }
    }
}

/// The shares of the limits, with that of the link's rate: the time during which the bottleneck was
/// busy belongs to it and not to a window.
fn shares(
    direction: &Direction,
    link: &LinkEstimate,
    utilisation: Option<f64>,
    position: Position,
) -> Shares {
    let account = direction.account();
    let total = account.total.as_secs_f64();
    if total <= 0.0 {
        return Shares::default();
    }
    let threshold = busy_threshold(direction, link);
    let mut limits: Vec<_> =
        Limit::ALL.iter().map(|&limit| (limit, share(account, limit))).collect();
    let mut busy = 0.0;
    if let Some(threshold) = threshold {
        for (limit, share) in limits.iter_mut().filter(|(limit, _)| is_masked(*limit)) {
            let masked = account.busy(*limit, threshold).as_secs_f64() / total;
            *share = (*share - masked).max(0.0);
            busy += masked;
        }
    }
    let saturated = if position == Position::Receiver { SATURATED_AT_RECEIVER } else { SATURATED };
    let utilisation = utilisation.unwrap_or(0.0).min(1.0);
    if utilisation >= saturated && utilisation > busy {
        let windows: f64 =
            limits.iter().filter(|(limit, _)| is_masked(*limit)).map(|(_, share)| share).sum();
        let moved = (utilisation - busy).min(windows);
        for (_, share) in limits.iter_mut().filter(|(limit, _)| is_masked(*limit)) {
            *share -= *share / windows.max(f64::MIN_POSITIVE) * moved;
        }
        busy += moved;
    }
    limits.push((Limit::LinkRate, busy));
    limits.retain(|(_, share)| *share >= 0.000_5);
    limits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    Shares { limits, unexplained: account.unexplained.as_secs_f64() / total }
}

fn share(account: &Account, limit: Limit) -> f64 {
    account.part(limit).time.as_secs_f64() / account.total.as_secs_f64()
}

/// The queueing delay above which the bottleneck is busy: more than three packets, because
/// acknowledgements of two segments cause pairs of packets whose second one waits for the first,
/// and more than a twentieth of the round trip, because other delays vary as well.
fn busy_threshold(direction: &Direction, link: &LinkEstimate) -> Option<Duration> {
    let rate = link.rate_bit_per_s?.value;
    let packet = direction.traffic().bytes as f64 / direction.traffic().packets.max(1) as f64;
    let packets = Duration::from_secs_f64(3.0 * packet * 8.0 / rate);
    let base = direction.round_trips().base()? + direction.sender_delay();
    Some(packets.max(base.mul_f64(0.05)))
}

fn counters(direction: &Direction) -> Counters {
    let (traffic, account) = (direction.traffic(), direction.account());
    let mean = account.delays_s / account.delays.max(1) as f64;
    Counters {
        payload_byte: traffic.payload,
        packets: traffic.packets,
        segments: account.new,
        short_segments: account.short,
        segment_byte: direction.segment_size(),
        retransmissions: traffic.retransmissions,
        lost_packets: direction.retransmitted().saturating_sub(traffic.unnecessary),
        timeouts: traffic.timeouts,
        timeout_longest_s: account.part(Limit::Timeout).longest.as_secs_f64(),
        reordered: traffic.reordered,
        in_flight_max_byte: traffic.in_flight_max,
        window_max_byte: traffic.window_max,
        zero_windows: traffic.zero_windows,
        waits: account.waits,
        answered_waits: account.answered,
        nagle_waits: account.part(Limit::Nagle).waits,
        nagle_delayed_waits: account.nagle_delayed,
        delayed_acks: account.delays,
        delayed_ack_mean_s: (account.delays > 0).then_some(mean),
        missing_byte: traffic.missing,
    }
}

fn notes(connection: &Connection, direction: &Direction, position: Position) -> Vec<String> {
    let restriction = position.restriction(connection.handshake().gap());
    let mut notes: Vec<String> = restriction.into_iter().collect();
    let traffic = direction.traffic();
    if connection.segments().contains(&0) {
        notes.push("only one direction was captured: give the captures of both".to_owned());
    }
    if traffic.missing > 0 {
        notes.push(format!(
            "{} acknowledged bytes are missing in the capture, which has dropped packets",
            traffic.missing
        ));
    }
    let set_back = connection.set_back();
    if !set_back.is_zero() {
        notes.push(format!(
            "the clock of the capture was set back by {}: later times follow those before",
            seconds(set_back.as_secs_f64())
        ));
    }
    let acks = traffic.hop_limits[0];
    let peer = connection.directions()[1 - connection.main_sender()].traffic().hop_limits[1];
    if acks.max > 0 && peer.max > 0 && (acks.max < peer.min || peer.max < acks.min) {
        notes.push(format!(
            "acknowledgements have hop limit {} and data of the same end {}: a proxy on the path \
             sends one of them",
            acks.max, peer.max
        ));
    }
    notes
}
