//! Simulates candidates: several at the same time, each over as many replications as its limits need.

use std::sync::atomic::{AtomicU64, Ordering};

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::NoProgress;
use gridhaul_scenario::scenario::{Choices, Scenario};
use rayon::prelude::*;

use super::agreement::{Comparison, compare};
use super::evidence::{Decision, Evidence, REPLICATIONS_MIN};
use super::judge::Judgement;
use super::limits::Limit;
use super::search::Search;
use super::trial::Candidate;
use super::verify::{Depth, Verification};
use crate::error::Error;

/// A candidate that was simulated.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    pub(crate) candidate: Candidate,
    /// What the equations say.
    pub(crate) model: Judgement,
    pub(crate) evidence: Evidence,
    pub(crate) decision: Decision,
    /// Quantities that both know; empty where the equations have no answer.
    pub(crate) comparisons: Vec<Comparison>,
    /// What the equations say about the trust in their numbers.
    pub(crate) warnings: Vec<String>,
}

impl Checked {
    /// Whether every limit is kept in the simulation.
    pub(crate) fn keeps(&self) -> bool {
        self.decision == Decision::Keeps
    }

    /// Whether equations and simulation agree in everything that both know.
    pub(crate) fn agrees(&self) -> bool {
        !self.comparisons.is_empty() && self.comparisons.iter().all(Comparison::agrees)
    }
}

/// Candidates that are simulated at the same time. It does not depend on the number of threads, so that
/// the same candidates are simulated on every machine.
const BATCH: usize = 4;
/// Replications of a candidate after which one that is still undecided is too close to a limit.
pub(crate) const REPLICATIONS_MAX: usize = 10;

/// When candidates of a list are given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The first in the list that keeps every limit is wanted: those after it are left.
    Found,
    /// All are wanted, over at least three replications each.
    All,
}

/// Simulates candidates and remembers what came out.
pub(crate) struct Bench<'a> {
    pub(crate) how: &'a Verification<'a>,
    pub(crate) choices: &'a Choices,
    pub(crate) limits: &'a [Limit],
    pub(crate) tried: Vec<Checked>,
    pool: rayon::ThreadPool,
}

