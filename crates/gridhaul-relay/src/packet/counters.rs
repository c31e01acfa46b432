//! Counters of the bridge.

use gridhaul_scenario::scenario::ProxyMode;

/// Declares causes with their names in metrics.
macro_rules! causes {
    ($(#[$doc:meta])* $type:ident { $($(#[$cause_doc:meta])* $cause:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $type {
            $($(#[$cause_doc])* $cause,)*
        }

        impl $type {
            /// All causes, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$cause,)*];

            /// The name in metrics.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$cause => $name,)*
                }
            }
        }
    };
}

causes! {
    /// Why a connection, or a fragment, was forwarded unchanged.
    UntouchedCause {
        /// No rule matches.
        NoRule = "no_rule",
        /// The rule has the mode `none`.
        ModeNone = "mode_none",
        /// As many connections as the configuration permits have a proxy.
        TableFull = "table_full",
        /// The memory for payload is used up.
        Memory = "memory",
        /// Signatures of TCP-AO (RFC 5925), which a changed segment would invalidate.
        TcpAo = "tcp_ao",
        /// Signatures of RFC 2385.
        Md5 = "md5",
        /// Multipath TCP (RFC 8684): its numbers span several connections.
        Mptcp = "mptcp",
        /// SYN carries data (TCP Fast Open, RFC 7413).
        DataInSyn = "data_in_syn",
        /// SYN has another option that is not known.
        UnknownOption = "unknown_option",
        /// The IP header has options or extension headers.
        IpOptions = "ip_options",
        /// The stated MSS is too small for useful segments.
        SmallMss = "small_mss",
        /// SYN, or the answer to it, is malformed.
        Malformed = "malformed",
        /// The connection was open when its first segment was seen.
        SynNotSeen = "syn_not_seen",
        /// The packet is a fragment.
        Fragment = "fragment",
        /// The relay is about to end.
        Draining = "draining",
    }
}

causes! {
    /// Why a frame was dropped.
    FrameDropCause {
        /// Wrong checksum: the next hop must not acknowledge corrupt data.
        Checksum = "checksum",
        /// A large segment that cannot be divided.
        Malformed = "malformed",
        /// Longer than the space for a received frame.
        Truncated = "truncated",
        /// Offloads that the kernel cannot describe.
        Unsupported = "unsupported",
        /// Longer than the interface permits.
        TooLong = "too_long",
        /// The queue of the interface is full.
        QueueFull = "queue_full",
        /// The interface is down.
        InterfaceDown = "interface_down",
        /// The buffer of the receiving socket was full.
        ReceiveBuffer = "receive_buffer",
        /// The memory for payload is used up.
        Memory = "memory",
        /// The frame was waiting when the lease on packets of the kernel's bridge expired.
        LeaseExpired = "lease_expired",
        /// The payload of a retransmission is not stored any more.
        PayloadMissing = "payload_missing",
    }
}

causes! {
    /// Why the state of a connection was discarded.
    EndCause {
        /// The connection is closed.
        Closed = "closed",
        /// No segment has arrived for the idle timeout.
        Idle = "idle",
        /// The handshake was not completed.
        Handshake = "handshake",
        /// The handshake negotiates an option that a proxy cannot keep.
        Option = "option",
        /// The proxy has lowered the goodput: the hosts continue without it.
        Goodput = "goodput",
        /// The relay has ended.
        Stopped = "stopped",
        /// The kernel's bridge has forwarded segments, because the relay did not answer in time.
        LeaseExpired = "lease_expired",
    }
}

/// Counters of the bridge since its start.
#[derive(Debug, Clone, Default)]
pub struct BridgeCounters {
    untouched: [u64; UntouchedCause::ALL.len()],
    dropped: [u64; FrameDropCause::ALL.len()],
    ended: [u64; EndCause::ALL.len()],
    /// Connections that were opened through a proxy, by the mode ([`mode_index`]).
    pub(super) opened: [u64; MODES.len()],
    /// Frames that passed unchanged, outside of proxies.
    pub passed: u64,
    /// Segments of hosts that proxies have forwarded.
    pub forwarded: u64,
    /// Segments that proxies have generated.
    pub generated: u64,
    /// Reports of routers that have lowered the MTU of a path.
    pub path_mtu_lowered: u64,
    /// Bytes that were acknowledged and are lost, on connections that have ended.
    pub(super) lost: u64,
    /// Retransmissions and timeouts of proxies, on connections that have ended.
    pub(super) retransmissions: u64,
    pub(super) timeouts: u64,
}

/// Names of the modes of proxies in metrics.
pub(super) const MODES: [&str; 5] = ["reflect", "spoof", "snoop", "ack", "split"];

impl BridgeCounters {
    /// Connections that were forwarded unchanged because of this cause.
    #[must_use]
    pub const fn untouched(&self, cause: UntouchedCause) -> u64 {
        self.untouched[cause as usize]
    }

    /// Frames that were dropped because of this cause.
    #[must_use]
    pub const fn dropped(&self, cause: FrameDropCause) -> u64 {
        self.dropped[cause as usize]
    }

    /// Connections that have ended because of this cause.
    #[must_use]
    pub const fn ended(&self, cause: EndCause) -> u64 {
        self.ended[cause as usize]
    }

    /// Connections that were opened through a proxy, by mode.
    pub fn opened(&self) -> impl Iterator<Item = (&'static str, u64)> {
        MODES.into_iter().zip(self.opened)
    }

    /// Counts frames that the caller has dropped.
    pub const fn add_dropped(&mut self, cause: FrameDropCause, frames: u64) {
        self.dropped[cause as usize] += frames;
    }

    pub(super) const fn add_untouched(&mut self, cause: UntouchedCause) {
        self.untouched[cause as usize] += 1;
    }

    pub(super) const fn add_ended(&mut self, cause: EndCause) {
        self.ended[cause as usize] += 1;
    }
}

/// Place of a mode in [`MODES`].
pub(super) const fn mode_index(mode: ProxyMode) -> Option<usize> {
    match mode {
        ProxyMode::Reflect => Some(0),
        ProxyMode::Spoof => Some(1),
        ProxyMode::Snoop => Some(2),
        ProxyMode::Ack => Some(3),
        ProxyMode::Split => Some(4),
        ProxyMode::None => None,
    }
}
