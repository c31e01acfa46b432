//! TCP stacks: profiles and individual TCP parameters.

use serde::{Deserialize, Serialize};

use super::LossClassifier;
use crate::units::{Bytes, Duration, WindowSize};

/// A TCP stack. Keys that are absent have the default of the profile.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// Bundle of default values; see the [table of profiles](profiles.md).
    #[serde(default)]
    pub profile: Profile,
    /// Congestion control algorithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<CongestionControlAlgorithm>,
    /// Loss detection and retransmission. Absent: the usual one of the congestion control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Maximum segment size: payload of a full-sized segment. A sender uses the smaller one of both
    /// ends, and a stack without this key fits its segments into the `mtu` of its host's own link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss: Option<Bytes>,
    /// Size of the IP and TCP headers of each segment, without options. Absent: according to the
    /// `ip` of the flow, 40 B for IPv4 and 60 B for IPv6. Other sizes represent compressed headers,
    /// or headers of tunnels and link layers, at most 215 B: with 40 B of options, 255 B. The size
    /// of the other IP version is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Bytes>,
    /// Largest window that the receiver offers: the size of its buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_window: Option<WindowSize>,
    /// Initial congestion window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<WindowSize>,
    /// Initial slow-start threshold. Absent: unlimited; in profile `ns2` the receive window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh: Option<WindowSize>,
    /// The window of the congestion control `fixed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_window: Option<WindowSize>,
    /// Whether connections are opened (SYN) and closed (FIN). Otherwise they exist from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake: Option<bool>,
    /// Delayed-acknowledgement timer; `"0 s"` acknowledges every segment. Profile `linux` adapts
    /// the timer to the rate of arriving data, like the kernel: it starts with 40 ms, and this key
    /// is the maximum (default 200 ms).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<Duration>,
    /// Number of segments, of any size, after which a delayed acknowledgement is sent at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_every: Option<u32>,
    /// Number of segments at the start of a connection that are acknowledged at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick_ack: Option<u32>,
    /// Timestamps option (RFC 7323): one round-trip time measurement per acknowledgement. `medx`
    /// uses its own option, which reports delays, instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<bool>,
    /// Selective acknowledgements (RFC 2018).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sack: Option<bool>,
    /// Explicit congestion notification (RFC 3168), if both ends have it: queues with `ecn` in
    /// their `aqm` mark new data instead of dropping it, and the sender reduces its window at most
    /// once for the marks and losses of a window (section 6.1.2), also of losses alone. Absent:
    /// false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// Packetization-layer path-MTU discovery after timeouts (RFC 4821, section 7.7; Linux,
    /// `tcp_mtu_probing` = 1): when retransmissions have failed for 15 minimum retransmission
    /// timeouts, the sender lowers its segment size to 1,024 B, and halves it with each further
    /// timeout. It is not raised again. Absent: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_probing: Option<bool>,
    /// Number of duplicate acknowledgements that indicate a loss (RFC 5681: 3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dupthresh: Option<u32>,
    /// Limited transmit: new data on the first two duplicate acknowledgements (RFC 3042).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_transmit: Option<bool>,
    /// Initial retransmission timeout, before the first round-trip time measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rto_initial: Option<Duration>,
    /// Smallest retransmission timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rto_min: Option<Duration>,
    /// Largest retransmission timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rto_max: Option<Duration>,
    /// Granularity of the clock for round-trip time measurements (RFC 6298: G).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_granularity: Option<Duration>,
    /// Phase of this clock in profile `ns2`: time from its last tick to the start of the run.
    /// Absent: random for each connection and replication, as ns-2 chooses it for each agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_phase: Option<Duration>,
    /// Whether the congestion window is reset after an idle time longer than the retransmission
    /// timeout (RFC 5681, section 4.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_after_idle: Option<bool>,
    /// Nagle's algorithm (RFC 9293): small segments wait while data is unacknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nagle: Option<bool>,
    /// Proportional rate reduction (RFC 9937): with recovery `rack`, the window is reduced evenly
    /// during the recovery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prr: Option<bool>,
    /// HyStart: `cubic` leaves slow start when the round-trip time increases or the length of an
    /// ACK train reaches half of it, before the queue overflows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hystart: Option<bool>,
    /// Vegas α: smallest number of segments kept in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vegas_alpha: Option<f64>,
    /// Vegas β: largest number of segments kept in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vegas_beta: Option<f64>,
    /// Vegas γ: number of queued segments that ends slow start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vegas_gamma: Option<f64>,
    /// MEDX: weight of the past in the average delay (paper `medx`, equation 1: 0.5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medx_alpha: Option<f64>,
    /// MEDX: multiple of the average delay above which the latest delay indicates congestion (1.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medx_beta: Option<f64>,
    /// MEDX: number of recent delays, which must be non-decreasing to indicate congestion (4; not
    /// specified in the paper).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medx_buffer: Option<u32>,
    /// MEDX: rule that classifies losses (`one_way_delay`). The other rules are controls for
    /// comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medx_classifier: Option<LossClassifier>,
}

