//! No collector holds more than it may, loses, doubles, tears or swaps messages, or sends on what
//! it has not taken in.

use std::collections::VecDeque;

use gridhaul_scenario::units::BufferLimit;

use super::{AggregatorRule, Violation};
use crate::waiting_message::WaitingMessage;

/// Audits one collector by what goes into its connections and what comes out of them.
#[derive(Debug)]
pub(crate) struct AggregatorAudit {
    limit: BufferLimit,
    /// Bytes taken in order from all members.
    taken: u64,
    /// Bytes of whole messages, and bytes sent on at least once.
    whole: u64,
    sent: u64,
    /// Whole messages that are not sent whole.
    waiting: u64,
    upstream: Vec<UpstreamAudit>,
    violation: Option<Box<Violation>>,
}

#[derive(Debug, Clone, Default)]
struct UpstreamAudit {
    written: u64,
    sent: u64,
    /// Ends of the whole messages that are not sent whole.
    ends: VecDeque<u64>,
    /// Messages that went in and that came out at the far end, and what they were: a sum over
    /// number, owner, time and size of each, equal on both sides if every message keeps its place.
    count_in: u64,
    count_out: u64,
    sum_in: u64,
    sum_out: u64,
    delivered: u64,
}

impl AggregatorAudit {
    pub(crate) fn new(limit: BufferLimit, upstream: usize) -> Self {
        Self {
            limit,
            taken: 0,
            whole: 0,
            sent: 0,
            waiting: 0,
            upstream: vec![UpstreamAudit::default(); upstream],
            violation: None,
        }
    }

    /// So many bytes more have arrived in order from a member.
    pub(crate) fn on_taken(&mut self, bytes: u64) {
        self.taken += bytes;
        if let BufferLimit::Bytes(limit) = self.limit
            && self.taken - self.sent > limit.get()
        {
            self.violate(AggregatorRule::BytesAboveLimit);
        }
    }

    /// A message of this size was handed to an outlet; `message` says where it ends there.
    pub(crate) fn on_message(&mut self, slot: usize, message: &WaitingMessage, bytes: u64) {
        let outlet = &mut self.upstream[slot];
        outlet.written += bytes;
        outlet.ends.push_back(outlet.written);
        outlet.sum_in = outlet.sum_in.wrapping_add(mark(outlet.count_in, message, bytes));
        outlet.count_in += 1;
        let torn = outlet.written != message.end;
        self.whole += bytes;
        self.waiting += 1;
        if torn {
            self.violate(AggregatorRule::MessageMisplaced);
        }
        if self.whole > self.taken {
            self.violate(AggregatorRule::MoreThanAccepted);
        }
        if let BufferLimit::Messages(limit) = self.limit
            && self.waiting > u64::from(limit)
        {
            self.violate(AggregatorRule::MessagesAboveLimit);
        }
    }

    /// The upstream connection of an outlet has sent the first `sent` bytes at least once.
    pub(crate) fn on_sent(&mut self, slot: usize, sent: u64) {
        let outlet = &mut self.upstream[slot];
        if sent < outlet.sent || sent > outlet.written {
            self.violate(AggregatorRule::MoreThanWritten);
            return;
        }
        self.sent += sent - outlet.sent;
        outlet.sent = sent;
        while outlet.ends.front().is_some_and(|&end| end <= sent) {
            outlet.ends.pop_front();
            self.waiting -= 1;
        }
    }

    /// A message is whole at the far end of an outlet's connection.
    pub(crate) fn on_delivered(&mut self, slot: usize, message: &WaitingMessage, bytes: u64) {
        let outlet = &mut self.upstream[slot];
        outlet.delivered += bytes;
        outlet.sum_out = outlet.sum_out.wrapping_add(mark(outlet.count_out, message, bytes));
        outlet.count_out += 1;
        if outlet.delivered != message.end || outlet.delivered > outlet.sent {
            self.violate(AggregatorRule::MoreThanSent);
        }
    }

