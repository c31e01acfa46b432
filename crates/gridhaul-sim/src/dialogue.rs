//! A dialogue on a connection: turns what each end has received into the next message.

use gridhaul_core::load::RequestResponse;
use gridhaul_core::tcp::Connection;
use gridhaul_scenario::units::Instant;

use crate::app::Progress;

/// Both ends of a dialogue.
#[derive(Debug)]
pub(crate) struct Dialogue {
    machine: RequestResponse,
    /// What is said next, by which side, and when.
    next: Option<(usize, u64, Instant)>,
    /// Bytes that each end has had to receive so far.
    expected: [u64; 2],
    /// Payload delivered at the `from` end with which an answer is whole.
    answered: u64,
}

impl Dialogue {
    pub(crate) fn new(machine: RequestResponse) -> Self {
        let first = machine.first_request();
        Self {
            next: Some((0, first.bytes, first.at)),
            machine,
            expected: [0; 2],
            answered: u64::MAX,
        }
    }

    /// Payload delivered at the `from` end with which an answer is whole.
    pub(crate) const fn answered(&self) -> u64 {
        self.answered
    }

    /// When the question was asked that is not answered yet, if there is one.
    pub(crate) fn unanswered(&self) -> Option<Instant> {
        let is_pause = matches!(self.next, Some((0, ..)));
        (!is_pause).then(|| self.machine.asked())
    }

    /// Says what is due. `whole` is the payload delivered at the `to` end with which a question is
    /// whole. Returns when the question that is said now was asked, if one is, and when
    /// the next thing is due.
    pub(crate) fn on_due(
        &mut self,
        now: Instant,
        ends: &mut [Connection; 2],
        whole: &mut u64,
    ) -> (Option<Instant>, Option<Instant>) {
        let Some((side, bytes, at)) = self.next else { return (None, None) };
        if at > now {
            return (None, Some(at));
        }
        self.next = None;
        ends[side].write(bytes);
        let other = 1 - side;
        self.expected[other] += bytes;
        *if other == 0 { &mut self.answered } else { whole } = self.expected[other];
        ((side == 0).then_some(at), None)
    }

    /// An end has received all that it waited for.
    pub(crate) fn on_arrived(&mut self, now: Instant, side: usize, whole: &mut u64) -> Progress {
        *if side == 0 { &mut self.answered } else { whole } = u64::MAX;
        let asked = self.machine.asked();
        // The whole message is there: the machine is told of it in one piece.
        let next = if side == 1 {
            self.machine.handle_request_bytes(now, u64::MAX / 2)
        } else {
            self.machine.handle_response_bytes(now, u64::MAX / 2)
        };
        self.next = next.map(|message| (side, message.bytes, message.at));
        Progress {
            messages: if side == 0 { vec![asked] } else { Vec::new() },
            wake: next.map(|message| message.at),
        }
    }
}
