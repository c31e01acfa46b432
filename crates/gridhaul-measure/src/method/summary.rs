//! Summary of the messages of a run.

use gridhaul_scenario::units::Duration;

use super::distribution::Distribution;
use super::interruption::{Interruption, Interruptions};
use super::message::{Message, Phase};
use super::path::PathSummary;
use super::proportion::Proportion;
use super::schedule::Schedule;

/// Counts of the messages after the warm-up at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages of the schedule.
    pub messages: u64,
    /// Messages that the protocol refused, such as without a connection. They are not lost by the
    /// network.
    pub refused: u64,
    /// Accepted messages of which no copy arrived within the horizon.
    pub lost: u64,
    /// Messages of which only corrupt copies arrived; they are not counted as lost.
    pub corrupt: u64,
    /// Additional intact copies.
    pub duplicates: u64,
    /// Messages that a later one has overtaken.
    pub reordered: u64,
    /// Messages in a warm-up after a reconnection, whose latency is not counted.
    pub after_reconnection: u64,
}

/// Statistics of the messages of a run, in memory that does not depend on their number: at most the
/// rate times the horizon.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Time between two messages.
    pub interval: Duration,
    /// Counts.
    pub counts: Counts,
    /// Latency from the intended time.
    pub from_schedule: Distribution,
    /// Latency from the actual send time.
    pub from_send: Distribution,
    /// Lateness of the generator.
    pub lateness: Distribution,
    /// The path of the messages; `None` if no capture saw a message.
    pub path: Option<Box<PathSummary>>,
    /// Receive times of the kernel; `None` if they were not recorded.
    pub kernel: Option<Box<KernelSummary>>,
    interruptions: Interruptions,
}

/// Receive times of the kernel compared with those of the program.
#[derive(Debug, Clone, Default)]
pub struct KernelSummary {
    /// Latency from the actual send time to the time at which the kernel received the message.
    pub from_send: Distribution,
    /// From the time at which the kernel received the message to the time directly after it was
    /// read.
    pub to_program: Distribution,
}

impl Summary {
    /// An empty summary of a schedule.
    #[must_use]
    pub fn new(schedule: &Schedule) -> Self {
        Self {
            interval: schedule.interval(),
            counts: Counts::default(),
            from_schedule: Distribution::default(),
            from_send: Distribution::default(),
            lateness: Distribution::default(),
            path: None,
            kernel: None,
            interruptions: Interruptions::default(),
        }
    }

    /// Adds a closed message, in the order of sequence numbers.
    pub fn add(&mut self, message: &Message) {
        if self.path.is_some() || message.captured.last().is_some() {
            self.path.get_or_insert_default().add(message);
        }
        self.interruptions.add(message);
        if message.phase == Phase::WarmUp {
            return;
        }
        let counts = &mut self.counts;
        counts.messages += 1;
        match (message.sent, message.received) {
            (None, None) => counts.refused += 1,
            (_, None) if message.copies > 0 => {}
            (_, None) if message.corrupt_copies > 0 => counts.corrupt += 1,
            (_, None) => counts.lost += 1,
            _ => {}
        }
        counts.duplicates += u64::from(message.copies.saturating_sub(1));
        counts.reordered += u64::from(message.reordered);
        counts.after_reconnection += u64::from(message.phase == Phase::AfterReconnection);
        if message.phase != Phase::Measured {
            return;
        }
        let pairs = [
            (&mut self.from_schedule, message.latency_from_schedule()),
            (&mut self.from_send, message.latency_from_send()),
            (&mut self.lateness, message.lateness()),
        ];
        for (distribution, duration) in pairs {
            duration.into_iter().for_each(|duration| distribution.record(duration));
        }
        if let (Some(received), Some(kernel)) = (message.received, message.kernel_received) {
            let times = self.kernel.get_or_insert_default();
            message.sent.into_iter().for_each(|sent| times.from_send.record(kernel.since(sent)));
            times.to_program.record(received.since(kernel));
        }
    }

    /// Lost messages among those that the protocol accepted.
    #[must_use]
    pub fn loss(&self) -> Proportion {
        let Counts { messages, refused, lost, .. } = self.counts;
        Proportion { count: lost, of: messages - refused }
    }

    /// Messages without an intact copy: refused by the protocol, lost, or corrupt.
    #[must_use]
    pub const fn missing(&self) -> u64 {
        let Counts { refused, lost, corrupt, .. } = self.counts;
        refused + lost + corrupt
    }

    /// The longest time without an arrival after the warm-up; `None` without a message.
    #[must_use]
    pub fn interruption(&self) -> Option<Interruption> {
        self.interruptions.longest()
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Instant;

    use super::*;

    fn message(sequence: u64, received: Option<u64>) -> Message {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        Message {
            sequence,
            intended: at(sequence * 10),
            sent: Some(at(sequence * 10)),
            received: received.map(at),
            copies: u32::from(received.is_some()),
            corrupt_copies: 0,
            reordered: false,
            phase: Phase::Measured,
            ..Message::default()
        }
    }

    #[test]
    fn each_message_has_one_fate() {
        let mut summary = Summary::new(&Schedule::new(100.0, 5));
        summary.add(&message(0, Some(20)));
        summary.add(&message(1, None));
        summary.add(&Message { corrupt_copies: 1, ..message(2, None) });
        summary.add(&Message { sent: None, ..message(3, None) });
        summary.add(&Message { copies: 3, reordered: true, ..message(4, Some(70)) });
        summary.add(&Message { phase: Phase::WarmUp, ..message(5, None) });
        let expected = Counts {
            messages: 5,
            refused: 1,
            lost: 1,
            corrupt: 1,
            duplicates: 2,
            reordered: 1,
            after_reconnection: 0,
        };
        assert_eq!(summary.counts, expected);
        assert_eq!(summary.loss(), Proportion { count: 1, of: 4 });
        assert_eq!(summary.from_send.count(), 2);
        assert_eq!(summary.interruption().unwrap().length(), Duration::from_millis(50));
    }

    #[test]
    fn a_message_that_arrived_at_an_unknown_time_is_not_lost() {
        let mut summary = Summary::new(&Schedule::new(100.0, 5));
        summary.add(&Message { copies: 1, ..message(0, None) });
        assert_eq!((summary.missing(), summary.counts.messages), (0, 1));
        assert_eq!((summary.from_send.count(), summary.lateness.count()), (0, 1));
    }

    #[test]
    fn after_a_reconnection_loss_is_counted_and_latency_is_not() {
        let mut summary = Summary::new(&Schedule::new(100.0, 5));
        summary.add(&Message { phase: Phase::AfterReconnection, ..message(0, Some(20)) });
        summary.add(&Message { phase: Phase::AfterReconnection, ..message(1, None) });
        assert_eq!((summary.counts.lost, summary.from_send.count()), (1, 0));
    }
}
