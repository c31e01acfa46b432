//! How long a side may leave data unanswered (RFC 1122, section 4.2.3.5).

use gridhaul_scenario::units::{Duration, Instant};

use super::Coupling;
use crate::pep::Side;
use crate::tcp::State;

/// How long, and for how many retransmissions, a side may leave data unanswered before the
/// connection is given up (R2 of RFC 1122, section 4.2.3.5).
///
/// RFC 1122 asks for at least 100 s, which is a minimum. Time alone does not tell a dead peer from
/// a lossy link: where the retransmission timeout is many seconds, 100 s contain three or four
/// retransmissions, all of which are lost now and then. So the number that Linux requires is
/// required as well (`tcp_retries2`).
const R2: Limit = Limit { time: Duration::from_secs(100), retransmissions: 15 };
/// The same for SYN: at least three minutes (RFC 1122), and `tcp_syn_retries` of Linux.
const R2_SYN: Limit = Limit { time: Duration::from_secs(180), retransmissions: 6 };

#[derive(Debug, Clone, Copy)]
struct Limit {
    time: Duration,
    retransmissions: u32,
}

/// Data or SYN that a side has not answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unanswered {
    /// When the time of `R2` is over.
    pub(super) until: Instant,
    /// Expirations of the timer after which the retransmissions of `R2` are used up.
    pub(super) remaining: u32,
}

impl Coupling {
    /// Whether a side has left data unanswered for longer than R2 (RFC 1122, section 4.2.3.5).
    pub(in crate::pep) fn is_deserted(&self, now: Instant) -> bool {
        let unanswered = self.ways.iter().filter_map(|way| way.unanswered);
        let mut used_up = unanswered.filter(|unanswered| unanswered.remaining == 0);
        used_up.any(|unanswered| unanswered.until <= now)
    }

    /// Notes who owes an answer. A side that answers without taking data, because its window is
    /// closed, does answer (RFC 1122, section 4.2.2.17).
    #[inline]
    pub(super) fn note_unanswered(&mut self, now: Instant) {
        for side in Side::BOTH {
            let end = self.end(side);
            let source = &self.ways[side.other().index()];
            let (next, una) = end.sent_and_acknowledged();
            let open = !matches!(end.state(), State::Closed | State::Listen | State::TimeWait);
            let waits = una < next || source.released < source.moved;
            let owes = open && (waits || source.closed && !end.fin_acknowledged());
            let way = &mut self.ways[side.index()];
            if !owes {
                way.unanswered = None;
            } else if way.unanswered.is_none() {
                // No answer at all has come if not even SYN is acknowledged.
                let limit = if una == 0 { R2_SYN } else { R2 };
                // The expiration after the last permitted retransmission ends the connection.
                let remaining = limit.retransmissions + 1;
                way.unanswered = Some(Unanswered { until: now + limit.time, remaining });
            }
        }
    }
}
