//! Numbers of an answer that figures and published numbers select.

use std::fmt;
use std::str::FromStr;

use gridhaul_scenario::answer::{Estimate, Metric, Point, Scope};
#[cfg(test)]
use gridhaul_scenario::scenario::Scenario;

use super::expected::{scaled, serde_as_text};

/// A number in an answer: `flow:download:goodput_bit_per_s`, optionally multiplied by a factor (`*20000`); or a
/// sum of such terms and constants, optionally divided by a term:
/// `flow:data:segments_sent_count*0.002 + 50 / flow:data:goodput_bit_per_s*7.5`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Select {
    sum: Vec<Term>,
    divisor: Option<Term>,
}

/// A part of a selection.
#[derive(Debug, Clone, PartialEq)]
enum Term {
    Constant(f64),
    Column { name: String, metric: Metric, factor: f64 },
}

impl Select {
    /// Whether answers to the scenario have these rows.
    #[cfg(test)]
    pub(crate) fn exists_in(&self, scenario: &Scenario) -> bool {
        self.sum.iter().chain(&self.divisor).all(|term| term.exists_in(scenario))
    }

    /// Unit of the number; none for a sum or a quotient, whose label states it.
    pub(crate) fn unit(&self) -> &'static str {
        match (&self.sum[..], &self.divisor) {
            ([Term::Column { metric, .. }], None) => metric.info().unit,
            _ => "",
        }
    }

    /// The number in base units. A sum or a quotient has no confidence interval, because the columns of one answer
    /// are not independent.
    pub(crate) fn find(&self, point: &Point) -> Estimate {
        if let ([term], None) = (&self.sum[..], &self.divisor) {
            return term.find(point);
        }
        let sum = self.sum.iter().map(|term| term.find(point).mean).sum::<Option<f64>>();
        let divisor = match &self.divisor {
            None => Some(1.0),
            Some(term) => term.find(point).mean.filter(|mean| *mean != 0.0),
        };
        let mean = sum.zip(divisor).map(|(sum, divisor)| sum / divisor);
        Estimate { mean, ..Estimate::default() }
    }
}

impl Term {
    #[cfg(test)]
    fn exists_in(&self, scenario: &Scenario) -> bool {
        let Self::Column { name, metric, .. } = self else { return true };
        match metric.info().scope {
            Scope::Flow => {
                scenario.flow.contains_key(name)
                    || name.split_once('>').is_some_and(|(aggregator, _)| {
                        let node = scenario.node.get(aggregator);
                        node.is_some_and(|node| node.aggregator.is_some())
                    })
            }
            Scope::Link => name.rsplit_once('.').is_some_and(|(link, direction)| {
                let link = scenario.link.get(link);
                link.is_some_and(|link| match direction {
                    "forward" => link.forward().is_some(),
                    "reverse" => link.reverse().is_some(),
                    _ => false,
                })
            }),
        }
    }

    fn find(&self, point: &Point) -> Estimate {
        let (name, metric, factor) = match self {
            Self::Constant(number) => {
                return Estimate { mean: Some(*number), ..Estimate::default() };
            }
            Self::Column { name, metric, factor } => (name, metric, *factor),
        };
        let rows = match metric.info().scope {
            Scope::Flow => &point.flows,
            Scope::Link => &point.links,
        };
        let row = rows.iter().find(|row| row.name == *name);
        let found = row.and_then(|row| row.metrics.get(metric)).copied().unwrap_or_default();
        scaled(found, factor)
    }
}

impl FromStr for Select {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (sum, divisor) = match text.split_once(" / ") {
            Some((sum, divisor)) => (sum, Some(divisor.parse()?)),
            None => (text, None),
        };
        let sum = sum.split(" + ").map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { sum, divisor })
    }
}

impl FromStr for Term {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(number) = text.trim().parse() {
            return Ok(Self::Constant(number));
        }
        let (path, factor) = text.split_once('*').unwrap_or((text, "1"));
        let wrong = || {
            format!(
                "expected a selection such as \"flow:download:goodput_bit_per_s\", found {text:?}"
            )
        };
        let (scope, rest) = path.trim().split_once(':').ok_or_else(wrong)?;
        let (name, column) = rest.rsplit_once(':').ok_or_else(wrong)?;
        let metric: Metric = column.trim().parse()?;
        let fits = match metric.info().scope {
            Scope::Flow => scope == "flow",
            Scope::Link => scope == "link",
        };
        if !fits {
            return Err(format!("{text:?}: {column} is not a column of a {scope}"));
        }
        let factor = factor.trim().parse().map_err(|_| wrong())?;
        Ok(Self::Column { name: name.to_owned(), metric, factor })
    }
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.sum.iter().enumerate() {
            write!(f, "{}{term}", if index == 0 { "" } else { " + " })?;
        }
        self.divisor.as_ref().map_or(Ok(()), |divisor| write!(f, " / {divisor}"))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, metric, factor) = match self {
            Self::Constant(number) => return write!(f, "{number}"),
            Self::Column { name, metric, factor } => (name, metric, factor),
        };
        let scope = match metric.info().scope {
            Scope::Flow => "flow",
            Scope::Link => "link",
        };
        write!(f, "{scope}:{name}:{metric}")?;
        if *factor == 1.0 { Ok(()) } else { write!(f, "*{factor}") }
    }
}

serde_as_text!(Select);

#[cfg(test)]
mod tests {
    use gridhaul_scenario::answer::Row;

    use super::*;

    fn point(columns: &[(Metric, f64)]) -> Point {
        let metrics = columns
            .iter()
            .map(|&(metric, mean)| (metric, Estimate { mean: Some(mean), ..Estimate::default() }));
        let row = Row { name: "data".to_owned(), count: 1, metrics: metrics.collect() };
        Point { flows: vec![row], ..Point::default() }
    }

    #[test]
    fn a_sum_is_divided_by_a_term() {
        let point = point(&[
            (Metric::SegmentsSent, 100.0),
            (Metric::Timeouts, 4.0),
            (Metric::Messages, 8.0),
        ]);
        let find = |text: &str| text.parse::<Select>().unwrap().find(&point).mean;
        let text = "flow:data:segments_sent_count*0.5 + flow:data:timeouts_count + 2 / flow:data:messages_count*2";
        assert_eq!(find(text), Some((50.0 + 4.0 + 2.0) / 16.0));
        assert_eq!(text.parse::<Select>().unwrap().to_string(), text);
        assert_eq!(find("flow:data:timeouts_count*3"), Some(12.0));
        // An unknown column makes the whole number unknown.
        assert_eq!(find("2 + flow:data:retransmissions_count"), None);
        assert!("flow:data:nothing_count + 2".parse::<Select>().is_err());
    }
}
