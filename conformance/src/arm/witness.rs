//! What every arm notes of a run: packets as they leave and arrive, and changes of state.

use gridhaul_core::tcp::Segment;
use gridhaul_scenario::units::Instant;

use super::ends::packet;
use crate::case::{Case, End, Fate, Fates};
use crate::observe::{Change, Observation};

/// The ends by their index.
pub(super) const ENDS: [End; 2] = [End::Client, End::Server];

/// Notes what it sees, and knows what befalls each packet.
pub(super) struct Witness {
    fates: Fates,
    /// First number that each end has not sent yet.
    fresh: [u64; 2],
    pub seen: Observation,
}

impl Witness {
    pub(super) fn new(case: &Case) -> Result<Self, String> {
        Ok(Self { fates: case.fates()?, fresh: [0; 2], seen: Observation::default() })
    }

    /// A segment leaves an end. Returns what befalls it.
    pub(super) fn sent(
        &mut self,
        at: Instant,
        from: usize,
        segment: &Segment,
        isn: [u32; 2],
    ) -> Option<Fate> {
        let mut sent = packet(at, ENDS[from], ENDS[from], segment, isn);
        let after = sent.seq + u64::from(segment.sequence_len());
        sent.again = segment.sequence_len() > 0 && sent.seq < self.fresh[from];
        self.fresh[from] = self.fresh[from].max(after);
        let fate = self.fates.judge(&sent);
        self.seen.packets.push(sent);
        fate
    }

    /// A segment arrives at an end.
    pub(super) fn arrived(&mut self, at: Instant, to: usize, segment: &Segment, isn: [u32; 2]) {
        let from = ENDS[1 - to];
        let mut seen = packet(at, ENDS[to], from, segment, isn);
        // The far end has marked it already when it left; here its mark is looked up.
        let sent = self.seen.packets.iter().rev().find(|sent| {
            sent.seen_at == from
                && sent.from == from
                && (sent.seq, sent.len) == (seen.seq, seen.len)
        });
        seen.again = sent.is_some_and(|sent| sent.again);
        self.seen.packets.push(seen);
    }

    /// The state of an end as it was noted last.
    pub(super) fn state(&self, index: usize) -> Option<&str> {
        let known = self.seen.changes.iter().rev().find(|change| change.end == ENDS[index]);
        known.map(|change| change.state.as_str())
    }

    /// Notes the state of an end, if it is a new one.
    pub(super) fn note_state(&mut self, at: Instant, index: usize, state: &str) {
        if self.state(index) != Some(state) {
            let state = state.to_owned();
            self.seen.changes.push(Change { at, end: ENDS[index], state });
        }
    }
}
