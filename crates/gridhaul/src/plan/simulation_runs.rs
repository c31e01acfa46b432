//! Simulation of candidates: several concurrently, with as many replications as the decision on
//! their limits needs.

use std::sync::atomic::{AtomicU64, Ordering};

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::Progress;
use gridhaul_scenario::scenario::{Choices, FullBufferPolicy, Replications, Scenario};
use rayon::prelude::*;

use super::agreement::{Comparison, compare};
use super::candidate::{Candidate, ParameterSet};
use super::dominance::{differs_in_buffers_only, is_excluded};
use super::evaluate::Evaluation;
use super::evidence::{Decision, Evidence, REPLICATIONS_MIN};
use super::limits::Limit;
use super::search::Search;
use super::verify::{Verification, VerificationDepth};
use crate::error::Error;

/// A candidate with the results of its simulation.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedCandidate {
    pub(crate) candidate: Candidate,
    /// Evaluation by the analytical model.
    pub(crate) model: Evaluation,
    pub(crate) evidence: Evidence,
    pub(crate) decision: Decision,
    /// Quantities with a value in both; empty if the model has no answer.
    pub(crate) comparisons: Vec<Comparison>,
    /// Warnings of the analytical model.
    pub(crate) warnings: Vec<String>,
    /// Whether its aggregators, if it has any, drop messages when their buffers are full.
    pub(crate) drops_when_full: bool,
}

impl SimulatedCandidate {
    /// Whether the simulation meets every limit.
    pub(crate) fn meets_limits(&self) -> bool {
        self.decision == Decision::Met
    }

    /// Whether model and simulation agree in all compared quantities.
    pub(crate) fn agrees(&self) -> bool {
        !self.comparisons.is_empty() && self.comparisons.iter().all(Comparison::agrees)
    }
}

/// Number of candidates that are simulated concurrently. It is independent of the number of
/// threads, so that the same candidates are simulated on every machine.
const BATCH: usize = 4;
/// Replications of the choice between two checks of its limits.
const CONFIRMED_AT_ONCE: usize = 8;
/// Maximum number of replications of a candidate; one that is still undecided then is too close to
/// a limit.
pub(crate) const REPLICATIONS_MAX: usize = 10;

/// When the simulation of a list of candidates stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopRule {
    /// After the first candidate of the list that meets every limit.
    FirstFeasible,
    /// After all candidates, with at least three replications each.
    All,
}

/// Simulates candidates and collects the results.
pub(crate) struct SimulationRuns<'a> {
    pub(crate) verification: &'a Verification<'a>,
    pub(crate) choices: &'a Choices,
    pub(crate) limits: &'a [Limit],
    pub(crate) simulations: Vec<SimulatedCandidate>,
    /// Candidates that a simulated one excludes.
    pub(crate) excluded: Vec<usize>,
    pool: rayon::ThreadPool,
}

/// A candidate whose simulation is in progress.
struct Job {
    candidate: Candidate,
    scenario: Scenario,
    evidence: Evidence,
    decision: Option<Decision>,
    /// Number of replications that were run.
    runs: usize,
}