impl Stack {
    /// Most bytes of TCP options in a segment (RFC 9293, section 3.1: the data offset is at most 15
    /// words).
    pub const OPTIONS_MAX: Bytes = Bytes::new(40);

    /// Largest [`Stack::header`]: with options, the headers of a segment are counted in a byte.
    pub const HEADER_MAX: Bytes = Bytes::new(255 - Self::OPTIONS_MAX.get());
}

/// A bundle of default values for the TCP parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// According to current RFCs: NewReno recovery, SACK and timestamps options, initial window of
    /// RFC 6928, retransmission timer of RFC 6298.
    Rfc,
    /// Like a current Linux kernel: CUBIC with HyStart, RACK-TLP, proportional rate reduction, a
    /// smaller minimum retransmission timeout, quick acknowledgements.
    #[default]
    Linux,
    /// Like the one-way agents of ns-2: Tahoe, a handshake of one round trip whose SYN-ACK is not
    /// acknowledged, windows in segments, a coarse clock, an acknowledgement for every segment.
    Ns2,
}

impl Profile {
    /// Congestion control of a stack that names none.
    #[must_use]
    pub const fn congestion_control(self) -> CongestionControlAlgorithm {
        match self {
            Self::Rfc => CongestionControlAlgorithm::NewReno,
            Self::Linux => CongestionControlAlgorithm::Cubic,
            // `Agent/TCP`.
            Self::Ns2 => CongestionControlAlgorithm::Tahoe,
        }
    }

    /// Defaults for α, β and γ of Vegas.
    #[must_use]
    pub const fn vegas(self) -> (f64, f64, f64) {
        match self {
            // Brakmo and Peterson 1995: α = 1 (their Vegas-1,3), β = 3, γ = 1. ns-2.35 has the same
            // values in tcl/lib/ns-default.tcl (v_alpha_ 1, v_beta_ 3, v_gamma_ 1).
            Self::Rfc | Self::Ns2 => (1.0, 3.0, 1.0),
            // tcp_vegas.c: alpha 2, beta 4, gamma 1.
            Self::Linux => (2.0, 4.0, 1.0),
        }
    }
}

/// Calls a macro with the list of congestion control algorithms, the only complete list of them.
/// A new algorithm is one line here and one file in `gridhaul-core/src/tcp/congestion/`.
#[macro_export]
macro_rules! for_each_congestion_control {
    ($callback:ident) => {
        $callback! {
            /// Tahoe (Jacobson 1988): slow start from one segment after every loss.
            Tahoe, tahoe;
            /// Reno (RFC 5681): fast recovery that ends with the first new acknowledgement.
            Reno, reno;
            /// NewReno (RFC 6582): fast recovery that retransmits all losses of a window.
            NewReno, new_reno;
            /// Reno with the loss recovery of RFC 6675 (SACK).
            Sack, sack;
            /// Vegas (Brakmo and Peterson 1995): keeps α to β segments in the queue.
            Vegas, vegas;
            /// TCP-MEDX (Xiong et al.): Reno that keeps its window when one-way delays indicate
            /// that a loss was a transmission error. The receiver acknowledges every segment.
            Medx, medx;
            /// Veno (Fu and Liew 2003): Reno that reduces its window by only a fifth when the
            /// backlog indicates that a loss was random.
            Veno, veno;
            /// Westwood+ (Grieco and Mascolo 2004): a loss sets the window to the measured
            /// bandwidth.
            Westwood, westwood;
            /// CUBIC (RFC 9438).
            Cubic, cubic;
            /// BBR version 1 (Cardwell et al. 2016): paced by a model of bandwidth and round-trip
            /// time.
            Bbr, bbr;
            /// A constant window.
            Fixed, fixed;
        }
    };
}

macro_rules! congestion_control_enum {
    ($($(#[$doc:meta])* $name:ident, $module:ident;)*) => {
        /// A congestion control algorithm.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum CongestionControlAlgorithm {
            $($(#[$doc])* $name,)*
        }

        impl CongestionControlAlgorithm {
            /// All algorithms, in the order of the list.
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
for_each_congestion_control!(congestion_control_enum);

/// Loss detection and retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// Fast retransmit without fast recovery: go-back-N from the lost segment on.
    GoBackN,
    /// Fast recovery of RFC 5681.
    Reno,
    /// Fast recovery of RFC 6582.
    NewReno,
    /// Loss recovery of RFC 6675.
    Sack,
    /// RACK-TLP (RFC 8985), as in Linux: time-based loss detection with tail loss probes.
    Rack,
    /// Early retransmission of Vegas, by the age of a segment (Brakmo and Peterson 1995).
    Vegas,
}