    /// At the end of a run: `acknowledged` bytes of an outlet, the far end has `received` bytes,
    /// and what is not delivered must still be under way.
    pub(crate) fn finish<'p>(
        &mut self,
        slot: usize,
        (acknowledged, received): (u64, u64),
        under_way: impl Iterator<Item = &'p WaitingMessage>,
    ) -> Result<(), Violation> {
        if let Some(violation) = self.violation.take() {
            return Err(*violation);
        }
        let outlet = &self.upstream[slot];
        let (mut count, mut sum, mut at) = (outlet.count_out, outlet.sum_out, outlet.delivered);
        for message in under_way {
            sum = sum.wrapping_add(mark(count, message, message.end - at));
            count += 1;
            at = message.end;
        }
        if (count, sum, at) != (outlet.count_in, outlet.sum_in, outlet.written) {
            return Err(Violation::Messages {
                messages_in: outlet.count_in,
                bytes_in: outlet.written,
                messages_out: outlet.count_out,
                messages: count,
                bytes: at,
            });
        }
        if acknowledged > received || received > outlet.sent || outlet.delivered > received {
            let (sent, delivered) = (outlet.sent, outlet.delivered);
            return Err(Violation::Upstream { sent, received, acknowledged, delivered });
        }
        Ok(())
    }

    #[cold]
    fn violate(&mut self, rule: AggregatorRule) {
        let Self { taken, whole, sent, waiting, .. } = *self;
        let violation = || Box::new(Violation::Aggregator { rule, taken, whole, sent, waiting });
        self.violation.get_or_insert_with(violation);
    }
}

/// A number that another message, or the same in another place, hardly ever has.
const fn mark(number: u64, message: &WaitingMessage, bytes: u64) -> u64 {
    let mut mark = number;
    let parts = [message.origin as u64, message.ready.as_nanos(), bytes];
    let mut index = 0;
    while index < parts.len() {
        // The multiplier of Knuth's MMIX generator.
        mark = (mark ^ parts[index]).wrapping_mul(6_364_136_223_846_793_005);
        mark ^= mark >> 29;
        index += 1;
    }
    mark
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Instant;

    use super::*;

    fn message(end: u64, origin: u32) -> WaitingMessage {
        WaitingMessage { end, ready: Instant::from_nanos(7), origin }
    }

    /// Two messages of 10 B, from members 0 and 1.
    fn two(limit: u32) -> AggregatorAudit {
        let mut audit = AggregatorAudit::new(BufferLimit::Messages(limit), 1);
        audit.on_taken(20);
        audit.on_message(0, &message(10, 0), 10);
        audit.on_message(0, &message(20, 1), 10);
        audit
    }

    fn finish(audit: &mut AggregatorAudit, under_way: &[WaitingMessage]) -> Result<(), Violation> {
        audit.finish(0, (0, 10), under_way.iter())
    }

    #[test]
    fn an_honest_collector_passes() {
        let mut audit = two(2);
        audit.on_sent(0, 15);
        audit.on_delivered(0, &message(10, 0), 10);
        assert_eq!(finish(&mut audit, &[message(20, 1)]), Ok(()));
    }

    #[test]
    fn liars_are_found() {
        let lost = |audit: &mut AggregatorAudit| {
            audit.on_sent(0, 20);
            finish(audit, &[message(10, 0)])
        };
        assert!(lost(&mut two(2)).unwrap_err().to_string().contains("2 messages of 20 B went in"));
        let swapped = |audit: &mut AggregatorAudit| {
            audit.on_sent(0, 20);
            audit.on_delivered(0, &message(10, 1), 10);
            finish(audit, &[message(20, 0)])
        };
        assert!(swapped(&mut two(2)).unwrap_err().to_string().contains("not the same ones"));
        let full = finish(&mut two(1), &[]).unwrap_err().to_string();
        assert!(full.contains("held more messages than its buffer has"), "{full}");
        let mut early = two(2);
        early.on_delivered(0, &message(10, 0), 10);
        assert!(finish(&mut early, &[]).unwrap_err().to_string().contains("has not sent"));
        let mut invented = two(2);
        invented.on_message(0, &message(30, 1), 10);
        assert!(
            finish(&mut invented, &[])
                .unwrap_err()
                .to_string()
                .contains("more than it has taken in")
        );
        let mut ahead = two(2);
        ahead.on_sent(0, 21);
        assert!(finish(&mut ahead, &[]).unwrap_err().to_string().contains("not handed over"));
    }
}
