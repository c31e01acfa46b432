//! Which candidates lie beside each other.

use gridhaul_report::quantity;
use gridhaul_scenario::scenario::Choice;

use super::candidate::ParameterSet;
use super::search::is_numeric;

/// Steps from one parameters to another: the largest number of values that lie between the two in any key. Numbers
/// lie in their order; any two words of a choice are one step apart, as are a parameters with aggregators and one
/// without.
pub(crate) fn steps(one: &ParameterSet, other: &ParameterSet, choices: &[Choice]) -> usize {
    let keys = one.values.iter().zip(&other.values).zip(choices);
    let steps = keys.map(|((one, other), choice)| match (one, other) {
        (Some(one), Some(other)) => between(one, other, choice),
        _ => 0,
    });
    let toggled = usize::from(one.aggregators != other.aggregators);
    steps.max().unwrap_or(0).max(toggled)
}

/// Keys in which two parameter_sets differ.
pub(crate) fn differing(one: &ParameterSet, other: &ParameterSet) -> usize {
    if one.aggregators != other.aggregators {
        // The keys of aggregators have no values without them.
        let both = one.values.iter().zip(&other.values).filter(|(a, b)| a.is_some() && b.is_some());
        return 1 + both.filter(|(a, b)| a != b).count();
    }
    one.values.iter().zip(&other.values).filter(|(one, other)| one != other).count()
}

fn between(one: &str, other: &str, choice: &Choice) -> usize {
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
    fn numbers_lie_in_their_order_and_words_beside_each_other() {
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
        let of = |values| steps(&from, &parameters(values), choices.keys());
        assert_eq!(of(["2", "reno", "500 kbit/s"]), 0);
        assert_eq!(of(["2", "sack", "500 kbit/s"]), 1);
        assert_eq!(of(["4", "vegas", "1 Mbit/s"]), 1);
        assert_eq!(of(["8", "reno", "500 kbit/s"]), 2);
        assert_eq!(of(["1", "reno", "2 Mbit/s"]), 2);
        assert_eq!(differing(&from, &parameters(["8", "reno", "2 Mbit/s"])), 2);
        let bare = ParameterSet {
            values: vec![None, None, Some("1 Mbit/s".to_owned())],
            aggregators: false,
        };
        assert_eq!((steps(&from, &bare, choices.keys()), differing(&from, &bare)), (1, 2));
    }
}
