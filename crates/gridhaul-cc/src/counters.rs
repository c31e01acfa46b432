//! Counters of the eBPF programs. The order of fields is that of `struct counters` in `bpf/`.

/// Counters of an algorithm since it was loaded, over all connections and namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counters {
    /// Of `gh_vegas`.
    Vegas(VegasCounters),
    /// Of `gh_medx`.
    Medx(MedxCounters),
}

/// Counters of Vegas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VegasCounters {
    /// Connections opened.
    pub opened: u64,
    /// Connections closed.
    pub closed: u64,
    /// Round trips evaluated.
    pub rounds: u64,
    /// Round trips after which the window grew by a segment, outside of slow start.
    pub grown: u64,
    /// Round trips after which the window was unchanged.
    pub unchanged: u64,
    /// Round trips after which the window shrank.
    pub shrunk: u64,
    /// Recoveries from losses, and reductions for ECN marks.
    pub losses: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Corrections of windows and thresholds that the kernel set without running a program.
    pub corrected: u64,
}

/// Counters of MEDX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MedxCounters {
    /// Connections opened.
    pub opened: u64,
    /// Connections closed.
    pub closed: u64,
    /// Acknowledgements of new data with a delay reported by the receiver.
    pub delays: u64,
    /// Acknowledgements of new data without a delay.
    pub without_delay: u64,
    /// Losses classified as errors: the window stayed.
    pub error: u64,
    /// Losses classified as congestion: the window was halved, or collapsed by a timeout.
    pub congestion: u64,
    /// Losses not classified for lack of delays, and treated as congestion.
    pub unclassified: u64,
    /// Timeouts among the losses.
    pub timeouts: u64,
    /// Classifications for which an offset between the clocks was subtracted.
    pub offset_removed: u64,
    /// Corrections of windows and thresholds, as for Vegas.
    pub corrected: u64,
}

/// Counters of MEDX for one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectionCounters {
    /// Delays reported by the receiver.
    pub delays: u32,
    /// Acknowledgements of new data without a delay.
    pub without_delay: u32,
    /// Losses classified as errors.
    pub error: u32,
    /// Losses classified as congestion.
    pub congestion: u32,
    /// Losses not classified.
    pub unclassified: u32,
    /// As receiver: difference of the two clocks for the newest segment with data, in microseconds
    /// mod 2^32; `None` before the first.
    pub own_delay_us: Option<u32>,
    /// Losses classified or treated as congestion so far.
    pub classified: u32,
    /// The newest classifications; see [`Self::classifications_since`].
    newest: [LossClassification; CLASSIFICATIONS_MAX],
}

/// A loss classified by MEDX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LossClassification {
    /// Sequence number of the first missing byte, as in the packets.
    pub first_missing: u32,
    /// Treated as congestion, also for lack of delays; otherwise classified as an error.
    pub congestion: bool,
}

impl Counters {
    /// Number of open connections with the algorithm.
    #[must_use]
    pub fn open(&self) -> u64 {
        let (opened, closed) = match self {
            Self::Vegas(counters) => (counters.opened, counters.closed),
            Self::Medx(counters) => (counters.opened, counters.closed),
        };
        opened.saturating_sub(closed)
    }

    /// Number of corrections of windows and thresholds.
    #[must_use]
    pub const fn corrected(&self) -> u64 {
        match self {
            Self::Vegas(counters) => counters.corrected,
            Self::Medx(counters) => counters.corrected,
        }
    }

    /// Names and values for display.
    #[must_use]
    pub fn rows(&self) -> Vec<(&'static str, u64)> {
        match *self {
            Self::Vegas(counters) => vec![
                ("open connections", self.open()),
                ("connections since loading", counters.opened),
                ("evaluated round trips", counters.rounds),
                ("window grew", counters.grown),
                ("window unchanged", counters.unchanged),
                ("window shrank", counters.shrunk),
                ("recoveries", counters.losses),
                ("timeouts", counters.timeouts),
                ("corrected windows", counters.corrected),
            ],
            Self::Medx(counters) => vec![
                ("open connections", self.open()),
                ("connections since loading", counters.opened),
                ("acknowledgements with delay", counters.delays),
                ("acknowledgements without delay", counters.without_delay),
                ("losses classified as error", counters.error),
                ("losses classified as congestion", counters.congestion),
                ("losses not classified", counters.unclassified),
                ("timeouts among the losses", counters.timeouts),
                ("classified with clock offset", counters.offset_removed),
                ("corrected windows", counters.corrected),
            ],
        }
    }
}

