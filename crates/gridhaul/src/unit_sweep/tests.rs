//! Sweeps in units give the results of a run, whatever is interrupted, edited or shared.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use gridhaul_scenario::backend::{NoProgress, Progress};
use gridhaul_scenario::table::TableName;

use super::*;

const SCENARIO: &str = r#"title = "sweep"
duration = "5 s"
replications = 3

[node]
a = {}
b = {}

[link.wire]
from = "a"
to = "b"
both = { rate = "1 Mbit/s", delay = "10 ms", loss = { bernoulli = "1 %" } }

[flow.up]
from = "a"
to = "b"
load.periodic = { size = "2 kB", every = "500 ms" }

[[sweep]]
vary."link.wire.both.delay" = ["10 ms", "20 ms", "30 ms"]
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::from_toml(text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn sweep(scenario: &Scenario, folder: impl Into<PathBuf>) -> UnitSweep<'_> {
    UnitSweep::new(scenario, "test", vec![folder.into()]).unwrap()
}

/// One run per unit.
fn small_units() -> Engine {
    Engine { threads: 1, ..Engine::default() }
}

fn table(sweep: &UnitSweep<'_>, name: TableName) -> Vec<u8> {
    let mut bytes = Vec::new();
    let output = TableOutput { name, out: &mut bytes };
    sweep.stored().unwrap().write_tables(vec![output]).unwrap();
    bytes
}

/// Interrupts after a number of reports of progress.
struct InterruptAfter(AtomicU64);

impl Progress for InterruptAfter {
    fn advance(&self, _done: u64, _total: u64) {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
    }

    fn is_interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

struct Interrupting(u64);

impl Observer for Interrupting {
    fn begin(&self, _part: &str) -> Box<dyn Progress> {
        Box::new(InterruptAfter(AtomicU64::new(self.0)))
    }
}

#[test]
fn the_answer_is_that_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario(SCENARIO);
    let sweep = sweep(&scenario, dir.path());
    let done = sweep.run(Shard::ALL, &Engine::default(), &NoProgress).unwrap();
    assert_eq!(done, SweepProgress { finished: 9, interrupted: false });
    let expected = crate::run(&scenario, &Engine::default(), "test", &NoProgress).unwrap();
    assert_eq!(sweep.answer().unwrap(), expected[0]);
    let again = sweep.run(Shard::ALL, &Engine::default(), &NoProgress).unwrap();
    assert_eq!(again.finished, 0, "every result is stored");
}

#[test]
fn points_of_the_same_scenario_have_the_same_results() {
    let dir = tempfile::tempdir().unwrap();
    let rates = "vary.\"link.wire.both.rate\" = [\"1 Mbit/s\", \"1000 kbit/s\"]";
    let delays = "vary.\"link.wire.both.delay\" = [\"10 ms\", \"20 ms\", \"30 ms\"]";
    let scenario = scenario(&SCENARIO.replace(delays, rates));
    let sweep = sweep(&scenario, dir.path());
    sweep.run(Shard::ALL, &Engine::default(), &NoProgress).unwrap();
    assert_eq!(sweep.missing(Shard::ALL).unwrap(), [0; 0]);
    let expected = crate::run(&scenario, &Engine::default(), "test", &NoProgress).unwrap();
    assert_eq!(sweep.answer().unwrap(), expected[0]);
}

#[test]
fn tables_do_not_depend_on_shards_order_folders_and_interruptions() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario(SCENARIO);
    let whole = sweep(&scenario, dir.path().join("whole"));
    whole.run(Shard::ALL, &Engine::default(), &NoProgress).unwrap();
    let folders = ["x", "y"].map(|name| dir.path().join(name));
    // The last shard first, the others in another folder and with interruptions.
    let first = sweep(&scenario, folders[0].clone());
    first.run(Shard::new(3, 3).unwrap(), &small_units(), &NoProgress).unwrap();
    let second = sweep(&scenario, folders[1].clone());
    let mut rounds = 0;
    for number in [2, 1] {
        let shard = Shard::new(number, 3).unwrap();
        while !second.missing(shard).unwrap().is_empty() {
            second.run(shard, &small_units(), &Interrupting(3)).unwrap();
            rounds += 1;
            assert!(rounds < 1000, "no round finishes a run");
        }
    }
    assert!(rounds > 2, "nothing was interrupted");
    let merged = UnitSweep::new(&scenario, "test", folders.to_vec()).unwrap();
    assert_eq!(merged.missing(Shard::ALL).unwrap(), [0; 0]);
    for name in [TableName::Answers, TableName::Replications] {
        assert!(table(&merged, name) == table(&whole, name), "{name}");
    }
    assert_eq!(merged.answer().unwrap(), whole.answer().unwrap());
}

