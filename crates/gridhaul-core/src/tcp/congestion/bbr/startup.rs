//! Start-up: doubles the rate each round until the bandwidth no longer grows (section 4.3.2).

/// `BBRHighGain`, 2 / ln 2: "the minimum gain value that will allow the sending rate to double each
/// round" (sections 4.2.1 and 4.3.2.1).
pub(super) const HIGH_GAIN: f64 = 2.0 / std::f64::consts::LN_2;

/// Section 4.3.2.2: the bandwidth grows if it is a quarter larger...
const GROWTH: f64 = 1.25;
/// ...and the pipe is full after three rounds in which it does not: one round for the receiver's
/// window to open and one for the sender to use it.
const FLAT_ROUNDS: u32 = 3;

/// Detects that the pipe is full, once for a connection.
#[derive(Debug, Clone)]
pub(super) struct FullPipe {
    /// `BBR.full_bw`.
    bandwidth: f64,
    /// `BBR.full_bw_count`.
    flat_rounds: u32,
}

impl FullPipe {
    pub(super) const fn new() -> Self {
        Self { bandwidth: 0.0, flat_rounds: 0 }
    }

    /// Linux, after a timeout: the next round counts as growth.
    pub(super) fn forget_bandwidth(&mut self) {
        self.bandwidth = 0.0;
    }

    /// Linux, after a spurious recovery: resets the estimate, unless the pipe was full.
    pub(super) fn reset_unless_full(&mut self) {
        if !self.is_full() {
            *self = Self::new();
        }
    }

    /// A round has started, with this bandwidth, which was not application-limited.
    pub(super) fn on_round(&mut self, bandwidth: f64) {
        if self.is_full() {
            return;
        }
        if bandwidth >= self.bandwidth * GROWTH {
            self.bandwidth = bandwidth;
            self.flat_rounds = 0;
        } else {
            self.flat_rounds += 1;
        }
    }

    /// `BBR.filled_pipe`.
    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.flat_rounds >= FLAT_ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_flat_rounds_fill_the_pipe() {
        let mut pipe = FullPipe::new();
        let full = [100.0, 200.0, 240.0, 249.0, 250.0, 300.0, 310.0, 312.4, 1e9].map(|bandwidth| {
            pipe.on_round(bandwidth);
            pipe.is_full()
        });
        // 250 is a quarter more than 200 and restarts the count; 1e9 comes too late.
        assert_eq!(full, [false, false, false, false, false, false, false, true, true]);
    }
}
