//! Reads counters, windows and classifications from the kernel during a run.

use gridhaul_scenario::answer::Recording;
use gridhaul_scenario::units::{Duration, Instant};

use super::{Member, Sampling, Traffic};
use crate::loss_classification::MemberClassification;
use crate::traffic::samples::window;

/// Interval between two reads of the classifications of `connections` connections. MEDX stores its
/// newest 16 classifications, at most one per round trip; reading takes some time for each
/// connection.
pub(super) fn classification_interval(connections: usize) -> Duration {
    Duration::from_millis(5) + Duration::from_micros(50).mul_f64(connections as f64)
}

impl Traffic<'_> {
    /// Records delivered bytes and counters at the end of the warm-up (0) and at the end (1).
    pub(super) fn read_counters(&mut self, time: usize) {
        self.relay_counters[time] = self.relays.counters();
        for member in &self.members {
            let row = &mut self.rows[member.row()];
            if time == 0 { &mut row.before } else { &mut row.after }.push(member.delivered());
            member.add_counts(&mut row.counts[time]);
        }
    }

    /// Records the classifications of losses by MEDX since the last read.
    pub(super) fn read_classifications(&mut self, at: Instant) {
        for (index, seen) in &mut self.loss_classifiers {
            let Member::Tcp(connection) = &self.members[*index] else { continue };
            let Some(sender) = connection.sender().filter(|_| connection.is_accepted()) else {
                continue;
            };
            let Some(counters) = self.controls.classifications(sender) else { continue };
            let row = &mut self.rows[usize::from(connection.flow)];
            let new = counters.classifications_since(*seen);
            let new = new.map(|classification| MemberClassification {
                at,
                member: connection.member,
                classification,
            });
            row.classifications.get_or_insert_default().extend(new);
            *seen = counters.classified;
        }
    }

    /// Samples windows and round-trip times.
    pub(super) fn sample(
        &mut self,
        at: Instant,
        warm: bool,
        sampling: Sampling,
        recording: &mut Recording,
    ) {
        for (index, member) in self.members.iter().enumerate() {
            let Some(info) = member.info() else { continue };
            let row = member.row();
            if warm {
                self.rows[row].averages.add(&info);
            }
            if sampling.recorded && self.first[row] == index {
                recording.on_window(at, row as u32, window(&info));
            }
            self.event_logs.on_sample(at, index, &info, sampling.interval);
        }
    }
}
