//! Parameters of the algorithms.

use std::path::PathBuf;

use crate::{Algorithm, Error};

/// `TCP_CA_NAME_MAX` without the terminating zero.
const NAME_BYTES: usize = 15;

/// More segments than any queue holds: a larger threshold is an error.
const SEGMENTS_MAX: u32 = 1_000_000;

/// Parameters of algorithms, constant while they are loaded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// Of Vegas.
    pub vegas: VegasSettings,
    /// Of MEDX.
    pub medx: MedxSettings,
    /// Control group (version 2) whose connections may write and read MEDX's option; `None`: the
    /// root group, which contains every process.
    pub cgroup: Option<PathBuf>,
    /// Suffix of the names in the kernel, so that several processes can each load an algorithm; the
    /// complete name has at most 15 bytes. [`status`](crate::status()) does not list algorithms
    /// with a suffix.
    pub suffix: String,
}

/// Thresholds of Vegas, in queued segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VegasSettings {
    /// α: below, the window grows.
    pub alpha: u32,
    /// β: above, it shrinks.
    pub beta: u32,
    /// γ: above, slow start ends.
    pub gamma: u32,
}

/// The thresholds of Brakmo and Peterson 1995 (their Vegas-1,3), and of paper `sa-tcp`.
impl Default for VegasSettings {
    fn default() -> Self {
        Self { alpha: 1, beta: 3, gamma: 1 }
    }
}

impl VegasSettings {
    /// The thresholds α, β and γ; the kernel supports whole segments only.
    ///
    /// # Errors
    /// The index of the first threshold that is not an integer up to 1,000,000: 0 for α, 1 for β, 2
    /// for γ.
    pub fn from_segments(thresholds: [f64; 3]) -> Result<Self, usize> {
        let segments = |threshold: usize| {
            let segments = thresholds[threshold];
            let is_whole =
                (0.0..=f64::from(SEGMENTS_MAX)).contains(&segments) && segments.fract() == 0.0;
            is_whole.then_some(segments as u32).ok_or(threshold)
        };
        Ok(Self { alpha: segments(0)?, beta: segments(1)?, gamma: segments(2)? })
    }
}

/// Parameters of MEDX.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedxSettings {
    /// α: weight of the previous average delay; stored in thousandths.
    pub alpha: f64,
    /// β: ratio to the average delay above which a delay indicates congestion; stored in
    /// thousandths.
    pub beta: f64,
    /// Length of the list of delays that must be rising: 2 to 8.
    pub buffer: u32,
    /// Rule that classifies losses.
    pub classifier: MedxClassifier,
}

/// A rule that classifies losses; the values are those of `enum classifier` in
/// `bpf/loss_classification.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum MedxClassifier {
    /// The criteria of the paper on one-way delays.
    #[default]
    OneWayDelay = 0,
    /// The same criteria on half of the round-trip time.
    HalfRtt = 1,
    /// Every loss is a transmission error.
    AlwaysError = 2,
    /// Every loss is congestion.
    AlwaysCongestion = 3,
}

impl MedxClassifier {
    const ALL: [Self; 4] =
        [Self::OneWayDelay, Self::HalfRtt, Self::AlwaysError, Self::AlwaysCongestion];

    /// The name for display.
    const fn name(self) -> &'static str {
        match self {
            Self::OneWayDelay => "one-way delay",
            Self::HalfRtt => "half of the round-trip time",
            Self::AlwaysError => "always error",
            Self::AlwaysCongestion => "always congestion",
        }
    }
}

/// The values of the paper, section 2, and four delays as in gridhaul's simulator.
impl Default for MedxSettings {
    fn default() -> Self {
        Self { alpha: 0.5, beta: 1.2, buffer: 4, classifier: MedxClassifier::OneWayDelay }
    }
}

impl Settings {
    /// The kernel's name of an algorithm.
    pub(crate) fn name(&self, of: Algorithm) -> Result<String, Error> {
        let name = format!("{}{}", of.name(), self.suffix);
        if name.len() > NAME_BYTES {
            return Err(Error::Settings(format!(
                "the name `{name}` has {} bytes: expected at most {NAME_BYTES}",
                name.len()
            )));
        }
        Ok(name)
    }

    /// The index of the first parameter that an algorithm rejects (α is 0), and the reason; `None`
    /// if all are valid.
    #[must_use]
    pub fn refusal(&self, of: Algorithm) -> Option<(usize, String)> {
        let (vegas, medx) = (self.vegas, self.medx);
        let words = [vegas.alpha, vegas.beta, vegas.gamma];
        let refuse = |parameter: usize, text: String| Some((parameter, text));
        match of {
            Algorithm::Vegas if vegas.alpha > vegas.beta => refuse(
                0,
                format!(
                    "alpha ({}) of Vegas is above beta ({}): expected alpha <= beta",
                    vegas.alpha, vegas.beta
                ),
            ),
            // The difference that is compared is never negative (Brakmo and Peterson 1995, section
            // 3.2).
            Algorithm::Vegas if vegas.alpha == 0 => refuse(
                0,
                "alpha of Vegas is 0: expected at least 1, or the window never grows again after \
                 slow start"
                    .to_owned(),
            ),
            Algorithm::Vegas => {
                let large = words.iter().position(|word| *word > SEGMENTS_MAX)?;
                let all = "alpha, beta and gamma of Vegas are";
                refuse(large, format!("{all} {words:?}: expected up to {SEGMENTS_MAX} segments"))
            }
            Algorithm::Medx if !(0.0..=0.999).contains(&medx.alpha) => {
                refuse(0, format!("alpha of MEDX is {}: expected 0 to 0.999", medx.alpha))
            }
            Algorithm::Medx if !(0.001..=1000.0).contains(&medx.beta) => {
                refuse(1, format!("beta of MEDX is {}: expected 0.001 to 1000", medx.beta))
            }
            Algorithm::Medx if !(2..=8).contains(&medx.buffer) => {
                refuse(2, format!("the buffer of MEDX is {}: expected 2 to 8 delays", medx.buffer))
            }
            Algorithm::Medx => None,
        }
    }

