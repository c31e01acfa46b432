//! Power lines: a class and a distance that determine rate, delay, shadowing and noise.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Direction, Noise, NoiseTiming, Shadowing};
use crate::units::{BitRate, Decibel, Distance, Duration, Probability};

/// A power line with regenerators, after paper `plc`. It sets `rate` and `delay` of both directions
/// and, on request, `shadowing` and `noise`; keys of a direction itself take precedence. The merged
/// scenario shows the result.
///
/// `delay` = spans × `processing` + distance × 5 µs/km, where spans = distance / `span`, rounded
/// up. The propagation speed is 200 m/µs, two thirds of the speed of light, as in a cable insulated
/// with XLPE (Thue, "Electrical Power Cable Engineering", section 20.7: 659 ft/µs).
/// `shadowing.margin` = `budget` − `attenuation_per_km` × length of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PowerLine {
    /// Class of the line.
    pub class: PowerLineClass,
    /// Length of the line. Absent: one hop as in the paper, with the delay `processing` and the
    /// attenuation of a full span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<Distance>,
    /// Largest distance between two regenerators, which are equally spaced. Absent: 800 m, the
    /// largest value in the paper (section II.C: 200 m to 800 m); `narrowband` 3 km (assumed).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Distance>,
    /// Processing time of a packet in the device at the end of each span. The paper gives 25 ms for
    /// each hop, caused by the devices (Table II); taken as a round-trip time, half per direction.
    #[serde(default = "processing")]
    pub processing: Duration,
    /// Whether the line has `shadowing`, with a deviation of 4 dB and a coherence time of 1 s
    /// (assumed).
    #[serde(default)]
    pub shadowing: bool,
    /// Whether the line has impulsive `noise`, with random bursts of 100 µs, one per second on each
    /// span. A burst destroys each packet that it overlaps; on `narrowband`, with its long symbols,
    /// 10 % of them (all assumed).
    #[serde(default)]
    pub noise: bool,
    /// Attenuation per kilometre. Absent (assumed): `narrowband` 2 dB, other classes 50 dB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attenuation_per_km: Option<Decibel>,
    /// Link budget: attenuation at which the mean level equals the threshold of the receiver.
    /// Absent (assumed): 10 dB more than the attenuation of a full span: `narrowband` 16 dB, other
    /// classes 50 dB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Decibel>,
}

/// Power line class, after paper `plc`, Table II.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PowerLineClass {
    /// 130 kbit/s (NB-PLC).
    Narrowband,
    /// 3 Mbit/s (BB-PLC).
    Broadband,
    /// 10 Mbit/s (FBB-PLC, hypothetical in the paper).
    FutureBroadband,
}

/// A direction as written in a file, where a power line may set rate and delay.
pub(super) type DirectionTable = Direction<Option<BitRate>, Option<Duration>>;

/// Removes from the tree of a scenario the values that its power lines set for their directions, so
/// that a change of the line takes effect; except a table of which a part `is_set_below` a key. A
/// value that the direction itself gives stays, unless it equals that of the line.
pub(super) fn remove_derived(tree: &mut Json, is_set_below: impl Fn(&str) -> bool) {
    for (name, link) in tree.get_mut("link").and_then(Json::as_object_mut).into_iter().flatten() {
        let line = link.get("power_line").and_then(|line| PowerLine::deserialize(line).ok());
        let Some(line) = line else { continue };
        let given = serde_json::to_value(line.direction()).unwrap_or_default();
        for side in ["both", "forward", "reverse"] {
            let Some(direction) = link.get_mut(side).and_then(Json::as_object_mut) else {
                continue;
            };
            for key in ["rate", "delay", "shadowing", "noise"] {
                let is_given = direction.get(key).is_some_and(|value| *value == given[key]);
                if is_given && !is_set_below(&format!("link.{name}.{side}.{key}")) {
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
            shadowing: self.shadowing.then(|| self.shadowing_of_span()),
            noise: if self.noise { vec![self.noise_of_spans()] } else { Vec::new() },
            ..Direction::new(self.class.rate(), self.delay())
        }
    }

    /// Number of spans, each followed by a regenerator or the end of the line; at least 1.
    #[must_use]
    pub fn spans(&self) -> u64 {
        let length = self.distance.map_or(0, Distance::as_millimetres);
        length.div_ceil(self.longest_span().as_millimetres().max(1)).max(1)
    }

    /// Delay from one end of the line to the other, without serialisation.
    #[must_use]
    pub fn delay(&self) -> Duration {
        // 5 ns per metre: 200 m/µs.
        let propagation = self.distance.unwrap_or_default().as_millimetres().div_ceil(200);
        self.processing * self.spans() + Duration::from_nanos(propagation)
    }

    /// The direction with its own keys, and those of the line for keys that it does not give.
    pub(super) fn complete(&self, written: Option<DirectionTable>) -> Direction {
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

    fn shadowing_of_span(&self) -> Shadowing {
        let length = match self.distance {
            Some(distance) => distance.as_kilometres() / self.spans() as f64,
            None => self.longest_span().as_kilometres(),
        };
        let per_km = self.attenuation_per_km.unwrap_or(self.class.attenuation_per_km());
        let attenuation = (f64::from(per_km.as_thousandths()) * length).round();
        let budget = self.budget.unwrap_or(self.class.budget());
        Shadowing {
            margin: budget - Decibel::from_thousandths(attenuation as i32),
            deviation: Decibel::new(4),
            coherence: Some(Duration::from_secs(1)),
            spans: u32::try_from(self.spans()).unwrap_or(u32::MAX),
        }
    }

    /// Noise of all spans together. Bursts are rare, so that the superposition is approximately one
    /// noise process with a proportionally higher rate.
    fn noise_of_spans(&self) -> Noise {
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

/// Half of the round-trip time of 25 ms per hop (Table II).
const fn processing() -> Duration {
    Duration::from_micros(12_500)
}
