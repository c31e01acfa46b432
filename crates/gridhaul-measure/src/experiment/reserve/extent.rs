//! Extent of the measurements.

use std::time;

use gridhaul_scenario::units::Duration;

use super::plan::{AMQP, PROTOCOLS, Variant};

/// Number of repetitions from which order statistics give a 95 % interval of the median.
pub(super) const REPETITIONS: u32 = 6;

/// Lengths of the outages. The report has 10 s (section 3.2).
const OUTAGES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];

/// Longer than two intervals of keep-alive, after which a client without it notices the loss of its
/// connection.
const QUICK_OUTAGES: [Duration; 1] = [Duration::from_secs(3)];

/// Extent of the measurements.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Protocols of each system.
    pub(super) protocols: [&'static [&'static str]; 3],
    pub(super) rates: &'static [u32],
    /// Rates of Sampled Values above those of the matrix.
    pub(super) fast_rates: &'static [u32],
    pub(super) variants: &'static [Variant],
    /// Whether 100 values, JSON, and mosquitto are measured.
    pub(super) encodings: bool,
    /// Repetitions of each measurement that the machine does not disturb.
    pub(super) repetitions: u32,
    /// Messages of each series of test 8.
    pub(super) series: u64,
    /// Lengths of the outages; the last is that of the statements.
    pub(super) outages: &'static [Duration],
    quick: bool,
}

impl Extent {
    /// The matrix of the report, or its reduced form.
    pub(super) const fn new(quick: bool, repetitions: u32) -> Self {
        const PACKETS: &[&str] = &["udp", "mqtt"];
        let protocols: [&[&str]; 3] =
            if quick { [PACKETS, PACKETS, &["sv", "mqtt", AMQP]] } else { [&PROTOCOLS; 3] };
        Self {
            protocols,
            rates: if quick { &[100, 1_000] } else { &[10, 100, 1_000] },
            fast_rates: if quick { &[] } else { &[2_000, 4_000] },
            variants: if quick {
                &[]
            } else {
                &[Variant::Downlink, Variant::BelowCapacity, Variant::AboveCapacity]
            },
            encodings: !quick,
            repetitions,
            series: if quick { 200 } else { 10_000 },
            outages: if quick { &QUICK_OUTAGES } else { &OUTAGES },
            quick,
        }
    }

    /// Messages of a repetition, and those of its warm-up: a second, or a shorter time with
    /// `quick`.
    pub(super) const fn messages(&self, rate: u32) -> (u32, u32) {
        match (rate, self.quick) {
            (..100, _) => (4 * rate, rate),
            (..1_000, false) => (2 * rate, rate),
            (_, false) => (rate * 3 / 2, rate),
            (_, true) => (rate / 2, rate / 5),
        }
    }

    /// Whether clients of every kind are interrupted by the end of RabbitMQ, which starts slowly.
    pub(super) const fn has_all_outages(&self) -> bool {
        !self.quick
    }

    /// Time of a repetition with its connections.
    pub(super) fn repetition(&self, rate: u32) -> time::Duration {
        let (messages, warm_up) = self.messages(rate);
        time::Duration::from_secs_f64(f64::from(messages + warm_up) / f64::from(rate) + 0.6)
    }
}