/// A candidate under way.
struct Job {
    index: usize,
    scenario: Scenario,
    evidence: Evidence,
    decision: Option<Decision>,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(
        how: &'a Verification<'a>,
        choices: &'a Choices,
        limits: &'a [Limit],
    ) -> Result<Self, Error> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(how.threads)
            .build()
            .map_err(|error| anyhow::anyhow!("threads: {error}"))?;
        Ok(Self { how, choices, limits, tried: Vec::new(), pool })
    }

    /// Number of candidates that may still be simulated.
    pub(crate) fn left(&self) -> usize {
        self.how.max_candidates.saturating_sub(self.tried.len())
    }

    /// Simulates candidates in their order until one keeps every limit, or all of them, or no more may be.
    /// Returns the first in the list that keeps every limit, as an index into [`Self::tried`].
    pub(crate) fn simulate(
        &mut self,
        search: &mut Search<'_>,
        list: &[usize],
        until: Until,
    ) -> Result<Option<usize>, Error> {
        let list = &list[..list.len().min(self.left())];
        let mut found = None;
        for batch in list.chunks(BATCH) {
            for job in self.batch(search, batch, until)? {
                let keeps = self.note(search, job)?;
                found = found.or_else(|| keeps.then(|| self.tried.len() - 1));
            }
            if until == Until::Found && found.is_some() {
                break;
            }
        }
        Ok(found)
    }

    /// Adds replications to the candidates of a batch until each is decided or of no more interest.
    fn batch(&self, search: &Search<'_>, batch: &[usize], until: Until) -> Result<Vec<Job>, Error> {
        let mut jobs = Vec::new();
        for &index in batch {
            let trial = &search.candidates[index].trial;
            let scenario = self.choices.scenario(&trial.values, trial.collectors)?;
            let scenario = Scenario { replications: 1, ..scenario };
            self.supported(&scenario)?;
            let evidence = Evidence::of(&scenario);
            jobs.push(Job { index, scenario, evidence, decision: None });
        }
        let label = self.label(search, batch);
        let mut from = 0;
        while from < REPLICATIONS_MAX {
            let open: Vec<usize> = open(&jobs, until);
            if open.is_empty() {
                break;
            }
            // Of several candidates most are far from a limit, and two are enough to reject them. Later, the
            // fewer candidates are open, the more replications of each run at the same time.
            let more = match (from, self.how.depth) {
                (0, Depth::Winner) if batch.len() > 1 => 2,
                (0, _) => REPLICATIONS_MIN,
                _ => (BATCH / open.len()).max(1).min(REPLICATIONS_MAX - from),
            };
            self.replicate(&mut jobs, &open, from..from + more, &label)?;
            from += more;
            for job in &mut jobs {
                if job.decision.is_none() {
                    let last = from >= REPLICATIONS_MAX;
                    job.decision = job.evidence.decision(self.limits, last);
                }
            }
        }
        // What lies after the first that keeps every limit was given up and is not told.
        jobs.retain(|job| job.decision.is_some());
        Ok(jobs)
    }

    /// Runs the replications of these numbers, in parallel.
    fn replicate(
        &self,
        jobs: &mut [Job],
        open: &[usize],
        numbers: std::ops::Range<usize>,
        label: &str,
    ) -> Result<(), Error> {
        let runs: Vec<(usize, usize)> =
            numbers.flat_map(|number| open.iter().map(move |job| (*job, number))).collect();
        let (done, total) = (AtomicU64::new(0), runs.len() as u64);
        let progress = (self.how.progress)(label);
        progress.advance(0, total);
        let (simulator, watcher) = (self.how.simulator, progress.as_ref());
        let run = |&(job, number): &(usize, usize)| {
            let scenario: &Scenario = &jobs[job].scenario;
            let seed = scenario.seed.wrapping_add(number as u64);
            let answer = simulator.run(&Scenario { seed, ..scenario.clone() }, &NoProgress);
            watcher.advance(done.fetch_add(1, Ordering::Relaxed) + 1, total);
            answer
        };
        let answers: Result<Vec<Answer>, _> =
            self.pool.install(|| runs.par_iter().map(run).collect());
        for ((job, _), answer) in runs.iter().zip(answers?) {
            jobs[*job].evidence.add(answer);
        }
        Ok(())
    }

    /// Keeps what came out of a candidate; whether it keeps every limit.
    fn note(&mut self, search: &mut Search<'_>, job: Job) -> Result<bool, Error> {
        let candidate = search.candidates[job.index].clone();
        let model = search.judge.ask(&candidate.trial)?.clone();
        let equations = search.judge.answer(&job.scenario)?;
        let simulated = job.evidence.answer();
        let points = equations.as_ref().zip(simulated.as_ref());
        let points = points.and_then(|(a, b)| a.points.first().zip(b.points.first()));
        let comparisons = points.map_or_else(Vec::new, |(a, b)| compare(self.limits, a, b));
        let decision = job.decision.unwrap_or(Decision::Unknown(Vec::new()));
        let keeps = decision == Decision::Keeps;
        search.judge.overrule(&candidate.trial, keeps);
        let evidence = job.evidence;
        let warnings = equations.map_or_else(Vec::new, |answer| {
            answer.warnings.iter().map(|it| format!("{}: {}", it.about, it.message)).collect()
        });
        self.tried.push(Checked { candidate, model, evidence, decision, comparisons, warnings });
        Ok(keeps)
    }

    fn supported(&self, scenario: &Scenario) -> Result<(), Error> {
        self.how.simulator.supports(scenario).map_err(|keys| {
            let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
            anyhow::anyhow!(
                "the choice cannot be verified by simulation:\n{}\n  help: leave verification out \
                 with `--verify none`",
                keys.join("\n")
            )
            .into()
        })
    }

    fn label(&self, search: &Search<'_>, batch: &[usize]) -> String {
        let first = self.tried.len() + 1;
        let words =
            batch.first().map(|index| search.candidates[*index].trial.words(search.choices));
        let last = first + batch.len() - 1;
        match (words, first == last) {
            (Some(words), true) => format!("simulating choice {first}: {words}"),
            _ => format!(
                "simulating choices {first} to {last} of at most {}",
                self.how.max_candidates
            ),
        }
    }
}

/// Candidates of a batch that need more replications. Of those that are searched, only what comes before
/// the first that keeps every limit.
fn open(jobs: &[Job], until: Until) -> Vec<usize> {
    let found = jobs.iter().position(|job| job.decision == Some(Decision::Keeps));
    let end = match until {
        Until::Found => found.unwrap_or(jobs.len()),
        Until::All => jobs.len(),
    };
    (0..end).filter(|at| jobs[*at].decision.is_none()).collect()
}
