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

/// Data or SYN for which a side may owe an acknowledgement. An [`Option`] would need a tag, and the
/// value is read after each event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unanswered {
    /// End of the time limit.
    until: Instant,
    /// Expirations of the retransmission timer that are left before the limit is reached;
    /// [`NOTHING_OWED`] without such data.
    remaining: u32,
}

const NOTHING_OWED: u32 = u32::MAX;

impl Unanswered {
    /// The side owes nothing.
    pub(super) const NOTHING: Self = Self { until: Instant::NEVER, remaining: NOTHING_OWED };

    /// The side owes an acknowledgement from `now` on.
    fn begin(now: Instant, limit: RetransmissionLimit) -> Self {
        // The timer expires once more after the last permitted retransmission.
        Self { until: now + limit.time, remaining: limit.retransmissions + 1 }
    }

    const fn is_owed(self) -> bool {
        self.remaining != NOTHING_OWED
    }

    /// The retransmission timer has expired.
    pub(super) const fn on_timeout(&mut self) {
        if self.is_owed() {
            self.remaining = self.remaining.saturating_sub(1);
        }
    }

    /// When R2 is reached. Before the last permitted retransmission this cannot happen until the
    /// next timeout of the connection.
    #[inline]
    pub(super) const fn reached_at(self) -> Instant {
        if self.remaining == 0 { self.until } else { Instant::NEVER }
    }
}

impl Coupling {
    /// Whether a side has not answered within R2 (RFC 1122, section 4.2.3.5).
    pub(in crate::pep) fn exceeds_r2(&self, now: Instant) -> bool {
        self.directions.iter().any(|direction| direction.unanswered.reached_at() <= now)
    }

    /// Updates which sides owe an acknowledgement. A side that acknowledges without accepting data,
    /// because its window is closed, does answer (RFC 1122, section 4.2.2.17).
    #[inline(always)]
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
                direction.unanswered = Unanswered::NOTHING;
            } else if !direction.unanswered.is_owed() {
                // Nothing was received from this side if not even SYN is acknowledged.
                let limit = if una == 0 { R2_SYN } else { R2 };
                direction.unanswered = Unanswered::begin(now, limit);
            }
        }
    }
}
