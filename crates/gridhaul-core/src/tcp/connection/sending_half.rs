//! The sending half of an endpoint: a complete sender, or the reduced state of a receive-only
//! endpoint.

use gridhaul_scenario::units::Instant;

use crate::tcp::event::LinkReport;
use crate::tcp::params::StackParams;
use crate::tcp::segment::{Segment, expand};
use crate::tcp::sender::{SendRange, Sender};

/// The sending half.
#[derive(Debug, Clone)]
pub(super) enum SendingHalf {
    /// A complete sender.
    Full(Box<Sender>),
    /// Reduced state: no data was written, and none is outstanding.
    Idle(IdleSender),
}

/// Reduced state of a sender without written or outstanding data. Packed, so that the tag of
/// [`SendingHalf`] costs four bytes of an end instead of eight and four of padding.
#[derive(Debug, Clone, Copy)]
#[repr(Rust, packed(4))]
pub(super) struct IdleSender {
    /// Position that is sent next; all earlier positions are acknowledged.
    next: u64,
    peer_window: u32,
    peer_window_max: u32,
    window_update_seq: u32,
}

impl SendingHalf {
    /// A sender of the connection with this initial sequence number, which is random.
    pub(super) fn new(params: &StackParams, isn: u32) -> Self {
        Self::Full(Box::new(new_sender(params, isn)))
    }

    /// The complete sender, restored from the reduced state if necessary.
    pub(super) fn activate(&mut self, params: &StackParams, isn: u32) -> &mut Sender {
        if let Self::Idle(idle) = self {
            *self = Self::Full(Box::new(idle.activate(params, isn)));
        }
        match self {
            Self::Full(sender) => sender,
            Self::Idle(_) => unreachable!("the sender has just been restored"),
        }
    }

    /// Switches to the reduced state if no data is written or outstanding, before or after SYN.
    pub(super) fn release_idle(&mut self) {
        if let Self::Full(sender) = self
            && sender.next() == sender.una()
            && sender.has_no_data()
        {
            let (peer_window, peer_window_max, window_update_seq) = sender.offer();
            let next = sender.next();
            *self =
                Self::Idle(IdleSender { next, peer_window, peer_window_max, window_update_seq });
        }
    }

    /// See [`Connection::leave_common_path`](super::Connection::leave_common_path).
    pub(super) fn leave_common_path(&mut self) {
        if let Self::Full(sender) = self {
            sender.leave_common_path();
        }
    }

    /// Stops sending and all timers.
    pub(super) fn stop(&mut self) {
        if let Self::Full(sender) = self {
            sender.stop();
        }
    }

    #[inline]
    pub(super) fn sender(&self) -> Option<&Sender> {
        match self {
            Self::Full(sender) => Some(sender),
            Self::Idle(_) => None,
        }
    }

    #[inline]
    pub(super) fn next(&self) -> u64 {
        match self {
            Self::Full(sender) => sender.next(),
            Self::Idle(idle) => idle.next,
        }
    }

    #[inline]
    pub(super) fn una(&self) -> u64 {
        match self {
            Self::Full(sender) => sender.una(),
            Self::Idle(idle) => idle.next,
        }
    }

    /// The window that the peer offers.
    #[inline]
    pub(super) fn peer_window(&self) -> u32 {
        match self {
            Self::Full(sender) => sender.offer().0,
            Self::Idle(idle) => idle.peer_window,
        }
    }

    #[inline]
    pub(super) fn fin_position(&self) -> Option<u64> {
        self.sender().and_then(Sender::fin_position)
    }

    /// See [`Sender::data_end`]; without data to send, no segment ends there.
    #[inline]
    pub(super) fn data_end(&self) -> u64 {
        self.sender().map_or(0, Sender::data_end)
    }

    pub(super) fn fin_acknowledged(&self) -> bool {
        self.sender().is_some_and(Sender::fin_acknowledged)
    }

    #[inline]
    pub(super) fn next_deadline(&self) -> Instant {
        self.sender().map_or(Instant::NEVER, Sender::next_deadline)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, params: &StackParams) {
        if let Self::Full(sender) = self {
            sender.handle_timeout(now, params);
        }
    }

    /// A link reports an event of a segment; nothing is outstanding in the reduced state.
    pub(super) fn handle_link_report(&mut self, report: &LinkReport) {
        if let Self::Full(sender) = self {
            sender.handle_link_report(report);
        }
    }

