//! TCP stacks: a profile with its small print, and each parameter on its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Duration, WindowSize};

/// A TCP stack. Everything absent comes from the profile.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// The bundle of defaults; [the table of profiles](profiles.md) has each of them.
    #[serde(default)]
    pub profile: Profile,
    /// The TCP variant: how the window grows and what a loss does to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<CongestionControlAlgorithm>,
    /// How lost data is found and repeated. Absent: what belongs to the variant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Maximum segment size: payload of a full segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss: Option<Bytes>,
    /// IP and TCP headers of each segment, without options. Absent: those of the flow's `ip`, 40 B for
    /// IPv4 and 60 B for IPv6. Other sizes stand for compressed headers, or for headers of tunnels and
    /// link layers; the size of the other version of IP is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Bytes>,
    /// Largest window that the receiver offers: its buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_window: Option<WindowSize>,
    /// Congestion window at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<WindowSize>,
    /// Slow-start threshold at the start. Absent: unlimited, or the receive window in `ns2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh: Option<WindowSize>,
    /// The window itself, for the variant `fixed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_window: Option<WindowSize>,
    /// Whether a connection is opened (SYN) and closed (FIN). Without, it exists from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake: Option<bool>,
    /// How long an acknowledgement may wait for company; `"0 s"` acknowledges every segment. Profile
    /// `linux` adapts the wait to the pace at which data comes, as the kernel does: it begins with 40 ms,
    /// and this is the longest that comes of it (200 ms where it is not given).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<Duration>,
    /// Full segments after which a delayed acknowledgement is sent at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_every: Option<u32>,
    /// Segments at the start of a connection that are acknowledged at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick_ack: Option<u32>,
    /// Timestamps option (RFC 7323): a measurement of the round trip for every acknowledgement.
    /// With `medx` the option that reports delays takes its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<bool>,
    /// Selective acknowledgements (RFC 2018).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sack: Option<bool>,
    /// Duplicate acknowledgements that mean loss (RFC 5681: 3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dupthresh: Option<u32>,
    /// New data on the first two duplicate acknowledgements (RFC 3042).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_transmit: Option<bool>,
    /// Retransmission timeout before the first measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rto_initial: Option<Duration>,
    /// Least retransmission timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rto_min: Option<Duration>,
    /// Largest retransmission timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rto_max: Option<Duration>,
    /// Step of the clock with which round trips are measured (RFC 6298: G).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_granularity: Option<Duration>,
    /// Phase of that clock, profile `ns2`: how long before time zero it has ticked last. Absent: drawn for
    /// each connection in each replication, as ns-2 draws it for each agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_phase: Option<Duration>,
    /// Whether the window is reset after an idle time longer than the timeout (RFC 5681, 4.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_after_idle: Option<bool>,
    /// Whether small segments wait while data is unacknowledged (Nagle's algorithm, RFC 9293).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nagle: Option<bool>,
    /// Proportional rate reduction (RFC 9937): with recovery `rack`, the window comes down evenly
    /// while a loss is repaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prr: Option<bool>,
    /// HyStart: `cubic` leaves slow start when the round trip grows or acknowledgements come in a
    /// train as long as half of it, before the queue overflows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hystart: Option<bool>,
    /// Vegas: least number of segments kept in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vegas_alpha: Option<f64>,
    /// Vegas: largest number of segments kept in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vegas_beta: Option<f64>,
    /// Vegas: number of queued segments that ends slow start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vegas_gamma: Option<f64>,
    /// MEDX: weight of the average delay against the newest one (paper `medx`, equation 1: 0.5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medx_alpha: Option<f64>,
    /// MEDX: times the average delay beyond which the newest one speaks for congestion (1.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medx_beta: Option<f64>,
    /// MEDX: delays that are kept; congestion needs them never to fall (4; the paper leaves it
    /// open).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medx_buffer: Option<u32>,
}

/// A bundle of defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// What the RFCs say today: NewReno with SACK and timestamps, initial window of RFC 6928, timer of
    /// RFC 6298.
    Rfc,
    /// What a current Linux does where it differs: CUBIC with HyStart, RACK-TLP, proportional rate
    /// reduction, a lower floor of the timer, quick acknowledgements.
    #[default]
    Linux,
    /// What ns-2's one-way agents do: Tahoe, a SYN that takes a round trip and whose answer is not
    /// acknowledged, windows in segments, a coarse clock, an acknowledgement for every segment.
    Ns2,
}

impl Profile {
    /// α, β and γ of Vegas where a stack does not give them.
    #[must_use]
    pub const fn vegas(self) -> (f64, f64, f64) {
        match self {
            // Brakmo and Peterson 1995: α = 1 (their Vegas-1,3), β = 3, γ = 1. ns-2.35 has the same in
            // tcl/lib/ns-default.tcl (v_alpha_ 1, v_beta_ 3, v_gamma_ 1).
            Self::Rfc | Self::Ns2 => (1.0, 3.0, 1.0),
            // tcp_vegas.c: alpha 2, beta 4, gamma 1.
            Self::Linux => (2.0, 4.0, 1.0),
        }
    }
}

/// Calls a macro with the list of TCP variants: this list is the one place that names them all.
/// A new variant is one line here and one file in `gridhaul-core/src/tcp/congestion/`.
#[macro_export]
macro_rules! for_each_congestion_control {
    ($callback:ident) => {
        $callback! {
            /// Tahoe (Jacobson 1988): every loss restarts from one segment.
            Tahoe, tahoe;
            /// Reno (RFC 5681): fast recovery that ends with the first new acknowledgement.
            Reno, reno;
            /// NewReno (RFC 6582): fast recovery that repairs all losses of a window.
            NewReno, new_reno;
            /// Reno's window with the loss recovery of RFC 6675 (SACK).
            Sack, sack;
            /// Vegas (Brakmo and Peterson 1995): keeps α to β segments in the queue.
            Vegas, vegas;
            /// TCP-MEDX (Xiong et al.): Reno that keeps its window where one-way delays say that a loss
            /// was a transmission error. The receiver acknowledges every segment.
            Medx, medx;
            /// Veno (Fu and Liew 2003): Reno that takes a fifth off where its backlog says that a loss
            /// was random.
            Veno, veno;
            /// Westwood+ (Grieco and Mascolo 2004): a loss sets the window to the measured bandwidth.
            Westwood, westwood;
            /// CUBIC (RFC 9438).
            Cubic, cubic;
            /// BBR version 1 (Cardwell et al. 2016): a model of bandwidth and round trip, paced.
            Bbr, bbr;
            /// A window that never changes: the null case.
            Fixed, fixed;
        }
    };
}

macro_rules! congestion_control_enum {
    ($($(#[$doc:meta])* $name:ident, $module:ident;)*) => {
        /// A TCP variant.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum CongestionControlAlgorithm {
            $($(#[$doc])* $name,)*
        }

        impl CongestionControlAlgorithm {
            /// All variants, in the order of the list.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name in files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($module),)*
                }
            }
        }
    };
}
for_each_congestion_control!(congestion_control_enum);

/// How lost data is found and repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// Fast retransmit without fast recovery: send again from the lost segment on.
    GoBackN,
    /// Fast recovery of RFC 5681.
    Reno,
    /// Fast recovery of RFC 6582.
    NewReno,
    /// Loss recovery of RFC 6675.
    Sack,
    /// RACK-TLP (RFC 8985), as Linux has it: losses are found by time, the end of a flight is probed.
    Rack,
    /// Vegas' early retransmission by the age of a segment (Brakmo and Peterson 1995).
    Vegas,
}
