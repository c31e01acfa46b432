//! Packets that an end sends together, on their way over the links of a path.

/// Difference of times that is rounding, relative to them.
const ROUNDING: f64 = 1e-9;

/// The packets, without other traffic and without the delays of the links, which are equal for all.
#[derive(Debug, Clone)]
pub(super) struct Batch<'p> {
    bytes: &'p [f64],
    /// Times at which the packets reach the next link, from the start of the first transmission.
    arrivals_s: Vec<f64>,
}

/// Packets of a batch that a link transmits without a pause.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Train {
    pub packets: usize,
    /// Time for which the link transmits them.
    pub seconds: f64,
    /// Sum of the times for which they wait for each other.
    pub waits_s: f64,
}

impl<'p> Batch<'p> {
    pub(super) fn new(bytes: &'p [f64]) -> Self {
        Self { bytes, arrivals_s: vec![0.0; bytes.len()] }
    }

    /// Transmits the packets over a link, one after another: each starts when it has arrived and
    /// the one before it has ended. A short packet thereby waits for a longer one before it also on
    /// a link that is not slower than the earlier ones.
    pub(super) fn cross(&mut self, bits_per_s: f64) -> Vec<Train> {
        let mut trains: Vec<Train> = Vec::new();
        let mut idle_s = 0.0;
        for (at_s, bytes) in self.arrivals_s.iter_mut().zip(self.bytes) {
            let seconds = bytes * 8.0 / bits_per_s;
            let wait_s = f64::max(idle_s - *at_s, 0.0);
            let is_idle = wait_s <= ROUNDING * idle_s;
            match trains.last_mut().filter(|_| !is_idle) {
                Some(train) => {
                    train.packets += 1;
                    train.seconds += seconds;
                    train.waits_s += wait_s;
                }
                None => trains.push(Train { packets: 1, seconds, waits_s: 0.0 }),
            }
            idle_s = f64::max(*at_s, idle_s) + seconds;
            *at_s = idle_s;
        }
        trains
    }

    /// Time at which the last packet has crossed the links.
    pub(super) fn last_s(&self) -> f64 {
        self.arrivals_s.last().copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 B and 100 B at 8 kbit/s and at 16 kbit/s: the first ends after 1 s on the first link
    /// and after 1.5 s on the second, where the other one arrives at 1.1 s and waits for 0.4 s.
    #[test]
    fn a_short_packet_waits_for_a_longer_one_on_each_link() {
        let bytes = [1_000.0, 100.0];
        let mut batch = Batch::new(&bytes);
        let near = |train: &Train, packets, seconds: f64, waits_s: f64| {
            train.packets == packets
                && (train.seconds - seconds).abs() < 1e-9
                && (train.waits_s - waits_s).abs() < 1e-9
        };
        assert!(matches!(&batch.cross(8_000.0)[..], [train] if near(train, 2, 1.1, 1.0)));
        assert!(matches!(&batch.cross(16_000.0)[..], [train] if near(train, 2, 0.55, 0.4)));
        assert!((batch.last_s() - 1.55).abs() < 1e-9);
    }

    /// Packets of one size arrive at the second and the third link one after another.
    #[test]
    fn equal_packets_wait_on_the_slowest_link_only() {
        let bytes = [1_000.0; 7];
        let mut batch = Batch::new(&bytes);
        let trains = [50e3, 60e3, 50e3, 40e3].map(|rate| batch.cross(rate).len());
        assert_eq!(trains, [1, 7, 7, 1]);
    }
}
