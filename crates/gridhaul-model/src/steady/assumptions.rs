//! Assumptions of a throughput law that a flow does not meet, for the warnings of an answer.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Load, Recovery, Scenario};
use gridhaul_scenario::units::counted;

use super::Connection;
use super::demand::{Bottleneck, Demand};
use super::own_queue::mean_round_s;
use super::throughput_law::ThroughputLaw;
use super::timeouts::waiting_share;

/// Loss of acknowledgements from which the rate is far below that of the formulas.
const ACK_LOSS_MAX: f64 = 0.3;

/// Share of the measured time in which a window may still grow linearly: the rate is then at most a
/// twentieth too high.
const GROWING_MAX: f64 = 0.1;

/// Share of the time in timeouts from which the formula can be too low by a fifth.
const WAITING_MAX: f64 = 0.2;

/// Loss from which retransmissions are lost so often that the formula can be too high as well.
const REPEATED_LOSS: f64 = 0.2;

impl Demand<'_> {
    /// The assumptions to be stated in warnings.
    pub(super) fn assumptions(&self, scenario: &Scenario) -> Vec<String> {
        let mut notes: Vec<_> =
            self.law.violated_assumption(&self.connection).into_iter().collect();
        notes.extend(self.of_recovery());
        notes.extend(self.of_path());
        if self.flow.load != Load::Bulk {
            notes.push(
                "completion time by slow start, first loss and steady state (Cardwell, Savage and \
                 Anderson 2000); queue overflow in slow start, which can multiply the time, is \
                 neglected; with loss, the time is usually too long"
                    .to_owned(),
            );
        }
        notes.extend(self.of_transfer_window());
        notes.extend(self.of_long_round_trip());
        if self.law == ThroughputLaw::SquareRoot {
            // The laws of the papers are reproduced with the assumptions of the papers.
            return notes;
        }
        if self.flow.load == Load::Bulk {
            notes.extend(self.of_steady_state(scenario));
            notes.extend(self.of_saturated_link());
            notes.extend(self.of_bursts());
        }
        notes
    }

    /// The growth of the window of a transfer that is not slow start of Reno.
    fn of_transfer_window(&self) -> Option<String> {
        let Load::Transfer(transfer) = &self.flow.load else { return None };
        let StackParams { mss, initial_window, initial_ssthresh, .. } = self.stack;
        let is_long = transfer.size.get() > u64::from(initial_window);
        match self.stack.congestion_control {
            CongestionControlAlgorithm::Vegas if is_long => Some(
                "Vegas also ends its slow start when the segments of a round wait for each other \
                    at a link, which the formula excludes: longer transfers can take several \
                    times as long; use backend `sim`"
                    .to_owned(),
            ),
            CongestionControlAlgorithm::Cubic
                if is_long && initial_ssthresh / mss < self.connection.window as u32 =>
            {
                Some(
                    "above `initial_ssthresh`, the formula grows the window as Reno does, by a \
                        segment in each round; CUBIC grows it faster: the time is an upper bound; \
                        use backend `sim`"
                        .to_owned(),
                )
            }
            _ => None,
        }
    }

    fn of_recovery(&self) -> Option<String> {
        let repairs_at_once =
            matches!(self.stack.recovery, Recovery::NewReno | Recovery::Sack | Recovery::Rack);
        match (self.law, repairs_at_once) {
            (ThroughputLaw::Timeouts, _) => self.of_timeouts(repairs_at_once),
            (ThroughputLaw::Cubic, false) => Some(
                "the formula assumes NewReno, SACK or RACK; this stack waits for its timer after \
                    several losses in a window, so that the result is an upper bound"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    /// The formula of Padhye et al. loses the rest of a round with each loss. After losses that are
    /// independent of each other, a stack needs fewer timeouts.
    fn of_timeouts(&self, repairs_at_once: bool) -> Option<String> {
        let share = waiting_share(&self.connection);
        if share <= 0.0 || matches!(self.limit, Bottleneck::Link(_)) {
            return None;
        }
        (repairs_at_once || share >= WAITING_MAX).then(|| {
            let waits = format!(
                "the formula assumes that each loss includes the rest of its round, and waits for \
                 the timer for {:.0} % of the time; if losses are independent, fewer timeouts are \
                 needed",
                share * 100.0
            );
            if self.connection.loss >= REPEATED_LOSS {
                return format!(
                    "{waits}, but lost retransmissions double the timer: the flow may be faster \
                     or slower; use backend `sim`"
                );
            }
            let factor = 1.0 / (1.0 - share);
            format!(
                "{waits}: the flow is faster, by a factor of at most {factor:.1}; use backend `sim`"
            )
        })
    }

    fn of_path(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.path.is_bursty {
            notes.push(
                "bursty loss is replaced by independent loss of the same mean: bursts cause \
                    fewer window reductions and more timeouts"
                    .to_owned(),
            );
        }
        let ack_loss = self.path.ack_loss();
        if ack_loss > ACK_LOSS_MAX {
            notes.push(format!(
                "{:.0} % of the acknowledgements are lost, which the formulas neglect: the result \
                    is an upper bound; use backend `sim`",
                ack_loss * 100.0
            ));
        } else if ack_loss > 0.0 {
            notes.push("lost acknowledgements are neglected".to_owned());
        }
        if self.path.jitter_deviation_s > 0.0 {
            notes.push(
                "jitter is replaced by its mean; head-of-line waiting after delayed packets is \
                    neglected"
                    .to_owned(),
            );
        }
        notes
    }

    /// The time that a flow needs to reach its steady state, if the run is shorter.
    fn of_steady_state(&self, scenario: &Scenario) -> Option<String> {
        let needed_s = self.transient_s();
        let measured_s = scenario.duration.saturating_sub(scenario.warmup).as_secs_f64();
        let growing_s = self.vegas_growth_s() - scenario.warmup.as_secs_f64();
        let is_growing = growing_s > GROWING_MAX * measured_s;
        (measured_s < needed_s || is_growing).then(|| {
            format!(
                "the formula describes the steady state, which this flow reaches in about \
                    {needed_s:.0} s; a run of {measured_s} s after the warm-up differs: lengthen \
                    `duration` and `warmup`, or use backend `sim`"
            )
        })
    }

    /// Time of one cycle of congestion avoidance, in seconds: from the window after a loss to the
    /// window at the next one. At least slow start and two round trips.
    fn transient_s(&self) -> f64 {
        let Connection { rtt_s, window, acked_by_each: b, .. } = self.connection;
        let min_s = (2.0 + self.slow_start_rounds()) * self.largest_rtt_s();
        let Some((link, hop)) = self.path.bottleneck() else { return min_s };
        let queue = hop.queue / hop.sharers;
        let growing = match (&self.limit, self.law) {
            (Bottleneck::Link(_), ThroughputLaw::Sawtooth) => {
                let top = window.min(link * rtt_s + queue);
                let round_s = mean_round_s(rtt_s, link, top, 0.5);
                return min_s.max(top / 2.0 * b * round_s);
            }
            // A slow start beyond twice the queue overflows it; the rest of the window grows by a
            // segment in each round.
            (Bottleneck::Window, ThroughputLaw::Timeouts) if self.connection.loss <= 0.0 => {
                (window - 2.0 * queue).max(0.0)
            }
            _ => return min_s.max(self.vegas_growth_s()),
        };
        min_s.max(growing * b * rtt_s)
    }

    /// Time in which the window of Vegas grows to its equilibrium, in seconds; zero with other
    /// laws. Vegas leaves slow start early on a long path, and then adds a segment in each round
    /// trip.
    fn vegas_growth_s(&self) -> f64 {
        let Connection { rtt_s, window, acked_by_each: b, .. } = self.connection;
        match self.path.bottleneck() {
            Some((link, _)) if self.law == ThroughputLaw::Vegas => {
                window.min(link * rtt_s) * b * rtt_s
            }
            _ => 0.0,
        }
    }

    /// Round trips in which slow start opens the receive window; zero if loss or a link limits the
    /// flow.
    fn slow_start_rounds(&self) -> f64 {
        let Connection { window, acked_by_each: b, .. } = self.connection;
        let initial = f64::from(self.stack.initial_window) / f64::from(self.stack.mss);
        if self.limit != Bottleneck::Window || window <= initial {
            return 0.0;
        }
        (window / initial).ln() / (1.0 / b).ln_1p()
    }

    fn largest_rtt_s(&self) -> f64 {
        let Connection { rtt_s, window, .. } = self.connection;
        let queued = |(link, queue): (f64, f64)| window.min(link * rtt_s + queue) / link;
        let saturated = matches!(self.limit, Bottleneck::Link(_));
        let bottleneck = self.path.bottleneck().filter(|_| saturated);
        let own = bottleneck.map(|(link, hop)| queued((link, hop.queue / hop.sharers)));
        own.filter(|own| own.is_finite()).unwrap_or(rtt_s).max(rtt_s)
    }

    /// Where flows on a saturated link differ from the sawtooth.
    fn of_saturated_link(&self) -> Option<String> {
        let overflows = matches!(self.law, ThroughputLaw::Sawtooth | ThroughputLaw::FullLink);
        let (_, hop) = self.path.bottleneck().filter(|_| overflows)?;
        let burst = if self.stack.delayed_ack.is_zero() { 2 } else { self.stack.ack_every.max(2) };
        (hop.queue < f64::from(burst)).then(|| {
            format!(
                "a queue of {} drops bursts of {burst} segments, which the formula excludes: the \
                    result is an upper bound",
                counted(hop.queue as u64, "packet")
            )
        })
    }

    /// Timers that expire before an acknowledgement can arrive.
    fn of_long_round_trip(&self) -> Option<String> {
        let StackParams { rto_max, rto_initial, policy, .. } = &self.stack;
        let largest_s = self.largest_rtt_s();
        if largest_s > rto_max.as_secs_f64() {
            return Some(format!(
                "the round-trip time of {largest_s:.0} s exceeds the largest retransmission \
                    timeout of {rto_max}: segments are retransmitted before their acknowledgement \
                    arrives, which the formula excludes; use backend `sim`"
            ));
        }
        // RFC 6298, section 5.7: 3 s for the data after a retransmission of SYN. Linux has measured
        // the round trip of SYN by its timestamp.
        let timeout_s = rto_initial.as_secs_f64().max(3.0);
        let is_unmeasured = self.flow.load != Load::Bulk && !policy.adaptive_delayed_ack;
        (is_unmeasured && largest_s > timeout_s).then(|| {
            format!(
                "the round-trip time of {largest_s:.1} s exceeds the timeout of {timeout_s:.0} s \
                    that follows a retransmission of SYN: segments are retransmitted before their \
                    first acknowledgement arrives, which the formula excludes: the time is a lower \
                    bound; use backend `sim`"
            )
        })
    }
}
