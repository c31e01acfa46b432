//! Warnings about the validity of the rows of a run.

use super::{Metric, Metrics, RunRows, Warning};
use crate::scenario::{ChannelTransitions, Directions, Loss, Scenario};

impl RunRows {
    /// Warnings about the validity of these rows.
    #[must_use]
    pub fn warnings(&self, scenario: &Scenario) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for ((name, flow), metrics) in scenario.flow.iter().zip(&self.flows) {
            let value = |wanted: Metric| {
                metrics.iter().find(|(metric, _)| *metric == wanted).map(|&(_, value)| value)
            };
            let nothing_delivered = value(Metric::Goodput) == Some(0.0);
            let unchecked =
                flow.effective_deadline().is_some() && value(Metric::DeadlineMet).is_none();
            if unchecked && !nothing_delivered {
                warnings.push(Warning {
                    about: format!("flow.{name}.deadline"),
                    message:
                        "no message was due early enough for the deadline check; make `duration` \
                         longer than the sum of `warmup` and the deadline"
                            .to_owned(),
                });
            }
            if value(Metric::TransfersUnfinished).is_some_and(|share| share > 0.0) {
                warnings.push(Warning {
                    about: format!("flow.{name}"),
                    message:
                        "transfers had not finished at the end of a run; completion_time_s and \
                         transfer_rate_bit_per_s exclude them, and their share is \
                         transfers_unfinished_ratio; increase `duration`"
                            .to_owned(),
                });
            }
            let has_delays = value(Metric::DelayMean).is_some();
            if has_delays && value(Metric::DelayP98).is_none() {
                warnings.push(Warning {
                    about: format!("flow.{name}"),
                    message:
                        "more than 2 % of the messages had not arrived at the end of the run, \
                         although they were due earlier than the delay of the others: the 98th \
                         percentile of the delay is among them and unknown; mean and largest delay \
                         are those of the messages that arrived"
                            .to_owned(),
                });
            }
            if nothing_delivered {
                warnings.push(Warning {
                    about: format!("flow.{name}"),
                    message:
                        "nothing was delivered in the measured time; check `duration` and the \
                         links on the path"
                            .to_owned(),
                });
            }
        }
        warnings.extend(sparse_bursts(scenario, &self.links));
        warnings
    }
}

/// Links whose losses come in bursts of packets, but whose packets are further apart than a burst
/// of back-to-back packets lasts: a utilisation below the probability that a burst ends. Each burst
/// then lasts for many packet intervals.
fn sparse_bursts(scenario: &Scenario, links: &[Metrics]) -> Vec<Warning> {
    let directions = Directions::new(scenario);
    let rows = directions.rows().iter().zip(Directions::keys(scenario)).zip(links);
    let sparse = rows.filter_map(|(((name, _), direction), metrics)| {
        let Some(Loss::GilbertElliott(channel)) = &direction.loss else { return None };
        let ChannelTransitions::PerPacket { bad_to_good, .. } = channel.transitions() else {
            return None;
        };
        let value =
            |wanted| metrics.iter().find(|(metric, _)| *metric == wanted).map(|&(_, value)| value);
        let used = value(Metric::Utilisation)?;
        let packets = value(Metric::PacketsOut)?;
        (packets > 0.0 && used < bad_to_good.ratio()).then(|| Warning {
            about: format!("link.{name}.loss.gilbert_elliott"),
            message:
                "the packets are further apart than a burst of back-to-back packets lasts, so that \
                 a burst, which is counted in packets here, lasts for many of their intervals; use \
                 mean_good and mean_bad for bursts in time"
                    .to_owned(),
        })
    });
    sparse.collect()
}
