//! Timers: those of TCP, and of a peer that is silent.

use gridhaul_core::tcp::State;
use gridhaul_scenario::units::{Duration, Instant};

use super::{Endpoint, Phase};

/// Interval of probes on an idle connection (RFC 9293, 3.8.4), and their number until it has
/// failed: as on the collector's other sockets.
const KEEPALIVE: Duration = Duration::from_secs(60);
const PROBES_MAX: u8 = 9;

/// Time without any segment of the peer while data for it is outstanding (RFC 5482).
const USER_TIMEOUT: Duration = Duration::from_secs(180);

/// Time for a handshake: five retransmissions of SYN-ACK, as `tcp_synack_retries` of Linux.
const HANDSHAKE: Duration = Duration::from_secs(63);

impl Endpoint {
    /// When [`Self::handle_timeout`] must be called.
    pub(in crate::collector::user_tcp) fn deadline(&self) -> Instant {
        self.tcp.next_deadline().min(self.silence_ends_at())
    }

    /// Handles expired timers. Returns whether the connection has failed by them.
    pub(in crate::collector::user_tcp) fn handle_timeout(&mut self, now: Instant) -> bool {
        if self.tcp.next_deadline() <= now {
            self.tcp.handle_timeout(now);
        }
        if now < self.silence_ends_at() {
            return false;
        }
        let (next, una) = self.tcp.sent_and_acknowledged();
        if self.phase == Phase::Opening || next > una || self.probes == PROBES_MAX {
            self.tcp.reset();
            return true;
        }
        self.probes += 1;
        self.probed_at = now;
        self.is_probe_due = true;
        false
    }

    /// When a silent peer is probed, or has failed.
    fn silence_ends_at(&self) -> Instant {
        let (next, una) = self.tcp.sent_and_acknowledged();
        match self.tcp.state() {
            State::Closed | State::TimeWait => Instant::NEVER,
            _ if self.phase == Phase::Opening => self.received_at + HANDSHAKE,
            _ if next > una => self.received_at.max(self.sent_at) + USER_TIMEOUT,
            _ => self.received_at.max(self.probed_at) + KEEPALIVE,
        }
    }
}
