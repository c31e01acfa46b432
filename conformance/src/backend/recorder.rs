//! Recorder of all backends: packets as they leave and arrive, and changes of the connection state.

use gridhaul_core::tcp::Segment;
use gridhaul_scenario::units::Instant;

use super::endpoints::packet;
use crate::case::{Case, Endpoint, PacketImpairment, PacketImpairments};
use crate::observation::{Change, Observation};

/// The hosts by their index.
pub(super) const ENDPOINTS: [Endpoint; 2] = [Endpoint::Client, Endpoint::Server];

/// Records packets and states, and selects the impairment of each packet.
pub(super) struct Recorder {
    impairments: PacketImpairments,
    /// First sequence number that each host has not sent yet.
    next_new: [u64; 2],
    pub observation: Observation,
}

impl Recorder {
    pub(super) fn new(case: &Case) -> Result<Self, String> {
        Ok(Self {
            impairments: case.impairments()?,
            next_new: [0; 2],
            observation: Observation::default(),
        })
    }

    /// A segment leaves a host. Returns its impairment.
    pub(super) fn sent(
        &mut self,
        at: Instant,
        from: usize,
        segment: &Segment,
        isn: [u32; 2],
    ) -> Option<PacketImpairment> {
        let mut sent = packet(at, ENDPOINTS[from], ENDPOINTS[from], segment, isn);
        let after = sent.seq + u64::from(segment.sequence_len());
        sent.retransmitted = segment.sequence_len() > 0 && sent.seq < self.next_new[from];
        self.next_new[from] = self.next_new[from].max(after);
        let impairment = self.impairments.next_impairment(&sent);
        self.observation.packets.push(sent);
        impairment
    }

    /// A segment arrives at a host.
    pub(super) fn arrived(&mut self, at: Instant, to: usize, segment: &Segment, isn: [u32; 2]) {
        let from = ENDPOINTS[1 - to];
        let mut arrived = packet(at, ENDPOINTS[to], from, segment, isn);
        // The packet was marked as a retransmission when it left; the mark is looked up here.
        let sent = self.observation.packets.iter().rev().find(|sent| {
            sent.captured_at == from
                && sent.from == from
                && (sent.seq, sent.len) == (arrived.seq, arrived.len)
        });
        arrived.retransmitted = sent.is_some_and(|sent| sent.retransmitted);
        self.observation.packets.push(arrived);
    }

    /// The last recorded state of a host.
    pub(super) fn state(&self, index: usize) -> Option<&str> {
        let known =
            self.observation.changes.iter().rev().find(|change| change.end == ENDPOINTS[index]);
        known.map(|change| change.state.as_str())
    }

    /// Records the state of a host if it has changed.
    pub(super) fn record_state(&mut self, at: Instant, index: usize, state: &str) {
        if self.state(index) != Some(state) {
            let state = state.to_owned();
            self.observation.changes.push(Change { at, end: ENDPOINTS[index], state });
        }
    }
}
