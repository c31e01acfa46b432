//! Power lines: a name and a distance in place of rates, delays, attenuation and noise.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Direction, Noise, NoiseTiming, Shadowing};
use crate::units::{BitRate, Decibel, Distance, Duration, Probability};

/// A power line with regenerators, after paper `plc`. It gives both directions their `rate` and
/// `delay` and, if asked for, `shadowing` and `noise`; what a direction says itself comes first. The
/// merged scenario shows the result.
///
/// `delay` = spans × `processing` + distance × 5 µs/km, where spans = distance / `span`, rounded up.
/// The signal travels at 200 m/µs, two thirds of the speed of light, as in a cable insulated with
/// XLPE (Thue, "Electrical Power Cable Engineering", section 20.7: 659 ft/µs).
/// `shadowing.margin` = `budget` − `attenuation_per_km` × length of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerLine {
    /// Which kind of line.
    pub class: PowerLineClass,
    /// Length of the line. Absent: one hop of the paper, whose delay is `processing` alone and whose
    /// attenuation is that of a whole span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<Distance>,
    /// Longest way between two regenerators; they stand at equal distances. Absent: 800 m, the
    /// longest that the paper names (section II.C: 200 m to 800 m); `narrowband` 3 km, assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Distance>,
    /// Time that a packet spends in the unit at the end of each span. The paper gives 25 ms for each
    /// hop and says that the units take them (Table II); read as a round trip, half for each way.
    #[serde(default = "processing")]
    pub processing: Duration,
    /// Whether attenuation varies: `shadowing` with a deviation of 4 dB and a coherence of 1 s (assumed).
    #[serde(default)]
    pub shadowing: bool,
    /// Whether there is impulsive noise: `noise` with random bursts of 100 µs, one a second on each
    /// span. A burst destroys a packet that it meets; on `narrowband`, with its long symbols, one in
    /// ten (all assumed).
    #[serde(default)]
    pub noise: bool,
    /// Attenuation of a kilometre. Absent (assumed): `narrowband` 2 dB, else 50 dB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attenuation_per_km: Option<Decibel>,
    /// Attenuation at which the mean level is just at the receiver's threshold. Absent (assumed): 10 dB
    /// more than a span of the usual length takes, so `narrowband` 16 dB, else 50 dB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Decibel>,
}

/// A kind of power line: the three of paper `plc`, Table II.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PowerLineClass {
    /// 130 kbit/s (NB-PLC).
    Narrowband,
    /// 3 Mbit/s (BB-PLC).
    Broadband,
    /// 10 Mbit/s (FBB-PLC, hypothetical in the paper).
    FutureBroadband,
}

/// What a direction says itself where a power line may say the rest.
pub(super) type WrittenDirection = Direction<Option<BitRate>, Option<Duration>>;

/// Removes from a scenario as a tree what its power lines gave to their directions, so that a change
/// of the line changes it; but not a table of which a part `is_set_below` a key. What a direction
/// says itself stays, unless it is just what the line would say.
pub(super) fn forget(tree: &mut Json, is_set_below: impl Fn(&str) -> bool) {
    for (name, link) in tree.get_mut("link").and_then(Json::as_object_mut).into_iter().flatten() {
        let line = link.get("power_line").and_then(|line| PowerLine::deserialize(line).ok());
        let Some(line) = line else { continue };
        let given = serde_json::to_value(line.direction()).unwrap_or_default();
        for way in ["both", "forward", "reverse"] {
            let Some(direction) = link.get_mut(way).and_then(Json::as_object_mut) else { continue };
            for key in ["rate", "delay", "shadowing", "noise"] {
                let is_given = direction.get(key).is_some_and(|value| *value == given[key]);
                if is_given && !is_set_below(&format!("link.{name}.{way}.{key}")) {
                    direction.shift_remove(key);
                }
            }
        }
    }
}

