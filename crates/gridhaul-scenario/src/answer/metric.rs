//! The columns of an answer: one list that feeds the code, the reference and the reports.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::scenario::suggest;

/// What a metric is measured on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A flow.
    Flow,
    /// A direction of a link.
    Link,
}

/// Everything there is to say about a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricInfo {
    /// Column name, `<quantity>_<unit>`.
    pub column: &'static str,
    /// Heading for people, without the unit.
    pub heading: &'static str,
    /// Unit for people; empty for pure numbers.
    pub unit: &'static str,
    /// What it is measured on.
    pub scope: Scope,
    /// Definition.
    pub doc: &'static str,
}

macro_rules! metrics {
    ($($name:ident $column:literal $heading:literal $unit:literal $scope:ident $doc:literal;)*) => {
        /// A column of an answer.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $(#[doc = $doc] $name,)*
        }

        impl Metric {
            /// All metrics, in the order of the columns.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The metrics of a scope, in the order of the columns.
            pub fn of_scope(scope: Scope) -> impl Iterator<Item = Self> {
                Self::ALL.iter().copied().filter(move |metric| metric.info().scope == scope)
            }

            /// Name, unit and definition.
            #[must_use]
            pub const fn info(self) -> MetricInfo {
                match self {
                    $(Self::$name => MetricInfo {
                        column: $column,
                        heading: $heading,
                        unit: $unit,
                        scope: Scope::$scope,
                        doc: $doc,
                    },)*
                }
            }
        }
    };
}

