//! Rules by which `medx` classifies losses.

use serde::{Deserialize, Serialize};

/// Calls a macro with the list of loss classifiers, the only complete list of them.
/// A new classifier is one line here and one file in `gridhaul-core/src/tcp/loss_classifier/`.
#[macro_export]
macro_rules! for_each_loss_classifier {
    ($callback:ident) => {
        $callback! {
            /// The criteria of paper `medx` on one-way delays: congestion if the newest delay
            /// exceeds `medx_beta` times the average, and no delay in the list is below the one
            /// before it.
            OneWayDelay, one_way_delay;
            /// The same criteria on half of the round-trip time of each acknowledged segment.
            HalfRtt, half_rtt;
            /// Every loss is a transmission error: the window is never reduced.
            AlwaysError, always_error;
            /// Every loss is congestion: Reno. The null case of a comparison.
            AlwaysCongestion, always_congestion;
            /// The true cause, which only the simulator can provide.
            Oracle, oracle;
            /// Congestion if the newest round-trip time exceeds the mean of all those of the
            /// connection by more than their standard deviation.
            RttCorrelation, rtt_correlation;
            /// Explicit wireless loss notification: a loss is congestion unless the link that lost
            /// the segment has reported a transmission error. Segments sent after the loss carry
            /// the report to the receiver, and their acknowledgements carry it to the sender.
            /// Simulator only.
            ExplicitNotification, explicit_notification;
            /// Explicit congestion notification: a queue that is more than half full marks the
            /// segments that arrive. A mark halves the window once per round trip; a loss without a
            /// mark in the last round trip is a transmission error. Simulator only.
            Ecn, ecn;
        }
    };
}

macro_rules! loss_classifier_enum {
    ($($(#[$doc:meta])* $name:ident, $module:ident;)*) => {
        /// Rule by which `medx` classifies a loss as congestion or as a transmission error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum LossClassifier {
            $($(#[$doc])* $name,)*
        }

        impl LossClassifier {
            /// All classifiers, in the order of the list.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name, as written in files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($module),)*
                }
            }
        }
    };
}
for_each_loss_classifier!(loss_classifier_enum);

/// The classifier of the paper.
impl Default for LossClassifier {
    fn default() -> Self {
        Self::OneWayDelay
    }
}

impl LossClassifier {
    /// Whether links report losses or full queues to the sender, which only the simulator can do.
    #[must_use]
    pub const fn needs_reports_of_links(self) -> bool {
        matches!(self, Self::Oracle | Self::ExplicitNotification | Self::Ecn)
    }
}