    /// See [`Sender::handle_ack`].
    #[inline(always)]
    pub(super) fn handle_ack(
        &mut self,
        now: Instant,
        segment: &Segment,
        isn: u32,
        params: &StackParams,
    ) -> bool {
        match self {
            Self::Full(sender) => sender.handle_ack(now, segment, isn, params),
            Self::Idle(idle) => idle.handle_ack(segment, isn),
        }
    }

    /// See [`Sender::divide_segments`]; nothing is outstanding in the reduced state.
    pub(super) fn divide_segments(&mut self, params: &StackParams) {
        if let Self::Full(sender) = self {
            sender.divide_segments(params);
        }
    }

    /// See [`Sender::retransmit_divided`].
    pub(super) fn retransmit_divided(&mut self, now: Instant, params: &StackParams) {
        if let Self::Full(sender) = self {
            sender.retransmit_divided(now, params);
        }
    }

    /// The peer has echoed a congestion mark; nothing is outstanding in the reduced state.
    pub(super) fn note_congestion_echo(&mut self) {
        if let Self::Full(sender) = self {
            sender.note_congestion_echo();
        }
    }

    /// See [`Sender::notes_new_data`].
    pub(super) fn notes_new_data(&mut self, range: SendRange) -> bool {
        match self {
            Self::Full(sender) => sender.notes_new_data(range),
            Self::Idle(_) => false,
        }
    }

    /// See [`Sender::takes_reduction`].
    pub(super) fn takes_reduction(&mut self) -> bool {
        match self {
            Self::Full(sender) => sender.takes_reduction(),
            Self::Idle(_) => false,
        }
    }

    /// New data, a retransmission or a window probe, if one is to be sent now.
    #[inline]
    pub(super) fn poll(&mut self, now: Instant, params: &StackParams) -> Option<SendRange> {
        match self {
            Self::Full(sender) => {
                let mut range = sender.poll_range(now, params);
                // The application closes only now that no more data can be sent, so that FIN may
                // follow alone; see `Policy::fin_follows_sent_data`.
                if range.is_none() && sender.complete_close() {
                    range = sender.poll_range(now, params);
                }
                range.or_else(|| sender.poll_window_probe())
            }
            Self::Idle(_) => None,
        }
    }

    /// See [`Sender::ends_event_when_all_sent`]; no data is written in the reduced state.
    #[inline]
    pub(super) fn ends_event_when_all_sent(&mut self, now: Instant, params: &StackParams) -> bool {
        match self {
            Self::Full(sender) => sender.ends_event_when_all_sent(now, params),
            Self::Idle(_) => true,
        }
    }

    /// SYN, if it is to be retransmitted. A sender in the reduced state has nothing to retransmit.
    pub(super) fn poll_syn(&mut self, now: Instant, params: &StackParams) -> Option<SendRange> {
        match self {
            Self::Full(sender) => sender.poll_syn(now, params),
            Self::Idle(_) => None,
        }
    }
}

impl IdleSender {
    /// No data is outstanding: only the window can change, and only the newest segment updates it
    /// (RFC 9293, 3.10.7.4).
    #[inline]
    fn handle_ack(&mut self, segment: &Segment, isn: u32) -> bool {
        if segment.ack != isn.wrapping_add(self.next as u32) {
            return expand(segment.ack, isn, self.next).is_none_or(|ack| ack <= self.next);
        }
        let newer = segment.seq.wrapping_sub(self.window_update_seq).cast_signed() >= 0;
        if newer {
            self.window_update_seq = segment.seq;
            self.peer_window = segment.window;
            self.peer_window_max = self.peer_window_max.max(segment.window);
        }
        true
    }

    fn activate(self, params: &StackParams, isn: u32) -> Sender {
        let mut sender = new_sender(params, isn);
        if self.next == 0 {
            return sender;
        }
        sender.skip_handshake(self.peer_window, self.window_update_seq);
        sender.note_largest_window(self.peer_window_max);
        sender
    }
}

fn new_sender(params: &StackParams, isn: u32) -> Sender {
    let mut sender = Sender::new(params);
    if params.policy.random_timer_phase {
        sender.set_timer_phase(isn);
    }
    sender
}
