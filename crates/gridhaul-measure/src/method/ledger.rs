//! Accounting of messages by their identifiers.

use std::collections::BTreeMap;

use gridhaul_protocols::capture::CapturePoint;
use gridhaul_scenario::units::{Duration, Instant};

use super::message::{Message, Phase, ReceiveTimes};
use super::path::CaptureTimes;
use super::schedule::Schedule;

/// Longest time for which a thread may be delayed between the read of a message and its report. A
/// message is closed this long after its horizon, so that a report that is late does not make it a
/// loss: the time of the read decides.
pub const REPORTED_WITHIN: Duration = Duration::from_millis(200);

/// Messages that may still arrive, and counts of arrivals that belong to none of them.
///
/// A message is closed when its horizon has passed; therefore the memory is bounded by the rate
/// times the horizon.
#[derive(Debug)]
pub struct Ledger {
    schedule: Schedule,
    horizon: Duration,
    open: BTreeMap<u64, Open>,
    /// All messages before this one are closed.
    first_open: u64,
    /// Largest sequence number that has arrived.
    newest: Option<u64>,
    reconnections: Vec<Instant>,
    arrivals: Arrivals,
    not_counted: u64,
}

/// Arrivals that belong to no open message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrivals {
    /// Intact messages that arrived after their horizon; they count as lost.
    pub after_horizon: u64,
    /// Corrupt messages whose sequence number is unreadable or implausible.
    pub unidentified: u64,
    /// Messages of other runs or programs.
    pub foreign: u64,
}

/// State of a message that may still arrive.
#[derive(Debug, Default)]
struct Open {
    sent: Option<Instant>,
    received: Option<Instant>,
    copies: u32,
    corrupt_copies: u32,
    reordered: bool,
    kernel_received: Option<Instant>,
    captured: CaptureTimes,
}

impl Ledger {
    /// A ledger for a schedule. A message that has not arrived within `horizon` after its intended
    /// time is lost.
    #[must_use]
    pub fn new(schedule: Schedule, horizon: Duration) -> Self {
        Self {
            schedule,
            horizon,
            open: BTreeMap::new(),
            first_open: 0,
            newest: None,
            reconnections: Vec::new(),
            arrivals: Arrivals::default(),
            not_counted: 0,
        }
    }

    /// A message was handed to the protocol at `at`.
    pub fn handle_sent(&mut self, sequence: u64, at: Instant) {
        if let Some(open) = self.open(sequence) {
            open.sent = Some(at);
        }
    }

    /// An intact message was read.
    pub fn handle_arrival(&mut self, sequence: u64, at: impl Into<ReceiveTimes>) {
        let at = at.into();
        let overtaken = self.newest.is_some_and(|newest| sequence < newest);
        // A message is closed some time after its horizon, when the ledger is polled.
        let is_late = sequence < self.schedule.total()
            && at.read > self.schedule.intended(sequence) + self.horizon;
        let Some(open) = self.open(sequence).filter(|_| !is_late) else {
            self.arrivals.after_horizon += u64::from(is_late || sequence < self.first_open);
            return;
        };
        open.copies += 1;
        if open.received.is_none() {
            open.received = Some(at.read);
            open.kernel_received = at.kernel;
            open.reordered = overtaken;
        }
        self.newest = self.newest.max(Some(sequence));
    }

    /// A capture saw a message at `at`.
    pub fn handle_capture(&mut self, sequence: u64, point: CapturePoint, at: Instant) {
        if let Some(open) = self.open(sequence) {
            open.captured.record(point, at);
        }
    }

    /// A corrupt message was read, with this sequence number, which may itself be corrupt.
    pub fn handle_corrupt(&mut self, sequence: Option<u64>) {
        // Only a message that has been sent can have arrived.
        let known = sequence.filter(|sequence| self.open.contains_key(sequence));
        match known.and_then(|sequence| self.open(sequence)) {
            Some(open) => open.corrupt_copies += 1,
            None => self.arrivals.unidentified += 1,
        }
    }

    /// A message of another run was read.
    pub fn handle_foreign(&mut self) {
        self.arrivals.foreign += 1;
    }

    /// The connection was lost and is back since `at`.
    pub fn handle_reconnection(&mut self, at: Instant) {
        self.reconnections.push(at);
    }

    /// Closes the next message whose horizon, and the time for its report, have passed.
    pub fn poll_closed(&mut self, now: Instant) -> Option<Message> {
        let end = self.schedule.intended(self.first_open) + self.horizon + REPORTED_WITHIN;
        (self.first_open < self.schedule.total() && end <= now).then(|| self.close())
    }

