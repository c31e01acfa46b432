//! Numbers of an answer that figures and published numbers select.

use std::fmt;
use std::str::FromStr;

use gridhaul_scenario::answer::{Answer, Estimate};
#[cfg(test)]
use gridhaul_scenario::scenario::Scenario;

use super::column_select::ColumnSelect;

macro_rules! serde_as_text {
    ($type:ident) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(super) use serde_as_text;

/// A number in an answer: a column ([`ColumnSelect`]), or a sum of columns and constants,
/// optionally divided by a term: `flow:data:segments_sent_count*0.002 + 50 /
/// flow:data:goodput_bit_per_s*7.5`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Select {
    sum: Vec<Term>,
    divisor: Option<Term>,
}

/// A part of a selection.
#[derive(Debug, Clone, PartialEq)]
enum Term {
    Constant(f64),
    Column(ColumnSelect),
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
            ([Term::Column(column)], None) => column.unit(),
            _ => "",
        }
    }

    /// The number in base units. A sum or a quotient has no confidence interval, because the
    /// columns of one answer are not independent.
    pub(crate) fn find(&self, answer: &Answer, point: usize) -> Estimate {
        if let ([term], None) = (&self.sum[..], &self.divisor) {
            return term.find(answer, point);
        }
        let sum = self.sum.iter().map(|term| term.find(answer, point).mean).sum::<Option<f64>>();
        let divisor = match &self.divisor {
            None => Some(1.0),
            Some(term) => term.find(answer, point).mean.filter(|mean| *mean != 0.0),
        };
        let mean = sum.zip(divisor).map(|(sum, divisor)| sum / divisor);
        Estimate { mean, ..Estimate::default() }
    }
}

impl Term {
    #[cfg(test)]
    fn exists_in(&self, scenario: &Scenario) -> bool {
        match self {
            Self::Constant(_) => true,
            Self::Column(column) => column.exists_in(scenario),
        }
    }

    fn find(&self, answer: &Answer, point: usize) -> Estimate {
        match self {
            Self::Constant(number) => Estimate { mean: Some(*number), ..Estimate::default() },
            Self::Column(column) => column.find(answer, point),
        }
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
        match text.trim().parse() {
            Ok(number) => Ok(Self::Constant(number)),
            Err(_) => text.parse().map(Self::Column),
        }
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
        match self {
            Self::Constant(number) => write!(f, "{number}"),
            Self::Column(column) => write!(f, "{column}"),
        }
    }
}

serde_as_text!(Select);

#[cfg(test)]
mod tests {
    use gridhaul_scenario::answer::{Metric, Point, Row};

    use crate::paper::column_select::tests::scenario;

    use super::*;

    fn answer(columns: &[(Metric, f64)]) -> Answer {
        let metrics = columns
            .iter()
            .map(|&(metric, mean)| (metric, Estimate { mean: Some(mean), ..Estimate::default() }));
        let row =
            Row { name: "data".to_owned(), count: 1, metrics: metrics.collect(), ..Row::default() };
        let mut answer = Answer::without_points(&scenario(), "sim");
        answer.points.push(Point { flows: vec![row], ..Point::default() });
        answer
    }

    #[test]
    fn a_sum_is_divided_by_a_term() {
        let answer = answer(&[
            (Metric::SegmentsSent, 100.0),
            (Metric::Timeouts, 4.0),
            (Metric::Messages, 8.0),
        ]);
        let find = |text: &str| text.parse::<Select>().unwrap().find(&answer, 0).mean;
        let text = "flow:data:segments_sent_count*0.5 + flow:data:timeouts_count + 2 / \
                    flow:data:messages_count*2";
        assert_eq!(find(text), Some((50.0 + 4.0 + 2.0) / 16.0));
        assert_eq!(text.parse::<Select>().unwrap().to_string(), text);
        assert_eq!(find("flow:data:timeouts_count*3"), Some(12.0));
        // An unknown column makes the whole number unknown.
        assert_eq!(find("2 + flow:data:retransmissions_count"), None);
        assert!("flow:data:nothing_count + 2".parse::<Select>().is_err());
    }
}
