//! `expected.csv`: published figures, their position in an answer, and their tolerances.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};

use super::select::{Select, serde_as_text};
use super::tolerance_width;

/// One published figure.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    /// Name, unique in the paper.
    pub(crate) cell: String,
    /// Table of the paper.
    pub(crate) table: String,
    /// Row of the table.
    pub(crate) row: String,
    /// The measured quantity.
    pub(crate) quantity: String,
    /// Unit of the figures here.
    pub(crate) unit: Unit,
    /// Value printed in the paper, if any.
    pub(crate) paper: Option<f64>,
    /// Mean of ns-2.
    pub(crate) ns2_mean: Option<f64>,
    /// Half width of its 95 % confidence interval.
    pub(crate) ns2_ci95: Option<f64>,
    /// Number of ns-2 runs.
    pub(crate) seeds: Option<u32>,
    /// Name of the scenario.
    pub(crate) scenario: String,
    /// Point of its sweep: `key=value; key=value`.
    pub(crate) parameters: String,
    /// Row and column of the answer.
    pub(crate) select: Select,
    /// Range in which gridhaul's value agrees with the paper; contains the paper's value.
    pub(crate) tolerance: Tolerance,
    /// Range of gridhaul's value, if it is known to lie outside the tolerance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) differs: Option<Tolerance>,
    /// Why gridhaul's value lies outside the tolerance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// Why the tolerance is wider than 10 % of the number that it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tolerance_reason: Option<String>,
}

/// Accepted deviation of a figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tolerance {
    /// `paper 1 %`: relative to the paper's value.
    Paper(f64),
    /// `ns2 3 %`: relative to the mean of ns-2.
    Ns2(f64),
    /// `ns2 3 % or interval`: as above, or within the joint 95 % confidence interval.
    Ns2OrInterval(f64),
    /// `from 0 to 2`: a range, from the text of the paper.
    Between(f64, f64),
    /// `0.9 to 1.1 of f5-up`: as a multiple of gridhaul's value of another cell.
    Of(f64, f64, String),
}

/// A unit of `expected.csv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    BitPerS,
    KbitPerS,
    MbitPerS,
    S,
    Ms,
    Byte,
    Ratio,
    Percent,
    Count,
}

/// Reads the figures of a paper.
pub(crate) fn read(text: &str) -> anyhow::Result<Vec<Expected>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().context("invalid CSV")
}

/// Checks that every tolerance contains the paper's value, and that a known difference states its
/// size and its reason: a tolerance around gridhaul's value instead of the paper's would count a
/// difference as agreement.
pub(crate) fn check(cells: &[Expected]) -> anyhow::Result<()> {
    for cell in cells {
        let Expected { cell: name, tolerance, paper, .. } = cell;
        ensure!(
            cell.tolerates_paper(cells) != Some(false),
            "line {name}: the tolerance \"{tolerance}\" does not contain the paper's value, \
             {}\n  help: choose a tolerance that contains it; if gridhaul's value lies outside, \
             state its range in column `differs` and the cause in column `reason`",
            paper.unwrap_or_default()
        );
        tolerance_width::check(cell, cells)?;
        match (&cell.differs, &cell.reason) {
            (None, None) => {}
            (Some(Tolerance::Between(low, high)), Some(reason)) => {
                ensure!(low <= high, "line {name}: from {low} to {high} is not a range");
                ensure!(!reason.trim().is_empty(), "line {name}: the reason is empty");
                ensure!(
                    paper.is_none_or(|paper| !(*low..=*high).contains(&paper)),
                    "line {name}: the range in `differs` contains the paper's value\n  help: give \
                     the range of gridhaul's value"
                );
            }
            (Some(_), Some(_)) => {
                bail!("line {name}: `differs` must be a range such as \"from 8 to 12\"")
            }
            _ => bail!("line {name}: `differs` and `reason` belong together; give both or neither"),
        }
    }
    Ok(())
}

impl Expected {
    /// Whether the paper's value lies within the tolerance; `None` if the paper has no value of
    /// this cell or of the cell that it is a multiple of.
    fn tolerates_paper(&self, cells: &[Self]) -> Option<bool> {
        let paper = self.paper?;
        let within = |(low, high): (f64, f64)| (low..=high).contains(&paper);
        let from_ns2 = |percent: f64| {
            self.ns2_mean.is_some_and(|mean| ((paper / mean - 1.0) * 100.0).abs() <= percent)
        };
        let in_interval = || {
            let ns2 = self.ns2_mean.zip(self.ns2_ci95);
            ns2.is_some_and(|(mean, ci95)| (paper - mean).abs() <= ci95)
        };
        Some(match &self.tolerance {
            Tolerance::Paper(percent) => *percent >= 0.0,
            Tolerance::Ns2(percent) => from_ns2(*percent),
            Tolerance::Ns2OrInterval(percent) => from_ns2(*percent) || in_interval(),
            Tolerance::Between(low, high) => within((*low, *high)),
            Tolerance::Of(low, high, other) => {
                let other = cells.iter().find(|cell| cell.cell == *other)?;
                // Multiples compare base units.
                let other = other.paper? * other.unit.in_base() / self.unit.in_base();
                within((low * other, high * other))
            }
        })
    }

    /// The point of the sweep, key by key.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.parameters.split(';').filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.trim(), value.trim()))
    }
}

impl Tolerance {
    /// The cell that this one is compared with, if any.
    pub(crate) fn other(&self) -> Option<&str> {
        match self {
            Self::Of(_, _, other) => Some(other),
            _ => None,
        }
    }
}

