//! Checks that aggregators keep their buffer limit, forward only accepted data, and neither lose,
//! duplicate, split nor reorder messages.

use std::collections::VecDeque;

use gridhaul_scenario::units::BufferLimit;

use super::{AggregatorRule, Violation};
use crate::waiting_message::WaitingMessage;

/// Audits one aggregator by the data that enters and leaves its connections.
#[derive(Debug, Clone)]
pub(crate) struct AggregatorAudit {
    limit: BufferLimit,
    /// Bytes accepted in order from all members.
    accepted: u64,
    /// Bytes of complete messages, and bytes sent upstream at least once.
    complete: u64,
    sent: u64,
    /// Complete messages that are not completely sent.
    waiting: u64,
    connections: Vec<UpstreamAudit>,
    violation: Option<Box<Violation>>,
}

#[derive(Debug, Clone, Default)]
struct UpstreamAudit {
    written: u64,
    sent: u64,
    /// Ends of the complete messages that are not completely sent.
    ends: VecDeque<u64>,
    /// Number of messages accepted and delivered, and a checksum over sequence number, flow, time
    /// and size of each, which is equal on both sides if the order is kept.
    count_in: u64,
    count_out: u64,
    sum_in: u64,
    sum_out: u64,
    delivered: u64,
}

impl AggregatorAudit {
    pub(crate) fn new(limit: BufferLimit, connections: usize) -> Self {
        Self {
            limit,
            accepted: 0,
            complete: 0,
            sent: 0,
            waiting: 0,
            connections: vec![UpstreamAudit::default(); connections],
            violation: None,
        }
    }

    /// Further bytes have arrived in order from a member.
    pub(crate) fn on_accepted(&mut self, bytes: u64) {
        self.accepted += bytes;
        if let BufferLimit::Bytes(limit) = self.limit
            && self.accepted - self.sent > limit.get()
        {
            self.violate(AggregatorRule::BytesAboveLimit);
        }
    }

    /// A message of this size was written to an upstream connection; `message` has its end in the
    /// stream.
    pub(crate) fn on_message(&mut self, slot: usize, message: &WaitingMessage, bytes: u64) {
        let connection = &mut self.connections[slot];
        connection.written += bytes;
        connection.ends.push_back(connection.written);
        connection.sum_in =
            connection.sum_in.wrapping_add(checksum(connection.count_in, message, bytes));
        connection.count_in += 1;
        let is_misplaced = connection.written != message.end;
        self.complete += bytes;
        self.waiting += 1;
        if is_misplaced {
            self.violate(AggregatorRule::MessageMisplaced);
        }
        if self.complete > self.accepted {
            self.violate(AggregatorRule::MoreThanAccepted);
        }
        if let BufferLimit::Messages(limit) = self.limit
            && self.waiting > u64::from(limit)
        {
            self.violate(AggregatorRule::MessagesAboveLimit);
        }
    }

    /// An upstream connection has sent the first `sent` bytes at least once.
    pub(crate) fn on_sent(&mut self, slot: usize, sent: u64) {
        let connection = &mut self.connections[slot];
        if sent < connection.sent || sent > connection.written {
            self.violate(AggregatorRule::MoreThanWritten);
            return;
        }
        self.sent += sent - connection.sent;
        connection.sent = sent;
        while connection.ends.front().is_some_and(|&end| end <= sent) {
            connection.ends.pop_front();
            self.waiting -= 1;
        }
    }

    /// A message has completely arrived over an upstream connection.
    pub(crate) fn on_delivered(&mut self, slot: usize, message: &WaitingMessage, bytes: u64) {
        let connection = &mut self.connections[slot];
        connection.delivered += bytes;
        connection.sum_out =
            connection.sum_out.wrapping_add(checksum(connection.count_out, message, bytes));
        connection.count_out += 1;
        if connection.delivered != message.end || connection.delivered > connection.sent {
            self.violate(AggregatorRule::MoreThanSent);
        }
    }

