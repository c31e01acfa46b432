//! Limits for data that a side does not acknowledge (R2 of RFC 1122, section 4.2.3.5).

use gridhaul_scenario::units::{Duration, Instant};

use super::Coupling;
use crate::pep::Side;
use crate::tcp::State;

/// Time and number of retransmissions after which a connection is aborted (R2 of RFC 1122, section
/// 4.2.3.5).
///
/// RFC 1122 requires at least 100 s. Time alone does not distinguish a dead peer from a lossy link:
/// with a retransmission timeout of many seconds, 100 s contain three or four retransmissions, all
/// of which may be lost. The number of retransmissions that Linux requires (`tcp_retries2`) is
/// therefore required as well.
const R2: RetransmissionLimit =
    RetransmissionLimit { time: Duration::from_secs(100), retransmissions: 15 };
/// R2 for SYN: at least three minutes (RFC 1122), and `tcp_syn_retries` of Linux.
const R2_SYN: RetransmissionLimit =
    RetransmissionLimit { time: Duration::from_secs(180), retransmissions: 6 };

#[derive(Debug, Clone, Copy)]
struct RetransmissionLimit {
    time: Duration,
    retransmissions: u32,
}

/// Data or SYN for which a side owes an acknowledgement. Packed, so that the tag of the option
/// costs four bytes of a direction instead of eight and four of padding.
#[derive(Debug, Clone, Copy)]
#[repr(Rust, packed(4))]
pub(super) struct Unanswered {
    /// End of the time limit.
    pub(super) until: Instant,
    /// Expirations of the retransmission timer that are left before the limit is reached.
    pub(super) remaining: u32,
}

impl Coupling {
    /// Whether a side has not answered within R2 (RFC 1122, section 4.2.3.5).
    pub(in crate::pep) fn exceeds_r2(&self, now: Instant) -> bool {
        let unanswered = self.directions.iter().filter_map(|direction| direction.unanswered);
        let mut expired = unanswered.filter(|unanswered| unanswered.remaining == 0);
        expired.any(|Unanswered { until, .. }| until <= now)
    }

    /// Updates which sides owe an acknowledgement. A side that acknowledges without accepting data,
    /// because its window is closed, does answer (RFC 1122, section 4.2.2.17).
    #[inline]
    pub(super) fn update_unanswered(&mut self, now: Instant) {
        for side in Side::BOTH {
            let connection = self.connection(side);
            let source = &self.directions[side.other().index()];
            let (next, una) = connection.sent_and_acknowledged();
            let is_open =
                !matches!(connection.state(), State::Closed | State::Listen | State::TimeWait);
            let has_unacknowledged = una < next || source.released < source.transferred;
            let owes = is_open
                && (has_unacknowledged || source.fin_transferred && !connection.fin_acknowledged());
            let direction = &mut self.directions[side.index()];
            if !owes {
                direction.unanswered = None;
            } else if direction.unanswered.is_none() {
                // Nothing was received from this side if not even SYN is acknowledged.
                let limit = if una == 0 { R2_SYN } else { R2 };
                // The timer expires once more after the last permitted retransmission.
                let remaining = limit.retransmissions + 1;
                direction.unanswered = Some(Unanswered { until: now + limit.time, remaining });
            }
        }
    }
}