impl<'a> SimulationRuns<'a> {
    pub(crate) fn new(
        verification: &'a Verification<'a>,
        choices: &'a Choices,
        limits: &'a [Limit],
    ) -> Result<Self, Error> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(verification.threads)
            .build()
            .map_err(|error| anyhow::anyhow!("threads: {error}"))?;
        Ok(Self {
            verification,
            choices,
            limits,
            simulations: Vec::new(),
            excluded: Vec::new(),
            pool,
        })
    }

    /// Number of candidates that may still be simulated.
    pub(crate) fn remaining(&self) -> usize {
        self.verification.max_candidates.saturating_sub(self.simulations.len())
    }

    /// Simulates candidates in the order of the list, up to the maximum number. Returns the first
    /// one that meets every limit, as an index into [`Self::simulations`].
    pub(crate) fn simulate(
        &mut self,
        search: &mut Search<'_>,
        list: &[usize],
        until: StopRule,
    ) -> Result<Option<usize>, Error> {
        let mut list = list.to_vec();
        let mut found = None;
        loop {
            let batch = self.next_batch(search, &mut list);
            if batch.is_empty() {
                break;
            }
            for job in self.batch(search, &batch, until)? {
                let meets = self.store(search, job)?;
                found = found.or_else(|| meets.then(|| self.simulations.len() - 1));
            }
            if until == StopRule::FirstFeasible && found.is_some() {
                break;
            }
        }
        Ok(found)
    }

    /// Removes the next candidates to simulate from a list. Candidates that a simulated one
    /// excludes are removed as well; those that one of the batch may exclude wait for the next
    /// batch.
    fn next_batch(&mut self, search: &mut Search<'_>, list: &mut Vec<usize>) -> Vec<usize> {
        let (maximum, mut batch, mut rest) = (BATCH.min(self.remaining()), Vec::new(), Vec::new());
        let candidates = search.candidates;
        for index in std::mem::take(list) {
            let parameters = &candidates[index].parameters;
            let waits = |other: &usize| {
                let other = &candidates[*other].parameters;
                differs_in_buffers_only(parameters, other, search.choices)
            };
            if is_excluded(parameters, &self.simulations, self.limits, search.choices) {
                self.excluded.push(index);
                search.evaluator.record_simulation(parameters, false);
            } else if batch.len() < maximum && !batch.iter().any(waits) {
                batch.push(index);
            } else {
                rest.push(index);
            }
        }
        *list = rest;
        batch
    }

    /// Adds replications to a candidate that meets every limit until the required number of runs
    /// meets them. Returns whether all do.
    pub(crate) fn confirm(&mut self, search: &mut Search<'_>, place: usize) -> Result<bool, Error> {
        let checked = &self.simulations[place];
        if checked.evidence.is_deterministic() {
            return Ok(true);
        }
        let parameters = &checked.candidate.parameters;
        let scenario = self.choices.scenario(&parameters.values, parameters.aggregators)?;
        let scenario = Scenario { replications: Replications::Fixed(1), ..scenario };
        let (evidence, required) = (checked.evidence.clone(), self.verification.runs);
        let label = format!(
            "confirming {} in {required} runs",
            checked.candidate.parameters.describe(search.choices)
        );
        let mut jobs = [Job {
            candidate: checked.candidate.clone(),
            scenario,
            evidence,
            decision: None,
            runs: 0,
        }];
        let decision = loop {
            let (decision, runs) =
                (jobs[0].evidence.in_every_run(self.limits), jobs[0].evidence.replications());
            if decision != Decision::Met || runs >= required {
                break decision;
            }
            self.replicate(&mut jobs, &[0], runs..required.min(runs + CONFIRMED_AT_ONCE), &label)?;
        };
        let [mut job] = jobs;
        job.decision = Some(decision);
        let result = self.result(search, job)?;
        let meets = result.meets_limits();
        self.simulations[place] = result;
        Ok(meets)
    }

    /// Adds replications to the candidates of a batch until each is decided or no longer needed.
    fn batch(
        &self,
        search: &Search<'_>,
        batch: &[usize],
        until: StopRule,
    ) -> Result<Vec<Job>, Error> {
        let mut jobs = Vec::new();
        for &index in batch {
            let candidate = search.candidates[index].clone();
            let parameters = &candidate.parameters;
            let scenario = self.choices.scenario(&parameters.values, parameters.aggregators)?;
            let scenario = Scenario { replications: Replications::Fixed(1), ..scenario };
            self.supported(&scenario)?;
            let evidence = Evidence::of(&scenario);
            jobs.push(Job { candidate, scenario, evidence, decision: None, runs: 0 });
        }
        let label = self.label(search, batch);
        let mut from = 0;
        while from < REPLICATIONS_MAX {
            let undecided: Vec<usize> = undecided(&jobs, self.limits, until);
            if undecided.is_empty() {
                break;
            }
            // Most candidates are far from a limit, and two replications are enough to reject them.
            // Later, the fewer candidates are undecided, the more replications of each run
            // concurrently.
            let count = match (from, self.verification.depth) {
                (0, VerificationDepth::Winner) if batch.len() > 1 => 2,
                (0, _) => REPLICATIONS_MIN,
                _ => (BATCH / undecided.len()).max(1).min(REPLICATIONS_MAX - from),
            };
            self.replicate(&mut jobs, &undecided, from..from + count, &label)?;
            from += count;
            for at in 0..jobs.len() {
                jobs[at].decision = jobs[at].decision.take().or_else(|| self.decide(&jobs, at));
            }
        }
        // Candidates after the first one that meets every limit were abandoned and are not
        // reported.
        jobs.retain(|job| job.decision.is_some());
        Ok(jobs)
    }

    /// The decision on a candidate of a batch after its replications so far.
    fn decide(&self, jobs: &[Job], at: usize) -> Option<Decision> {
        let evidence = &jobs[at].evidence;
        let decided = evidence.decision(self.limits, false);
        let simulated = self.simulations.iter().map(|checked| {
            (&checked.candidate.parameters, &checked.evidence, Some(&checked.decision))
        });
        let earlier = jobs[..at]
            .iter()
            .map(|job| (&job.candidate.parameters, &job.evidence, job.decision.as_ref()));
        let equal = || {
            simulated.chain(earlier).find_map(|(parameters, other, decision)| {
                let decision = decision.filter(|decision| **decision != Decision::Met)?;
                is_equal(evidence, other, self.limits).then(|| as_other(parameters, decision))
            })
        };
        let last = || evidence.decision(self.limits, jobs[at].runs >= REPLICATIONS_MAX);
        decided.or_else(equal).or_else(last)
    }

    /// Runs the replications with these numbers in parallel.
    fn replicate(
        &self,
        jobs: &mut [Job],
        undecided: &[usize],
        numbers: std::ops::Range<usize>,
        label: &str,
    ) -> Result<(), Error> {
        let runs: Vec<(usize, usize)> =
            numbers.flat_map(|number| undecided.iter().map(move |job| (*job, number))).collect();
        let (done, total) = (AtomicU64::new(0), runs.len() as u64);
        let progress = (self.verification.progress)(label);
        progress.advance(0, total);
        let (simulator, observer) = (self.verification.simulator, progress.as_ref());
        let run = |&(job, number): &(usize, usize)| {
            let scenario: &Scenario = &jobs[job].scenario;
            let seed = scenario.seed.wrapping_add(number as u64);
            let scenario = Scenario { seed, ..scenario.clone() };
            let answer = simulator.run(&scenario, &Interruptible(observer));
            observer.advance(done.fetch_add(1, Ordering::Relaxed) + 1, total);
            answer
        };
        let answers: Result<Vec<Answer>, _> =
            self.pool.install(|| runs.par_iter().map(run).collect());
        for ((job, _), answer) in runs.iter().zip(answers?) {
            jobs[*job].runs += 1;
            jobs[*job].evidence.add(answer);
        }
        Ok(())
    }

    /// Stores the results of a candidate. Returns whether it meets every limit.
    fn store(&mut self, search: &mut Search<'_>, job: Job) -> Result<bool, Error> {
        let result = self.result(search, job)?;
        let meets = result.meets_limits();
        self.simulations.push(result);
        Ok(meets)
    }

    /// The results of a candidate, which the search takes into account from now on.
    fn result(&self, search: &mut Search<'_>, job: Job) -> Result<SimulatedCandidate, Error> {
        let candidate = job.candidate;
        let model = search.evaluator.evaluate(&candidate.parameters)?.clone();
        let equations = search.evaluator.answer(&job.scenario)?;
        let simulated = job.evidence.answer();
        let points = equations.as_ref().zip(simulated.as_ref());
        let points = points.and_then(|(a, b)| a.points.first().zip(b.points.first()));
        let comparisons = points.map_or_else(Vec::new, |(a, b)| compare(self.limits, a, b));
        let decision = job.decision.unwrap_or(Decision::Unknown(Vec::new()));
        search.evaluator.record_simulation(&candidate.parameters, decision == Decision::Met);
        let evidence = job.evidence;
        let warnings = equations.map_or_else(Vec::new, |answer| {
            answer
                .warnings
                .iter()
                .map(|warning| format!("{}: {}", warning.about, warning.message))
                .collect()
        });
        let mut aggregators =
            job.scenario.node.values().filter_map(|node| node.aggregator.as_ref());
        let drops_when_full =
            aggregators.all(|aggregator| aggregator.when_full == FullBufferPolicy::Drop);
        Ok(SimulatedCandidate {
            candidate,
            model,
            evidence,
            decision,
            comparisons,
            warnings,
            drops_when_full,
        })
    }

    fn supported(&self, scenario: &Scenario) -> Result<(), Error> {
        self.verification.simulator.supports(scenario).map_err(|keys| {
            let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
            anyhow::anyhow!(
                "the candidate cannot be simulated:\n{}\n  help: skip the verification with \
                 `--verify none`",
                keys.join("\n")
            )
            .into()
        })
    }

    fn label(&self, search: &Search<'_>, batch: &[usize]) -> String {
        let first = self.simulations.len() + 1;
        let description = batch
            .first()
            .map(|index| search.candidates[*index].parameters.describe(search.choices));
        let last = first + batch.len() - 1;
        match (description, first == last) {
            (Some(description), true) => format!("simulating candidate {first}: {description}"),
            _ => format!(
                "simulating candidates {first} to {last} of at most {}",
                self.verification.max_candidates
            ),
        }
    }
}

