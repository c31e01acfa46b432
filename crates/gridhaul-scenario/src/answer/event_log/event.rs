//! Events of a connection, and of the proxies and aggregators on its path.

use serde::Serialize;

use crate::scenario::Recovery;

/// An enum whose variants are written by their names, with the definition of each name.
macro_rules! names {
    (
        $(#[doc = $about:literal])*
        $kind:ident { $($variant:ident $name:literal $doc:literal,)* }
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        pub enum $kind {
            $(#[doc = $doc] #[serde(rename = $name)] $variant,)*
        }

        impl $kind {
            /// Each name with its definition.
            pub const NAMES: &[(&'static str, &'static str)] = &[$(($name, $doc),)*];
        }
    };
}

names! {
    /// Cause of a change.
    Cause {
        Start "start" "The first value.",
        Handshake "handshake" "SYN was acknowledged.",
        Acknowledgement "acknowledgement" "New data was acknowledged.",
        DuplicateAcknowledgement "duplicate_acknowledgement"
            "A duplicate acknowledgement, or one that selectively acknowledges more data.",
        FastRetransmit "fast_retransmit"
            "Acknowledgements have revealed a loss (RFC 5681, section 3.2): fast recovery begins.",
        PartialAcknowledgement "partial_acknowledgement"
            "New data, but not all that was outstanding at the loss, was acknowledged (RFC 6582).",
        RecoveryCompleted "recovery_completed"
            "All data that was outstanding at the loss is acknowledged.",
        SpuriousRetransmission "spurious_retransmission"
            "The retransmission proved spurious, and the reduction is undone (RFC 4015).",
        RetransmissionTimeout "retransmission_timeout"
            "The retransmission timer has expired (RFC 6298, section 5).",
        ReorderingTimeout "reordering_timeout"
            "The RACK reordering timer has expired (RFC 8985, section 6.2).",
        TailLossProbe "tail_loss_probe"
            "A tail loss probe, or the loss that it has repaired (RFC 8985, section 7).",
        SlowStartExit "slow_start_exit"
            "The congestion control has ended slow start without a loss, as HyStart does.",
        CongestionMark "congestion_mark"
            "The peer echoes a congestion mark (RFC 3168, section 6.1.2).",
        IdleRestart "idle_restart"
            "Data is sent after an idle time (RFC 5681, section 4.1).",
        WindowValidation "window_validation"
            "The window was not used (RFC 2861, section 3).",
        Transmission "transmission" "A segment is sent.",
        Segment "segment" "A segment of the peer that acknowledges no new data.",
        Sample "sample"
            "The kernel's counters have changed since the last sample; their cause is not known.",
    }
}

names! {
    /// State of the loss recovery, as in Linux (`tcp_ca_state`).
    LossRecoveryState {
        Open "open" "No sign of a loss.",
        Disorder "disorder" "Duplicate or selective acknowledgements, no segment marked lost.",
        Cwr "cwr" "The window is reduced after a congestion notification; only by kernels.",
        Recovery "recovery" "Fast recovery (RFC 5681, section 3.2).",
        Loss "loss" "The retransmission timer has expired, and the data is retransmitted.",
    }
}

names! {
    /// A timer of an end of a connection.
    Timer {
        Retransmission "retransmission" "The retransmission timer (RFC 6298).",
        Persist "persist" "The timer of probes of a closed window (RFC 9293, 3.8.6.1).",
        TailLossProbe "tail_loss_probe" "The timer of a tail loss probe (RFC 8985, section 7).",
        Reordering "reordering" "The RACK reordering timer (RFC 8985, section 6.2).",
        DelayedAcknowledgement "delayed_acknowledgement"
            "The timer of a receiver that delays an acknowledgement (RFC 9293, 3.8.6.3).",
    }
}

names! {
    /// Cause of a change at a node.
    NodeCause {
        Segment "segment" "A segment has arrived at the node.",
        Timer "timer" "A timer of the node has expired.",
        Crash "crash" "The node has lost its state.",
        Restart "restart" "The node is up again.",
        BufferFull "buffer_full" "The buffer of the node has no space.",
        Upstream "upstream" "The upstream connection has sent data or received a segment.",
    }
}

names! {
    /// State of a node.
    NodeState {
        Up "up" "The node serves the connection.",
        Down "down" "The node has crashed, and forwards or drops packets unchanged.",
    }
}

/// A change at one end of a connection. Sequence numbers are relative: 0 is SYN, data begins at 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(missing_docs, reason = "`EventInfo` defines every field, and a test compares both")]
pub enum ConnectionEvent {
    ParametersSet {
        schema: u32,
        congestion_control: &'static str,
        loss_recovery: Option<Recovery>,
        mss_byte: u32,
        sampling_interval_s: Option<f64>,
    },
    ConnectionStateUpdated {
        old: &'static str,
        new: &'static str,
    },
    CongestionStateUpdated {
        old: &'static str,
        new: &'static str,
        cause: Cause,
    },
    LossRecoveryStateUpdated {
        old: LossRecoveryState,
        new: LossRecoveryState,
        cause: Cause,
    },
    CongestionWindowUpdated {
        cwnd_byte: u64,
        ssthresh_byte: Option<u64>,
        in_flight_byte: u64,
        cause: Cause,
    },
    RttSampled {
        rtt_s: Option<f64>,
        srtt_s: f64,
        rto_s: f64,
    },
    SegmentsLost {
        first_seq: Option<u64>,
        end_seq: Option<u64>,
        segments: u64,
        cause: Cause,
    },
    SegmentsRetransmitted {
        first_seq: Option<u64>,
        end_seq: Option<u64>,
        segments: u64,
        cause: Cause,
    },
    TimerExpired {
        timer: Timer,
        rto_s: Option<f64>,
    },
    SendWindowClosed {
        window_byte: u64,
    },
    SendWindowOpened {
        window_byte: u64,
    },
    GapOpened {
        expected_seq: u64,
        out_of_order_byte: u64,
    },
    GapFilled {
        expected_seq: u64,
    },
}

impl ConnectionEvent {
    /// Version of the events: increased when a field changes its meaning.
    pub const SCHEMA: u32 = 1;

    /// One of each kind.
    #[cfg(test)]
    pub(super) fn examples() -> Vec<Self> {
        let (cause, bytes) = (Cause::Sample, 1);
        let (first_seq, end_seq, segments) = (Some(1), Some(2), 1);
        let (old, new) = (LossRecoveryState::Open, LossRecoveryState::Loss);
        vec![
            Self::ParametersSet {
                schema: Self::SCHEMA,
                congestion_control: "reno",
                loss_recovery: None,
                mss_byte: 1460,
                sampling_interval_s: None,
            },
            Self::ConnectionStateUpdated { old: "CLOSED", new: "SYN-SENT" },
            Self::CongestionStateUpdated { old: "slow_start", new: "drain", cause },
            Self::LossRecoveryStateUpdated { old, new, cause },
            Self::CongestionWindowUpdated {
                cwnd_byte: bytes,
                ssthresh_byte: None,
                in_flight_byte: bytes,
                cause,
            },
            Self::RttSampled { rtt_s: None, srtt_s: 0.1, rto_s: 0.2 },
            Self::SegmentsLost { first_seq, end_seq, segments, cause },
            Self::SegmentsRetransmitted { first_seq, end_seq, segments, cause },
            Self::TimerExpired { timer: Timer::Reordering, rto_s: Some(0.2) },
            Self::SendWindowClosed { window_byte: 0 },
            Self::SendWindowOpened { window_byte: bytes },
            Self::GapOpened { expected_seq: 1, out_of_order_byte: bytes },
            Self::GapFilled { expected_seq: 1 },
        ]
    }
}

/// A change at a proxy or an aggregator on the path of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(missing_docs, reason = "`EventInfo` defines every field, and a test compares both")]
pub enum NodeEvent {
    NodeStateUpdated { old: NodeState, new: NodeState, cause: NodeCause },
    NodeTimerExpired { timeouts: u64 },
    NodeSegmentsRetransmitted { segments: u64, cause: NodeCause },
    NodeBufferUpdated { at_risk_byte: u64, waiting_messages: Option<u64>, cause: NodeCause },
    NodeSegmentRefused { first_seq: Option<u64>, end_seq: Option<u64>, cause: NodeCause },
}

impl NodeEvent {
    /// One of each kind.
    #[cfg(test)]
    pub(super) fn examples() -> Vec<Self> {
        let (cause, waiting_messages) = (NodeCause::Segment, Some(1));
        vec![
            Self::NodeStateUpdated { old: NodeState::Up, new: NodeState::Down, cause },
            Self::NodeTimerExpired { timeouts: 0 },
            Self::NodeSegmentsRetransmitted { segments: 1, cause },
            Self::NodeBufferUpdated { at_risk_byte: 1, waiting_messages, cause },
            Self::NodeSegmentRefused { first_seq: Some(1), end_seq: Some(2), cause },
        ]
    }
}
