//! Definitions of the events and their fields, for the reference page.

use super::super::ColumnInfo;
use super::event::{Cause, LossRecoveryState, NodeCause, NodeState, Timer};

/// Description of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventInfo {
    /// Value of the field `event`.
    pub name: &'static str,
    /// Definition.
    pub doc: &'static str,
    /// Fields after `time_s`, `end` or `node`, and `event`, in order.
    pub fields: &'static [ColumnInfo],
}

/// Description of the names that a field can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameInfo {
    /// The field.
    pub field: &'static str,
    /// Each name with its definition.
    pub names: &'static [(&'static str, &'static str)],
}

/// The fields whose values are names of this list.
pub const NAMES: &[NameInfo] = &[
    NameInfo { field: "cause", names: Cause::NAMES },
    NameInfo { field: "loss_recovery_state_updated: old, new", names: LossRecoveryState::NAMES },
    NameInfo { field: "timer", names: Timer::NAMES },
    NameInfo { field: "congestion_state_updated: old, new", names: CONGESTION_STATES },
    NameInfo { field: "cause at a node", names: NodeCause::NAMES },
    NameInfo { field: "node_state_updated: old, new", names: NodeState::NAMES },
];

const CONGESTION_STATES: &[(&str, &str)] = &[
    ("slow_start", "The window is below the threshold (RFC 5681, section 3.1)."),
    ("congestion_avoidance", "The window has reached the threshold (RFC 5681, section 3.1)."),
    ("startup", "BBR searches the bandwidth of the path."),
    ("drain", "BBR empties the queue that `startup` has filled."),
    ("probe_bw", "BBR sends at the estimated bandwidth and probes for more."),
    ("probe_rtt", "BBR sends little, to measure the round trip without a queue."),
];

const CAUSE: ColumnInfo = ColumnInfo::new("cause", "string", "", "Cause of the change: see below.");
const NODE_CAUSE: ColumnInfo =
    ColumnInfo::new("cause", "string", "", "Cause of the change at the node: see below.");
const FIRST: ColumnInfo = ColumnInfo::new(
    "first_seq",
    "integer",
    "",
    "Sequence number of the first byte; null in samples.",
);
const END: ColumnInfo = ColumnInfo::new(
    "end_seq",
    "integer",
    "",
    "Sequence number after the last byte; null in samples.",
);
const RTO: ColumnInfo = ColumnInfo::new(
    "rto_s",
    "number",
    "s",
    "Retransmission timeout after the event, back-off included.",
);
const EXPECTED: ColumnInfo = ColumnInfo::new(
    "expected_seq",
    "integer",
    "",
    "Next sequence number that the receiver expects.",
);
const WINDOW: ColumnInfo =
    ColumnInfo::new("window_byte", "integer", "B", "Window that the peer offers.");

impl EventInfo {
    /// The fields of every line.
    pub const COMMON: &[ColumnInfo] = &[
        ColumnInfo::new(
            "time_s",
            "number",
            "s",
            "Time since the start of the run, to the nanosecond.",
        ),
        ColumnInfo::new(
            "end",
            "string",
            "",
            "End of the connection, `from` or `to` as in the scenario; not in events of nodes.",
        ),
        ColumnInfo::new(
            "node",
            "string",
            "",
            "Name of the node with a proxy or an aggregator; only in events of nodes.",
        ),
        ColumnInfo::new("event", "string", "", "Name of the event."),
    ];

    /// Events of proxies and aggregators on the path, in the order of a step.
    pub const OF_NODES: &[Self] = &[
        Self {
            name: "node_state_updated",
            doc: "A proxy has crashed, or is up again.",
            fields: &[
                ColumnInfo::new("old", "string", "", "State before: see below."),
                ColumnInfo::new("new", "string", "", "State after."),
                NODE_CAUSE,
            ],
        },
        Self {
            name: "node_timer_expired",
            doc: "A timer of a proxy has expired, such as that of a retransmission to the next \
                  hop.",
            fields: &[ColumnInfo::new(
                "timeouts",
                "integer",
                "",
                "Retransmission timeouts of the proxy that have expired with it; 0 for other \
                 timers.",
            )],
        },
        Self {
            name: "node_segments_retransmitted",
            doc: "A proxy has retransmitted segments with data.",
            fields: &[
                ColumnInfo::new("segments", "integer", "", "Number of segments."),
                NODE_CAUSE,
            ],
        },
        Self {
            name: "node_buffer_updated",
            doc: "A proxy has acknowledged data in place of the receiver, or the next hop has \
                  acknowledged it; at an aggregator, those of the upstream connection of the flow.",
            fields: &[
                ColumnInfo::new(
                    "at_risk_byte",
                    "integer",
                    "B",
                    "Data that is acknowledged to its sender and not by the next hop: a crash of \
                     the node loses it.",
                ),
                ColumnInfo::new(
                    "waiting_messages",
                    "integer",
                    "",
                    "Complete messages that the upstream connection has not sent; null at a proxy.",
                ),
                NODE_CAUSE,
            ],
        },
        Self {
            name: "node_segment_refused",
            doc: "An aggregator has dropped a segment of the flow, which its sender retransmits.",
            fields: &[
                ColumnInfo::new(
                    "first_seq",
                    "integer",
                    "",
                    "Sequence number of the first new byte; null if the segment has none.",
                ),
                ColumnInfo::new(
                    "end_seq",
                    "integer",
                    "",
                    "Sequence number after the last new byte.",
                ),
                NODE_CAUSE,
            ],
        },
    ];

