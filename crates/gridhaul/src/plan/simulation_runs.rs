//! Simulation of candidates: several concurrently, with as many replications as the decision on their limits needs.

use std::sync::atomic::{AtomicU64, Ordering};

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::NoProgress;
use gridhaul_scenario::scenario::{Choices, Scenario};
use rayon::prelude::*;

use super::agreement::{Comparison, compare};
use super::candidate::Candidate;
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

/// Number of candidates that are simulated concurrently. It is independent of the number of threads, so that
/// the same candidates are simulated on every machine.
const BATCH: usize = 4;
/// Maximum number of replications of a candidate; one that is still undecided then is too close to a limit.
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
    pool: rayon::ThreadPool,
}

/// A candidate whose simulation is in progress.
struct Job {
    index: usize,
    scenario: Scenario,
    evidence: Evidence,
    decision: Option<Decision>,
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
        Ok(Self { verification, choices, limits, simulations: Vec::new(), pool })
    }

    /// Number of candidates that may still be simulated.
    pub(crate) fn remaining(&self) -> usize {
        self.verification.max_candidates.saturating_sub(self.simulations.len())
    }

    /// Simulates candidates in the order of the list, up to the maximum number. Returns the first one that meets every
    /// limit, as an index into [`Self::simulations`].
    pub(crate) fn simulate(
        &mut self,
        search: &mut Search<'_>,
        list: &[usize],
        until: StopRule,
    ) -> Result<Option<usize>, Error> {
        let list = &list[..list.len().min(self.remaining())];
        let mut found = None;
        for batch in list.chunks(BATCH) {
            for job in self.batch(search, batch, until)? {
                let meets = self.store(search, job)?;
                found = found.or_else(|| meets.then(|| self.simulations.len() - 1));
            }
            if until == StopRule::FirstFeasible && found.is_some() {
                break;
            }
        }
        Ok(found)
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
            let parameters = &search.candidates[index].parameters;
            let scenario = self.choices.scenario(&parameters.values, parameters.aggregators)?;
            let scenario = Scenario { replications: 1, ..scenario };
            self.supported(&scenario)?;
            let evidence = Evidence::of(&scenario);
            jobs.push(Job { index, scenario, evidence, decision: None });
        }
        let label = self.label(search, batch);
        let mut from = 0;
        while from < REPLICATIONS_MAX {
            let undecided: Vec<usize> = undecided(&jobs, until);
            if undecided.is_empty() {
                break;
            }
            // Most candidates are far from a limit, and two replications are enough to reject them. Later, the
            // fewer candidates are undecided, the more replications of each run concurrently.
            let count = match (from, self.verification.depth) {
                (0, VerificationDepth::Winner) if batch.len() > 1 => 2,
                (0, _) => REPLICATIONS_MIN,
                _ => (BATCH / undecided.len()).max(1).min(REPLICATIONS_MAX - from),
            };
            self.replicate(&mut jobs, &undecided, from..from + count, &label)?;
            from += count;
            for job in &mut jobs {
                if job.decision.is_none() {
                    let last = from >= REPLICATIONS_MAX;
                    job.decision = job.evidence.decision(self.limits, last);
                }
            }
        }
        // Candidates after the first one that meets every limit were abandoned and are not reported.
        jobs.retain(|job| job.decision.is_some());
        Ok(jobs)
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
            let answer = simulator.run(&Scenario { seed, ..scenario.clone() }, &NoProgress);
            observer.advance(done.fetch_add(1, Ordering::Relaxed) + 1, total);
            answer
        };
        let answers: Result<Vec<Answer>, _> =
            self.pool.install(|| runs.par_iter().map(run).collect());
        for ((job, _), answer) in runs.iter().zip(answers?) {
            jobs[*job].evidence.add(answer);
        }
        Ok(())
    }

    /// Stores the results of a candidate. Returns whether it meets every limit.
    fn store(&mut self, search: &mut Search<'_>, job: Job) -> Result<bool, Error> {
        let candidate = search.candidates[job.index].clone();
        let model = search.evaluator.evaluate(&candidate.parameters)?.clone();
        let equations = search.evaluator.answer(&job.scenario)?;
        let simulated = job.evidence.answer();
        let points = equations.as_ref().zip(simulated.as_ref());
        let points = points.and_then(|(a, b)| a.points.first().zip(b.points.first()));
        let comparisons = points.map_or_else(Vec::new, |(a, b)| compare(self.limits, a, b));
        let decision = job.decision.unwrap_or(Decision::Unknown(Vec::new()));
        let meets = decision == Decision::Met;
        search.evaluator.record_simulation(&candidate.parameters, meets);
        let evidence = job.evidence;
        let warnings = equations.map_or_else(Vec::new, |answer| {
            answer.warnings.iter().map(|it| format!("{}: {}", it.about, it.message)).collect()
        });
        self.simulations.push(SimulatedCandidate {
            candidate,
            model,
            evidence,
            decision,
            comparisons,
            warnings,
        });
        Ok(meets)
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

/// Candidates of a batch that need more replications. With [`StopRule::FirstFeasible`], only those before the first
/// one that meets every limit.
fn undecided(jobs: &[Job], until: StopRule) -> Vec<usize> {
    let found = jobs.iter().position(|job| job.decision == Some(Decision::Met));
    let end = match until {
        StopRule::FirstFeasible => found.unwrap_or(jobs.len()),
        StopRule::All => jobs.len(),
    };
    (0..end).filter(|at| jobs[*at].decision.is_none()).collect()
}
