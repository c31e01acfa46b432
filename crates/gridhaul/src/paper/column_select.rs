//! Selection of one column of an answer: a metric, or a statistic of a recorded series.

use std::fmt;
use std::str::FromStr;

use gridhaul_scenario::answer::{Answer, ColumnData, Estimate, Metric, Scope, Series, SeriesInfo};

#[cfg(test)]
use gridhaul_scenario::scenario::Scenario;

/// A number in an answer, optionally multiplied by a factor (`*20000`):
///
/// - `flow:download:goodput_bit_per_s`: a metric of a flow or (`link:`) of a direction.
/// - `series:dvbt.forward:throughput_bit_per_s:max`: a statistic of the samples of a recorded
///   series; with `after 10 s` of the later samples only.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ColumnSelect {
    name: String,
    column: Column,
    factor: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Column {
    Metric(Metric),
    Series { column: &'static str, unit: &'static str, statistic: Statistic, after_s: Option<f64> },
}

/// A statistic of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Statistic {
    Min,
    Mean,
    Max,
    /// Standard deviation.
    Deviation,
}

impl ColumnSelect {
    /// Whether answers to the scenario have this row.
    #[cfg(test)]
    pub(crate) fn exists_in(&self, scenario: &Scenario) -> bool {
        let is_flow = || {
            scenario.flow.contains_key(&self.name)
                || self.name.split_once('>').is_some_and(|(aggregator, _)| {
                    let node = scenario.node.get(aggregator);
                    node.is_some_and(|node| node.aggregator.is_some())
                })
        };
        let is_link = || {
            self.name.rsplit_once('.').is_some_and(|(link, direction)| {
                let link = scenario.link.get(link);
                link.is_some_and(|link| match direction {
                    "forward" => link.forward().is_some(),
                    "reverse" => link.reverse().is_some(),
                    _ => false,
                })
            })
        };
        match &self.column {
            Column::Metric(metric) => match metric.info().scope {
                Scope::Flow => is_flow(),
                Scope::Link => is_link(),
            },
            Column::Series { .. } => scenario.record.interval.is_some() && (is_flow() || is_link()),
        }
    }

    /// Unit of the number.
    pub(crate) fn unit(&self) -> &'static str {
        match &self.column {
            Column::Metric(metric) => metric.info().unit,
            Column::Series { unit, .. } => unit,
        }
    }

    /// The number at a point of the answer, in base units.
    pub(crate) fn find(&self, answer: &Answer, point: usize) -> Estimate {
        let found = match &self.column {
            Column::Metric(metric) => {
                let rows = answer.points.get(point).map(|point| match metric.info().scope {
                    Scope::Flow => &point.flows,
                    Scope::Link => &point.links,
                });
                let row = rows.and_then(|rows| rows.iter().find(|row| row.name == self.name));
                row.and_then(|row| row.metrics.get(metric)).copied().unwrap_or_default()
            }
            Column::Series { column, statistic, after_s, .. } => {
                let own = answer.series.iter().filter(|series| series.point == point);
                let samples =
                    own.filter_map(|series| samples(series, &self.name, column, *after_s));
                let mean = samples.flat_map(|samples| statistic.of(&samples)).next();
                Estimate { mean, ..Estimate::default() }
            }
        };
        scaled(found, self.factor)
    }
}

/// The known samples of a column for one flow or direction, of member 0.
fn samples(series: &Series, name: &str, column: &str, after_s: Option<f64>) -> Option<Vec<f64>> {
    let column = series.columns.iter().position(|found| found.name == column)?;
    let all = 0..series.row_count();
    // Every recorded table begins with the time and the name of the flow or direction.
    let values = |column| series.values(column, all.clone()).ok();
    let (ColumnData::Real(times), ColumnData::Text { words, rows }, ColumnData::Real(values)) =
        (values(0)?, values(1)?, values(column)?)
    else {
        return None;
    };
    let members = series.members(all.clone()).ok()?;
    let is_chosen = |row: &usize| {
        words[rows[*row] as usize] == name
            && members[*row] == 0
            && after_s.is_none_or(|after| times[*row] > after)
            && !values[*row].is_nan()
    };
    Some(all.filter(is_chosen).map(|row| values[row]).collect())
}

impl Statistic {
    const ALL: [(&str, Self); 4] = [
        ("min", Self::Min),
        ("mean", Self::Mean),
        ("max", Self::Max),
        ("deviation", Self::Deviation),
    ];

