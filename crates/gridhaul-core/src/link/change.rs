//! Changes of a direction during a run, by a caller that steps the simulation.

use gridhaul_scenario::scenario::Direction;
use gridhaul_scenario::units::{BitRate, Duration, Instant, Probability};

use super::impaired_path::ImpairedPath;
use super::loss::Loss;
use super::medium::MediumAccess;
use super::{DropReason, LinkDirection, LinkPayload, LinkRandomStreams, TransitOutcome};

/// A change of a direction; absent values stay as they are.
///
/// Rate, delay and loss apply to packets that are offered from then on: the transit of packets in
/// a drop-tail queue is known on arrival, and stays. A failure and its end apply at once.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DirectionChange {
    /// Whether the direction works. While it does not, packets in transmission are lost, as in an
    /// outage of mode `drop`.
    pub up: Option<bool>,
    /// The rate; replaces `rate_change` and the rate of a `trace` too. Must not be zero.
    pub rate: Option<BitRate>,
    /// The propagation delay. Packets keep their order.
    pub delay: Option<Duration>,
    /// The probability of an independent loss; replaces any other loss process.
    pub loss: Option<Probability>,
}

/// Failures of a direction that a caller has caused, in order of time. Decided when a packet
/// departs: the end of a failure is not known when the transit of a packet is computed.
#[derive(Debug, Clone, Default)]
pub(super) struct Failures {
    periods: Vec<Period>,
    /// Number of loss processes so far, so that each has its own random stream.
    losses: u64,
}

/// The interval includes its start and excludes its end, which is [`Instant::NEVER`] until the
/// direction works again.
#[derive(Debug, Clone, Copy)]
struct Period {
    start: Instant,
    end: Instant,
}

impl Failures {
    fn set_up(&mut self, now: Instant, up: bool) {
        let is_down = self.periods.last().is_some_and(|period| period.end == Instant::NEVER);
        match self.periods.last_mut() {
            Some(period) if is_down && up => period.end = now,
            _ if !is_down && !up => self.periods.push(Period { start: now, end: Instant::NEVER }),
            _ => {}
        }
    }

    /// Whether a failure overlaps a transmission.
    fn loses(&self, started: Instant, sent: Instant) -> bool {
        let overlaps = |period: &Period| {
            let covers_start = period.start <= started && started < period.end;
            covers_start || started < period.start && period.start < sent
        };
        self.periods.iter().any(overlaps)
    }
}

impl<P: LinkPayload> LinkDirection<P> {
    /// Changes the direction from `now` on. `keys` and `random` are those with which it was built.
    pub fn change(
        &mut self,
        now: Instant,
        change: &DirectionChange,
        keys: &Direction,
        random: LinkRandomStreams,
    ) {
        let latest = self.inside.iter().map(|transit| transit.left).max();
        let impaired = self.impaired.get_or_insert_with(|| {
            let mut path = ImpairedPath::of(keys, &MediumAccess::Own, random);
            path.impairments.last_in_order = latest.unwrap_or(Instant::ZERO);
            Box::new(path)
        });
        if self.inside.is_empty() {
            impaired.failures.periods.retain(|period| period.end > now);
        }
        if let Some(up) = change.up {
            impaired.failures.set_up(now, up);
        }
        if let Some(rate) = change.rate {
            self.transmitter.set_rate(rate);
            impaired.rate = None;
        }
        if let Some(delay) = change.delay {
            self.delay = delay;
        }
        if let Some(probability) = change.loss {
            impaired.failures.losses += 1;
            self.loss = Loss::replaced(probability, random, impaired.failures.losses);
        }
    }

    /// The packet that departs next is lost if a failure overlaps its transmission.
    pub(super) fn apply_failures(&mut self) {
        let Some(impaired) = &self.impaired else { return };
        if impaired.failures.periods.is_empty() {
            return;
        }
        let Some(transit) = self.inside.front_mut() else { return };
        if !impaired.failures.loses(transit.started, transit.sent) {
            return;
        }
        transit.outcome = match transit.outcome {
            TransitOutcome::Lost(reason) => TransitOutcome::Lost(reason),
            // The loss of the original is counted.
            outcome if outcome.is_duplicate() => TransitOutcome::CorruptedDuplicate,
            _ => TransitOutcome::Lost(DropReason::Outage),
        };
    }
}
