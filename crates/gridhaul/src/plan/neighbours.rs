//! Distance between candidates.

use gridhaul_report::quantity;
use gridhaul_scenario::scenario::Choice;

use super::candidate::ParameterSet;
use super::search::is_numeric;

/// Distance between two parameter sets in steps: the maximum over the keys. Numbers are ordered;
/// any two non-numeric values are one step apart, as are a set with aggregators and one without.
pub(crate) fn steps(one: &ParameterSet, other: &ParameterSet, choices: &[Choice]) -> usize {
    let keys = one.values.iter().zip(&other.values).zip(choices);
    let steps = keys.map(|((one, other), choice)| match (one, other) {
        (Some(one), Some(other)) => steps_between(one, other, choice),
        _ => 0,
    });
    let toggled = usize::from(one.aggregators != other.aggregators);
    steps.max().unwrap_or(0).max(toggled)
}

/// Number of keys in which two parameter sets differ.
pub(crate) fn differing(one: &ParameterSet, other: &ParameterSet) -> usize {
    if one.aggregators != other.aggregators {
        // Without aggregators, their keys have no values.
        let both = one.values.iter().zip(&other.values).filter(|(a, b)| a.is_some() && b.is_some());
        return 1 + both.filter(|(a, b)| a != b).count();
    }
    one.values.iter().zip(&other.values).filter(|(one, other)| one != other).count()
}

fn steps_between(one: &str, other: &str, choice: &Choice) -> usize {
    if one == other {
        return 0;
    }
    if !is_numeric(choice) {
        return 1;
    }
    let mut numbers: Vec<f64> =
        choice.values.iter().filter_map(|text| quantity(text)).map(|(number, _)| number).collect();
    numbers.sort_by(f64::total_cmp);
    let place = |text: &str| {
        let number = quantity(text).map(|(number, _)| number)?;
        numbers.iter().position(|other| *other == number)
    };
    match (place(one), place(other)) {
        (Some(one), Some(other)) => one.abs_diff(other),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_backends::{district, plan_of};
    use super::*;

    #[test]
    fn numbers_are_ordered_and_other_values_are_one_step_apart() {
        let scenario = district(
            "\"node.collector.count\" = [8, 1, 2, 4]\n\
             \"stack.upstream.congestion_control\" = [\"reno\", \"vegas\", \"sack\"]\n\
             \"link.wan.both.rate\" = [\"500 kbit/s\", \"1 Mbit/s\", \"2 Mbit/s\"]",
            "\"node.collector.count\" = 900",
        );
        let (_, choices) = plan_of(&scenario);
        let parameters = |values: [&str; 3]| ParameterSet {
            values: values.iter().map(|value| Some((*value).to_owned())).collect(),
            aggregators: true,
        };
        let from = parameters(["2", "reno", "500 kbit/s"]);
        let steps_to = |values| steps(&from, &parameters(values), choices.keys());
        assert_eq!(steps_to(["2", "reno", "500 kbit/s"]), 0);
        assert_eq!(steps_to(["2", "sack", "500 kbit/s"]), 1);
        assert_eq!(steps_to(["4", "vegas", "1 Mbit/s"]), 1);
        assert_eq!(steps_to(["8", "reno", "500 kbit/s"]), 2);
        assert_eq!(steps_to(["1", "reno", "2 Mbit/s"]), 2);
        assert_eq!(differing(&from, &parameters(["8", "reno", "2 Mbit/s"])), 2);
        let bare = ParameterSet {
            values: vec![None, None, Some("1 Mbit/s".to_owned())],
            aggregators: false,
        };
        assert_eq!((steps(&from, &bare, choices.keys()), differing(&from, &bare)), (1, 2));
    }
}