    /// The parameters in the layout of the program (`struct settings`).
    pub(crate) fn words(&self, of: Algorithm) -> Result<Vec<u32>, Error> {
        if let Some((_, text)) = self.refusal(of) {
            return Err(Error::Settings(text));
        }
        let (vegas, medx) = (self.vegas, self.medx);
        let thousandths = |number: f64| (number * 1000.0).round() as u32;
        Ok(match of {
            Algorithm::Vegas => vec![vegas.alpha, vegas.beta, vegas.gamma],
            Algorithm::Medx => vec![
                thousandths(medx.alpha),
                thousandths(medx.beta),
                medx.buffer,
                medx.classifier as u32,
            ],
        })
    }
}

/// The parameters of a loaded algorithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LoadedSettings {
    /// Of Vegas.
    Vegas(VegasSettings),
    /// Of MEDX, with α and β rounded to thousandths.
    Medx(MedxSettings),
}

impl LoadedSettings {
    /// The inverse of [`Settings::words`].
    pub(crate) fn read([first, second, third, fourth]: [u32; 4], of: Algorithm) -> Self {
        let share = |thousandths: u32| f64::from(thousandths) / 1000.0;
        match of {
            Algorithm::Vegas => {
                Self::Vegas(VegasSettings { alpha: first, beta: second, gamma: third })
            }
            Algorithm::Medx => {
                let classifier =
                    MedxClassifier::ALL.into_iter().find(|classifier| *classifier as u32 == fourth);
                Self::Medx(MedxSettings {
                    alpha: share(first),
                    beta: share(second),
                    buffer: third,
                    classifier: classifier.unwrap_or_default(),
                })
            }
        }
    }

    /// Names and values for display.
    #[must_use]
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        match *self {
            Self::Vegas(settings) => vec![
                ("alpha, segments", settings.alpha.to_string()),
                ("beta, segments", settings.beta.to_string()),
                ("gamma, segments", settings.gamma.to_string()),
            ],
            Self::Medx(settings) => vec![
                ("alpha", settings.alpha.to_string()),
                ("beta", settings.beta.to_string()),
                ("delays in the list", settings.buffer.to_string()),
                ("classifier", settings.classifier.name().to_owned()),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_conversion_to_words() {
        let vegas = VegasSettings { alpha: 2, beta: 4, gamma: 0 };
        let medx = MedxSettings {
            alpha: 0.875,
            beta: 1.05,
            buffer: 8,
            classifier: MedxClassifier::HalfRtt,
        };
        let settings = Settings { vegas, medx, ..Settings::default() };
        let read = |of| {
            let words = settings.words(of).unwrap();
            let word = |index: usize| words.get(index).copied().unwrap_or(0);
            LoadedSettings::read([0, 1, 2, 3].map(word), of)
        };
        assert_eq!(read(Algorithm::Vegas), LoadedSettings::Vegas(vegas));
        assert_eq!(read(Algorithm::Medx), LoadedSettings::Medx(medx));
    }

    #[test]
    fn invalid_settings_are_rejected() {
        let vegas = VegasSettings { alpha: 4, ..VegasSettings::default() };
        let settings = Settings { vegas, ..Settings::default() };
        let error = settings.words(Algorithm::Vegas).unwrap_err();
        assert_eq!(
            error.to_string(),
            "alpha (4) of Vegas is above beta (3): expected alpha <= beta"
        );
        let vegas = VegasSettings { alpha: 0, beta: 0, gamma: 1 };
        let error = Settings { vegas, ..Settings::default() }.words(Algorithm::Vegas).unwrap_err();
        assert!(
            error.to_string().starts_with("alpha of Vegas is 0: expected at least 1"),
            "{error}"
        );
        let vegas = VegasSettings { alpha: 2, beta: 2, gamma: 0 };
        let settled = Settings { vegas, ..Settings::default() };
        assert_eq!(settled.words(Algorithm::Vegas).unwrap(), [2, 2, 0], "a queue of two segments");
        let vegas = VegasSettings { beta: u32::MAX, ..VegasSettings::default() };
        let error = Settings { vegas, ..Settings::default() }.words(Algorithm::Vegas).unwrap_err();
        assert!(error.to_string().contains("expected up to 1000000 segments"), "{error}");
        assert_eq!(settings.words(Algorithm::Medx).unwrap(), [500, 1200, 4, 0]);
        let medx = MedxSettings::default();
        for (alpha, beta, buffer) in
            [(1.0, 1.2, 4), (0.5, 0.0, 4), (0.5, f64::NAN, 4), (0.5, 1.2, 9)]
        {
            let settings =
                Settings { medx: MedxSettings { alpha, beta, buffer, ..medx }, ..settings.clone() };
            assert!(settings.words(Algorithm::Medx).is_err(), "{alpha} {beta} {buffer}");
        }
        let suffix = "_much_too_long".to_owned();
        let error = Settings { suffix, ..settings }.name(Algorithm::Vegas).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the name `gh_vegas_much_too_long` has 22 bytes: expected at most 15"
        );
    }
}