/// The progress of one of several concurrent runs: it does not report itself, but can be
/// interrupted.
struct Interruptible<'a>(&'a dyn Progress);

impl Progress for Interruptible<'_> {
    fn advance(&self, _done: u64, _total: u64) {}

    fn is_interrupted(&self) -> bool {
        self.0.is_interrupted()
    }
}

/// Whether enough replications of two candidates have the same values of all limits. Both have the
/// same seeds, so that candidates differ by chance in no value that a change influences.
fn is_equal(one: &Evidence, other: &Evidence, limits: &[Limit]) -> bool {
    one.equal_runs(other, limits).is_some_and(|runs| runs >= REPLICATIONS_MIN)
}

/// The decision on a candidate whose values are those of another one that fails.
fn as_other(parameters: &ParameterSet, decision: &Decision) -> Decision {
    match decision {
        Decision::Equal { .. } => decision.clone(),
        _ => Decision::Equal { to: parameters.clone(), decision: Box::new(decision.clone()) },
    }
}

/// Candidates of a batch that need more replications. With [`StopRule::FirstFeasible`], only those
/// before the first one that meets every limit, and none whose values so far are those of an
/// earlier one: it fails with that one, or is no longer needed.
fn undecided(jobs: &[Job], limits: &[Limit], until: StopRule) -> Vec<usize> {
    let found = jobs.iter().position(|job| job.decision == Some(Decision::Met));
    let end = match until {
        StopRule::FirstFeasible => found.unwrap_or(jobs.len()),
        StopRule::All => jobs.len(),
    };
    let waits = |at: usize| {
        let mut earlier = jobs[..at].iter().filter(|job| job.decision.is_none());
        until == StopRule::FirstFeasible
            && earlier.any(|job| is_equal(&jobs[at].evidence, &job.evidence, limits))
    };
    (0..end).filter(|at| jobs[*at].decision.is_none() && !waits(*at)).collect()
}
