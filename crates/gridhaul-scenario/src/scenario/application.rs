//! Application profiles of the smart grid: paper `plc`, Table I.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Load, Periodic};
use crate::units::{Bytes, Duration};

/// What an application of the smart grid sends, after paper `plc`, Table I: a periodic load whose
/// period is one of the table's, with the table's deadline.
///
/// The table prints the deadlines of `real_time_metering` and `wide_area_measurement` in seconds.
/// With a message every 12 to 100 ms they would be hundreds of periods long, so milliseconds were
/// probably meant; the printed ones are judged unless the flow has a `deadline` of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// Which application.
    pub profile: ApplicationProfile,
    /// Time between two messages, within the table's range. Absent: see the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// Size of a message. Absent: see the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// All members of a group send together. Otherwise each has a random phase of its own.
    #[serde(default)]
    pub synchronised: bool,
}

/// An application of the smart grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApplicationProfile {
    /// Meter readings, events and alarms (AMR): 200 B every 300 s to 3600 s; here 15 min, a usual
    /// interval of meters. No deadline.
    MeterReading,
    /// Real-time metering: a message every 12 ms to 20 ms; here 20 ms. The table gives no size;
    /// assumed are the 200 B of a reading. Deadline 15 s.
    RealTimeMetering,
    /// Real-time prices: a message every 900 s to 3600 s; here 900 s. The table gives no size;
    /// assumed are 200 B. Delay-tolerant: no deadline.
    Pricing,
    /// Synchrophasors: a message every 40 ms to 100 ms; here 40 ms, 25 frames a second. The table
    /// gives no size; assumed are 100 B, a frame with a handful of phasors. Deadline 20 s.
    WideAreaMeasurement,
}

impl Application {
    /// The load that it stands for.
    #[must_use]
    pub fn load(&self) -> Load {
        Load::Periodic(Periodic {
            size: self.size.unwrap_or(self.profile.size()),
            every: self.every.unwrap_or(self.profile.every()),
            jitter: Duration::ZERO,
            synchronised: self.synchronised,
        })
    }
}

impl ApplicationProfile {
    /// Shortest and longest time between two messages in the table.
    #[must_use]
    pub const fn periods(self) -> [Duration; 2] {
        match self {
            Self::MeterReading => [Duration::from_secs(300), Duration::from_secs(3600)],
            Self::RealTimeMetering => [Duration::from_millis(12), Duration::from_millis(20)],
            Self::Pricing => [Duration::from_secs(900), Duration::from_secs(3600)],
            Self::WideAreaMeasurement => [Duration::from_millis(40), Duration::from_millis(100)],
        }
    }

    /// The deadline that the table prints.
    #[must_use]
    pub const fn deadline(self) -> Option<Duration> {
        match self {
            Self::MeterReading | Self::Pricing => None,
            Self::RealTimeMetering => Some(Duration::from_secs(15)),
            Self::WideAreaMeasurement => Some(Duration::from_secs(20)),
        }
    }

    const fn every(self) -> Duration {
        match self {
            Self::MeterReading | Self::Pricing => Duration::from_secs(900),
            Self::RealTimeMetering => Duration::from_millis(20),
            Self::WideAreaMeasurement => Duration::from_millis(40),
        }
    }

    const fn size(self) -> Bytes {
        match self {
            Self::MeterReading | Self::RealTimeMetering | Self::Pricing => Bytes::new(200),
            Self::WideAreaMeasurement => Bytes::new(100),
        }
    }
}
