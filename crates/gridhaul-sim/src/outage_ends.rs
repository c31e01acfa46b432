//! Retransmission timers that expire close to the end of an outage: the precision of the timer then
//! decides whether the retransmission is lost, and the next one follows only after twice the time.

use std::collections::BTreeSet;

use gridhaul_core::tcp::{Connection, StackParams};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::{Duration, Instant};

/// The ends of the outages of a run, and the rows of flows with a timer that expired close to one.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutageEnds {
    /// In order of time.
    ends: Vec<Instant>,
    rows: BTreeSet<u32>,
}

/// Largest number of ends that are noted.
const ENDS_MAX: usize = 10_000;

/// Precision of a timer without a timer wheel: about a tick of a kernel.
const TICK: Duration = Duration::from_millis(5);

impl OutageEnds {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let directions = scenario.link.values().flat_map(|link| [link.forward(), link.reverse()]);
        let mut ends = Vec::new();
        for outage in directions.flatten().flat_map(|direction| &direction.outage) {
            let mut at = outage.start + outage.length;
            while at < scenario.duration && ends.len() < ENDS_MAX {
                ends.push(Instant::ZERO + at);
                match outage.every.filter(|every| !every.is_zero()) {
                    Some(every) => at += every,
                    None => break,
                }
            }
        }
        ends.sort_unstable();
        Self { ends, rows: BTreeSet::new() }
    }

    /// Whether the run has outages that end.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        !self.ends.is_empty()
    }

    /// A retransmission timer of a connection of this row has expired.
    #[cold]
    pub(crate) fn on_timeout(&mut self, now: Instant, row: u32, connection: &Connection) {
        let Some(sender) = connection.sender() else { return };
        let params = connection.params();
        let precision = precision(sender.rtt().rto(params), params);
        let next = self.ends.partition_point(|end| *end < now);
        let before = next.checked_sub(1).map(|index| now.since(self.ends[index]));
        let after = self.ends.get(next).map(|end| end.since(now));
        if before.into_iter().chain(after).any(|distance| distance <= precision) {
            self.rows.insert(row);
        }
    }

    /// The rows with a timer that expired close to the end of an outage.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().copied()
    }
}

/// Precision of the timer that has expired before a timeout of this length, which is twice as long:
/// the timer wheel of Linux is up to an eighth of the duration late.
fn precision(next: Duration, params: &StackParams) -> Duration {
    if params.policy.timer_wheel { TICK.max(next.mul_f64(1.0 / 16.0)) } else { TICK }
}
