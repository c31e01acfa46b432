//! Send buffer: whether the application may write more data, and has closed.

use super::Sender;
use super::flags::Flag;
use crate::tcp::params::StackParams;

/// Linux: 64 KiB less the space for headers (`sk_dst_gso_max_size`). Bytes.
const GSO_MAX_SIZE: u32 = 65_215;

impl Sender {
    /// The application closes its direction. In Linux the data that the windows permit has left
    /// before: FIN joins data that waits, and follows alone otherwise (`tcp_sendmsg_locked`,
    /// `tcp_send_fin`).
    pub fn close(&mut self, params: &StackParams) {
        if params.policy.fin_follows_sent_data && !self.closed {
            self.flags.set(Flag::Closing, true);
        } else {
            self.closed = true;
        }
    }

    /// Whether the application has closed its direction.
    pub(super) fn is_closing(&self) -> bool {
        self.closed || self.flags.has(Flag::Closing)
    }

    /// No more data can be sent now: FIN follows the data that is left, if the application has
    /// closed. Returns whether it has closed since data was sent.
    #[inline]
    pub(crate) fn complete_close(&mut self) -> bool {
        let closing = self.flags.has(Flag::Closing);
        if closing {
            self.flags.set(Flag::Closing, false);
            self.closed = true;
        }
        closing
    }

    /// See [`Connection::accepts_write`](crate::tcp::Connection::accepts_write).
    pub(crate) fn accepts_write(&self, bytes: u64, refused: bool, params: &StackParams) -> bool {
        let (unsent, mss) = (self.end() - self.next, u64::from(params.mss));
        if self.is_closing() {
            return false;
        }
        if params.policy.fills_super_segments {
            return unsent < if refused { 1 } else { self.size_goal(params) };
        }
        if unsent >= mss {
            return false;
        }
        let waits = self.una != self.next && self.nagle_delays(params);
        if waits && (unsent > 0 || bytes < mss) {
            return true;
        }
        unsent == 0 && self.could_transmit(bytes.min(mss), params)
    }

    /// With TCP_NOTSENT_LOWAT of 1, Linux starts a super-segment when no unsent data waits and
    /// fills the unsent one (`tcp_sendmsg_locked`); a writer that was blocked is notified when no
    /// unsent data is left (`tcp_stream_memory_free`). A super-segment is as large as a device
    /// accepts, within half of the peer's largest window (`tcp_xmit_size_goal`). Bytes.
    fn size_goal(&self, params: &StackParams) -> u64 {
        let maximum = GSO_MAX_SIZE.min(self.peer_window_max / 2);
        u64::from((maximum / params.mss).max(1) * params.mss)
    }

    /// Whether a segment of new data would leave at once: no lost segment awaits retransmission,
    /// and the windows have free space.
    fn could_transmit(&self, len: u64, params: &StackParams) -> bool {
        if self.queue.lost_bytes() > 0 {
            return false;
        }
        if self.una != self.next {
            let limited_transmit_off =
                self.duplicates > 0 && self.sack && !params.limited_transmit && !self.in_recovery();
            let in_flight = self.in_flight();
            if limited_transmit_off || in_flight + len > u64::from(self.window) && in_flight > 0 {
                return false;
            }
        }
        self.next + len <= self.edge()
    }
}
