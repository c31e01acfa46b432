//! Metrics: the columns of an answer, in one list for code, reference and reports.

use std::fmt;
use std::str::FromStr;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::scenario::suggest;

/// Subject of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A flow.
    Flow,
    /// A direction of a link.
    Link,
}

/// Description of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricInfo {
    /// Column name, `<quantity>_<unit>`.
    pub column: &'static str,
    /// Heading for display, without the unit.
    pub heading: &'static str,
    /// Unit for display; empty for pure numbers.
    pub unit: &'static str,
    /// Subject of the metric.
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

            /// The metric of a column.
            fn of_column(column: &str) -> Option<Self> {
                match column {
                    $($column => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The metrics of a scope, in the order of the columns.
            pub fn of_scope(scope: Scope) -> impl Iterator<Item = Self> {
                let scope_of = |metric: Self| match metric {
                    $(Self::$name => Scope::$scope,)*
                };
                Self::ALL.iter().copied().filter(move |metric| scope_of(*metric) == scope)
            }

            /// The columns that every row of a scope has, in their order.
            pub fn of_every_row(scope: Scope) -> impl Iterator<Item = Self> {
                Self::of_scope(scope).filter(|metric| !metric.is_of_some_rows())
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
        "Payload delivered in order to the receiving application, per measured time. Transfers: \
         per time in which at least one transfer of the row is in progress, from its start (also \
         during the warm-up) to its completion or the end of the run; the goodput of a single \
         finished transfer is its size divided by its completion time. `burst`: in the same way, \
         per time in which at least one message is due and has not arrived, also of members. \
         `request_response` and `exchange`: payload of both ends.";
    Throughput "throughput_bit_per_s" "throughput" "bit/s" Flow
        "Packets that arrived at the receiver, including headers, per measured time: data, \
         retransmissions, SYN, FIN and acknowledgements.";
    ReverseThroughput "reverse_throughput_bit_per_s" "reverse throughput" "bit/s" Flow
        "Packets that arrived at the sender on the reverse path, including headers, per measured \
         time.";
    OfferedLoad "offered_load_bit_per_s" "offered load" "bit/s" Flow
        "Data packets that the senders of this row sent, including retransmissions and headers, \
         per measured time. Each packet counts once, whatever the number of links, and packets \
         that proxies send do not count.";
    TransferRate "transfer_rate_bit_per_s" "transfer rate" "bit/s" Flow
        "Size of a transfer divided by its completion time; mean over the finished transfers.";
    CompletionTime "completion_time_s" "completion time" "s" Flow
        "Time from the start of a transfer to the arrival of its last byte; mean over the finished \
         transfers. Censored if `transfers_unfinished_ratio` is above 0: the longest transfers are \
         excluded.";
    CompletionTimeP98 "completion_time_p98_s" "98th percentile of completion time" "s" Flow
        "98th percentile of the completion time of all transfers of this row; null if more than 2 \
         % did not finish.";
    CompletionTimeMax "completion_time_max_s" "completion time, largest" "s" Flow
        "Largest completion time of the finished transfers. Censored like `completion_time_s`.";
    TransfersFinished "transfers_finished_count" "transfers finished" "" Flow
        "Transfers of this row whose last byte arrived before the end of the run.";
    TransfersUnfinished "transfers_unfinished_ratio" "transfers unfinished" "" Flow
        "Share of the transfers of this row that did not finish before the end of the run.";
    LastCompletion "last_completion_s" "completion of the last device" "s" Flow
        "Time from the first start of a transfer of this row until the last of its transfers is \
         finished; null if one did not finish. `burst`: time from the first message that is due \
         until all messages have arrived; null if one did not arrive.";
    SegmentsSent "segments_sent_count" "segments sent" "" Flow
        "Data segments sent, including retransmissions, without SYN, FIN without data, and \
         acknowledgements.";
    Retransmissions "retransmissions_count" "retransmissions" "" Flow
        "Retransmitted data segments, without retransmitted SYN segments.";
    RetransmissionRatio "retransmission_ratio" "retransmission ratio" "" Flow
        "Retransmitted data segments divided by all data segments sent.";
    FastRetransmits "fast_retransmits_count" "fast retransmits" "" Flow
        "Losses detected by acknowledgements, without a timeout.";
    Timeouts "timeouts_count" "timeouts" "" Flow
        "Expirations of the retransmission timer, including those for SYN segments.";
    RttMean "rtt_mean_s" "round-trip time, mean" "s" Flow
        "Mean of the round-trip times measured by the sender.";
    CwndMean "cwnd_mean_byte" "congestion window, mean" "B" Flow
        "Time average of the congestion window.";
    SegmentsReceived "segments_received_count" "segments received" "" Flow
        "Segments that the senders received, mostly acknowledgements. Together with the segments \
         sent, they determine the energy consumption of a radio.";
    CongestionMarks "congestion_marks_count" "congestion marks" "" Flow
        "Data packets that arrived with a congestion mark (ECN). Only flows whose stack has `ecn` \
         have this column and, in the simulator, the next one.";
    EcnReductions "ecn_reductions_count" "reductions by marks" "" Flow
        "Reductions of the congestion window because of congestion marks.";
    EstimatorUpdates "estimator_updates_count" "estimator updates" "" Flow
        "Acknowledgements with which the congestion control updated an estimate of the network, \
         such as a delay or a bandwidth; for vegas, medx, veno and westwood.";
    EstimatorEvaluations "estimator_evaluations_count" "estimator evaluations" "" Flow
        "Decisions for which the congestion control evaluated such an estimate, at a loss or once \
         per round trip.";
    QueueLossClassifiedCongestion "queue_loss_classified_congestion_count"
        "queue loss, classified as congestion" "" Flow
        "Losses at full queues that the sender classified as congestion, if its congestion control \
         classifies losses. Only classified losses count: those that start a recovery, and \
         timeouts.";
    QueueLossClassifiedError "queue_loss_classified_error_count"
        "queue loss, classified as error" "" Flow
        "Losses at full queues that the sender classified as transmission errors.";
    ErrorLossClassifiedCongestion "error_loss_classified_congestion_count"
        "error loss, classified as congestion" "" Flow
        "Losses by transmission errors that the sender classified as congestion.";
    ErrorLossClassifiedError "error_loss_classified_error_count"
        "error loss, classified as error" "" Flow
        "Losses by transmission errors that the sender classified as transmission errors.";
    NoLossClassifiedCongestion "no_loss_classified_congestion_count"
        "no loss, classified as congestion" "" Flow
        "Classifications as congestion although the segment was not lost, but delayed, or its \
         acknowledgements were lost.";
    NoLossClassifiedError "no_loss_classified_error_count" "no loss, classified as error" "" Flow
        "Classifications as transmission error although the segment was not lost.";
    CongestionDetection "congestion_detection_ratio" "congestion detection ratio" "" Flow
        "Share of the classified losses at full queues that the sender classified as congestion.";
    ErrorDetection "error_detection_ratio" "error detection ratio" "" Flow
        "Share of the classified losses by transmission errors that the sender classified as \
         transmission errors.";
    ConnectionsOpened "connections_opened_count" "connections opened" "" Flow
        "Connections whose handshake was completed, including the warm-up. Null without a \
         handshake.";
    ConnectionsFailed "connections_failed_count" "connections failed" "" Flow
        "Connections that failed to open: refused, aborted, or not open at the end of the run \
         after a retransmission of the SYN; including the warm-up.";
    HandshakeTimeMean "handshake_time_mean_s" "handshake time, mean" "s" Flow
        "Time from the first SYN until the connection is established at its sender; mean over the \
         connections that opened.";
    HandshakeTimeP98 "handshake_time_p98_s" "98th percentile of handshake time" "s" Flow
        "98th percentile of the handshake time over all connections that opened or failed; null if \
         more than 2 % failed. Rounded up like `delay_p98_s`.";
    ConnectTimeMean "connect_time_mean_s" "time to connect, mean" "s" Flow
        "Time from the start of a connection attempt until the handshakes of TCP and TLS are \
         complete at the device, which with `fast_open` or `early_data` may have sent its message \
         before; mean over the attempts that succeeded. Only flows whose \
         connections open and close have this column, the next one, `ports_exhausted_count` and \
         `syn_dropped_count`: those with `connection`, `tls`, `reconnect`, `accept`, `nat`, \
         `keep_alive`, `user_timeout`, `acknowledgement`, a load of MQTT, or `iec_104` with `t1` \
         or `controlled`.";
    ConnectTimeP98 "connect_time_p98_s" "98th percentile of time to connect" "s" Flow
        "98th percentile of the time to connect over the attempts that succeeded. Rounded up like \
         `delay_p98_s`.";
    TlsHandshakes "tls_handshakes_count" "full TLS handshakes" "" Flow
        "Full TLS handshakes completed by devices, including the warm-up. Only flows with `tls` \
         have this column and the next two.";
    TlsResumptions "tls_resumptions_count" "TLS resumptions" "" Flow
        "TLS handshakes with a session ticket completed by devices, including the warm-up.";
    TlsHandshakeBytes "tls_handshake_byte" "bytes of TLS handshakes" "B" Flow
        "Bytes of TLS handshakes and session tickets that both ends have written, without headers \
         of TCP and IP and without retransmissions; including the warm-up.";
    PortsExhausted "ports_exhausted_count" "attempts without a port" "" Flow
        "Connection attempts for which all local ports were in use or in TIME-WAIT.";
    SynDropped "syn_dropped_count" "SYN dropped by the server" "" Flow
        "SYN segments that the server dropped because too many connections waited to be accepted.";
    MessagesInterrupted "messages_interrupted_count" "messages on lost connections" "" Flow
        "Messages in transit on a connection that the device has lost, in both directions; \
         including the warm-up. They are retransmitted on the next connection; a device that keeps \
         no message until its delivery loses them. Only flows with `nat`, `keep_alive` or \
         `user_timeout` have this column and the next two.";
    LossNoticeMean "loss_notice_mean_s" "time until a forgotten connection is noticed" "s" Flow
        "Time from the first segment that the NAT discards for a forgotten connection until the \
         device notices, mean.";
    KeepAliveBytes "keep_alive_byte" "bytes of keep-alive probes" "B" Flow
        "Bytes of keep-alive probes of the devices with headers, including the warm-up. Answers, \
         which have the same size, are not counted.";
    MessagesDue "messages_due_count" "messages due" "" Flow
        "Messages that the applications produced in the measured time, whether or not they were \
         sent.";
    Messages "messages_count" "messages delivered" "" Flow
        "Messages that arrived completely, of those due in the measured time.";
    AlteredMessages "altered_messages_count" "messages altered" "" Flow
        "Messages that arrived with altered content and a valid checksum, of those due in the \
         measured time. Only flows with messages on which an attack `alter` with a valid checksum \
         may act have this column.";
    MessageLoss "message_loss_ratio" "message loss" "" Flow
        "Datagrams: share of lost datagrams among those sent. TCP: share of the messages due whose \
         connection failed to open. `coap`: share of the messages given up of which no copy \
         arrived, among those acknowledged or given up; `acknowledgement`, MQTT, \
         and `iec_104` with `t1` or `controlled` likewise, where the messages with QoS 0 are those \
         that have arrived or were lost with their connection. A subscription includes the \
         messages that did not reach its broker. Null without messages.";
    Acknowledged "acknowledged_count" "messages acknowledged" "" Flow
        "Messages whose response or acknowledgement arrived at the sender, of those due in the \
         measured time. Only flows with `transport = \"coap\"`, `acknowledgement`, a load of MQTT, \
         or `iec_104` with `t1` or `controlled` have this column and the next five.";
    AcknowledgedRatio "acknowledged_ratio" "success at the sender" "" Flow
        "Share of acknowledged messages among those acknowledged or given up. A message that was \
         given up may have arrived.";
    GivenUp "given_up_count" "messages given up" "" Flow
        "Messages given up after all retransmissions, of those due in the measured time.";
    MessageRetransmissions "message_retransmissions_count" "message retransmissions" "" Flow
        "Retransmissions of messages that were due in the measured time.";
    DuplicateMessages "duplicate_messages_count" "duplicate messages" "" Flow
        "Further copies of messages that arrived at the receiver, which answers each of them; of \
         messages due in the measured time. Without the copies that QoS 2 of MQTT discards.";
    ResponseTimeMean "response_time_mean_s" "time to the response, mean" "s" Flow
        "Time from the first transmission of a message to the arrival of its response or \
         acknowledgement; mean over the messages acknowledged.";
    ConnectionsLost "connections_lost_count" "connections lost" "" Flow
        "Connections that ended while the application used them: TCP gave up, an end or a NAT \
         reset them, or an application aborted them to transmit a message again, or without a \
         PINGRESP of MQTT. Only flows with `acknowledgement`, a load of MQTT, `iec_104` with \
         `t1` or `controlled`, `nat`, `keep_alive` or `user_timeout` have this column.";
    DtlsHandshakes "dtls_handshakes_count" "DTLS handshakes" "" Flow
        "DTLS handshakes completed by senders, including the warm-up. Only flows with `dtls` have \
         this column and the next three.";
    DtlsHandshakeTime "dtls_handshake_time_mean_s" "time of a DTLS handshake, mean" "s" Flow
        "Time from the first flight of a handshake until the sender can send its message; mean.";
    DtlsHandshakeBytes "dtls_handshake_byte" "bytes of DTLS handshakes" "B" Flow
        "Bytes of DTLS flights that both ends have sent, without headers of UDP and IP, with \
         retransmissions; including the warm-up.";
    DtlsRetransmissions "dtls_retransmissions_count" "retransmitted DTLS flights" "" Flow
        "DTLS flights that both ends have retransmitted, including the warm-up.";
    DelayMean "delay_mean_s" "message delay, mean" "s" Flow
        "Time from the moment at which a message is due to its complete arrival, including the \
         handshake; mean over the messages that arrived.";
    DelayMedian "delay_p50_s" "message delay, median" "s" Flow
        "Median of the message delay, computed like the 98th percentile.";
    DelayP98 "delay_p98_s" "98th percentile of message delay" "s" Flow
        "98th percentile of the message delay. A TCP message that has not arrived at the end of \
         the run is included if it has waited longer than the percentile, and otherwise excluded; \
         null if the percentile falls among messages that have not arrived. Lost datagrams are \
         excluded. Delays of simulated and emulated messages are counted in classes: the value is \
         the upper end of a class, up to 0.1 % or 1 µs above the exact percentile, and never above \
         the largest delay.";
    DelayMax "delay_max_s" "message delay, largest" "s" Flow
        "Largest delay of the messages that arrived.";
    DeadlineMet "deadline_met_ratio" "deadline met" "" Flow
        "Share of the messages that arrived within the deadline, among those due at least a \
         deadline before the end of the run; messages that did not arrive count as late. \
         Transfers: share that finished within the deadline.";
    MemberGoodputMin "member_goodput_min_bit_per_s" "goodput, worst member" "bit/s" Flow
        "Smallest goodput of a member. Only flows in `record.distribution` have this column and \
         the next eight. A member is one of the equal flows of the row; a percentile is the \
         smallest value that at least this share of the members does not exceed.";
    MemberGoodputP1 "member_goodput_p1_bit_per_s" "goodput, 1st percentile of members" "bit/s" Flow
        "Goodput that one in a hundred members does not exceed.";
    MemberGoodputMedian "member_goodput_p50_bit_per_s" "goodput, median member" "bit/s" Flow
        "Median of the goodputs of the members.";
    MemberDeliveredMin "member_delivered_min_ratio" "messages delivered, worst member" "" Flow
        "Smallest share of its messages due that a member has delivered by the end of the run. \
         Members without a message due are excluded.";
    MemberDeliveredP1 "member_delivered_p1_ratio" "messages delivered, 1st percentile of members" ""
        Flow "Share of delivered messages that one in a hundred members does not exceed.";
    MemberDeliveredMedian "member_delivered_p50_ratio" "messages delivered, median member" "" Flow
        "Median over the members of the share of delivered messages.";
    MemberDelayMedian "member_delay_p50_s" "delay, median member" "s" Flow
        "Median over the members of the mean message delay of a member. Members without a \
         delivered message are excluded; they count in the share of delivered messages.";
    MemberDelayP99 "member_delay_p99_s" "delay, 99th percentile of members" "s" Flow
        "Mean message delay that 99 of a hundred members do not exceed.";
    MemberDelayMax "member_delay_max_s" "delay, worst member" "s" Flow
        "Largest mean message delay of a member.";
    SegmentLoss "segment_loss_ratio" "segment loss" "" Flow
        "Share of the data segments sent that were dropped or lost on the path of the connections \
         of this row, including drops at the full buffer of an aggregator.";
    SegmentLossTotal "segment_loss_total_ratio" "segment loss, all stages" "" Flow
        "One minus the product of (1 − segment loss) over the stages of the path.";
    SegmentDelayMean "segment_delay_mean_s" "segment delay, mean" "s" Flow
        "Delay of a data segment in the stage of this row, from transmission to reception, \
         including queuing and, in a stage that ends at an aggregator, the time in its buffer.";
    SegmentDelayTotal "segment_delay_total_mean_s" "segment delay, all stages" "s" Flow
        "Sum of the mean segment delays over the stages of the path.";
    BufferMean "buffer_mean_messages" "aggregator buffer, mean" "messages" Flow
        "Messages in the buffer of an aggregator, averaged over time and aggregators.";
    BufferMax "buffer_max_messages" "aggregator buffer, largest" "messages" Flow
        "Largest number of messages in the buffer of one aggregator.";
    BytesAtRiskMean "bytes_at_risk_mean_byte" "bytes at risk, mean" "B" Flow
        "Bytes that an aggregator or proxy has acknowledged to their senders and the next hop has \
         not acknowledged, so that a crash would lose them. Averaged over time and over \
         aggregators or proxies.";
    BytesAtRiskMax "bytes_at_risk_max_byte" "bytes at risk, largest" "B" Flow
        "Largest number of bytes at risk in one aggregator or proxy.";
    LostInCrashes "lost_in_crashes_byte" "lost in crashes" "B" Flow
        "Bytes that were acknowledged to their sender, but lost because a proxy crashed or reset \
         the connection: at the end of the run they have not arrived, and no node stores them.";
    ProxyRetransmissions "proxy_retransmissions_count" "retransmitted by proxies" "" Flow
        "Data segments retransmitted by proxies, in addition to the retransmissions of the sender.";
    Residual "fixed_point_residual_ratio" "residual" "" Flow
        "Analytical model only: residual of the fixed-point equations, relative to the offered \
         load.";
    Iterations "fixed_point_iterations_count" "iterations" "" Flow
        "Analytical model only: number of evaluations until the fixed point was found.";
    Fairness "fairness_index" "fairness" "" Flow
        "Jain's index of the goodputs of equal flows: 1 if all are equal. The goodput of a \
         transfer is per time in which it is in progress. Rows of `record.fairness` have the index \
         of all connections of their flows.";
    LinkThroughput "link_throughput_bit_per_s" "throughput" "bit/s" Link
        "Packets that arrived at the receiving end, including headers, per measured time. A packet \
         counts completely on its arrival, so that the throughput of a short time may exceed the \
         rate by a part of a packet.";
    Utilisation "utilisation_ratio" "utilisation" "" Link
        "Share of the measured time in which the link was transmitting, including headers and \
         excluding outages with mode `hold`. Bytes count when they are transmitted, also those of \
         packets that arrive after the measured time. With `rate_change` and `trace`, the share of \
         the bits that the link could have transmitted.";
    PacketsIn "packets_in_count" "packets in" "" Link
        "Packets that arrived at the queue of this direction.";
    PacketsOut "packets_out_count" "packets out" "" Link
        "Packets that arrived at the receiving end.";
    DropsQueue "drops_queue_count" "dropped, queue full" "" Link
        "Packets dropped because the queue was full.";
    Marked "marked_count" "marked" "" Link
        "Packets that active queue management marked (ECN) instead of dropping them, and that \
         arrived. Only directions whose `aqm` has `ecn` have this column.";
    DropsLoss "drops_loss_count" "random loss" "" Link
        "Packets lost by `loss` or by the losses of a `trace`, and on a medium with `csma_ca` by \
         `attempts` collisions.";
    DropsShadowing "drops_shadowing_count" "lost to shadowing" "" Link
        "Packets lost by `shadowing`.";
    DropsNoise "drops_noise_count" "lost to noise" "" Link
        "Packets lost by `noise`.";
    Collisions "collisions_count" "collisions" "" Link
        "Transmissions on a medium with `csma_ca` that collided with others; after a collision the \
         packet is transmitted again, or lost after `attempts` (`drops_loss_count`). Only rows on \
         such a medium have this column.";
    DropsOutage "drops_outage_count" "lost in outages" "" Link
        "Packets lost in outages.";
    DropsAttack "drops_attack_count" "lost to attacks" "" Link
        "Packets that an attacker dropped. Only directions under attack have this column and the \
         next two.";
    DelayedAttack "delayed_attack_count" "delayed by attacks" "" Link
        "Packets that an attacker held back.";
    AlteredAttack "altered_attack_count" "altered by attacks" "" Link
        "Packets that an attacker altered, with a valid checksum or without.";
    Corrupted "corrupted_count" "corrupted" "" Link
        "Packets that arrived with bit errors, or altered by an attacker.";
    Duplicated "duplicated_count" "duplicated" "" Link
        "Packets of which a second copy arrived.";
    LossRatio "loss_ratio" "loss" "" Link
        "Share of the packets offered that were dropped or lost for any reason.";
    QueueMean "queue_mean_packets" "queue, mean" "packets" Link
        "Time average of the number of packets in the queue.";
    QueueMax "queue_max_packets" "queue, largest" "packets" Link
        "Largest number of packets in the queue.";
    LinkDelayMean "link_delay_mean_s" "delay, mean" "s" Link
        "Time from the arrival of a packet at the queue to its arrival at the receiving end.";
}

impl Metric {
    /// Whether only rows of some scenarios have this column: directions that contend for a medium
    /// or mark packets, directions and flows under attack, flows with ECN, flows whose connections
    /// open and close, flows with a distribution over their members, and flows whose messages are
    /// acknowledged.
    #[must_use]
    pub const fn is_of_some_rows(self) -> bool {
        matches!(
            self,
            Self::Collisions | Self::Marked | Self::CongestionMarks | Self::EcnReductions
        ) || self.is_of_attacks()
            || self.is_of_connections()
            || self.is_of_distributions()
            || self.is_of_acknowledgements()
            || self.is_of_coap()
            || matches!(self, Self::ConnectionsLost)
    }

    /// Whether only flows whose messages are acknowledged have this column: those with
    /// `acknowledgement` or `transport = "coap"`, and `iec_104` with several connections.
    #[must_use]
    pub const fn is_of_acknowledgements(self) -> bool {
        matches!(
            self,
            Self::Acknowledged
                | Self::AcknowledgedRatio
                | Self::GivenUp
                | Self::MessageRetransmissions
                | Self::DuplicateMessages
                | Self::ResponseTimeMean
        )
    }

    /// Whether only flows with `transport = "coap"` have this column.
    #[must_use]
    pub const fn is_of_coap(self) -> bool {
        matches!(
            self,
            Self::DtlsHandshakes
                | Self::DtlsHandshakeTime
                | Self::DtlsHandshakeBytes
                | Self::DtlsRetransmissions
        )
    }

    /// Groups of columns of some rows: a row has all columns of a group or none, and those that do
    /// not exist are null.
    pub(super) const GROUPS: [fn(Self) -> bool; 5] = [
        Self::is_of_acknowledgements,
        Self::is_of_coap,
        Self::is_of_distributions,
        |metric| {
            matches!(
                metric,
                Self::ConnectTimeMean
                    | Self::ConnectTimeP98
                    | Self::PortsExhausted
                    | Self::SynDropped
            )
        },
        |metric| {
            matches!(
                metric,
                Self::MessagesInterrupted | Self::LossNoticeMean | Self::KeepAliveBytes
            )
        },
    ];

    /// Whether only flows whose connections open and close have this column.
    #[must_use]
    pub const fn is_of_connections(self) -> bool {
        matches!(
            self,
            Self::ConnectTimeMean
                | Self::ConnectTimeP98
                | Self::TlsHandshakes
                | Self::TlsResumptions
                | Self::TlsHandshakeBytes
                | Self::PortsExhausted
                | Self::SynDropped
                | Self::MessagesInterrupted
                | Self::LossNoticeMean
                | Self::KeepAliveBytes
        )
    }

    /// Whether only flows in `record.distribution` have this column.
    #[must_use]
    pub const fn is_of_distributions(self) -> bool {
        matches!(
            self,
            Self::MemberGoodputMin
                | Self::MemberGoodputP1
                | Self::MemberGoodputMedian
                | Self::MemberDeliveredMin
                | Self::MemberDeliveredP1
                | Self::MemberDeliveredMedian
                | Self::MemberDelayMedian
                | Self::MemberDelayP99
                | Self::MemberDelayMax
        )
    }

    /// Whether only scenarios with attacks have this column.
    #[must_use]
    pub const fn is_of_attacks(self) -> bool {
        matches!(
            self,
            Self::AlteredMessages | Self::DropsAttack | Self::DelayedAttack | Self::AlteredAttack
        )
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().column)
    }
}

impl FromStr for Metric {
    type Err = String;
    fn from_str(column: &str) -> Result<Self, String> {
        Self::of_column(column).ok_or_else(|| {
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
        /// Reads the name where the deserialiser has it: a sweep reads hundreds of millions.
        struct Column;
        impl Visitor<'_> for Column {
            type Value = Metric;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E: serde::de::Error>(self, column: &str) -> Result<Metric, E> {
                column.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Column)
    }
}

#[cfg(any(test, feature = "schema"))]
impl schemars::JsonSchema for Metric {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Metric".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let columns: Vec<_> = Self::ALL.iter().map(|metric| metric.info().column).collect();
        schemars::json_schema!({ "type": "string", "enum": columns })
    }
}
