//! Plans without a feasible candidate: the limits that cannot be met, and values that would be
//! sufficient.

use gridhaul_report::quantity;
use serde::Serialize;

use super::candidate::{Candidate, ParameterSet};
use super::search::{Search, is_numeric};
use crate::error::Error;

/// Why no candidate meets all limits, and the closest candidates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Infeasible {
    /// For each limit: the best value of any candidate, and that candidate.
    pub(crate) best: Vec<Option<(f64, Candidate)>>,
    /// The candidate that is closest to meeting all limits.
    pub(crate) nearest: Option<Candidate>,
    /// Values beyond the offered range with which the model meets all limits.
    pub(crate) sufficient: Vec<SufficientValue>,
}

/// A value beyond the offered range that is sufficient by the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SufficientValue {
    /// The key.
    pub(crate) key: String,
    /// The sufficient value.
    pub(crate) needed: String,
    /// The largest or smallest offered value.
    pub(crate) offered: String,
    /// The complete candidate with this value.
    pub(crate) choice: String,
    /// Its cost.
    pub(crate) cost: f64,
}

/// Doublings beyond the range: up to a factor of a thousand.
const DOUBLINGS: i32 = 10;
/// Halvings of the interval that contains the sufficient value; two digits of it are reported.
const HALVINGS: usize = 8;
/// Number of candidates from which the search goes beyond the range: those closest to the limits.
const START_POINTS: usize = 12;

/// Determines why no candidate is feasible. Every candidate has been evaluated.
pub(crate) fn infeasible(search: &mut Search<'_>) -> Result<Infeasible, Error> {
    let limits = search.evaluator.limits().len();
    let mut best: Vec<Option<(f64, Candidate)>> = vec![None; limits];
    let candidates = search.candidates;
    for candidate in candidates {
        let evaluation = search.evaluator.evaluate(&candidate.parameters)?;
        if evaluation.error.is_some() {
            continue;
        }
        for (best, measured) in best.iter_mut().zip(&evaluation.measured) {
            let Some(value) = measured.value.or(measured.floor) else { continue };
            if best.as_ref().is_none_or(|(minimum, _)| value < *minimum) {
                *best = Some((value, candidate.clone()));
            }
        }
    }
    let nearest = search.nearest(|_| true)?.map(|index| candidates[index].clone());
    let mut beyond = Vec::new();
    for key in 0..search.choices.len() {
        if is_numeric(&search.choices[key]) {
            let directions = [1, -1].into_iter();
            beyond.extend(
                directions.filter_map(|direction| search_beyond_range(search, key, direction)),
            );
        }
    }
    beyond.sort_by(|one, other| one.cost.total_cmp(&other.cost));
    Ok(Infeasible { best, nearest, sufficient: beyond })
}

/// Searches for a sufficient value beyond the range of one key, above (1) or below (-1).
fn search_beyond_range(
    search: &mut Search<'_>,
    key: usize,
    direction: i32,
) -> Option<SufficientValue> {
    let choice = search.choices[key].clone();
    let ends = choice.values.iter().filter_map(|text| Amount::of(text));
    let end = ends.max_by(|a, b| {
        (a.base * f64::from(direction)).total_cmp(&(b.base * f64::from(direction)))
    })?;
    let offered = end.text(end.number);
    let mut starts: Vec<(f64, ParameterSet)> = Vec::new();
    for candidate in search.candidates {
        if candidate.parameters.values[key].is_none() {
            continue;
        }
        let parameters = candidate.parameters.with(key, &offered);
        if starts.iter().any(|(_, known)| *known == parameters) {
            continue;
        }
        let used = search.evaluator.worst(&parameters).map_or(f64::INFINITY, |(used, _)| used);
        starts.push((used, parameters));
    }
    starts.sort_by(|one, other| one.0.total_cmp(&other.0));
    starts.truncate(START_POINTS);
    // A value that the scenario rejects, such as more aggregators than meters, is not sufficient.
    let mut sufficient_with = |parameters: &ParameterSet, number: f64| {
        let parameters = parameters.with(key, &end.text(number));
        search.evaluator.meets_limits(&parameters).unwrap_or(false).then_some(parameters)
    };
    for doubling in 1..=DOUBLINGS {
        let number = end.number * 2_f64.powi(direction * doubling);
        if end.is_whole && number < 1.0 {
            return None;
        }
        let Some((_, start)) =
            starts.iter().find(|(_, start)| sufficient_with(start, number).is_some())
        else {
            continue;
        };
        let (mut insufficient, mut sufficient) = (number / 2_f64.powi(direction), number);
        for _ in 0..HALVINGS {
            let middle = (insufficient * sufficient).sqrt();
            if sufficient_with(start, middle).is_some() {
                sufficient = middle;
            } else {
                insufficient = middle;
            }
        }
        let needed = rounded(sufficient, direction);
        let parameters =
            sufficient_with(start, needed).or_else(|| sufficient_with(start, sufficient))?;
        return Some(SufficientValue {
            key: choice.key.clone(),
            needed: parameters.values[key].clone()?,
            offered,
            choice: parameters.describe(search.choices),
            cost: search.cost_model.cost(&parameters),
        });
    }
    None
}

