//! Traffic profiles of smart-grid applications: paper `plc`, Table I.

use serde::{Deserialize, Serialize};

use super::{Load, Periodic};
use crate::units::{Bytes, Duration};

/// Traffic of a smart-grid application, after paper `plc`, Table I: a periodic load with a period
/// and a deadline from the table.
///
/// The table prints the deadlines of `real_time_metering` and `wide_area_measurement` in seconds.
/// With a message every 12 to 100 ms, such a deadline is hundreds of periods long; milliseconds
/// were probably meant. The printed deadlines are checked unless the flow has its own `deadline`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// The application.
    pub profile: ApplicationProfile,
    /// Time between two messages, within the range of the table. Absent: default of the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// Size of a message. Absent: default of the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Whether all members of a group send at the same times. Otherwise each has its own random
    /// phase.
    #[serde(default)]
    pub synchronised: bool,
}

/// A smart-grid application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApplicationProfile {
    /// Meter readings, events and alarms (AMR): 200 B every 300 s to 3600 s; default 15 min, a
    /// usual metering interval. No deadline.
    MeterReading,
    /// Real-time metering: a message every 12 ms to 20 ms; default 20 ms. The table gives no size;
    /// 200 B, the size of a meter reading, is assumed. Deadline 15 s.
    RealTimeMetering,
    /// Real-time prices: a message every 900 s to 3600 s; default 900 s. The table gives no size;
    /// 200 B is assumed. Delay-tolerant: no deadline.
    Pricing,
    /// Synchrophasors: a message every 40 ms to 100 ms; default 40 ms (25 frames per second). The
    /// table gives no size; 100 B, a frame with a few phasors, is assumed. Deadline 20 s.
    WideAreaMeasurement,
}

impl Application {
    /// The equivalent periodic load.
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

    /// The deadline as printed in the table.
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
