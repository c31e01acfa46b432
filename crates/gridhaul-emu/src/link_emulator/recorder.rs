//! Time series of queues and throughput.

use gridhaul_scenario::answer::Recording;
use gridhaul_scenario::scenario::Directions;
use gridhaul_scenario::units::{Duration, Instant};

use super::emulator::EmulatedLinks;

/// Samples the first member of each row of directions at regular intervals.
#[derive(Debug)]
pub(crate) struct Recorder {
    interval: Option<Duration>,
    due: Instant,
    last: Instant,
    /// Index of the first direction of each row, and the bytes that had left it at the previous
    /// sample.
    rows: Vec<(u32, u64)>,
    recording: Recording,
}

impl Recorder {
    /// Records nothing if `interval` is `None`.
    pub(crate) fn new(directions: &Directions, interval: Option<Duration>) -> Self {
        let row_of = directions.row_of();
        let first =
            |row: usize| row_of.iter().position(|&of| of as usize == row).unwrap_or(0) as u32;
        Self {
            interval,
            due: if interval.is_some() { Instant::ZERO } else { Instant::NEVER },
            last: Instant::ZERO,
            rows: (0..directions.rows().len()).map(|row| (first(row), 0)).collect(),
            // In memory, because a full disk cache would delay the emulated packets.
            recording: Recording::new(None),
        }
    }

    /// Time of the next sample.
    pub(crate) const fn due(&self) -> Instant {
        self.due
    }

    /// Takes a sample, if one is due.
    pub(crate) fn sample(&mut self, now: Instant, links: &mut EmulatedLinks) {
        let Some(interval) = self.interval.filter(|_| now >= self.due) else { return };
        for (row, (first, before)) in self.rows.iter_mut().enumerate() {
            let link = links.links.entry_mut(*first);
            self.recording.on_queue(now, row as u32, link.direction.queue_length(now));
            let arrived = link.account.arrived_bytes;
            let bits = (arrived - std::mem::replace(before, arrived)) * 8;
            if now > self.last {
                let rate = bits as f64 / now.since(self.last).as_secs_f64();
                self.recording.on_throughput(now, row as u32, rate);
            }
        }
        self.last = now;
        self.due = self.due.max(now) + interval;
    }

    pub(crate) fn into_recording(self) -> Recording {
        self.recording
    }
}