/// Number of classifications stored for a connection.
const CLASSIFICATIONS_MAX: usize = 16;

/// Size in bytes of `struct connection` in `bpf/loss_classification.h`, and maximum size of
/// counters.
pub(crate) const CONNECTION_LEN: usize = 88 + 8 * CLASSIFICATIONS_MAX;
pub(crate) const COUNTERS_LEN: usize = 80;
/// Size in bytes of `struct settings`.
pub(crate) const SETTINGS_LEN: usize = 16;

impl VegasCounters {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let at = |index: usize| long(bytes, index);
        Self {
            opened: at(0),
            closed: at(1),
            rounds: at(2),
            grown: at(3),
            unchanged: at(4),
            shrunk: at(5),
            losses: at(6),
            timeouts: at(7),
            corrected: at(8),
        }
    }
}

impl MedxCounters {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let at = |index: usize| long(bytes, index);
        Self {
            opened: at(0),
            closed: at(1),
            delays: at(2),
            without_delay: at(3),
            error: at(4),
            congestion: at(5),
            unclassified: at(6),
            timeouts: at(7),
            offset_removed: at(8),
            corrected: at(9),
        }
    }
}

/// `ERROR` of `enum cause`.
const ERROR: u32 = 1;

impl ConnectionCounters {
    /// The classifications after the first `seen` ones, oldest first; at most the 16 newest.
    pub fn classifications_since(
        &self,
        seen: u32,
    ) -> impl Iterator<Item = LossClassification> + '_ {
        let oldest = self.classified.saturating_sub(CLASSIFICATIONS_MAX as u32);
        (seen.max(oldest)..self.classified)
            .map(|number| self.newest[number as usize % CLASSIFICATIONS_MAX])
    }

    pub(crate) fn read(bytes: &[u8]) -> Self {
        let at = |offset: usize| gridhaul_linux::bpf::read_u32(bytes, offset).unwrap_or(0);
        // Offsets of the fields of `struct connection` in `bpf/loss_classification.h`: 52 is
        // `arrived`, 60 `measured_delay`, 64 `has_measured_delay`, 68 to 84 the counters, 88 the
        // classifications.
        let newest = |index: usize| LossClassification {
            first_missing: at(88 + 8 * index),
            congestion: at(92 + 8 * index) != ERROR,
        };
        Self {
            delays: at(52),
            own_delay_us: (at(64) != 0).then(|| at(60)),
            without_delay: at(68),
            error: at(72),
            congestion: at(76),
            unclassified: at(80),
            classified: at(84),
            newest: std::array::from_fn(newest),
        }
    }
}

fn long(bytes: &[u8], index: usize) -> u64 {
    let bytes = bytes.get(8 * index..8 * index + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_classifications_are_read_in_order() {
        let mut bytes = vec![0; CONNECTION_LEN];
        let mut put = |at: usize, word: u32| bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        put(84, 18);
        for number in 0..18_usize {
            let offset = 88 + 8 * (number % CLASSIFICATIONS_MAX);
            put(offset, 1000 * number as u32);
            put(offset + 4, if number == 17 { 2 } else { ERROR });
        }
        let read = ConnectionCounters::read(&bytes);
        let since = |seen| read.classifications_since(seen).collect::<Vec<_>>();
        assert_eq!(since(18), []);
        let [before, last] = since(16)[..] else { panic!("{:?}", since(16)) };
        assert_eq!(before, LossClassification { first_missing: 16_000, congestion: false });
        assert_eq!(last, LossClassification { first_missing: 17_000, congestion: true });
        assert_eq!((since(0).len(), since(0)[0].first_missing), (CLASSIFICATIONS_MAX, 2_000));
    }
}
