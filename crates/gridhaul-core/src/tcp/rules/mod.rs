//! Rules of an implementation of TCP that no key of a scenario sets. `profile/` chooses them for
//! each profile.

mod algorithms;

pub use algorithms::AlgorithmRules;
pub(crate) use algorithms::{BbrRules, CubicRules};

/// How acknowledgements are counted for the growth of the window (RFC 3465).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteCounting {
    /// One segment (or its share) for each acknowledgement, whatever it covers (ns-2).
    PerAck,
    /// The bytes acknowledged, at most one segment for each acknowledgement (RFC 5681, equation 2).
    PerAckedUpToOne,
    /// All bytes acknowledged (RFC 3465 without its limit; Linux).
    PerAcked,
}

impl ByteCounting {
    /// Bytes counted in slow start and in congestion avoidance for `acked` bytes acknowledged in
    /// order and `delivered` bytes including selective acknowledgements.
    #[inline]
    pub(crate) fn credits(self, acked: u32, delivered: u32, mss: u32) -> (u32, u32) {
        match self {
            Self::PerAck => (mss, mss),
            Self::PerAckedUpToOne => (acked.min(mss), mss),
            Self::PerAcked => (delivered, delivered),
        }
    }
}

/// The quantity that a loss halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HalvingBasis {
    /// The amount of outstanding data (RFC 5681, equation 4).
    Flight,
    /// The congestion window (Linux).
    Cwnd,
    /// The smaller of congestion and receive window (ns-2).
    Window,
}

/// Size that TCP options add to a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionBytes {
    /// Their real size, padding included.
    All,
    /// Eight bytes for each SACK block and none for other options (ns-2, `Sacker::append_ack`).
    SackBlocks,
}

/// Congestion window after an idle period longer than the RTO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleRestart {
    /// At most the initial window (RFC 5681, section 4.1).
    InitialWindow,
    /// Halved for each RTO of idle time, down to the initial window (RFC 2861, section 3.1; Linux,
    /// `tcp_cwnd_restart`).
    Decay,
    /// One segment (ns-2, `slow_start_restart_`).
    OneSegment,
}

