//! What the programs count. The order of fields is that of `struct counters` in `bpf/`.

/// Counters of an algorithm since it was loaded, over all connections and namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counters {
    /// Of `gh_vegas`.
    Vegas(VegasCounters),
    /// Of `gh_medx`.
    Medx(MedxCounters),
}

/// What Vegas did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VegasCounters {
    /// Connections that began.
    pub opened: u64,
    /// Connections that ended.
    pub closed: u64,
    /// Round trips that were judged.
    pub rounds: u64,
    /// Those after which the window grew by a segment, outside of slow start.
    pub grown: u64,
    /// Those after which it stayed.
    pub held: u64,
    /// Those after which it shrank.
    pub shrunk: u64,
    /// Recoveries from losses, and reductions for marks.
    pub losses: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Windows and thresholds put right that no rule leads to: the kernel had not run a program.
    pub corrected: u64,
}

/// What MEDX did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MedxCounters {
    /// Connections that began.
    pub opened: u64,
    /// Connections that ended.
    pub closed: u64,
    /// Acknowledgements of new data with a delay from the receiver.
    pub delays: u64,
    /// Acknowledgements of new data without.
    pub without_delay: u64,
    /// Losses judged to be errors: the window stayed.
    pub error: u64,
    /// Losses judged to be congestion: the window was halved, or collapsed by a timeout.
    pub congestion: u64,
    /// Losses that could not be judged for want of delays, and were taken for congestion.
    pub unclassified: u64,
    /// Timeouts among the losses.
    pub timeouts: u64,
    /// Judgements before which an offset between the clocks was taken out.
    pub offset_removed: u64,
    /// As with Vegas.
    pub corrected: u64,
}

/// What MEDX did for one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnectionCounters {
    /// Delays that came from the receiver.
    pub delays: u32,
    /// Acknowledgements of new data without a delay.
    pub without_delay: u32,
    /// Losses judged to be errors.
    pub error: u32,
    /// Losses judged to be congestion.
    pub congestion: u32,
    /// Losses that could not be judged.
    pub unclassified: u32,
    /// As receiver: how long the newest segment with data was on its way by the two clocks, in microseconds mod
    /// 2^32; `None` before the first.
    pub own_delay_us: Option<u32>,
    /// Losses that were judged so far.
    pub judged: u32,
    /// The newest of them; see [`Self::classifications_since`].
    said: [LossClassification; SAID_MAX],
}

/// A loss that MEDX has judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LossClassification {
    /// Number of the first byte that was missing, as it stands in the packets.
    pub missing: u32,
    /// Taken for congestion, also for want of delays; otherwise for an error.
    pub congestion: bool,
}

impl Counters {
    /// Connections that have the algorithm now.
    #[must_use]
    pub fn open(&self) -> u64 {
        let (opened, closed) = match self {
            Self::Vegas(it) => (it.opened, it.closed),
            Self::Medx(it) => (it.opened, it.closed),
        };
        opened.saturating_sub(closed)
    }

    /// How often a window or a threshold was put right that the kernel had made up.
    #[must_use]
    pub const fn corrected(&self) -> u64 {
        match self {
            Self::Vegas(it) => it.corrected,
            Self::Medx(it) => it.corrected,
        }
    }

    /// Names and numbers, in an order for people.
    #[must_use]
    pub fn rows(&self) -> Vec<(&'static str, u64)> {
        match *self {
            Self::Vegas(it) => vec![
                ("connections open", self.open()),
                ("connections in all", it.opened),
                ("round trips judged", it.rounds),
                ("window grew", it.grown),
                ("window stayed", it.held),
                ("window shrank", it.shrunk),
                ("recoveries", it.losses),
                ("timeouts", it.timeouts),
                ("wrong windows corrected", it.corrected),
            ],
            Self::Medx(it) => vec![
                ("connections open", self.open()),
                ("connections in all", it.opened),
                ("acknowledgements with a delay", it.delays),
                ("acknowledgements without", it.without_delay),
                ("losses judged errors", it.error),
                ("losses judged congestion", it.congestion),
                ("losses not judged", it.unclassified),
                ("timeouts among them", it.timeouts),
                ("judged with clocks apart", it.offset_removed),
                ("wrong windows corrected", it.corrected),
            ],
        }
    }
}

/// Judgements that a connection keeps.
const SAID_MAX: usize = 16;

/// Bytes of the memory of a connection (`struct connection` in `bpf/medx.bpf.c`), and of counters at most.
pub(crate) const CONNECTION_LEN: usize = 88 + 8 * SAID_MAX;
pub(crate) const COUNTERS_LEN: usize = 80;
/// Bytes of settings (`struct settings`).
pub(crate) const SETTINGS_LEN: usize = 12;

impl VegasCounters {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let at = |index: usize| long(bytes, index);
        Self {
            opened: at(0),
            closed: at(1),
            rounds: at(2),
            grown: at(3),
            held: at(4),
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
    /// The judgements behind the first `seen` ones, oldest first; no more than the 16 newest.
    pub fn classifications_since(
        &self,
        seen: u32,
    ) -> impl Iterator<Item = LossClassification> + '_ {
        let kept = self.judged.saturating_sub(SAID_MAX as u32);
        (seen.max(kept)..self.judged).map(|number| self.said[number as usize % SAID_MAX])
    }

    pub(crate) fn read(bytes: &[u8]) -> Self {
        let at = |offset: usize| gridhaul_linux::bpf::read_u32(bytes, offset).unwrap_or(0);
        let said = |index: usize| LossClassification {
            missing: at(88 + 8 * index),
            congestion: at(92 + 8 * index) != ERROR,
        };
        Self {
            delays: at(52),
            own_delay_us: (at(64) != 0).then(|| at(60)),
            without_delay: at(68),
            error: at(72),
            congestion: at(76),
            unclassified: at(80),
            judged: at(84),
            said: std::array::from_fn(said),
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
    fn the_newest_judgements_are_read_in_their_order() {
        let mut bytes = vec![0; CONNECTION_LEN];
        let mut put = |at: usize, word: u32| bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        put(84, 18);
        for number in 0..18_usize {
            let place = 88 + 8 * (number % SAID_MAX);
            put(place, 1000 * number as u32);
            put(place + 4, if number == 17 { 2 } else { ERROR });
        }
        let read = ConnectionCounters::read(&bytes);
        let since = |seen| read.classifications_since(seen).collect::<Vec<_>>();
        assert_eq!(since(18), []);
        let [before, last] = since(16)[..] else { panic!("{:?}", since(16)) };
        assert_eq!(before, LossClassification { missing: 16_000, congestion: false });
        assert_eq!(last, LossClassification { missing: 17_000, congestion: true });
        assert_eq!((since(0).len(), since(0)[0].missing), (SAID_MAX, 2_000));
    }
}