/// The sweep with as many replications as an interval needs, at most twelve.
fn narrow(until: &str) -> Scenario {
    let rule = format!("replications = {{ until = \"{until}\", min = 3, max = 12 }}");
    scenario(&SCENARIO.replace("replications = 3", &rule).replace("\"1 %\"", "\"5 %\""))
}

#[test]
fn each_point_has_the_replications_that_its_own_results_need() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = narrow("20 %");
    let whole = sweep(&scenario, dir.path().join("whole"));
    whole.run(Shard::ALL, &Engine::default(), &NoProgress).unwrap();
    let answer = whole.answer().unwrap();
    let counts: Vec<u32> =
        answer.points.iter().map(|point| answer.replications_of(point)).collect();
    assert!(counts.iter().any(|count| *count > 3), "{counts:?}");
    assert!(counts.iter().any(|count| *count < 12), "{counts:?}");
    let expected = crate::run(&scenario, &Engine::default(), "test", &NoProgress).unwrap();
    assert_eq!(answer, expected[0]);
    // Shards in another order, with interruptions.
    let parts = sweep(&scenario, dir.path().join("parts"));
    for number in [2, 1] {
        let shard = Shard::new(number, 2).unwrap();
        let mut rounds = 0;
        while !parts.missing(shard).unwrap().is_empty() {
            parts.run(shard, &small_units(), &Interrupting(3)).unwrap();
            rounds += 1;
            assert!(rounds < 1000, "no round finishes a run");
        }
    }
    for name in [TableName::Answers, TableName::Replications] {
        assert!(table(&parts, name) == table(&whole, name), "{name}");
    }
    assert_eq!(parts.answer().unwrap(), answer);
}

#[test]
fn a_narrower_interval_keeps_the_replications_of_a_wider_one() {
    let dir = tempfile::tempdir().unwrap();
    let wide = narrow("50 %");
    let progress = sweep(&wide, dir.path()).run(Shard::ALL, &small_units(), &NoProgress).unwrap();
    assert_eq!(progress.finished, sum_of_replications(&sweep(&wide, dir.path())));
    let narrow = narrow("1 %");
    let narrow = sweep(&narrow, dir.path());
    assert_eq!(narrow.missing(Shard::ALL).unwrap(), [0, 1, 2]);
    let more = narrow.run(Shard::ALL, &small_units(), &NoProgress).unwrap();
    assert_eq!(more.finished, 36 - progress.finished);
    // The answer of the wider interval does not change with the further results.
    assert_eq!(progress.finished, sum_of_replications(&sweep(&wide, dir.path())));
}

fn sum_of_replications(sweep: &UnitSweep<'_>) -> u64 {
    let answer = sweep.answer().unwrap();
    answer.points.iter().map(|point| u64::from(answer.replications_of(point))).sum()
}

#[test]
fn units_of_other_processes_give_the_same_results() {
    for scenario in [scenario(SCENARIO), narrow("20 %")] {
        let dir = tempfile::tempdir().unwrap();
        let whole = sweep(&scenario, dir.path().join("whole"));
        whole.run(Shard::ALL, &Engine::default(), &NoProgress).unwrap();
        let folder = dir.path().join("remote");
        let remote = sweep(&scenario, &folder);
        // A part is computed before the others, as by a process that was interrupted.
        remote.run(Shard::new(2, 3).unwrap(), &Engine::default(), &NoProgress).unwrap();
        let mut units = Vec::new();
        remote
            .plan(2, |unit| {
                units.push(unit);
                true
            })
            .unwrap();
        let parts: usize = units.iter().map(|unit| unit.parts.len()).sum();
        let stored: u64 = units.iter().map(|unit| unit.stored).sum();
        assert!(units.len() > 1 && stored > 0, "{units:?}");
        assert!(parts as u64 + stored <= remote.part_count());
        for RemoteUnit { parts, .. } in units.iter().rev() {
            let contents = remote.compute(parts, &NoProgress).unwrap().expect("not interrupted");
            UnitSweep::store(&folder, &contents).unwrap();
        }
        assert_eq!(remote.answer().unwrap(), whole.answer().unwrap());
        for name in [TableName::Answers, TableName::Replications] {
            assert!(table(&remote, name) == table(&whole, name), "{name}");
        }
    }
}