impl PowerLine {
    /// One direction of the line.
    #[must_use]
    pub fn direction(&self) -> Direction {
        Direction {
            shadowing: self.shadowing.then(|| self.level()),
            noise: if self.noise { vec![self.bursts()] } else { Vec::new() },
            ..Direction::new(self.class.rate(), self.delay())
        }
    }

    /// Number of spans, each with a regenerator or the end of the line behind it; at least 1.
    #[must_use]
    pub fn spans(&self) -> u64 {
        let length = self.distance.map_or(0, Distance::as_millimetres);
        length.div_ceil(self.longest_span().as_millimetres().max(1)).max(1)
    }

    /// Time from one end of the line to the other, without the time on the wire.
    #[must_use]
    pub fn delay(&self) -> Duration {
        // 5 ns for a metre: 200 m/µs.
        let travel = self.distance.unwrap_or_default().as_millimetres().div_ceil(200);
        self.processing * self.spans() + Duration::from_nanos(travel)
    }

    /// What the direction says, and where it is silent what the line does.
    pub(super) fn complete(&self, written: Option<WrittenDirection>) -> Direction {
        let line = self.direction();
        let Some(written) = written else { return line };
        let noise = if written.noise.is_empty() { line.noise } else { written.noise.clone() };
        Direction {
            shadowing: written.shadowing.or(line.shadowing),
            noise,
            ..written.or(line.rate, line.delay)
        }
    }

    fn longest_span(&self) -> Distance {
        self.span.unwrap_or(self.class.span())
    }

    fn level(&self) -> Shadowing {
        let length = match self.distance {
            Some(distance) => distance.as_kilometres() / self.spans() as f64,
            None => self.longest_span().as_kilometres(),
        };
        let per_km = self.attenuation_per_km.unwrap_or(self.class.attenuation_per_km());
        let taken = (f64::from(per_km.as_thousandths()) * length).round();
        let budget = self.budget.unwrap_or(self.class.budget());
        Shadowing {
            margin: budget - Decibel::from_thousandths(taken as i32),
            deviation: Decibel::new(4),
            coherence: Some(Duration::from_secs(1)),
            spans: u32::try_from(self.spans()).unwrap_or(u32::MAX),
        }
    }

    /// Each span adds its bursts to the line. They are rare, so that all together are nearly one such
    /// noise with as many times more bursts.
    fn bursts(&self) -> Noise {
        Noise {
            length: Duration::from_micros(100),
            gap: Duration::from_secs(1) / self.spans(),
            loss: self.class.loss_by_burst(),
            timing: NoiseTiming::Random,
        }
    }
}

impl PowerLineClass {
    /// Rate of the line (Table II).
    #[must_use]
    pub const fn rate(self) -> BitRate {
        BitRate::from_bits_per_sec(match self {
            Self::Narrowband => 130_000,
            Self::Broadband => 3_000_000,
            Self::FutureBroadband => 10_000_000,
        })
    }

    const fn span(self) -> Distance {
        match self {
            Self::Narrowband => Distance::from_metres(3_000),
            Self::Broadband | Self::FutureBroadband => Distance::from_metres(800),
        }
    }

    const fn attenuation_per_km(self) -> Decibel {
        match self {
            Self::Narrowband => Decibel::new(2),
            Self::Broadband | Self::FutureBroadband => Decibel::new(50),
        }
    }

    const fn budget(self) -> Decibel {
        match self {
            Self::Narrowband => Decibel::new(16),
            Self::Broadband | Self::FutureBroadband => Decibel::new(50),
        }
    }

    fn loss_by_burst(self) -> Probability {
        match self {
            Self::Narrowband => Probability::new(0.1).unwrap_or_default(),
            Self::Broadband | Self::FutureBroadband => Probability::ONE,
        }
    }
}

/// 25 ms a hop, there and back (Table II).
const fn processing() -> Duration {
    Duration::from_micros(12_500)
}