    /// Events of the ends of a connection, in the order of a step.
    pub const ALL: &[Self] = &[
        Self {
            name: "parameters_set",
            doc: "First line of an end: the parameters that determine its behaviour.",
            fields: &[
                ColumnInfo::new(
                    "schema",
                    "integer",
                    "",
                    "Version of the events; this page describes 1.",
                ),
                ColumnInfo::new(
                    "congestion_control",
                    "string",
                    "",
                    "Congestion control algorithm.",
                ),
                ColumnInfo::new(
                    "loss_recovery",
                    "string",
                    "",
                    "Loss recovery; null where the kernel does not report it.",
                ),
                ColumnInfo::new("mss_byte", "integer", "B", "Payload of a full segment."),
                ColumnInfo::new(
                    "sampling_interval_s",
                    "number",
                    "s",
                    "Interval of the samples of a kernel connection, whose changes within an \
                     interval stay unseen; null in the simulator, which logs every change.",
                ),
            ],
        },
        Self {
            name: "connection_state_updated",
            doc: "The connection has another state (RFC 9293, 3.3.2).",
            fields: &[
                ColumnInfo::new("old", "string", "", "State before, such as `SYN-SENT`."),
                ColumnInfo::new("new", "string", "", "State after, such as `ESTABLISHED`."),
            ],
        },
        Self {
            name: "congestion_state_updated",
            doc: "The congestion control has another state.",
            fields: &[
                ColumnInfo::new("old", "string", "", "State before: see below."),
                ColumnInfo::new("new", "string", "", "State after."),
                CAUSE,
            ],
        },
        Self {
            name: "loss_recovery_state_updated",
            doc: "The loss recovery has another state.",
            fields: &[
                ColumnInfo::new("old", "string", "", "State before: see below."),
                ColumnInfo::new("new", "string", "", "State after."),
                CAUSE,
            ],
        },
        Self {
            name: "congestion_window_updated",
            doc: "The congestion window or the slow-start threshold has changed.",
            fields: &[
                ColumnInfo::new("cwnd_byte", "integer", "B", "Congestion window."),
                ColumnInfo::new(
                    "ssthresh_byte",
                    "integer",
                    "B",
                    "Slow-start threshold; null while it is unlimited.",
                ),
                ColumnInfo::new(
                    "in_flight_byte",
                    "integer",
                    "B",
                    "Data in the network (RFC 6675: pipe).",
                ),
                CAUSE,
            ],
        },
        Self {
            name: "rtt_sampled",
            doc: "A round trip was measured.",
            fields: &[
                ColumnInfo::new(
                    "rtt_s",
                    "number",
                    "s",
                    "The measured round trip, the mean if one acknowledgement measures several; \
                     null in samples, which report the smoothed one only.",
                ),
                ColumnInfo::new(
                    "srtt_s",
                    "number",
                    "s",
                    "Smoothed round-trip time (RFC 6298, section 2).",
                ),
                RTO,
            ],
        },
        Self {
            name: "segments_lost",
            doc: "The loss recovery has marked outstanding segments as lost: one range \
                  of them; in a sample, their number.",
            fields: &[
                FIRST,
                END,
                ColumnInfo::new("segments", "integer", "", "Number of segments."),
                CAUSE,
            ],
        },
        Self {
            name: "segments_retransmitted",
            doc: "A segment is retransmitted; in a sample, the number since the last one.",
            fields: &[
                FIRST,
                END,
                ColumnInfo::new("segments", "integer", "", "Number of segments."),
                CAUSE,
            ],
        },
        Self {
            name: "timer_expired",
            doc: "A timer has expired.",
            fields: &[
                ColumnInfo::new("timer", "string", "", "The timer: see below."),
                ColumnInfo::new(
                    "rto_s",
                    "number",
                    "s",
                    "Retransmission timeout after the event, back-off included; null for the timer \
                     of a receiver.",
                ),
            ],
        },
        Self {
            name: "send_window_closed",
            doc: "The peer offers less than a segment (RFC 9293, 3.8.6).",
            fields: &[WINDOW],
        },
        Self {
            name: "send_window_opened",
            doc: "The peer offers a segment or more again.",
            fields: &[WINDOW],
        },
        Self {
            name: "gap_opened",
            doc: "Data has arrived beyond a gap, at the receiver.",
            fields: &[
                EXPECTED,
                ColumnInfo::new(
                    "out_of_order_byte",
                    "integer",
                    "B",
                    "Payload received beyond the gap.",
                ),
            ],
        },
        Self {
            name: "gap_filled",
            doc: "All gaps in the received data are filled.",
            fields: &[EXPECTED],
        },
    ];
}