#[test]
fn results_of_another_program_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario(SCENARIO);
    let sweep = sweep(&scenario, dir.path());
    let place = PartPlace { point: 0, replication: Some(0) };
    let contents = sweep.compute(&[place], &NoProgress).unwrap().expect("not interrupted");
    let text = String::from_utf8(contents).unwrap();
    let other = text.replacen(point_key::PROGRAM, "0.0.0", 1);
    let error = UnitSweep::store(dir.path(), other.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("0.0.0") && error.contains("same version"), "{error}");
    assert!(UnitSweep::store(dir.path(), b"{}").is_err());
    let place = PartPlace { point: 3, replication: Some(0) };
    let error = sweep.compute(&[place], &NoProgress).unwrap_err();
    assert_eq!(error.to_string(), "there is no point 3");
}

#[test]
fn an_interrupted_sweep_has_an_incomplete_answer_and_no_tables() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario(SCENARIO);
    let sweep = sweep(&scenario, dir.path());
    // The fourth run is interrupted.
    sweep.run(Shard::ALL, &small_units(), &Interrupting(4)).unwrap();
    let missing = sweep.missing(Shard::ALL).unwrap().len();
    assert!((1..9).contains(&missing), "{missing} of 9");
    assert!(sweep.answer().unwrap().incomplete);
    let stored = sweep.stored().unwrap();
    let output = TableOutput { name: TableName::Answers, out: Vec::new() };
    assert!(!stored.may_be_complete() && stored.write_tables(vec![output]).is_err());
}

/// An edit of the scenario, and whether results must be computed again.
struct Edit {
    old: &'static str,
    new: &'static str,
    repeats: bool,
}

const fn edit(old: &'static str, new: &'static str, repeats: bool) -> Edit {
    Edit { old, new, repeats }
}

#[rustfmt::skip]
const EDITS: [Edit; 20] = [
    // Texts, notation, order, and what the results do not depend on.
    edit("title = \"sweep\"", "title = \"another title\"", false),
    edit("duration", "# A comment.\ndescription = \"A text.\"\nduration", false),
    edit("\"5 s\"", "\"5000 ms\"", false),
    edit("\"1 Mbit/s\"", "\"1000 kbit/s\"", false),
    edit("replications = 3", "replications = 3\nwarmup = \"0 s\"\nseed = 1", false),
    edit("from = \"a\"\nto = \"b\"\nboth", "to = \"b\"\nfrom = \"a\"\nboth", false),
    edit("\"10 ms\", \"20 ms\", \"30 ms\"", "\"30 ms\", \"10 ms\", \"20 ms\"", false),
    edit("\"10 ms\", \"20 ms\", \"30 ms\"", "\"0.01 s\", \"0.02 s\", \"0.03 s\"", false),
    edit("\"30 ms\"]", "\"30 ms\"]\nlabel = [\"near\", \"far\", \"farther\"]", false),
    edit("[node]", "record.each_replication = true\n[node]", false),
    // Everything else.
    edit("\"5 s\"", "\"6 s\"", true),
    edit("replications = 3", "replications = 3\nseed = 2", true),
    edit("replications = 3", "replications = 3\nwarmup = \"1 s\"", true),
    edit("\"1 Mbit/s\"", "\"2 Mbit/s\"", true),
    edit("\"1 %\"", "\"1.1 %\"", true),
    edit("\"10 ms\", loss", "\"10 ms\", queue = \"9 packets\", loss", true),
    edit("\"2 kB\"", "\"2 KiB\"", true),
    edit("every = \"500 ms\" }", "every = \"500 ms\" }\ncount = 2", true),
    edit("every = \"500 ms\" }", "every = \"500 ms\" }\ndeadline = \"1 s\"", true),
    edit("[flow.up]", "[stack.s]\ncongestion_control = \"cubic\"\n[flow.up]\nstack = \"s\"", true),
];

