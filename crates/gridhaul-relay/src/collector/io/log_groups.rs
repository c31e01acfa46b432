//! When a collector writes to its log: groups of records, removal of confirmed segments, and the
//! wait of a collector that is stopped.

use gridhaul_scenario::units::{Duration, Instant};

use super::Loop;
use super::upstream::Upstream;
use crate::runtime::RunError;

impl Loop {
    /// Passes records to the log or, without one, to the backlog.
    pub(super) fn store(&mut self, now: Instant) -> Result<(), RunError> {
        if let Some(committer) = &self.committer {
            while let Some(end) = committer.poll()? {
                self.collector.handle_written(end);
            }
            self.flush_at = None;
            if self.collector.is_writing() {
                return Ok(());
            }
            // With a fast disk, a group for each message would cost more CPU time than the message.
            if now < self.next_group {
                self.flush_at = Some(self.next_group);
            } else if let Some(group) = self.collector.poll_group() {
                committer.write(group);
                self.next_group = now + self.batch_delay;
            }
        } else if self.flush_at.is_none_or(|at| at <= now) {
            self.flush_at = None;
            if !self.upstreams.is_empty() && self.upstreams.iter().all(Upstream::is_blocked) {
                // A later batch shares its header with more records. The writable socket ends the
                // wait.
                return Ok(());
            }
            let group = self.collector.poll_group();
            debug_assert!(group.is_none(), "without a log, there are no groups");
        }
        Ok(())
    }

    /// Notes when the log has grown, for the age of the oldest record that the head has not
    /// confirmed.
    pub(super) fn observe_age(&mut self, now: Instant) {
        let (end, confirmed) = (self.collector.log_end(), self.collector.confirmed_position());
        self.unconfirmed.note(now, end, confirmed);
    }

    /// Removes segments that the head has confirmed.
    pub(super) fn trim(&mut self) {
        let Some(committer) = &self.committer else { return };
        let position = self.collector.confirmed_position();
        if position >= self.trimmed + self.collector.settings().segment {
            self.trimmed = position;
            committer.trim(position);
        }
    }

    /// Waits until all accepted data is durable, so that as little as possible is retransmitted.
    #[expect(clippy::disallowed_methods, reason = "a stopped collector has no other work")]
    pub(super) fn wait_until_durable(&mut self) {
        let Some(committer) = &self.committer else { return };
        let deadline = self.clock.now() + STOP_LIMIT;
        while self.clock.now() < deadline {
            if !self.collector.is_writing() {
                let Some(group) = self.collector.poll_group() else { break };
                committer.write(group);
            }
            // Waiting for events would return at once: those of meters are not handled any more.
            std::thread::sleep(std::time::Duration::from_millis(1));
            if let Ok(Some(end)) = committer.poll() {
                self.collector.handle_written(end);
            }
        }
    }
}

/// Time for which a collector that is stopped waits until its data is durable.
const STOP_LIMIT: Duration = Duration::from_secs(5);