metrics! {
    Goodput "goodput_bit_per_s" "goodput" "bit/s" Flow
        "Payload handed in order to the receiving application, over the measured time. Of transfers: over the time in which at least one transfer of the row is in progress, from its start, in the warm-up as well, to its completion or the end of the run; so the goodput of one finished transfer is its size over its completion time.";
    Throughput "throughput_bit_per_s" "throughput" "bit/s" Flow
        "Packets that reached the receiver, with their headers, over the measured time: data, retransmissions, SYN, FIN and acknowledgements.";
    ReverseThroughput "reverse_throughput_bit_per_s" "reverse throughput" "bit/s" Flow
        "Packets that came back to the sender, headers included, over the measured time.";
    OfferedLoad "offered_load_bit_per_s" "offered load" "bit/s" Flow
        "Data packets that the senders of this row sent, repeats and headers included, over the measured time.";
    TransferRate "transfer_rate_bit_per_s" "rate of the transfer" "bit/s" Flow
        "Size of a transfer over its completion time; mean of the equal flows that finished.";
    CompletionTime "completion_time_s" "completion time" "s" Flow
        "From the start of a transfer to the arrival of its last byte; mean of the equal flows that finished. Censored where `transfers_unfinished_ratio` is above 0: what takes longest is not in it.";
    TransfersFinished "transfers_finished_count" "transfers finished" "" Flow
        "Transfers of this row whose last byte arrived before the end of the run.";
    TransfersUnfinished "transfers_unfinished_ratio" "transfers unfinished" "" Flow
        "Transfers of this row that did not finish before the end of the run, over all of them.";
    SegmentsSent "segments_sent_count" "segments sent" "" Flow
        "Segments with data, retransmissions included. SYN, FIN without data and acknowledgements are none.";
    Retransmissions "retransmissions_count" "retransmissions" "" Flow
        "Segments with data that were retransmitted; a repeated SYN is none.";
    RetransmissionRatio "retransmission_ratio" "retransmission ratio" "" Flow
        "Retransmitted segments with data over all segments with data.";
    FastRetransmits "fast_retransmits_count" "fast retransmits" "" Flow
        "Times that a loss was found by acknowledgements, without waiting for the timer.";
    Timeouts "timeouts_count" "timeouts" "" Flow
        "Times that the retransmission timer fired, for a SYN too.";
    RttMean "rtt_mean_s" "round trip, mean" "s" Flow
        "Mean of the round-trip times that the sender measured.";
    CwndMean "cwnd_mean_byte" "congestion window, mean" "B" Flow
        "Congestion window, averaged over time.";
    SegmentsReceived "segments_received_count" "segments received" "" Flow
        "Segments that came back to the senders, acknowledgements above all: with the segments sent, what their radio works for.";
    EstimatorUpdates "estimator_updates_count" "measures updated" "" Flow
        "Acknowledgements with which the congestion control brought a measure of the network up to date: a delay, a bandwidth. Known for vegas, medx, veno and westwood.";
    EstimatorEvaluations "estimator_evaluations_count" "measures evaluated" "" Flow
        "Times that the congestion control compared such a measure to decide something: at a loss, or in every round trip.";
    QueueLossClassifiedCongestion "queue_loss_classified_congestion_count" "full queue, called congestion" "" Flow
        "Losses by a full queue that the sender took for congestion, where its congestion control tells causes apart. Counted are the losses that it judges: those that begin a recovery, and timeouts.";
    QueueLossClassifiedError "queue_loss_classified_error_count" "full queue, called error" "" Flow
        "Losses by a full queue that the sender took for transmission errors.";
    ErrorLossClassifiedCongestion "error_loss_classified_congestion_count" "error, called congestion" "" Flow
        "Segments lost or damaged on the way whose loss the sender took for congestion.";
    ErrorLossClassifiedError "error_loss_classified_error_count" "error, called error" "" Flow
        "Segments lost or damaged on the way whose loss the sender took for a transmission error.";
    NoLossClassifiedCongestion "no_loss_classified_congestion_count" "nothing lost, called congestion" "" Flow
        "Judgements of a segment that was not lost: late, or its acknowledgements were lost; taken for congestion.";
    NoLossClassifiedError "no_loss_classified_error_count" "nothing lost, called error" "" Flow
        "The same, taken for a transmission error.";
    CongestionDetection "congestion_detection_ratio" "full queue recognised" "" Flow
        "Judged losses by a full queue that the sender called congestion, over all of them.";
    ErrorDetection "error_detection_ratio" "error recognised" "" Flow
        "Judged losses by errors that the sender called errors, over all of them.";
    ConnectionsOpened "connections_opened_count" "connections opened" "" Flow
        "Connections whose handshake was completed, the warm-up included. Null without a handshake.";
    ConnectionsFailed "connections_failed_count" "connections failed" "" Flow
        "Connections that were to open and did not: refused, given up, or still not open at the end of the run after SYN had been retransmitted. The warm-up is included.";
    HandshakeTimeMean "handshake_time_mean_s" "time to open, mean" "s" Flow
        "From the first SYN to the moment at which the connection was open at the end that sent it; mean over the connections that opened.";
    HandshakeTimeP98 "handshake_time_p98_s" "time to open, 98 %" "s" Flow
        "98th percentile of the time to open over all connections that opened or failed; null where more than 2 % failed.";
    MessagesDue "messages_due_count" "messages due" "" Flow
        "Messages that the applications had ready in the measured time, whether or not they were sent.";
    Messages "messages_count" "messages delivered" "" Flow
        "Messages that arrived whole, of those that were ready in the measured time.";
    MessageLoss "message_loss_ratio" "message loss" "" Flow
        "Datagrams: those that were lost over those that were sent. TCP: messages whose connection never opened over messages due. Null without messages.";
    DelayMean "delay_mean_s" "message delay, mean" "s" Flow
        "From the moment the application had a message ready to its complete arrival, the handshake included; mean over the messages that arrived.";
    DelayMedian "delay_p50_s" "message delay, median" "s" Flow
        "Median of the message delay; see the 98th percentile.";
    DelayP98 "delay_p98_s" "message delay, 98 %" "s" Flow
        "98th percentile of the message delay. A message over TCP that had not arrived at the end of the run and had waited longer counts as later; null where the percentile is among such messages. Datagrams that were lost are not counted.";
    DelayMax "delay_max_s" "message delay, largest" "s" Flow
        "Largest message delay of those that arrived.";
    DeadlineMet "deadline_met_ratio" "in time" "" Flow
        "Messages that arrived within the deadline over those that were ready early enough to be judged; what never arrived is late.";
    SegmentLoss "segment_loss_ratio" "segment loss" "" Flow
        "Data segments dropped or lost on the way of this row's own connections, a collector's full buffer included, over those sent.";
    SegmentLossTotal "segment_loss_total_ratio" "segment loss, all stages" "" Flow
        "One minus the product of (1 − segment loss) over the stages that the data crosses.";
    SegmentDelayMean "segment_delay_mean_s" "segment delay, mean" "s" Flow
        "One passage of a data segment over this row's own stage, from being sent to being received, waiting included; in a stage that ends at a collector, the wait in its buffer too.";
    SegmentDelayTotal "segment_delay_total_mean_s" "segment delay, all stages" "s" Flow
        "Sum of the mean segment delays of the stages that the data crosses.";
    BufferMean "buffer_mean_messages" "collector's buffer, mean" "messages" Flow
        "Messages waiting in a collector for its upstream connection, averaged over time and collectors.";
    BufferMax "buffer_max_messages" "collector's buffer, largest" "messages" Flow
        "Most messages that ever waited in one collector.";
    BytesAtRiskMean "bytes_at_risk_mean_byte" "only copy, mean" "B" Flow
        "Bytes that a collector or proxy took over from their senders and the next end has not acknowledged: what a crash would lose. Averaged over time and collectors or proxies.";
    BytesAtRiskMax "bytes_at_risk_max_byte" "only copy, largest" "B" Flow
        "Most bytes that a crash of one collector or proxy could ever have lost.";
    LostInCrashes "lost_in_crashes_byte" "lost in crashes" "B" Flow
        "Bytes that were acknowledged to their sender and, since proxies crashed or reset the connection, neither have arrived at the end of the run nor are kept anywhere.";
    ProxyRetransmissions "proxy_retransmissions_count" "repeated by proxies" "" Flow
        "Data segments that proxies sent again, besides the sender's own retransmissions.";
    Residual "fixed_point_residual_ratio" "residual" "" Flow
        "Equations only: how far the fixed point is from satisfying its equations, relative to the offered load.";
    Iterations "fixed_point_iterations_count" "iterations" "" Flow
        "Equations only: evaluations that the fixed point took.";
    Fairness "fairness_index" "fairness" "" Flow
        "Jain's index of the goodputs of equal flows: 1 when all have the same. Of transfers, the goodput of each is over its own time in progress.";
    LinkThroughput "link_throughput_bit_per_s" "throughput" "bit/s" Link
        "Packets that arrived at the far end, headers included, over the measured time. Whole packets count when they arrive: over a short time they can exceed the rate by part of a packet.";
    Utilisation "utilisation_ratio" "utilisation" "" Link
        "Share of the measured time in which the link was sending, headers included; a standstill in an outage is none of it. Bytes count when they are sent, also of packets that arrive after the measured time.";
    PacketsIn "packets_in_count" "packets in" "" Link
        "Packets offered to this direction.";
    PacketsOut "packets_out_count" "packets out" "" Link
        "Packets that arrived at the far end.";
    DropsQueue "drops_queue_count" "dropped, queue full" "" Link
        "Packets dropped because the queue was full.";
    DropsLoss "drops_loss_count" "lost on the way" "" Link
        "Packets lost at random on the way.";
    DropsShadowing "drops_shadowing_count" "lost to attenuation" "" Link
        "Packets lost because the attenuation was too large, where a direction has `shadowing`.";
    DropsNoise "drops_noise_count" "lost to noise" "" Link
        "Packets lost because a burst of noise met them, where a direction has `noise`.";
    DropsOutage "drops_outage_count" "lost in outages" "" Link
        "Packets lost in outages.";
    Corrupted "corrupted_count" "damaged" "" Link
        "Packets that arrived damaged.";
    Duplicated "duplicated_count" "duplicated" "" Link
        "Packets that arrived a second time.";
    LossRatio "loss_ratio" "loss" "" Link
        "Packets dropped or lost for any reason over packets offered.";
    QueueMean "queue_mean_packets" "queue, mean" "packets" Link
        "Packets waiting for the wire, averaged over time.";
    QueueMax "queue_max_packets" "queue, largest" "packets" Link
        "Most packets that ever waited for the wire.";
    LinkDelayMean "link_delay_mean_s" "delay, mean" "s" Link
        "From the offer of a packet to its arrival at the far end, waiting included.";
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().column)
    }
}

impl FromStr for Metric {
    type Err = String;
    fn from_str(column: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|metric| metric.info().column == column);
        found.copied().ok_or_else(|| {
            let columns: Vec<_> = Self::ALL.iter().map(|metric| metric.info().column).collect();
            format!("unknown column {column:?}: {}", suggest::remedy(column, &columns))
        })
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.info().column)
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let column = Cow::<'de, str>::deserialize(deserializer)?;
        column.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Metric {
    fn schema_name() -> Cow<'static, str> {
        "Metric".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let columns: Vec<_> = Self::ALL.iter().map(|metric| metric.info().column).collect();
        schemars::json_schema!({ "type": "string", "enum": columns })
    }
}
