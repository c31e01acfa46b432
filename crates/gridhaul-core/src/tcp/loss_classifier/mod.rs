//! Classification of losses as congestion or as transmission errors. One file for each classifier.
//!
//! The congestion control `medx` polls its classifier at every loss, and reduces its window if the
//! answer is congestion. The classifier of paper `medx` is [`one_way_delay`]; the others are
//! controls that show what a classification is worth: no information, full information, and the
//! methods that the paper compares itself with.

// rustfmt and cargo-mutants find only modules that no macro declares.
mod always_congestion;
mod always_error;
mod ecn;
mod explicit_notification;
mod half_rtt;
mod one_way_delay;
mod oracle;
mod rtt_correlation;

use gridhaul_scenario::scenario::LossClassifier as Kind;
use gridhaul_scenario::units::Instant;

use super::event::{DelayReport, LinkReport, Loss};
use super::params::StackParams;
use crate::link::LossCause;

/// A classifier of losses.
pub(crate) trait LossClassifier: Sized {
    /// Whether a loss is classified only after a new delay report since the last classification.
    /// Otherwise an end-to-end classifier would keep the window of a failed path.
    const NEEDS_DELAYS: bool = true;

    /// The state at the start of a connection.
    fn new(params: &StackParams) -> Self;

    /// An acknowledgement reports the delay of a segment.
    #[inline]
    fn on_delay(&mut self, _report: &DelayReport) {}

    /// A link reports an event. The report takes no time; a classifier whose signal travels with
    /// packets uses it when [`Self::on_delay`] proves that such a packet has been acknowledged.
    fn on_link_report(&mut self, _report: &LinkReport) {}

    /// The cause of a loss; `None` without sufficient information.
    fn classify(&mut self, loss: &Loss) -> Option<LossCause>;

    /// Whether a loss that is classified as congestion reduces the window.
    fn reduces(&self, _loss: &Loss) -> bool {
        true
    }

    /// Whether a congestion mark requires a reduction of the window now: `una` is the first
    /// unacknowledged position, `next` the position that is sent next.
    #[inline]
    fn takes_mark(&mut self, _una: u64, _next: u64) -> bool {
        false
    }
}

macro_rules! classifiers {
    ($($(#[$doc:meta])* $name:ident, $module:ident;)*) => {
        /// The loss classifiers. An enum avoids the dynamic dispatch of a trait object.
        #[derive(Debug, Clone)]
        pub(crate) enum Classifier {
            $($(#[$doc])* $name($module::$name),)*
        }

        impl Classifier {
            /// The classifier of a stack.
            pub(crate) fn new(params: &StackParams) -> Self {
                match params.medx.classifier {
                    $(Kind::$name => Self::$name($module::$name::new(params)),)*
                }
            }

            /// See [`LossClassifier::NEEDS_DELAYS`].
            pub(crate) const fn needs_delays(&self) -> bool {
                match self {
                    $(Self::$name(_) => <$module::$name as LossClassifier>::NEEDS_DELAYS,)*
                }
            }
        }

        /// Calls a method of the selected classifier.
        macro_rules! dispatch {
            ($self:expr, $inner:ident => $call:expr) => {
                match $self {
                    $(Classifier::$name($inner) => $call,)*
                }
            };
        }
    };
}
gridhaul_scenario::for_each_loss_classifier!(classifiers);

impl Classifier {
    /// See [`LossClassifier::on_delay`].
    #[inline]
    pub(crate) fn on_delay(&mut self, report: &DelayReport) {
        dispatch!(self, inner => inner.on_delay(report));
    }

    /// See [`LossClassifier::on_link_report`].
    pub(crate) fn on_link_report(&mut self, report: &LinkReport) {
        dispatch!(self, inner => inner.on_link_report(report));
    }

    /// See [`LossClassifier::classify`].
    pub(crate) fn classify(&mut self, loss: &Loss) -> Option<LossCause> {
        dispatch!(self, inner => inner.classify(loss))
    }

    /// See [`LossClassifier::reduces`].
    pub(crate) fn reduces(&self, loss: &Loss) -> bool {
        dispatch!(self, inner => inner.reduces(loss))
    }

    /// See [`LossClassifier::takes_mark`].
    #[inline]
    pub(crate) fn takes_mark(&mut self, una: u64, next: u64) -> bool {
        dispatch!(self, inner => inner.takes_mark(una, next))
    }
}

/// Whether the segment of a link report, sent at `reported`, precedes or is the segment that an
/// acknowledgement answers, sent at `answered`: in microseconds, the resolution of the delay
/// option.
fn is_covered(reported: Instant, answered: Instant) -> bool {
    reported.as_nanos() / 1_000 <= answered.as_nanos() / 1_000
}

#[cfg(test)]
mod samples;
