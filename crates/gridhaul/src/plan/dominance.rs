//! Candidates that need no simulation, because a simulated one that fails has the same result.

use gridhaul_report::quantity;
use gridhaul_scenario::scenario::Choice;

use super::candidate::ParameterSet;
use super::limits::Limit;
use super::simulation_runs::SimulatedCandidate;

/// The end of keys of buffers, which change nothing while they are not full.
const BUFFER: &str = ".aggregator.buffer";

/// Whether the simulated candidates exclude another one. Either a failed one differs only in
/// buffers that were never full and are not larger in it; or two failed ones with equal results
/// differ from each other and from the other candidate only in one buffer, which is not smaller in
/// the other one than in both. Numbers of other keys may have a threshold: two timeouts below the
/// round-trip time have equal results, and a longer one has not.
pub(crate) fn is_excluded(
    parameters: &ParameterSet,
    simulated: &[SimulatedCandidate],
    limits: &[Limit],
    choices: &[Choice],
) -> bool {
    let mut failed: Vec<(&SimulatedCandidate, usize, [f64; 2])> = Vec::new();
    for checked in simulated.iter().filter(|checked| !checked.meets_limits()) {
        if has_larger_unused_buffers(parameters, checked, choices) {
            return true;
        }
        if let Some((key, numbers)) = single_buffer(parameters, checked, choices) {
            failed.push((checked, key, numbers));
        }
    }
    failed.iter().enumerate().any(|(place, (one, key, [own, first]))| {
        failed[..place].iter().any(|(other, other_key, [_, second])| {
            key == other_key
                && *own > first.min(*second)
                && first != second
                && one.evidence.equal_runs(&other.evidence, limits).is_some_and(|runs| runs > 1)
        })
    })
}

/// Whether a candidate in the same batch as another one could be excluded by it.
pub(crate) fn differs_in_buffers_only(
    one: &ParameterSet,
    other: &ParameterSet,
    choices: &[Choice],
) -> bool {
    one.aggregators == other.aggregators
        && choices
            .iter()
            .zip(one.values.iter().zip(&other.values))
            .all(|(choice, (one, other))| one == other || choice.key.ends_with(BUFFER))
}

fn has_larger_unused_buffers(
    parameters: &ParameterSet,
    checked: &SimulatedCandidate,
    choices: &[Choice],
) -> bool {
    let own = &checked.candidate.parameters;
    // Receive windows that depend on the free space of a buffer differ before it is full.
    let Some(maximum) = checked.evidence.buffer_max().filter(|_| checked.drops_when_full) else {
        return false;
    };
    let messages = |value: &Option<String>| match quantity(value.as_deref()?) {
        Some((number, "messages")) => Some(number),
        _ => None,
    };
    let pairs = choices.iter().zip(own.values.iter().zip(&parameters.values));
    let is_unused = |(choice, (old, new)): (&Choice, (&Option<String>, &Option<String>))| {
        let larger = || Some(messages(old)? > maximum && messages(new)? > messages(old)?);
        !choice.key.ends_with(BUFFER) || old == new || larger() == Some(true)
    };
    differs_in_buffers_only(own, parameters, choices) && pairs.into_iter().all(is_unused)
}

/// The buffer that is the only key in which both differ, with its sizes in the candidate and in the
/// simulated one.
fn single_buffer(
    parameters: &ParameterSet,
    checked: &SimulatedCandidate,
    choices: &[Choice],
) -> Option<(usize, [f64; 2])> {
    let own = &checked.candidate.parameters;
    let mut differing = (0..choices.len()).filter(|at| own.values[*at] != parameters.values[*at]);
    let (key, None) = (differing.next()?, differing.next()) else { return None };
    if !choices[key].key.ends_with(BUFFER) {
        return None;
    }
    let (new, unit) = quantity(parameters.values[key].as_deref()?)?;
    let (old, other_unit) = quantity(own.values[key].as_deref()?)?;
    (own.aggregators == parameters.aggregators && unit == other_unit).then_some((key, [new, old]))
}