    /// Discards the open messages of the first `sent`, after a fault. What has arrived of them is a
    /// selection of those that are fast: none of them is counted.
    pub fn discard_open(&mut self, sent: u64) {
        let sent = sent.min(self.schedule.total());
        self.not_counted += sent.saturating_sub(self.first_open);
        self.first_open = self.first_open.max(sent);
        self.open.clear();
    }

    /// Messages that are not counted, because a fault occurred before their horizon: some of them
    /// may have arrived.
    #[must_use]
    pub const fn not_counted(&self) -> u64 {
        self.not_counted
    }

    /// Closes the next message of the first `sent`, at the end of a complete run, regardless of the
    /// horizon.
    pub fn poll_rest(&mut self, sent: u64) -> Option<Message> {
        (self.first_open < sent.min(self.schedule.total())).then(|| self.close())
    }

    /// Whether one of the first `sent` messages is open and has not arrived.
    #[must_use]
    pub fn is_awaiting(&self, sent: u64) -> bool {
        (self.first_open..sent)
            .any(|sequence| self.open.get(&sequence).is_none_or(|open| open.received.is_none()))
    }

    /// Times at which connections were back.
    #[must_use]
    pub fn reconnections(&self) -> &[Instant] {
        &self.reconnections
    }

    /// Arrivals that belong to no message in the log.
    #[must_use]
    pub const fn arrivals(&self) -> Arrivals {
        self.arrivals
    }

    /// The entry of a message that is not closed. Its arrival may be reported before its departure.
    fn open(&mut self, sequence: u64) -> Option<&mut Open> {
        let is_open = (self.first_open..self.schedule.total()).contains(&sequence);
        is_open.then(|| self.open.entry(sequence).or_default())
    }

    fn close(&mut self) -> Message {
        let sequence = self.first_open;
        self.first_open += 1;
        let open = self.open.remove(&sequence).unwrap_or_default();
        let intended = self.schedule.intended(sequence);
        Message {
            sequence,
            intended,
            sent: open.sent,
            received: open.received,
            copies: open.copies,
            corrupt_copies: open.corrupt_copies,
            reordered: open.reordered,
            phase: self.phase(sequence, intended),
            kernel_received: open.kernel_received,
            captured: open.captured,
        }
    }

