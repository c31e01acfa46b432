//! Load-dependent latency: the GPRS uplink of paper `hybrid`, section 2.

use std::collections::VecDeque;

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{BitRate, Duration, Instant};

use crate::random::RandomStream;

/// The additional delay of each packet.
///
/// Paper `hybrid`, section 2.2, reports two modes of a terminal that uses only its uplink: "a
/// stationary, oscillating mode for throughput lower than 10 kbit/s" (at most 2 s, section 2.3) and
/// "a quasi-linearly, increasing mode involving a latency jump from 2.4 s to 4 s, for throughput
/// greater than 10 kbit/s". With the downlink in use as well, latency is "around 1 s (despite many
/// oscillations)" (section 2.1). The model reproduces these end-to-end measurements; the mechanism
/// within the network is not modelled.
#[derive(Debug, Clone)]
pub(super) struct LoadLatency {
    keys: scenario::LoadLatency,
    load: LoadWindow,
    /// Start of the current period above the critical load, without use of the paired direction.
    above_since: Option<Instant>,
    paired_until: Option<Instant>,
    phase: Duration,
}

impl LoadLatency {
    /// The state of an idle link, at a random phase of the oscillation.
    pub(super) fn new(keys: &scenario::LoadLatency, mut random: RandomStream) -> Self {
        Self {
            load: LoadWindow::new(keys.memory),
            above_since: None,
            paired_until: None,
            phase: random.uniform(keys.period),
            keys: keys.clone(),
        }
    }

    /// The paired direction carries a packet.
    pub(super) fn note_paired_use(&mut self, now: Instant) {
        self.paired_until = Some(now + self.keys.memory);
    }

    /// The additional delay of a packet that is accepted at `now`.
    pub(super) fn addition(&mut self, now: Instant, bytes: u32) -> Duration {
        let share = self.load.share_of(self.keys.critical, now);
        self.load.add(now, bytes);
        let keys = &self.keys;
        if self.paired_until.is_some_and(|until| now <= until) {
            self.above_since = None;
            return self.oscillating(keys.paired, now);
        }
        if share <= 1.0 {
            self.above_since = None;
            let span = self.stationary_mean().saturating_sub(keys.idle);
            return self.oscillating(keys.idle + span.mul_f64(share), now);
        }
        let since = *self.above_since.get_or_insert(now);
        self.above_critical(now, now.since(since))
    }

    /// The drift, followed by the jump.
    fn above_critical(&self, now: Instant, elapsed: Duration) -> Duration {
        let keys = &self.keys;
        if elapsed < keys.drift_time {
            let from = self.stationary_mean();
            let progress = elapsed.as_nanos() as f64 / keys.drift_time.as_nanos() as f64;
            return from + keys.drift_max.saturating_sub(from).mul_f64(progress);
        }
        self.oscillating(keys.jump + keys.oscillation, now)
    }

    /// Mean of the stationary mode at the critical load.
    fn stationary_mean(&self) -> Duration {
        self.keys.stationary.saturating_sub(self.keys.oscillation)
    }

    /// `mean` plus the oscillation: a triangle wave, because a sine is not the same on every
    /// platform.
    fn oscillating(&self, mean: Duration, now: Instant) -> Duration {
        if self.keys.period.is_zero() {
            return mean;
        }
        let period = self.keys.period.as_nanos();
        let position = (now + self.phase).as_nanos() % period;
        let position = position as f64 / period as f64;
        let rise = 2.0 - 4.0 * (position - 0.5).abs();
        (mean + self.keys.oscillation.mul_f64(rise)).saturating_sub(self.keys.oscillation)
    }
}

/// Sliding window over the sizes of recent packets.
#[derive(Debug, Clone)]
struct LoadWindow {
    memory: Duration,
    packets: VecDeque<(Instant, u32)>,
    bytes: u64,
}

impl LoadWindow {
    const fn new(memory: Duration) -> Self {
        Self { memory, packets: VecDeque::new(), bytes: 0 }
    }

    fn add(&mut self, now: Instant, bytes: u32) {
        self.packets.push_back((now, bytes));
        self.bytes += u64::from(bytes);
    }

    /// Load over the last `memory` as a share of `rate`, without the current packet, so that
    /// equally spaced packets of exactly that rate do not exceed it.
    fn share_of(&mut self, rate: BitRate, now: Instant) -> f64 {
        while let Some(&(at, bytes)) = self.packets.front()
            && now.since(at) > self.memory
        {
            self.bytes -= u64::from(bytes);
            self.packets.pop_front();
        }
        let allowed = rate.as_bits_per_sec() as f64 * self.memory.as_nanos() as f64;
        if self.bytes == 0 { 0.0 } else { self.bytes as f64 * 8e9 / allowed }
    }
}