/// Behaviour of an implementation that no key of a scenario sets. The comments describe the value
/// `true` and name the implementation that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// SYN-ACK is not acknowledged, and only SYN is retransmitted (ns-2, one-way agents).
    pub one_way_open: bool,
    /// SYN is treated as data: its loss reduces the window (ns-2, `syn_`).
    pub syn_counts_as_data: bool,
    /// The third segment of the handshake carries no data (Linux, `tcp_rcv_synsent_state_process`).
    pub bare_handshake_ack: bool,

    /// The delayed-ACK timer adapts to the interval between data segments, and acknowledgements are
    /// sent at once after a pause or an old segment (Linux, `tcp_event_data_recv`,
    /// `tcp_enter_quickack_mode`).
    pub adaptive_delayed_ack: bool,
    /// Pushed data is acknowledged when the application has read all data, unless the connection is
    /// interactive: then acknowledgements wait for the answer (Linux, `__tcp_cleanup_rbuf`,
    /// `tcp_event_data_sent`).
    pub acknowledges_when_read: bool,
    /// Data that arrives twice is reported by a duplicate selective acknowledgement (RFC 2883;
    /// Linux, `tcp_dsack_set`).
    pub reports_duplicates: bool,
    /// A retransmission of the last segment in order is acknowledged with delay (ns-2,
    /// `DelAckSink::recv`).
    pub delays_ack_of_last_duplicate: bool,

    /// Nagle's algorithm delays a small segment only for earlier small segments (Linux,
    /// `tcp_minshall_check`).
    pub nagle_by_minshall: bool,
    /// The application may write until a super-segment of the device is full (Linux,
    /// `tcp_sendmsg_locked`, `tcp_stream_memory_free`).
    pub fills_super_segments: bool,
    /// Pacing spaces bursts instead of segments (Linux, `tcp_update_skb_after_send`).
    pub paces_bursts: bool,
    /// Congestion window after an idle period.
    pub idle_restart: IdleRestart,
    /// A window that the application does not fill does not grow and decreases (RFC 2861; Linux,
    /// `tcp_cwnd_validate`).
    pub validates_window: bool,
    /// The congestion window is a whole number of segments (Linux, `snd_cwnd`).
    pub whole_segment_window: bool,

    /// The application closes after the data that the windows permit was sent, so that FIN follows
    /// that data alone (Linux, `tcp_sendmsg_locked`, `tcp_send_fin`).
    pub fin_follows_sent_data: bool,
    /// Long timers expire with the resolution of the timer wheel (Linux, `kernel/time/timer.c`).
    pub timer_wheel: bool,
    /// The timer wheels of connections have random phases, as those of hosts that have been running
    /// for a random time; otherwise that of time zero.
    pub random_timer_phase: bool,
    /// Number of SYN retransmissions after whose last timeout the connection is aborted, if any.
    pub syn_retransmissions_max: Option<u8>,
    /// A timeout retransmits only the first segment (Linux, `tcp_retransmit_timer`).
    pub timeout_sends_one_segment: bool,
    /// After the report that packets are too big, the lost data is retransmitted as far as the
    /// window permits (Linux, `tcp_simple_retransmit`), instead of one segment before the next
    /// acknowledgement (RFC 1191, section 6.4).
    pub smaller_segments_fill_window: bool,
    /// A timeout clears SACK information (RFC 2018, section 8; ns-2).
    pub timeout_forgets_sacks: bool,
    /// Tahoe keeps its count of duplicate acknowledgements after a timeout (ns-2,
    /// `TcpAgent::timeout`).
    pub timeout_keeps_duplicates: bool,
    /// Another timeout of the same segment reduces ssthresh again, against RFC 5681, section 3.1
    /// (ns-2, `TcpAgent::slowdown`).
    pub repeated_timeout_reduces: bool,
    /// An idle period starts with the last acknowledgement (ns-2, `TcpAgent::newack`).
    pub idle_since_last_ack: bool,
    /// The retransmission timer expires, and backs off, while nothing is outstanding (ns-2,
    /// `VegasTcpAgent::timeout`).
    pub timer_runs_while_idle: bool,
    /// A fast retransmit doubles the timeout (ns-2, `VegasTcpAgent::recv`, `reset_rtx_timer`).
    pub fast_retransmit_backs_off: bool,

    /// Without selective acknowledgements, each duplicate counts as a segment that has arrived, and
    /// the window follows proportional rate reduction (Linux, `tcp_add_reno_sack`).
    pub counts_arrived_segments: bool,
    /// A congestion mark reduces the window gradually, by proportional rate reduction (Linux,
    /// `tcp_enter_cwr`), instead of at once (RFC 3168, section 6.1.2).
    pub reduces_gradually_for_marks: bool,
    /// SACK recovery counts the pipe in packets (ns-2, `tcp-sack1.cc`) instead of RFC 6675.
    pub ns2_sack1_recovery: bool,
    /// In SACK recovery every acknowledgement counts as a duplicate (ns-2, `Sack1TcpAgent::recv`).
    pub every_ack_leaves_pipe: bool,
    /// The first data segment may be fast-retransmitted after an earlier loss (ns-2, `bugfix_ss_`).
    pub first_segment_is_retransmitted_fast: bool,
    /// One fast retransmit for each window, also in Reno (ns-2, `bugFix_`).
    pub one_fast_retransmit_per_window: bool,
    /// Limited transmit sends one segment for each duplicate, regardless of earlier duplicates
    /// (ns-2, `send_one`).
    pub limited_transmit_sends_one: bool,
    /// A partial acknowledgement does not stop the round-trip measurement in progress (ns-2,
    /// `NewRenoTcpAgent::partialnewack`).
    pub partial_ack_keeps_timing: bool,
    /// Maximum number of segments that NewReno sends for each acknowledgement in recovery (ns-2,
    /// `send_much (0, 0, 2)`).
    pub new_reno_burst: Option<u8>,
    /// The window keeps its deflation by partial acknowledgements (ns-2, `NewRenoTcpAgent::recv`).
    pub keeps_deflated_window: bool,

    /// Implementation of CUBIC, BBR and Vegas.
    pub algorithms: AlgorithmRules,
}
