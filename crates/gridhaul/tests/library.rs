//! The library as another program uses it: no command line, no terminal.

use std::sync::Mutex;

use gridhaul::plan::PlanRequest;
use gridhaul::scenario::Scenario;
use gridhaul::scenario::answer::{Answer, Metric};
use gridhaul::scenario::backend::{NoProgress, Progress};
use gridhaul::{BackendName, Engine, Error, Observer};

fn scenario(load: &str) -> Scenario {
    let text = format!(
        "title = 't'\nduration = '2 s'\n[node]\na = {{}}\nb = {{}}\n\
         [link.line]\nfrom = 'a'\nto = 'b'\nboth = {{ rate = '1 Mbit/s', delay = '10 ms' }}\n\
         [flow.up]\nfrom = 'a'\nto = 'b'\nload{load}\n"
    );
    Scenario::from_toml(&text, "line.toml").unwrap()
}

fn engine(backends: &[BackendName]) -> Engine {
    Engine { backends: backends.to_vec(), threads: 1, ..Engine::default() }
}

/// Records its notifications.
#[derive(Default)]
struct Log {
    interrupts: bool,
    events: Mutex<Vec<String>>,
}

struct Interrupting(bool);

impl Progress for Interrupting {
    fn advance(&self, _done: u64, _total: u64) {}
    fn is_interrupted(&self) -> bool {
        self.0
    }
}

impl Observer for Log {
    fn begin(&self, part: &str) -> Box<dyn Progress> {
        self.events.lock().unwrap().push(format!("begin {part}"));
        Box::new(Interrupting(self.interrupts))
    }
    fn on_answer(&self, answer: &Answer, alone: bool) {
        self.events.lock().unwrap().push(format!("{} {alone}", answer.backend));
    }
}

#[test]
fn an_observer_is_notified_of_each_backend_and_its_answer() {
    let log = Log::default();
    let both = engine(&[BackendName::Sim, BackendName::Model]);
    let answers = gridhaul::run(&scenario(" = 'bulk'"), &both, "line", &log).unwrap();
    let events = log.events.into_inner().unwrap();
    assert_eq!(events, ["begin line", "sim false", "begin line", "model false"]);
    let named: Vec<_> = answers.iter().map(|answer| (answer.backend.clone(), answer)).collect();
    let comparison = gridhaul::compare(&named, &[Metric::Goodput]).unwrap();
    assert_eq!((comparison.rows.len(), comparison.rows[0].others.len()), (1, 1));
    let csv = gridhaul::csv(&named, &[Metric::Goodput]).unwrap();
    assert_eq!(csv.lines().count(), 3, "{csv}");
}

#[test]
fn an_observer_interrupts_a_run() {
    let log = Log { interrupts: true, ..Log::default() };
    let sim = engine(&[BackendName::Sim]);
    let ended = gridhaul::run(&scenario(" = 'bulk'"), &sim, "line", &log);
    assert!(matches!(ended, Err(Error::Interrupted(_))), "{ended:?}");
}

#[test]
fn a_trace_that_cannot_be_read_ends_the_call_before_a_backend_begins() {
    let log = Log::default();
    let lost = scenario(".trace.file = '/nowhere/day.csv'");
    let error = gridhaul::run(&lost, &engine(&[BackendName::Sim]), "line", &log).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Input(_)), "{text}");
    assert!(text.starts_with("line: flow.up.load.trace.file: /nowhere/day.csv"), "{text}");
    assert!(text.contains("help: check the spelling"), "{text}");
    assert!(log.events.into_inner().unwrap().is_empty());
}

#[test]
fn an_invalid_request_is_an_input_error() {
    let twice = engine(&[BackendName::Sim, BackendName::Sim]);
    let bulk = scenario(" = 'bulk'");
    assert!(matches!(gridhaul::run(&bulk, &twice, "line", &NoProgress), Err(Error::Input(_))));
    let nothing = gridhaul::plan(&bulk, &PlanRequest::default(), "line", &NoProgress);
    assert!(nothing.unwrap_err().to_string().contains("there is no [plan]"));
    let unknown = gridhaul::paper("unknown", true, &engine(&[BackendName::Sim]), &NoProgress);
    assert!(unknown.unwrap_err().to_string().contains("choose one of: "));
    assert_eq!("paper-model".parse(), Ok(BackendName::PaperModel));
    assert!(
        "ns-2"
            .parse::<BackendName>()
            .unwrap_err()
            .contains("sim, model, paper-model, printed-model, emu")
    );
}