/// A number with its unit, as written in the scenario.
struct Amount {
    number: f64,
    unit: String,
    is_whole: bool,
    base: f64,
}

impl Amount {
    fn of(text: &str) -> Option<Self> {
        let (base, _) = quantity(text)?;
        let digits = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | '_' | 'e' | 'E');
        let at = text.find(|c: char| !digits(c)).unwrap_or(text.len());
        let number: f64 = text[..at].replace('_', "").parse().ok()?;
        let unit = text[at..].trim().to_owned();
        let counted = matches!(unit.as_str(), "" | "packets" | "segments" | "messages" | "B");
        let is_whole = counted && number.fract() == 0.0;
        Some(Self { number, unit, is_whole, base })
    }

    fn text(&self, number: f64) -> String {
        let number = if self.is_whole { number.round() } else { number };
        format!("{number} {}", self.unit).trim_end().to_owned()
    }
}

/// Rounds to two significant digits, away from the offered range.
fn rounded(number: f64, direction: i32) -> f64 {
    let step = 10_f64.powf(number.log10().floor() - 1.0);
    let steps = number / step;
    let steps = if direction > 0 { (steps - 1e-9).ceil() } else { (steps + 1e-9).floor() };
    // Formatting removes the error of the multiplication, such as 1.4000000000000001.
    format!("{:.6e}", steps * step).parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::super::candidate::{CostModel, candidates};
    use super::super::evaluate::Evaluator;
    use super::super::limits::limits;
    use super::super::test_backends::{FakeBackend, district, plan_of};
    use super::*;

    #[test]
    fn a_sufficient_value_is_found_beyond_the_range() {
        let scenario = district(
            "\"node.collector.count\" = [1, 2]\n\"link.wan.both.rate\" = [\"4 Mbit/s\", \"8 \
             Mbit/s\"]",
            "\"node.collector.count\" = 900\n\"link.wan.both.rate\" = 150",
        );
        let (plan, choices) = plan_of(&scenario);
        let limits = limits(&scenario, &plan);
        let candidates = candidates(&scenario, &plan, choices.keys());
        // A loss of 2 % at 13.6 Mbit/s, independent of the number of aggregators.
        let fake = FakeBackend::new(|scenario| {
            let rate = scenario.link["wan"].forward().unwrap().rate.as_bits_per_sec() as f64;
            Some(0.02 * 13.6e6 / rate)
        });
        let mut search = Search {
            candidates: &candidates,
            choices: choices.keys(),
            cost_model: CostModel::new(&scenario, &plan, choices.keys()),
            evaluator: Evaluator::new(&fake, &choices, &limits),
        };
        assert_eq!(search.cheapest(|_| true).unwrap(), None);
        let result = infeasible(&mut search).unwrap();
        let (value, candidate) = result.best[0].as_ref().unwrap();
        assert!((value - 0.034).abs() < 1e-12);
        assert_eq!(candidate.parameters.describe(choices.keys()), "1 collector, wan 8 Mbit/s");
        assert_eq!(result.nearest.as_ref(), Some(candidate));
        assert_eq!(result.sufficient.len(), 1, "{:?}", result.sufficient);
        let beyond = &result.sufficient[0];
        assert_eq!(
            (beyond.needed.as_str(), beyond.offered.as_str(), beyond.cost),
            ("14 Mbit/s", "8 Mbit/s", 900.0 + 14.0 * 150.0)
        );
    }

    #[test]
    fn numbers_are_rounded_away_from_the_offered_range() {
        assert_eq!([rounded(13.61, 1), rounded(14.0, 1), rounded(0.0241, -1)], [14.0, 14.0, 0.024]);
    }
}
