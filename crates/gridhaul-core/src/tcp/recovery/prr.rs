//! Proportional rate reduction (RFC 9937): while a loss is repaired, how much is sent follows how much
//! arrives, so that the window comes down to the threshold evenly over a round trip.

/// The window of a recovery under way. Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prr {
    /// The threshold at which the recovery ends, and the window that met the loss (`RecoverFS`:
    /// Linux takes the congestion window for it).
    ssthresh: u32,
    recover_fs: u32,
    delivered: u64,
    prr_out: u64,
    window: u32,
    /// What is sent is rounded up to: a byte, or a segment (Linux).
    rounding: u32,
}

/// What an acknowledgement means for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AckProgress {
    /// Bytes newly delivered and newly found lost.
    pub delivered: u32,
    pub lost: u64,
    /// Whether the cumulative acknowledgement moved.
    pub advanced: bool,
    pub in_flight: u64,
    pub mss: u32,
}

impl Prr {
    /// A recovery begins with a window of `recover_fs` bytes; what is sent is rounded up to a `rounding`.
    pub(super) const fn enter(recover_fs: u32, ssthresh: u32, rounding: u32) -> Self {
        Self { ssthresh, recover_fs, delivered: 0, prr_out: 0, window: recover_fs, rounding }
    }

    /// RFC 9937, section 6.2, for each acknowledgement of the recovery.
    pub(super) fn on_ack(&mut self, ack: &AckProgress) {
        self.delivered += u64::from(ack.delivered);
        let ssthresh = u64::from(self.ssthresh);
        let mut quota = if ack.in_flight > ssthresh {
            // In proportion: sndcnt = ceil (prr_delivered * ssthresh / RecoverFS) - prr_out.
            let share = (self.delivered * ssthresh).div_ceil(u64::from(self.recover_fs.max(1)));
            share.next_multiple_of(u64::from(self.rounding)).saturating_sub(self.prr_out)
        } else {
            // At or below the threshold: what was delivered is made up for, and a segment more with
            // every acknowledgement that finds no further loss (slow start).
            let mut bound =
                self.delivered.saturating_sub(self.prr_out).max(u64::from(ack.delivered));
            if ack.advanced && ack.lost == 0 {
                bound += u64::from(ack.mss);
            }
            bound.min(ssthresh - ack.in_flight)
        };
        if self.prr_out == 0 {
            // "Force a fast retransmit upon entering recovery".
            quota = quota.max(u64::from(ack.mss));
        }
        self.window = u32::try_from(ack.in_flight + quota).unwrap_or(u32::MAX);
    }

    /// A segment is sent, for the first time or again.
    pub(super) fn on_sent(&mut self, len: u32) {
        self.prr_out += u64::from(len);
    }

    /// What may be in flight.
    pub(super) const fn window(&self) -> u32 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1_000;

    fn ack(in_flight: u64) -> AckProgress {
        AckProgress { delivered: MSS, lost: 0, advanced: false, in_flight, mss: MSS }
    }

    /// 20 segments are outstanding, one is lost, and the window is to become 10: of the 19 that arrive each
    /// second one is replaced.
    #[test]
    fn every_second_arrival_is_replaced_while_the_window_halves() {
        let mut prr = Prr::enter(20 * MSS, 10 * MSS, 1);
        let (mut in_flight, mut sent) = (19_000, 0);
        for _ in 0..18 {
            in_flight -= u64::from(MSS);
            prr.on_ack(&ack(in_flight));
            while in_flight + u64::from(MSS) <= u64::from(prr.window()) {
                prr.on_sent(MSS);
                in_flight += u64::from(MSS);
                sent += 1;
            }
        }
        assert_eq!(sent, 9, "half of the 18 arrivals, the forced first one among them");
        assert!((9_000..=11_000).contains(&in_flight), "{in_flight} near the threshold");
    }

    /// Most of the window is lost: what is in flight is far below the threshold. Without progress
    /// each arrival lets one segment go, with progress one more.
    #[test]
    fn below_the_threshold_progress_is_worth_a_segment_more() {
        let mut prr = Prr::enter(20 * MSS, 10 * MSS, 1);
        prr.on_ack(&ack(3_000));
        assert_eq!(prr.window(), 4_000);
        prr.on_sent(MSS);
        prr.on_ack(&AckProgress { advanced: true, ..ack(3_000) });
        assert_eq!(prr.window(), 5_000);
        prr.on_sent(2 * MSS);
        prr.on_ack(&AckProgress { advanced: true, lost: 1, ..ack(3_000) });
        assert_eq!(prr.window(), 4_000, "a further loss: conservative");
    }
}
