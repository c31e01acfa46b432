//! Acknowledgements that wait until the application confirms the data, such as a program that
//! stores it: the acknowledgement number states what a crash of the receiver does not lose.
//!
//! RFC 9293 lets a receiver acknowledge later than the data has arrived (3.8.6.3); RFC 1122,
//! section 4.2.2.20, adds that an acknowledgement states nothing about the application, which it
//! does here.
//!
//! **Selective acknowledgements.** A receiver may discard data that it has only acknowledged
//! selectively (RFC 2018, section 8), so that SACK blocks with data that is not stored would be
//! correct. They are avoided nevertheless. Data between the acknowledgement number and the gap
//! would be a block that begins at the acknowledgement number, from which Linux concludes that the
//! receiver has discarded data (`tcp_check_sack_reneging`); and blocks beyond the gap alone would
//! declare that data lost, so that the sender retransmits it. Therefore a gap is reported when
//! everything before it is confirmed: then the acknowledgement number is the start of the gap, as
//! with any receiver.

use gridhaul_scenario::units::Instant;

use super::{ReadingApplication, Receiver};

/// Number of duplicate acknowledgements by which a sender without SACK detects a loss (RFC 5681,
/// section 3.2).
const DUPLICATES: u8 = 3;

impl Receiver {
    /// From now on data and FIN are acknowledged only after [`Self::confirm`]. The application
    /// reads them when they arrive. Data that it has not read so far is not confirmed either; its
    /// acknowledgements, if any were sent, are superseded by later ones only.
    pub fn acknowledge_on_confirmation(&mut self) {
        self.application = ReadingApplication::Confirms;
        self.ack_at = Instant::NEVER;
        self.unacknowledged = 0;
    }

    /// The application confirms the next `bytes` of the stream, of which FIN is one: they are
    /// acknowledged at once.
    pub fn confirm(&mut self, bytes: u64) {
        let confirmed = bytes.min(self.unread.into());
        self.unread -= confirmed as u32;
        self.ack_now |= confirmed > 0;
    }

    /// Position that the next acknowledgement states: everything before it is confirmed.
    #[inline]
    #[must_use]
    pub const fn acknowledged(&self) -> u64 {
        match self.application {
            ReadingApplication::Confirms => self.next - self.unread as u64,
            _ => self.next,
        }
    }

    /// Bytes in order that are not confirmed, FIN included.
    #[must_use]
    pub const fn unconfirmed(&self) -> u32 {
        match self.application {
            ReadingApplication::Confirms => self.unread,
            _ => 0,
        }
    }

    /// Whether a segment that ends here has arrived before and is not confirmed.
    pub(super) fn is_withheld(&self, end: u64) -> bool {
        self.application == ReadingApplication::Confirms && end > self.acknowledged()
    }

    /// Whether selective acknowledgements are sent.
    pub(crate) fn reports_gap(&self) -> bool {
        self.has_gap() && self.unconfirmed() == 0
    }

    /// Data beyond a gap has arrived. RFC 5681, section 4.2: out of order data is acknowledged at
    /// once; here, once the data before the gap is confirmed.
    pub(super) fn acknowledge_gap(&mut self) {
        if self.unconfirmed() == 0 {
            self.ack_now = true;
        } else {
            self.unacknowledged = (self.unacknowledged + 1).min(DUPLICATES);
        }
    }

    /// Data in order has arrived.
    pub(super) fn withhold(&mut self) {
        if !self.has_gap() {
            self.unacknowledged = 0;
        }
    }