#[test]
fn an_edit_repeats_the_runs_that_it_changes_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let original = scenario(SCENARIO);
    sweep(&original, dir.path()).run(Shard::ALL, &Engine::default(), &NoProgress).unwrap();
    for Edit { old, new, repeats } in EDITS {
        assert!(SCENARIO.contains(old), "{old}");
        let edited = scenario(&SCENARIO.replacen(old, new, 1));
        let missing = sweep(&edited, dir.path()).missing(Shard::ALL).unwrap().len();
        assert_eq!(missing, if repeats { 9 } else { 0 }, "{old} -> {new}");
    }
    // New values and further replications add runs to those that are stored.
    let more = SCENARIO.replace("replications = 3", "replications = 4").replace("30 ms", "40 ms");
    let missing = sweep(&scenario(&more), dir.path()).missing(Shard::ALL).unwrap();
    assert_eq!(missing, [3, 7, 8, 9, 10, 11]);
}

#[test]
fn the_rows_of_a_trace_determine_the_results() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("day.csv");
    let text = SCENARIO.replace(
        "load.periodic = { size = \"2 kB\", every = \"500 ms\" }",
        &format!("load.trace = {{ file = {:?} }}", trace.display().to_string()),
    );
    std::fs::write(&trace, "time_s,bytes\n1.0,100\n").unwrap();
    let scenario = scenario(&text);
    let units = dir.path().join("units");
    sweep(&scenario, &units).run(Shard::ALL, &Engine::default(), &NoProgress).unwrap();
    assert_eq!(sweep(&scenario, &units).missing(Shard::ALL).unwrap().len(), 0);
    std::fs::write(&trace, "time_s,bytes\n1.0,200\n").unwrap();
    assert_eq!(sweep(&scenario, &units).missing(Shard::ALL).unwrap().len(), 9);
}

#[test]
fn a_changed_file_of_a_link_is_computed_again_and_an_unchanged_one_is_not() {
    let files = [
        ("trace.steps.file", "time_s,rate_bit_per_s\n0,1000000\n"),
        ("trace.mahimahi.file", "10\n20\n"),
        ("quality.file", "rank_ratio,rate_bit_per_s\n0,1000000\n1,2000000\n"),
    ];
    for (key, content) in files {
        let dir = tempfile::tempdir().unwrap();
        let [file, units] = ["link.txt", "units"].map(|name| dir.path().join(name));
        let path = file.display().to_string();
        let text = SCENARIO.replace("rate = \"1 Mbit/s\"", &format!("{key} = {path:?}"));
        let scenario = scenario(&text);
        let missing = || sweep(&scenario, &units).missing(Shard::ALL).unwrap().len();
        std::fs::write(&file, content).unwrap();
        sweep(&scenario, &units).run(Shard::ALL, &Engine::default(), &NoProgress).unwrap();
        std::fs::write(&file, content).unwrap();
        assert_eq!(missing(), 0, "{key}: the same content, written again");
        // The content decides, not the time or the length of the file.
        std::fs::write(&file, content.replacen('1', "2", 1)).unwrap();
        assert_eq!(missing(), 9, "{key}");
        std::fs::write(&file, content).unwrap();
        assert_eq!(missing(), 0, "{key}: the former content");
    }
}

#[test]
fn missing_runs_are_named_as_ranges_of_shards() {
    assert_eq!(shards_of(&[], 4), "");
    assert_eq!(shards_of(&[0, 1, 2, 5], 4), "1-3");
    assert_eq!(shards_of(&[0, 2, 3, 9], 10), "1,3-4,10");
}

#[test]
fn a_part_of_a_table_lacks_no_column_of_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let text = SCENARIO.replace(
        "vary.\"link.wire.both.delay\" = [\"10 ms\", \"20 ms\", \"30 ms\"]",
        "vary.\"link.wire.both.queue\" = [\"9 packets\", \"12 kB\", \"unlimited\"]",
    );
    let scenario = scenario(&text);
    let sweep = sweep(&scenario, dir.path());
    sweep.run(Shard::ALL, &Engine::default(), &NoProgress).unwrap();
    let columns = sweep.points.number_columns();
    assert_eq!(columns, ["link.wire.both.queue_packets", "link.wire.both.queue_byte"]);
    assert!(table(&sweep, TableName::Answers).starts_with(b"PAR1"));
}