    /// Checks an upstream connection at the end of a run: payload acknowledged and received, in
    /// bytes, and the messages `in_flight`, which must be all that are not delivered.
    pub(crate) fn finish<'p>(
        &mut self,
        slot: usize,
        acknowledged: u64,
        received: u64,
        in_flight: impl Iterator<Item = &'p WaitingMessage>,
    ) -> Result<(), Violation> {
        if let Some(violation) = self.violation.take() {
            return Err(*violation);
        }
        let connection = &self.connections[slot];
        let (mut count, mut sum, mut at) =
            (connection.count_out, connection.sum_out, connection.delivered);
        for message in in_flight {
            sum = sum.wrapping_add(checksum(count, message, message.end - at));
            count += 1;
            at = message.end;
        }
        if (count, sum, at) != (connection.count_in, connection.sum_in, connection.written) {
            return Err(Violation::Messages {
                messages_in: connection.count_in,
                bytes_in: connection.written,
                messages_out: connection.count_out,
                messages: count,
                bytes: at,
            });
        }
        if acknowledged > received || received > connection.sent || connection.delivered > received
        {
            let (sent, delivered) = (connection.sent, connection.delivered);
            return Err(Violation::Upstream { sent, received, acknowledged, delivered });
        }
        Ok(())
    }

    #[cold]
    fn violate(&mut self, rule: AggregatorRule) {
        let Self { accepted, complete, sent, waiting, .. } = *self;
        let violation =
            || Box::new(Violation::Aggregator { rule, accepted, complete, sent, waiting });
        self.violation.get_or_insert_with(violation);
    }
}

/// A checksum of a message at its sequence number.
const fn checksum(number: u64, message: &WaitingMessage, bytes: u64) -> u64 {
    let mut checksum = number;
    let fields = [message.origin as u64, message.ready.as_nanos(), bytes];
    let mut index = 0;
    while index < fields.len() {
        // The multiplier of Knuth's MMIX generator.
        checksum = (checksum ^ fields[index]).wrapping_mul(6_364_136_223_846_793_005);
        checksum ^= checksum >> 29;
        index += 1;
    }
    checksum
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Instant;

    use super::*;

    fn message(end: u64, origin: u32) -> WaitingMessage {
        WaitingMessage { end, ready: Instant::from_nanos(7), origin, is_altered: false }
    }

    /// Two messages of 10 B, from members 0 and 1.
    fn two(limit: u32) -> AggregatorAudit {
        let mut audit = AggregatorAudit::new(BufferLimit::Messages(limit), 1);
        audit.on_accepted(20);
        audit.on_message(0, &message(10, 0), 10);
        audit.on_message(0, &message(20, 1), 10);
        audit
    }

    fn finish(audit: &mut AggregatorAudit, in_flight: &[WaitingMessage]) -> Result<(), Violation> {
        audit.finish(0, 0, 10, in_flight.iter())
    }

    #[test]
    fn a_correct_aggregator_passes() {
        let mut audit = two(2);
        audit.on_sent(0, 15);
        audit.on_delivered(0, &message(10, 0), 10);
        assert_eq!(finish(&mut audit, &[message(20, 1)]), Ok(()));
    }

    #[test]
    fn violations_are_found() {
        let lost = |audit: &mut AggregatorAudit| {
            audit.on_sent(0, 20);
            finish(audit, &[message(10, 0)])
        };
        assert!(
            lost(&mut two(2)).unwrap_err().to_string().contains("2 messages of 20 B were accepted")
        );
        let swapped = |audit: &mut AggregatorAudit| {
            audit.on_sent(0, 20);
            audit.on_delivered(0, &message(10, 1), 10);
            finish(audit, &[message(20, 0)])
        };
        assert!(swapped(&mut two(2)).unwrap_err().to_string().contains("different messages"));
        let full = finish(&mut two(1), &[]).unwrap_err().to_string();
        assert!(full.contains("buffered more messages than its limit"), "{full}");
        let mut early = two(2);
        early.on_delivered(0, &message(10, 0), 10);
        assert!(finish(&mut early, &[]).unwrap_err().to_string().contains("was not sent"));
        let mut invented = two(2);
        invented.on_message(0, &message(30, 1), 10);
        assert!(
            finish(&mut invented, &[]).unwrap_err().to_string().contains("more than was accepted")
        );
        let mut ahead = two(2);
        ahead.on_sent(0, 21);
        assert!(finish(&mut ahead, &[]).unwrap_err().to_string().contains("not written"));
    }
}
