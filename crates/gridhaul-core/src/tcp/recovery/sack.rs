//! Loss recovery with selective acknowledgements (RFC 6675).

use std::num::NonZeroU64;

use gridhaul_scenario::units::Instant;

use super::{LossRecovery, Scene, Verdict};
use crate::tcp::params::StackParams;

/// SACK.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sack {
    /// `RecoveryPoint`: recovery ends when this is acknowledged.
    recover: u64,
    recovering: bool,
    began: Instant,
    partial_seen: bool,
    /// Bytes in the pipe, where they are counted as ns-2's Sack1 does.
    pipe: Pipe,
}

impl Sack {
    pub(crate) fn new(_params: &StackParams) -> Self {
        Self::default()
    }

    fn enter(&mut self, scene: &mut Scene<'_>) {
        // Section 5, step 4: RecoveryPoint = HighData; ssthresh = cwnd = FlightSize / 2; send the
        // first lost segment whatever the pipe says.
        let loss = scene.loss();
        scene.congestion.on_loss(&loss);
        self.recover = scene.next;
        self.recovering = true;
        self.began = scene.now;
        scene.queue.begin_recovery();
        self.partial_seen = false;
        let (dupthresh, mss) = (scene.params.dupthresh, scene.params.mss);
        if scene.params.count_pipe {
            // ns-2, Sack1: what is out, less the duplicates; the retransmission is not counted.
            let left = u64::from(dupthresh) * u64::from(mss);
            self.pipe = Pipe::of((scene.next - scene.una).saturating_sub(left));
        } else {
            scene.queue.judge(dupthresh, mss, self.began);
        }
        scene.retransmit_first();
        scene.restart_timer = true;
    }

    /// Every acknowledgement takes one segment out of a counted pipe, and a partial one two: the
    /// lost segment and its repetition. What lies below the highest SACK is a hole to be filled.
    fn count(&mut self, scene: &mut Scene<'_>, segments: u64) {
        if let Some(pipe) = self.pipe.bytes() {
            self.pipe = Pipe::of(pipe.saturating_sub(segments * u64::from(scene.params.mss)));
            let boundary = scene.queue.highest_sacked();
            scene.queue.mark_lost_until(boundary, self.began);
        }
    }
}

/// A count of bytes, or none: eight bytes of every sender instead of sixteen.
#[derive(Debug, Clone, Copy, Default)]
struct Pipe(Option<NonZeroU64>);

impl Pipe {
    const fn of(bytes: u64) -> Self {
        Self(Some(NonZeroU64::MIN.saturating_add(bytes)))
    }

    #[inline]
    fn bytes(self) -> Option<u64> {
        self.0.map(|above| above.get() - 1)
    }
}

impl LossRecovery for Sack {
    fn on_duplicate(&mut self, scene: &mut Scene<'_>) -> bool {
        let (dupthresh, mss) = (scene.params.dupthresh, scene.params.mss);
        if self.recovering {
            if self.pipe.bytes().is_some() {
                self.count(scene, 1);
            } else {
                scene.queue.judge(dupthresh, mss, self.began);
            }
            return false;
        }
        // Section 5, steps 1 and 2: DupThresh duplicates, or IsLost (HighACK + 1).
        let many = scene.duplicates >= dupthresh
            || scene.queue.sacked_bytes() > u64::from(dupthresh - 1) * u64::from(mss)
                && !scene.params.count_pipe;
        if many && scene.una > self.recover {
            self.enter(scene);
            return true;
        }
        false
    }

    #[inline]
    fn on_new_ack(&mut self, scene: &mut Scene<'_>, _acked: u64) -> Verdict {
        if !self.recovering {
            return Verdict::Grow;
        }
        if scene.una >= self.recover {
            // Section 5: "once an ACK covers RecoveryPoint, loss recovery ends".
            self.recovering = false;
            self.pipe = Pipe::default();
            scene.congestion.on_recovered(scene.now);
            return Verdict::Hold;
        }
        if self.pipe.bytes().is_some() {
            self.count(scene, 2);
        } else {
            scene.queue.judge(scene.params.dupthresh, scene.params.mss, self.began);
        }
        scene.restart_timer = !self.partial_seen || !scene.params.count_pipe;
        self.partial_seen = true;
        Verdict::Hold
    }

    fn on_timeout(&mut self, next: u64) {
        *self = Self { recover: next, ..Self::default() };
    }

    #[inline]
    fn counted_pipe(&self) -> Option<u64> {
        self.pipe.bytes()
    }

    #[inline]
    fn on_sent(&mut self, len: u32) {
        if let Some(pipe) = self.pipe.bytes() {
            self.pipe = Pipe::of(pipe + u64::from(len));
        }
    }

    #[inline]
    fn in_recovery(&self) -> bool {
        self.recovering
    }
}