    fn phase(&self, sequence: u64, intended: Instant) -> Phase {
        let warm_up = self.schedule.warm_up();
        let after = |&at: &Instant| intended >= at && intended < at + warm_up;
        if sequence < self.schedule.warm_up_messages() {
            Phase::WarmUp
        } else if self.reconnections.iter().any(after) {
            Phase::AfterReconnection
        } else {
            Phase::Measured
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HORIZON: Duration = Duration::from_secs(1);

    /// 1000 messages per second: one in each millisecond.
    fn ledger() -> Ledger {
        Ledger::new(Schedule::new(1_000.0, 1_000), HORIZON)
    }

    fn millis(at: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(at)
    }

    fn closed(ledger: &mut Ledger, sent: u64) -> Vec<Message> {
        std::iter::from_fn(|| ledger.poll_rest(sent)).collect()
    }

    #[test]
    fn loss_duplication_reordering_and_corruption_are_told_apart() {
        let mut ledger = ledger();
        for sequence in 0..6 {
            ledger.handle_sent(sequence, millis(sequence));
        }
        for (sequence, at) in [(0, 20), (2, 22), (1, 23), (2, 24), (5, 25)] {
            ledger.handle_arrival(sequence, millis(at));
        }
        ledger.handle_corrupt(Some(4));
        ledger.handle_corrupt(Some(1 << 60));
        ledger.handle_corrupt(None);
        ledger.handle_foreign();
        let rows = closed(&mut ledger, 6);
        let copies: Vec<_> = rows.iter().map(|row| row.copies).collect();
        assert_eq!(copies, [1, 1, 2, 0, 0, 1]);
        let reordered: Vec<_> = rows.iter().filter(|row| row.reordered).collect();
        assert_eq!(reordered.iter().map(|row| row.sequence).collect::<Vec<_>>(), [1]);
        assert_eq!(rows[4].corrupt_copies, 1);
        assert_eq!(rows[2].latency_from_send(), Some(Duration::from_millis(20)));
        let arrivals = Arrivals { after_horizon: 0, unidentified: 2, foreign: 1 };
        assert_eq!(ledger.arrivals(), arrivals);
    }

    #[test]
    fn a_message_after_its_horizon_is_lost_and_counted_apart() {
        let mut ledger = ledger();
        ledger.handle_sent(0, millis(0));
        assert_eq!(ledger.poll_closed(millis(1_199)), None);
        let lost = ledger.poll_closed(millis(1_200)).unwrap();
        assert_eq!((lost.sequence, lost.received), (0, None));
        ledger.handle_arrival(0, millis(1_001));
        assert_eq!(ledger.arrivals().after_horizon, 1);
        // The ledger has not been polled since the horizon of this one.
        ledger.handle_sent(1, millis(1));
        ledger.handle_arrival(1, millis(1_002));
        assert_eq!(ledger.arrivals().after_horizon, 2);
        assert_eq!(ledger.poll_closed(millis(1_202)).unwrap().received, None);
    }

    #[test]
    fn a_message_that_was_read_in_time_and_reported_late_is_not_lost() {
        let mut ledger = ledger();
        ledger.handle_sent(0, millis(0));
        // The thread that has read the message was delayed before it reported the message.
        assert_eq!(ledger.poll_closed(millis(1_100)), None);
        ledger.handle_arrival(0, millis(1_000));
        let message = ledger.poll_closed(millis(1_200)).unwrap();
        assert_eq!((message.received, message.copies), (Some(millis(1_000)), 1));
        assert_eq!(ledger.arrivals().after_horizon, 0);
    }

    /// The shares of a run that ends with a fault are those of messages whose horizon had passed.
    /// With the arrivals of the last horizon and without its losses, the loss of this run was 5 %
    /// in the place of 10 %.
    #[test]
    fn after_a_fault_neither_arrivals_nor_losses_of_the_last_horizon_count() {
        let mut ledger = ledger();
        let arrives = |sequence: u64| !sequence.is_multiple_of(10);
        let until = millis(2_000);
        for sequence in 0..2_000 {
            ledger.handle_sent(sequence, millis(sequence));
            if arrives(sequence) {
                ledger.handle_arrival(sequence, millis(sequence));
            }
        }
        ledger.handle_corrupt(Some(1_950));
        let mut rows: Vec<_> = std::iter::from_fn(|| ledger.poll_closed(until)).collect();
        ledger.discard_open(2_000);
        rows.extend(closed(&mut ledger, 2_000));
        assert_eq!(rows.len(), 801, "the horizon and the time for reports of the others had not");
        assert_eq!(rows.iter().filter(|row| row.copies == 0).count(), 81);
        assert_eq!((ledger.not_counted(), ledger.poll_closed(millis(9_000))), (1_199, None));
        // Arrivals after the fault are those of no message.
        ledger.handle_arrival(1_999, millis(2_001));
        assert_eq!(ledger.poll_rest(2_000), None);
    }

    #[test]
    fn warm_ups_are_at_the_start_and_after_a_reconnection() {
        let mut ledger = Ledger::new(Schedule::new(1_000.0, 4_000), HORIZON);
        ledger.handle_reconnection(millis(2_000));
        let rows = closed(&mut ledger, 5_000);
        let count = |phase| rows.iter().filter(|row| row.phase == phase).count();
        assert_eq!(count(Phase::WarmUp), 1_000);
        assert_eq!(count(Phase::AfterReconnection), 1_000);
        assert_eq!(rows[2_000].phase, Phase::AfterReconnection);
        assert_eq!(rows[3_000].phase, Phase::Measured);
    }

    proptest! {
        /// Whatever the order of events: one row for each message, and no arrival is forgotten or
        /// counted twice.
        #[test]
        fn every_message_has_one_row_and_every_arrival_is_counted(
            events in prop::collection::vec((0_u64..60, 0_u8..4, 0_u64..3_000), 0..300),
        ) {
            let mut ledger = ledger();
            let mut rows = Vec::new();
            let (mut intact, mut corrupt) = (0_u64, 0_u64);
            for (sequence, kind, at) in events {
                match kind {
                    0 => ledger.handle_sent(sequence, millis(at)),
                    1 => {
                        intact += 1;
                        ledger.handle_arrival(sequence, millis(at));
                    }
                    2 => {
                        corrupt += 1;
                        ledger.handle_corrupt(Some(sequence));
                    }
                    _ => rows.extend(std::iter::from_fn(|| ledger.poll_closed(millis(at)))),
                }
            }
            rows.extend(closed(&mut ledger, u64::MAX));
            let sequences: Vec<_> = rows.iter().map(|row| row.sequence).collect();
            prop_assert_eq!(sequences, (0..2_000).collect::<Vec<_>>());
            let copies: u64 = rows.iter().map(|row| u64::from(row.copies)).sum();
            prop_assert_eq!(copies + ledger.arrivals().after_horizon, intact);
            let copies: u64 = rows.iter().map(|row| u64::from(row.corrupt_copies)).sum();
            prop_assert_eq!(copies + ledger.arrivals().unidentified, corrupt);
            for row in &rows {
                prop_assert_eq!(row.received.is_some(), row.copies > 0);
            }
        }
    }
}
