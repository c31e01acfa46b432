//! Bursts of segments that overflow short queues, which the formulas exclude: warnings.

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Load};
use gridhaul_scenario::units::counted;

use super::Connection;
use super::cubic::largest_growth;
use super::demand::Demand;
use super::throughput_law::ThroughputLaw;

/// Growth of CUBIC's window in a round trip, relative to the queue, from which bursts overflow it
/// (measured: docs/limitations/model.md).
const GROWTH_IN_QUEUE_MAX: f64 = 1.0 / 3.0;

impl Demand<'_> {
    /// Share of the window that is left after a loss: CUBIC's is 0.7 (RFC 9438, section 4.6),
    /// Reno's one half.
    pub(super) fn kept_after_loss(&self) -> f64 {
        match self.stack.congestion_control {
            CongestionControlAlgorithm::Cubic => 0.7,
            _ => 0.5,
        }
    }

    /// A receive window that an overflow of the queue fills. During a recovery, a sender transmits
    /// a reduced window of new segments while the lost one blocks the receive window. `held` is the
    /// number of segments that path and queue hold.
    pub(super) fn of_recovery_window(&self, held: f64) -> Option<String> {
        let window = self.largest_window();
        let is_small = window < (1.0 + self.kept_after_loss()) * held;
        (is_small && self.flow.load == Load::Bulk).then(|| {
            format!(
                "the receive window of {window:.0} segments overflows the queue (it and the path \
                    hold {held:.0}), and has no space for new segments during a recovery, which \
                    the formula excludes: the result is an upper bound; use backend `sim`"
            )
        })
    }

    /// Bursts of segments that overflow a queue although the window fits into the path.
    pub(super) fn of_bursts(&self) -> Option<String> {
        let is_fixed = self.stack.congestion_control == CongestionControlAlgorithm::Fixed;
        match self.law {
            ThroughputLaw::Window if is_fixed => self.of_fixed_window(),
            ThroughputLaw::Cubic => self.of_cubic_growth(),
            _ => None,
        }
    }

    /// A fixed window is transmitted at once: a link transmits the first segment, queues some, and
    /// drops the rest.
    fn of_fixed_window(&self) -> Option<String> {
        let window = self.connection.window;
        let mut arriving_bits_per_s = f64::INFINITY;
        for hop in &self.path.forward {
            // While the burst arrives, the link transmits a part of it.
            let waiting = window * (1.0 - hop.bits_per_s / arriving_bits_per_s).max(0.0);
            if waiting > hop.queue + 1.0 {
                return Some(format!(
                    "a fixed window of {window:.0} segments is transmitted at once, and overflows \
                        a queue of {} whenever it is, which the formula excludes: the result is \
                        an upper bound; use backend `sim`",
                    counted(hop.queue as u64, "packet")
                ));
            }
            arriving_bits_per_s = arriving_bits_per_s.min(hop.bits_per_s);
        }
        None
    }

    /// On a long path, CUBIC's window grows by several segments in a round trip, which wait in the
    /// queue of the slowest link.
    fn of_cubic_growth(&self) -> Option<String> {
        let Connection { rtt_s, loss, window, .. } = self.connection;
        let (_, hop) = self.path.bottleneck().filter(|_| loss > 0.0)?;
        let growth = largest_growth(rtt_s, loss, window);
        (growth > GROWTH_IN_QUEUE_MAX * hop.queue).then(|| {
            format!(
                "the window of CUBIC grows by up to {growth:.0} segments in a round trip, whose \
                    bursts overflow a queue of {}, and after them slow start does, which the \
                    formula excludes: the result is an upper bound; use backend `sim`",
                counted(hop.queue as u64, "packet")
            )
        })
    }
}