    /// The statistic; `None` without samples.
    fn of(self, samples: &[f64]) -> Option<f64> {
        let count = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / count;
        let found = match self {
            Self::Min => samples.iter().copied().reduce(f64::min)?,
            Self::Max => samples.iter().copied().reduce(f64::max)?,
            Self::Mean => mean,
            Self::Deviation => {
                (samples.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
            }
        };
        (!samples.is_empty()).then_some(found)
    }
}

impl FromStr for ColumnSelect {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (path, factor) = text.split_once('*').unwrap_or((text, "1"));
        let invalid = || {
            format!(
                "expected a selection such as \"flow:download:goodput_bit_per_s\" or \
                 \"series:radio.forward:throughput_bit_per_s:max\", found {text:?}"
            )
        };
        let factor = factor.trim().parse().map_err(|_| invalid())?;
        let (scope, rest) = path.split_once(':').ok_or_else(invalid)?;
        if scope == "series" {
            let (rest, after) = rest
                .split_once(" after ")
                .map_or((rest, None), |(rest, after)| (rest, Some(after)));
            let after_s = after.map(|after| after.trim().trim_end_matches(" s").parse());
            let [name, column, statistic] = rest.split(':').collect::<Vec<_>>()[..] else {
                return Err(invalid());
            };
            let column =
                Column::series(column, statistic, after_s.transpose().map_err(|_| invalid())?)?;
            return Ok(Self { name: name.to_owned(), column, factor });
        }
        let (name, column) = rest.rsplit_once(':').ok_or_else(invalid)?;
        let metric: Metric = column.trim().parse()?;
        let fits = match metric.info().scope {
            Scope::Flow => scope == "flow",
            Scope::Link => scope == "link",
        };
        if !fits {
            return Err(format!("{text:?}: {column} is not a column of a {scope}"));
        }
        Ok(Self { name: name.to_owned(), column: Column::Metric(metric), factor })
    }
}

impl Column {
    /// A statistic of a recorded column.
    fn series(column: &str, statistic: &str, after_s: Option<f64>) -> Result<Self, String> {
        let mut columns = SeriesInfo::ALL.iter().flat_map(|table| table.columns);
        let info = columns
            .find(|info| info.name == column && info.kind == "double" && column != "time_s")
            .ok_or_else(|| format!("no series has a column of real numbers {column:?}"))?;
        let statistic =
            Statistic::ALL.iter().find(|(name, _)| *name == statistic).ok_or_else(|| {
                format!(
                    "{statistic:?} is not a statistic; expected \"min\", \"mean\", \"max\" \
                     or \"deviation\""
                )
            })?;
        Ok(Self::Series { column: info.name, unit: info.unit, statistic: statistic.1, after_s })
    }
}

impl fmt::Display for ColumnSelect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.column {
            Column::Metric(metric) => {
                let scope = match metric.info().scope {
                    Scope::Flow => "flow",
                    Scope::Link => "link",
                };
                write!(f, "{scope}:{name}:{metric}")?;
            }
            Column::Series { column, statistic, after_s, .. } => {
                let known = Statistic::ALL.iter().find(|(_, known)| known == statistic);
                write!(f, "series:{name}:{column}:{}", known.map_or("", |(name, _)| name))?;
                if let Some(after) = after_s {
                    write!(f, " after {after} s")?;
                }
            }
        }
        if self.factor == 1.0 { Ok(()) } else { write!(f, "*{}", self.factor) }
    }
}

/// An estimate multiplied by a factor.
pub(crate) fn scaled(estimate: Estimate, factor: f64) -> Estimate {
    Estimate {
        mean: estimate.mean.map(|mean| mean * factor),
        ci95: estimate.ci95.map(|ci95| ci95 * factor),
        ..estimate
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::paper::Paper;

    /// Any valid scenario.
    pub(in crate::paper) fn scenario() -> Scenario {
        let paper = Paper::named("hybrid").unwrap();
        paper.scenario(&paper.definition.scenario[0], true).unwrap().1
    }

    #[test]
    fn selections_round_trip() {
        for text in [
            "flow:download:goodput_bit_per_s",
            "link:a.forward:utilisation_ratio*20000",
            "series:a.forward:throughput_bit_per_s:max",
            "series:download:srtt_s:deviation after 10 s*1000",
        ] {
            assert_eq!(text.parse::<ColumnSelect>().unwrap().to_string(), text);
        }
        for invalid in [
            "link:download:goodput_bit_per_s",
            "flow:download:speed",
            "series:a.forward:throughput_bit_per_s",
            "series:a.forward:speed_bit_per_s:max",
            "series:a.forward:throughput_bit_per_s:p50",
            "series:a.forward:throughput_bit_per_s:max after noon",
        ] {
            assert!(invalid.parse::<ColumnSelect>().is_err(), "{invalid}");
        }
    }

    #[test]
    fn statistics_of_a_series_are_those_of_the_samples_of_its_flow() {
        let real = |name: &str, values: &[f64]| gridhaul_scenario::answer::Column {
            name: name.into(),
            data: ColumnData::Real(values.to_vec()),
        };
        let link = gridhaul_scenario::answer::Column {
            name: "link".into(),
            data: ColumnData::Text {
                words: vec!["a".into(), "b".into()],
                rows: vec![0, 0, 0, 0, 1],
            },
        };
        let columns = vec![
            real("time_s", &[1.0, 2.0, 3.0, 4.0, 4.0]),
            link,
            real("throughput_bit_per_s", &[9.0, 2.0, f64::NAN, 4.0, 7.0]),
        ];
        let mut series = Series::from_columns("throughput", columns);
        series.point = 1;
        let mut answer = Answer::without_points(&scenario(), "sim");
        answer.series.push(series);
        let value = |statistic: &str, point| {
            let select =
                format!("series:a:throughput_bit_per_s:{statistic}").parse::<ColumnSelect>();
            select.unwrap().find(&answer, point).mean
        };
        assert_eq!(value("max", 1), Some(9.0));
        assert_eq!(value("max after 1 s", 1), Some(4.0));
        assert_eq!(value("mean after 1 s*2", 1), Some(6.0));
        assert_eq!(value("deviation after 1 s", 1), Some(1.0));
        assert_eq!(value("min after 5 s", 1), None);
        assert_eq!(value("max", 0), None);
    }
}
