//! Evidence of a run about the limits of an application.

use gridhaul_scenario::units::Duration;

use super::{Bounds, Evidence};
use crate::method::{Proportion, Summary, messages_needed};

/// Confidence of each bound.
const CONFIDENCE: f64 = 0.95;

impl Evidence {
    /// The evidence of a run for a quantile of the latency and a limit.
    ///
    /// A message without an intact copy within `horizon` counts as later than all others, whether
    /// it was lost, corrupt or refused by the protocol. Upper bounds are those of the latency from
    /// the schedule, and lower bounds those of the latency from the send time, so that lateness of
    /// the generator neither passes nor fails an application.
    #[must_use]
    pub fn of_run(summary: &Summary, horizon: Duration, share: f64, limit: Duration) -> Self {
        let missing = summary.missing();
        let bounds = |latency: &crate::method::Distribution| {
            latency.bounds_with_missing(share, missing, horizon)
        };
        let of = summary.from_schedule.count() + missing;
        let unsuccessful = |latency: &crate::method::Distribution| {
            let count = latency.count_above(limit) + missing;
            (of > 0).then(|| Proportion { count, of }.bounds(CONFIDENCE))
        };
        Self {
            messages: of,
            messages_needed: messages_needed(share),
            latency: Bounds {
                lower: bounds(&summary.from_send)[0],
                upper: bounds(&summary.from_schedule)[1],
            },
            unsuccessful: Bounds {
                lower: unsuccessful(&summary.from_send).map(|[lower, _]| lower),
                upper: unsuccessful(&summary.from_schedule).map(|[_, upper]| upper),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Instant;

    use super::*;
    use crate::method::{Message, Phase, Schedule};
    use crate::verdict::{ApplicationClass, Path, Reason, Verdict, judge};

    /// 1,000 messages at 100/s with these latency and lateness, of which every `lost_every`-th is
    /// lost.
    fn run(latency_ms: u64, lateness_ms: u64, lost_every: u64) -> Summary {
        let mut summary = Summary::new(&Schedule::new(100.0, 1_000));
        for sequence in 0..1_000 {
            let intended = Instant::ZERO + Duration::from_millis(10 * sequence);
            let sent = intended + Duration::from_millis(lateness_ms);
            let arrives = lost_every == 0 || sequence % lost_every != 0;
            summary.add(&Message {
                sequence,
                intended,
                sent: Some(sent),
                received: arrives.then_some(sent + Duration::from_millis(latency_ms)),
                copies: u32::from(arrives),
                corrupt_copies: 0,
                reordered: false,
                phase: Phase::Measured,
                ..Message::default()
            });
        }
        summary
    }

    fn verdict(name: &str, summary: &Summary) -> Verdict {
        let class = ApplicationClass::named(name).unwrap();
        let limit = class.limit(Path::Applications).unwrap();
        let evidence = Evidence::of_run(summary, Duration::from_secs(5), 0.98, limit);
        judge(&class, Path::Applications, &evidence).unwrap()
    }

    #[test]
    fn lost_messages_are_late() {
        assert_eq!(verdict("TT4", &run(15, 0, 0)), Verdict::Pass);
        // 1 % of the messages is lost: the 98th percentile of the others decides.
        assert_eq!(verdict("TT4", &run(15, 0, 100)), Verdict::Pass);
        // 10 % is lost: the 98th percentile is at least the horizon.
        assert_eq!(verdict("TT4", &run(15, 0, 10)), Verdict::Fail { reason: Reason::Latency });
        assert_eq!(verdict("TT4", &run(25, 0, 0)), Verdict::Fail { reason: Reason::Latency });
    }

    #[test]
    fn lateness_of_the_generator_decides_nothing() {
        let late = verdict("TT4", &run(15, 10, 0));
        assert!(matches!(late, Verdict::NotDecidable { reason: Reason::Latency, .. }), "{late:?}");
    }

    #[test]
    fn a_loss_limit_needs_more_messages_than_a_percentile() {
        let name = "distributed voltage control";
        let few = verdict(name, &run(15, 0, 0));
        assert!(matches!(few, Verdict::NotDecidable { reason: Reason::Unsuccessful, .. }));
        assert_eq!(verdict(name, &run(15, 0, 100)), Verdict::Fail { reason: Reason::Unsuccessful });
    }

    #[test]
    fn without_messages_nothing_is_decidable() {
        let empty = Summary::new(&Schedule::new(100.0, 1));
        assert!(matches!(verdict("TT1", &empty), Verdict::NotDecidable { messages: 0, .. }));
    }
}