    /// An acknowledgement was sent: those that were withheld for data beyond a gap follow, so that
    /// a sender without SACK retransmits before its timer expires.
    pub(super) fn repeat_for_gap(&mut self) {
        if self.reports_gap() && self.unacknowledged > 0 {
            self.unacknowledged -= 1;
            self.ack_now = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::Stack;

    use super::*;
    use crate::tcp::{Flags, StackParams};

    fn receiver() -> (Receiver, StackParams) {
        let params = StackParams::resolve(&Stack::default());
        let params = StackParams { receive_window: 8_000, ..params };
        let mut receiver = Receiver::new(&params);
        receiver.handle_syn();
        receiver.acknowledge_on_confirmation();
        receiver.on_ack_sent(Instant::ZERO, &params);
        (receiver, params)
    }

    fn data(receiver: &mut Receiver, params: &StackParams, start: u64, end: u64) {
        receiver.handle_data(Instant::ZERO, start, end, Flags::ACK, params);
    }

    fn is_due(receiver: &Receiver) -> bool {
        receiver.ack_due(Instant::from_nanos(u64::MAX - 1))
    }

    #[test]
    fn data_is_acknowledged_as_far_as_it_is_confirmed() {
        let (mut receiver, params) = receiver();
        data(&mut receiver, &params, 1, 1_001);
        data(&mut receiver, &params, 1_001, 2_001);
        assert!(!is_due(&receiver), "neither the second segment nor a timer acknowledges");
        assert_eq!((receiver.next(), receiver.acknowledged()), (2_001, 1));
        receiver.confirm(1_500);
        assert!(is_due(&receiver));
        assert_eq!((receiver.acknowledged(), receiver.unconfirmed()), (1_501, 500));
        receiver.on_ack_sent(Instant::ZERO, &params);
        assert!(!is_due(&receiver));
        // The window begins at the acknowledgement number.
        assert_eq!(
            (receiver.offer(receiver.acknowledged(), &params), receiver.window(&params)),
            (8_000, 7_500)
        );
        receiver.confirm(u64::MAX);
        assert_eq!((receiver.acknowledged(), receiver.unconfirmed()), (2_001, 0));
    }

    #[test]
    fn a_retransmission_of_unconfirmed_data_is_answered_by_its_confirmation() {
        let (mut receiver, params) = receiver();
        data(&mut receiver, &params, 1, 1_001);
        data(&mut receiver, &params, 1, 1_001);
        assert!(!is_due(&receiver), "the acknowledgement would be a duplicate");
        receiver.confirm(1_000);
        receiver.on_ack_sent(Instant::ZERO, &params);
        data(&mut receiver, &params, 1, 1_001);
        assert!(is_due(&receiver), "the acknowledgement was lost");
    }

    #[test]
    fn a_gap_is_reported_when_the_data_before_it_is_confirmed() {
        let (mut receiver, params) = receiver();
        data(&mut receiver, &params, 1, 1_001);
        for start in [2_001, 3_001, 4_001, 5_001, 6_001] {
            data(&mut receiver, &params, start, start + 1_000);
        }
        receiver.confirm(999);
        receiver.on_ack_sent(Instant::ZERO, &params);
        assert!(!is_due(&receiver) && !receiver.reports_gap());
        receiver.confirm(1);
        let mut acknowledgements = 0;
        while is_due(&receiver) {
            assert!(receiver.reports_gap());
            receiver.on_ack_sent(Instant::ZERO, &params);
            acknowledgements += 1;
        }
        assert_eq!(acknowledgements, 4, "one of new data, and three duplicates");
        data(&mut receiver, &params, 7_001, 7_501);
        assert!(is_due(&receiver), "everything before the gap is confirmed");
    }

    #[test]
    fn a_gap_that_is_filled_in_time_is_not_reported() {
        let (mut receiver, params) = receiver();
        data(&mut receiver, &params, 1, 1_001);
        data(&mut receiver, &params, 2_001, 3_001);
        data(&mut receiver, &params, 1_001, 2_001);
        receiver.confirm(3_000);
        receiver.on_ack_sent(Instant::ZERO, &params);
        assert!(!is_due(&receiver));
        assert_eq!(receiver.acknowledged(), 3_001);
    }

    #[test]
    fn fin_is_confirmed_after_the_data() {
        let (mut receiver, params) = receiver();
        receiver.handle_data(Instant::ZERO, 1, 102, Flags::FIN, &params);
        assert!(receiver.finished());
        receiver.confirm(100);
        assert_eq!((receiver.acknowledged(), receiver.unconfirmed()), (101, 1));
        receiver.confirm(1);
        assert_eq!(receiver.acknowledged(), 102);
    }
}
