//! The runs of the page of `gridhaul explore`, in the program and in a browser. The page shows the
//! numbers of the command line, because both call this library.

use gridhaul_explore::{Cancellation, Changes, RunBackend, RunFailure};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::Progress;
use gridhaul_scenario::scenario::Scenario;

use crate::engine::{BackendName, Engine};
use crate::error::Error;
use crate::observer::Observer;
use crate::request;

/// A scenario with the changes of a page.
///
/// # Errors
/// Changes that do not apply to the scenario: the message of the command line.
pub fn change(scenario: &Scenario, changes: &Changes) -> Result<Scenario, String> {
    let set = changes.settings.iter().map(|text| text.parse());
    let changes = request::Changes {
        seed: changes.seed,
        replications: changes.replications,
        set: set.collect::<Result<_, _>>()?,
        series: changes.series,
        pcap: changes.pcap.clone(),
        events: changes.events.clone(),
        ..request::Changes::default()
    };
    let changed = request::change(scenario.clone(), "scenario", &changes, &[]);
    changed.map(|(scenario, _)| scenario).map_err(|error| error.to_string())
}

/// The answer of one backend.
///
/// # Errors
/// See [`RunFailure`].
pub fn run(
    scenario: &Scenario,
    backend: RunBackend,
    cancellation: &Cancellation,
) -> Result<Answer, RunFailure> {
    let backend = match backend {
        RunBackend::Sim => BackendName::Sim,
        RunBackend::Model => BackendName::Model,
    };
    let engine = Engine { backends: vec![backend], ..Engine::default() };
    let answers = crate::run(scenario, &engine, "scenario", &Observed::new(cancellation));
    // An interrupted run may have an answer of its finished replications.
    if cancellation.is_cancelled() {
        return Err(RunFailure::Cancelled);
    }
    match answers {
        Ok(mut answers) => {
            let missing = || RunFailure::Refused("the run has no answer".to_owned());
            answers.pop().ok_or_else(missing)
        }
        Err(error) => Err(failure(&error)),
    }
}

/// The failure of a run.
pub(crate) fn failure(error: &Error) -> RunFailure {
    match error {
        Error::Interrupted(_) => RunFailure::Cancelled,
        error => RunFailure::Refused(error.to_string()),
    }
}

/// Ends a run that a later request replaces.
pub(crate) struct Observed(Cancellation);

impl Observed {
    pub(crate) fn new(cancellation: &Cancellation) -> Self {
        Self(cancellation.clone())
    }
}

impl Observer for Observed {
    fn begin(&self, _part: &str) -> Box<dyn Progress> {
        Box::new(Self(self.0.clone()))
    }
}

impl Progress for Observed {
    fn advance(&self, _done: u64, _total: u64) {}

    fn is_interrupted(&self) -> bool {
        self.0.is_cancelled()
    }
}
