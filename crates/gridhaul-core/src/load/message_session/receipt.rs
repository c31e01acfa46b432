//! Receipt of frames: copies of messages, replies, and probes.

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::{MessageFrame, MessageSession, Publication};
use crate::load::MessageEvent;

impl MessageSession {
    /// A frame has arrived at an end. Returns when its message was ready, if it is the first copy.
    pub fn handle_frame(
        &mut self,
        now: Instant,
        end: FlowEnd,
        frame: MessageFrame,
    ) -> Option<Instant> {
        if end == FlowEnd::From {
            self.probes.on_input(now);
        }
        match frame {
            MessageFrame::Opening(number) => self.handle_opening(now, end, number),
            MessageFrame::Message(number, publication) => {
                if !self.rules.replies.is_empty() {
                    let at = now + self.rules.think;
                    self.owed.push_back((at, end, MessageFrame::Reply(number, 0)));
                }
                return self.handle_copy(number, publication);
            }
            MessageFrame::Reply(number, reply) => self.handle_reply(now, end, number, reply),
            MessageFrame::Probe => {
                self.owed.push_back((now, end, MessageFrame::ProbeResponse));
            }
            MessageFrame::ProbeResponse => self.probes.on_response(),
        }
        None
    }

    fn handle_opening(&mut self, now: Instant, end: FlowEnd, number: usize) {
        if end == FlowEnd::From {
            self.probes.on_response();
        }
        if number + 1 < self.opening().len() {
            self.owed.push_back((now, end, MessageFrame::Opening(number + 1)));
        } else {
            (self.is_open, self.has_been_open) = (true, true);
            self.write_at = now;
        }
    }

    fn handle_copy(&mut self, number: u64, publication: Publication) -> Option<Instant> {
        let index = self.sent.iter().position(|sent| sent.number == number);
        let given_up = self.given_up.iter().position(|given_up| *given_up == number);
        let ready = publication.message.at;
        let is_first = match (index, given_up) {
            (Some(index), _) if self.rules.replies.is_empty() => {
                self.sent.remove(index);
                if !publication.is_copy {
                    let arrived = MessageEvent::Unconfirmed { is_delivered: true };
                    self.events.push_back((ready, arrived));
                }
                true
            }
            (Some(index), _) => !std::mem::replace(&mut self.sent[index].is_delivered, true),
            (None, Some(index)) => {
                self.given_up.swap_remove(index);
                self.events.push_back((ready, MessageEvent::LateDelivery));
                true
            }
            (None, None) => false,
        };
        if !is_first && self.rules.is_once {
            return None;
        }
        let is_copy = !is_first || publication.is_copy;
        if self.rules.forwards {
            self.arrivals.push_back(Publication { is_copy, ..publication });
        }
        // A message of which an earlier copy was lost arrives with this one.
        if is_first && self.lost.remove(&publication.id) {
            self.events.push_back((ready, MessageEvent::LateDelivery));
        } else if is_copy {
            self.events.push_back((ready, MessageEvent::Duplicate));
            return None;
        }
        self.delivered += publication.message.bytes;
        Some(ready)
    }

    /// Replies to further copies have no effect.
    fn handle_reply(&mut self, now: Instant, end: FlowEnd, number: u64, reply: usize) {
        if reply + 1 < self.rules.replies.len() {
            self.owed.push_back((now, end, MessageFrame::Reply(number, reply + 1)));
            if end == self.rules.writer
                && let Some(sent) = self.sent.iter_mut().find(|sent| sent.number == number)
            {
                sent.is_received = true;
            }
            return;
        }
        let Some(index) = self.sent.iter().position(|sent| sent.number == number) else { return };
        let Some(sent) = self.sent.remove(index) else { return };
        let (ready, took) = (sent.publication.message.at, now.since(sent.began));
        // A copy that is forwarded is no message of its own.
        if !sent.publication.is_copy {
            self.events.push_back((ready, MessageEvent::Acknowledged(took)));
        }
        self.write_at = now;
    }
}
