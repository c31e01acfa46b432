//! What is read from the kernel during a run: counters, windows, judgements.

use gridhaul_scenario::answer::Recording;
use gridhaul_scenario::units::{Duration, Instant};

use super::{Member, Traffic};
use crate::traffic::samples::window;
use crate::truth::Judgement;

/// Time between two reads of the judgements of so many connections. MEDX keeps its newest 16 judgements, and
/// makes one in a round trip at most; each connection costs the thread some time.
pub(super) fn judgement_interval(connections: usize) -> Duration {
    Duration::from_millis(5) + Duration::from_micros(50).mul_f64(connections as f64)
}

impl Traffic<'_> {
    /// Keeps what was delivered and counted so far: at the end of the warm-up (0), at the end (1).
    pub(super) fn read_counters(&mut self, time: usize) {
        for member in &self.members {
            let row = &mut self.rows[member.row()];
            if time == 0 { &mut row.before } else { &mut row.after }.push(member.delivered());
            if let Some(info) = member.info() {
                row.counts[time].add(&info, member.syn_retransmissions(&info));
            }
        }
    }

    /// Keeps the judgements that MEDX has made of losses since the last read.
    pub(super) fn read_judgements(&mut self, at: Instant) {
        for (index, seen) in &mut self.judges {
            let Member::Tcp(connection) = &self.members[*index] else { continue };
            let Some(near) = connection.near().filter(|_| connection.is_accepted()) else {
                continue;
            };
            let Some(counters) = self.controls.judgements(near) else { continue };
            let row = &mut self.rows[usize::from(connection.flow)];
            let new = counters.classifications_since(*seen);
            let new = new.map(|judged| Judgement { at, member: connection.member, judged });
            row.judgements.get_or_insert_default().extend(new);
            *seen = counters.classified;
        }
    }

    /// Samples windows and round trips.
    pub(super) fn sample(&mut self, at: Instant, warm: bool, mut into: Option<&mut Recording>) {
        for (index, member) in self.members.iter().enumerate() {
            let Some(info) = member.info() else { continue };
            let row = member.row();
            if warm {
                self.rows[row].averages.add(&info);
            }
            if let Some(into) = into.as_deref_mut().filter(|_| self.first[row] == index) {
                into.on_window(at, row as u32, window(&info));
            }
        }
    }
}