impl Unit {
    /// Value of one unit in base units.
    pub(crate) const fn in_base(self) -> f64 {
        match self {
            Self::KbitPerS => 1e3,
            Self::MbitPerS => 1e6,
            Self::Ms => 1e-3,
            Self::Percent => 1e-2,
            Self::BitPerS | Self::S | Self::Byte | Self::Ratio | Self::Count => 1.0,
        }
    }

    /// Symbol of the unit.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::BitPerS => "bit/s",
            Self::KbitPerS => "kbit/s",
            Self::MbitPerS => "Mbit/s",
            Self::S => "s",
            Self::Ms => "ms",
            Self::Byte => "B",
            Self::Percent => "%",
            Self::Ratio | Self::Count => "",
        }
    }
}

impl FromStr for Tolerance {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<_> = text.split_whitespace().collect();
        let number = |word: &str| word.parse().map_err(|_| format!("{word:?} is not a number"));
        match words[..] {
            ["paper", percent, "%"] => Ok(Self::Paper(number(percent)?)),
            ["ns2", percent, "%"] => Ok(Self::Ns2(number(percent)?)),
            ["ns2", percent, "%", "or", "interval"] => Ok(Self::Ns2OrInterval(number(percent)?)),
            ["from", low, "to", high] => Ok(Self::Between(number(low)?, number(high)?)),
            [low, "to", high, "of", other] => {
                Ok(Self::Of(number(low)?, number(high)?, other.to_owned()))
            }
            _ => Err(format!(
                "{text:?} is not a tolerance; expected \"paper 1 %\", \"ns2 1 %\", \"ns2 3 % or \
                 interval\", \
                 \"from 0 to 2\", \"0.9 to 1.1 of other-cell\""
            )),
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paper(percent) => write!(f, "paper {percent} %"),
            Self::Ns2(percent) => write!(f, "ns2 {percent} %"),
            Self::Ns2OrInterval(percent) => write!(f, "ns2 {percent} % or interval"),
            Self::Between(low, high) => write!(f, "from {low} to {high}"),
            Self::Of(low, high, other) => write!(f, "{low} to {high} of {other}"),
        }
    }
}

serde_as_text!(Tolerance);

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(line: &str) -> Result<(), String> {
        let header = "cell,table,row,quantity,unit,paper,ns2_mean,ns2_ci95,seeds,scenario,\
                      parameters,select,tolerance,differs,reason,tolerance_reason";
        let other = "o,1,r,q,mbit_per_s,2,,,,t,,flow:f:goodput_bit_per_s,paper 1 %,,,";
        let cells = read(&format!("{header}\n{other}\n{line},rough\n")).unwrap();
        check(&cells).map_err(|error| error.to_string())
    }

    #[test]
    fn a_tolerance_contains_the_value_of_the_paper() {
        let line = |paper: &str, ns2: &str, tolerance: &str, differs: &str| {
            let (select, differs) =
                ("flow:f:goodput_bit_per_s", if differs.is_empty() { "," } else { differs });
            checked(&format!("c,1,r,q,kbit_per_s,{paper},{ns2},,t,,{select},{tolerance},{differs}"))
        };
        assert_eq!(line("6", ",", "from 4 to 10", ""), Ok(()));
        let error = line("6", ",", "from 8 to 24", "").unwrap_err();
        assert!(error.contains("line c") && error.contains("\"from 8 to 24\""), "{error}");
        assert!(error.contains("value, 6") && error.contains("reason"), "{error}");
        // A known difference does not widen the tolerance.
        assert!(line("6", ",", "from 8 to 24", "from 8 to 24,headers").is_err());
        assert_eq!(line("6", ",", "from 4 to 8", "from 10 to 13,headers"), Ok(()));
        assert!(line("6", ",", "from 4 to 8", "from 10 to 13, ").is_err(), "a blank reason");
        assert!(line("6", ",", "from 4 to 8", "from 10 to 13,").is_err(), "no reason");
        assert!(line("6", ",", "from 4 to 8", ",headers").is_err(), "no range");
        assert!(line("6", ",", "from 4 to 8", "from 13 to 10,headers").is_err(), "an empty range");
        assert!(
            line("6", ",", "from 4 to 8", "from 5 to 13,headers").is_err(),
            "contains the paper"
        );
        assert!(line("6", ",", "from 4 to 8", "paper 1 %,headers").is_err(), "not a range");
        // ns-2: 100 ± 2.
        assert_eq!(line("102.9", "100,2", "ns2 3 %", ""), Ok(()));
        assert!(line("104", "100,2", "ns2 3 %", "").is_err());
        assert_eq!(line("101.9", "100,2", "ns2 1 % or interval", ""), Ok(()));
        assert!(line("102.1", "100,2", "ns2 1 % or interval", "").is_err());
        // Of 2 Mbit/s.
        assert_eq!(line("1801", ",", "0.9 to 1.1 of o", ""), Ok(()));
        assert!(line("1799", ",", "0.9 to 1.1 of o", "").is_err());
        assert_eq!(line("", ",", "0.9 to 1.1 of o", ""), Ok(()));
    }

    #[test]
    fn tolerances_round_trip() {
        for text in [
            "paper 1 %",
            "ns2 0.5 %",
            "ns2 3 % or interval",
            "from 0.7 to 2",
            "0.9 to 1.1 of t2-up",
        ] {
            assert_eq!(text.parse::<Tolerance>().unwrap().to_string(), text);
        }
        assert!("about right".parse::<Tolerance>().is_err());
    }
}
