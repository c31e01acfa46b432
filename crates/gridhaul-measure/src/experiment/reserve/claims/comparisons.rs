//! Comparisons of estimates: verdicts, and the measured values in words.

use gridhaul_report::verdict::Verdict;

use super::estimate::{Estimate, all, both};
use super::{Finding, name, texts};

/// Estimates with the name of a protocol or of a system.
pub(super) type Labelled = (&'static str, Vec<Option<Estimate>>);

/// Pairs of estimates, with a verdict that is open where one of both is missing.
pub(super) fn compared(
    left: &[Option<Estimate>],
    right: &[Option<Estimate>],
    compare: impl Fn(Estimate, Estimate) -> Verdict,
) -> Verdict {
    // A series that was measured at other rates than the other one is not comparable.
    if left.len() != right.len() {
        return Verdict::Unknown;
    }
    let verdict = |(left, right): (&Option<Estimate>, &Option<Estimate>)| {
        left.zip(*right).map_or(Verdict::Undecided, |(left, right)| compare(left, right))
    };
    all(left.iter().zip(right).map(verdict))
}

pub(super) fn side_by_side(left: &Labelled, right: &Labelled) -> String {
    format!("{} {}; {} {}", name(left.0), texts(&left.1), name(right.0), texts(&right.1))
}

/// Each estimate is below the other one at the same rate.
pub(super) fn below(left: &Labelled, right: &Labelled) -> Finding {
    let about = side_by_side(left, right);
    (compared(&left.1, &right.1, Estimate::is_below), about)
}

/// Each estimate is between half and twice the other one.
pub(super) fn similar(left: &Labelled, right: &Labelled) -> Finding {
    let about = side_by_side(left, right);
    let is_similar = |left: Estimate, right: Estimate| {
        both(not(left.times(2.0).is_below(right)), not(right.times(2.0).is_below(left)))
    };
    (compared(&left.1, &right.1, is_similar), about)
}

pub(super) fn within(estimates: &[Option<Estimate>], range: [f64; 2]) -> Finding {
    let verdict = |estimate: &Option<Estimate>| {
        estimate.map_or(Verdict::Undecided, |estimate| estimate.is_within(range))
    };
    (all(estimates.iter().map(verdict)), texts(estimates))
}

/// The estimate at the highest rate is below that at the lowest.
pub(super) fn decreases(estimates: &[Option<Estimate>]) -> Finding {
    let verdict = match estimates {
        [] => Verdict::Unknown,
        [Some(first), .., Some(last)] => last.is_below(*first),
        _ => Verdict::Undecided,
    };
    (verdict, texts(estimates))
}

/// The estimate at each rate is below that at the next lower one.
pub(super) fn decreases_at_each_rate(estimates: &[Option<Estimate>]) -> Finding {
    let verdict = |pair: &[Option<Estimate>]| match pair {
        [Some(before), Some(after)] => after.is_below(*before),
        _ => Verdict::Undecided,
    };
    (all(estimates.windows(2).map(verdict)), texts(estimates))
}

/// The greatest of the estimates is in a range; it is unknown while one estimate is.
pub(super) fn greatest_within(estimates: &[Option<Estimate>], range: [f64; 2]) -> Finding {
    let known: Option<Vec<Estimate>> = estimates.iter().copied().collect();
    let greatest =
        known.and_then(|known| known.into_iter().max_by(|a, b| a.median.total_cmp(&b.median)));
    let verdict = match greatest {
        Some(greatest) => greatest.is_within(range),
        None if estimates.is_empty() => Verdict::Unknown,
        None => Verdict::Undecided,
    };
    (verdict, texts(estimates))
}

/// The estimate at the highest rate is above all others.
pub(super) fn grows(estimates: &[Option<Estimate>]) -> Finding {
    let verdict = match estimates.split_last() {
        None => Verdict::Unknown,
        Some((Some(last), others)) => all(others.iter().map(|estimate| {
            estimate.map_or(Verdict::Undecided, |estimate| estimate.is_below(*last))
        })),
        _ => Verdict::Undecided,
    };
    (verdict, format!("standard deviations {}", texts(estimates)))
}

/// The largest estimate is at most the least one multiplied by a factor.
pub(super) fn invariant(estimates: &[Option<Estimate>], factor: f64) -> Finding {
    let known: Option<Vec<_>> = estimates.iter().copied().collect();
    let verdict = known.filter(|known| !known.is_empty()).map(|known| {
        let of_pair =
            |one: &Estimate| all(known.iter().map(|other| not(other.times(factor).is_below(*one))));
        all(known.iter().map(of_pair))
    });
    (verdict.unwrap_or(Verdict::Undecided), texts(estimates))
}

pub(super) const fn not(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Agrees => Verdict::Differs,
        Verdict::Differs => Verdict::Agrees,
        other => other,
    }
}

/// The findings of several protocols.
pub(super) fn together<const N: usize>(findings: &[(&str, Finding); N]) -> Finding {
    let about =
        findings.iter().map(|(protocol, (_, about))| format!("{}: {about}", name(protocol)));
    let about = about.collect::<Vec<_>>().join(" | ");
    (all(findings.iter().map(|(_, (verdict, _))| *verdict)), about)
}
