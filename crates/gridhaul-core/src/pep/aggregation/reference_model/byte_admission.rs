//! Admission rules of the reference model for bytes.

use super::super::ByteLimits;
use super::Model;

/// The model's admission rules for bytes: limits, the reserve, and the order of waiting connections.
#[derive(Debug)]
pub(super) struct Admission {
    pub limits: ByteLimits,
    /// The connection whose incomplete message is in the reserve.
    pub holder: Option<usize>,
    /// Connections that wait for space of the whole buffer, in the order in which they began to wait.
    pub waiting: Vec<usize>,
    /// Connections that wait for the delivery of their own messages.
    pub waits_for_own: Vec<bool>,
    /// For each waiting connection, those that were served since it began to wait.
    pub overtaken_by: Vec<Vec<usize>>,
}

impl Admission {
    pub(super) fn new(limits: ByteLimits, connections: usize) -> Self {
        Self {
            limits,
            holder: None,
            waiting: Vec::new(),
            waits_for_own: vec![false; connections],
            overtaken_by: vec![Vec::new(); connections],
        }
    }

    /// The incomplete messages have together `total` bytes, after a change of this connection.
    pub(super) fn update_holder(&mut self, index: usize, total: u64) {
        let is_used = total > self.limits.total() - self.limits.largest_message();
        self.holder = is_used.then(|| self.holder.unwrap_or(index));
    }

    pub(super) fn acceptable(&self, model: &Model, index: usize) -> u64 {
        let used: u64 = (0..model.upstreams()).map(|upstream| model.held(upstream)).sum();
        let reserved = match self.holder {
            Some(holder) if holder != index => {
                self.limits.largest_message() - model.incomplete_bytes(holder)
            }
            _ => 0,
        };
        let free = (self.limits.total() - reserved).saturating_sub(used);
        free.min(self.limits.per_connection() - model.held_of(index))
    }

    pub(super) fn stop_waiting(&mut self, index: usize) {
        self.waiting.retain(|&other| other != index);
        self.waits_for_own[index] = false;
    }

    pub(super) fn wait(&mut self, model: &Model, index: usize) {
        if self.waits_for_own[index] || self.waiting.contains(&index) {
            return;
        }
        if model.held_of(index) == self.limits.per_connection() {
            self.waits_for_own[index] = true;
        } else {
            self.enqueue(index);
        }
    }

    pub(super) fn enqueue(&mut self, index: usize) {
        self.waits_for_own[index] = false;
        self.waiting.push(index);
        self.overtaken_by[index].clear();
    }

    /// The connection to serve next: the holder of the reserve, otherwise the one that waits longest.
    pub(super) fn poll_unblocked(&mut self, model: &Model) -> Option<usize> {
        let in_reserve = self.holder.filter(|holder| self.waiting.contains(holder));
        if let Some(holder) = in_reserve
            && self.acceptable(model, holder) > 0
        {
            self.stop_waiting(holder);
            return Some(holder);
        }
        while let Some(&first) = self.waiting.first() {
            let is_at_limit = model.held_of(first) == self.limits.per_connection();
            if !is_at_limit && self.acceptable(model, first) == 0 {
                return None;
            }
            self.stop_waiting(first);
            if !is_at_limit {
                return Some(first);
            }
            self.waits_for_own[first] = true;
        }
        None
    }
}
