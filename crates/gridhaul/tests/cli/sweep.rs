//! Sweeps with stored results: interruptions, crashes, shards and merging.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};

use crate::robust::{cpu_seconds, signal, wait_until};
use crate::support::{Desk, Done, SMALL};

/// A lossy line for 400 s: a run takes some hundredths of a second.
fn lossy() -> String {
    SMALL
        .replace("5 s", "400 s")
        .replace("delay = \"10 ms\"", "delay = \"10 ms\", loss = { bernoulli = \"1 %\" }")
}

/// The sweep of these tests.
fn line(points: u32, replications: u32) -> String {
    format!(
        "lossy.toml --vary 'link.wire.both.delay=lin:1 ms:{points} ms:{points}' \
         --replications {replications} --threads 1"
    )
}

/// The command that computes it, with one run per unit.
fn sweep(points: u32, replications: u32) -> String {
    format!("sweep {} --unit-time '1 ns'", line(points, replications))
}

fn start(desk: &Desk, line: &str) -> Child {
    let mut command = desk.command(line);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The files with results of runs.
fn units(desk: &Desk) -> BTreeSet<String> {
    let folder = "results/lossy-sweep.units";
    if !desk.dir.path().join(folder).is_dir() {
        return BTreeSet::new();
    }
    desk.names(folder).into_iter().filter(|name| name.starts_with("unit-")).collect()
}

fn succeeded(done: &Done) {
    assert_eq!(done.code, Some(0), "{done:?}");
}

/// Kills a sweep of points with two replications each at this many moments, and compares its tables
/// with those of a sweep that was not interrupted.
fn kill_and_resume(points: u32, kills: u32) {
    let replications = 2;
    let desk = Desk::new().file("lossy.toml", lossy());
    let sweep = sweep(points, replications) + " -q";
    let mut moments = 0x9e37_79b9_u32;
    let mut known = BTreeSet::new();
    for _ in 0..kills {
        let mut child = start(&desk, &sweep);
        // A linear congruential generator (Numerical Recipes): any moment will do.
        moments = moments.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let seconds = f64::from(10 + (moments >> 16) % 30) / 100.0;
        wait_until("the sweep does not run", || cpu_seconds(&child) > seconds);
        child.kill().unwrap();
        child.wait().unwrap();
        let now = units(&desk);
        assert!(now.is_superset(&known), "a crash lost a unit");
        known = now;
    }
    assert!(!desk.dir.path().join("results/lossy-sweep").exists(), "the sweep was too short");
    let missing = desk.run(&format!("sweep {} --missing 1 ", line(points, replications)));
    let runs = u64::from(points * replications);
    let expected = format!("{} of {runs} runs have no result", runs - known.len() as u64);
    assert!(missing.err.contains(&expected), "{} units: {missing:?}", known.len());
    succeeded(&desk.run(&sweep));
    assert!(units(&desk).is_superset(&known));
    assert_eq!(units(&desk).len() as u64, runs, "one file per run, and none twice");
    succeeded(&desk.run(&format!("{sweep} --out whole")));
    for table in ["answers.parquet", "replications.parquet", "answer.json"] {
        let read = |folder: &str| std::fs::read(desk.dir.path().join(folder).join(table)).unwrap();
        assert!(read("results/lossy-sweep") == read("whole"), "{table}");
    }
}

#[test]
fn a_killed_sweep_resumes_and_has_the_same_tables() {
    kill_and_resume(40, 3);
}

#[test]
#[ignore = "minutes; `cargo test -p gridhaul --test cli a_sweep_of_500 -- --ignored`"]
fn a_sweep_of_500_units_survives_50_kills() {
    kill_and_resume(250, 50);
}

#[test]
fn shards_are_merged_and_missing_ones_are_named() {
    let desk = Desk::new().file("lossy.toml", lossy());
    let line = line(3, 2);
    let done = desk.run(&format!("sweep {line} --shard 2/3"));
    succeeded(&done);
    assert!(done.err.contains("finished: 2 runs"), "{}", done.err);
    assert!(!desk.dir.path().join("results/lossy-sweep").exists(), "a shard has no results folder");
    let missing = desk.run(&format!("sweep {line} --missing 3"));
    assert_eq!((missing.code, missing.out.as_str()), (Some(0), "--array=1,3\n"), "{missing:?}");
    let early = desk.run(&format!("merge {line}"));
    assert_eq!(early.code, Some(1), "{early:?}");
    assert!(early.err.contains("4 of 6 runs have no result"), "{}", early.err);
    // Another machine has the other shards in a folder of its own.
    for shard in [3, 1] {
        succeeded(&desk.run(&format!("sweep {line} --shard {shard}/3 --units other -q")));
    }
    let folders = "--units other --units results/lossy-sweep.units";
    succeeded(&desk.run(&format!("merge {line} {folders} -q")));
    succeeded(&desk.run(&format!("sweep {line} -q --out whole")));
    for table in ["answers.parquet", "replications.parquet", "answer.json"] {
        let read = |folder: &str| std::fs::read(desk.dir.path().join(folder).join(table)).unwrap();
        assert!(read("results/lossy-sweep") == read("whole"), "{table}");
    }
    let complete = desk.run(&format!("sweep {line} --units whole.units --missing 3"));
    assert_eq!((complete.code, complete.out.as_str()), (Some(0), ""), "{complete:?}");
}

#[test]
fn results_of_other_values_do_not_complete_a_sweep() {
    let desk = Desk::new().file("lossy.toml", lossy());
    let line = |delays: &str| format!("lossy.toml --vary 'link.wire.both.delay={delays}' -q");
    succeeded(&desk.run(&format!("sweep {} --shard 1/1", line("1 ms,2 ms,3 ms"))));
    let early = desk.run(&format!("merge {}", line("1 ms,2 ms,9 ms")));
    assert_eq!(early.code, Some(1), "{early:?}");
    assert!(early.err.contains("1 of 3 runs have no result"), "{}", early.err);
    assert_eq!(desk.names("results"), ["lossy-sweep.units"]);
    succeeded(&desk.run(&format!("merge {}", line("3 ms,1 ms"))));
}

#[test]
fn shards_share_points_whose_results_decide_about_replications() {
    let desk = Desk::new().file("lossy.toml", lossy());
    let line = "lossy.toml --vary 'link.wire.both.loss.bernoulli=0 %,2 %,5 %,9 %' \
                --set 'replications={ until = \"0.5 %\", min = 3, max = 8 }' --threads 2";
    succeeded(&desk.run(&format!("sweep {line} --shard 1/2 -q")));
    let missing = desk.run(&format!("sweep {line} --missing 2"));
    assert_eq!((missing.code, missing.out.as_str()), (Some(0), "--array=2\n"), "{missing:?}");
    assert!(missing.err.contains("2 of 4 points have no result"), "{}", missing.err);
    succeeded(&desk.run(&format!("sweep {line} --shard 2/2 -q")));
    succeeded(&desk.run(&format!("merge {line} -q")));
    succeeded(&desk.run(&format!("sweep {line} -q --out whole")));
    for table in ["answers.parquet", "replications.parquet", "answer.json", "report.html"] {
        let read = |folder: &str| std::fs::read(desk.dir.path().join(folder).join(table)).unwrap();
        assert!(read("results/lossy-sweep") == read("whole"), "{table}");
    }
    let points = desk.run("export whole --table points --csv");
    let counts = points.out.lines().skip(1).map(|line| line.rsplit(',').next().unwrap());
    let counts: Vec<u32> = counts.map(|count| count.parse().unwrap()).collect();
    assert!(counts.iter().all(|count| (3..=8).contains(count)), "{counts:?}");
    assert!(counts.iter().min() < counts.iter().max(), "{counts:?}");
    let report = std::fs::read_to_string(desk.dir.path().join("whole/report.html")).unwrap();
    assert!(report.contains(" to 8 runs"), "{counts:?}");
    // A fixed number on the command line replaces the rule, and uses the stored results.
    let fixed = desk.run(&format!("sweep {line} --replications 3 --missing 1"));
    assert_eq!((fixed.code, fixed.out.as_str()), (Some(0), ""), "{fixed:?}");
}

#[test]
fn sigterm_finishes_the_run_in_hand_and_the_same_command_resumes() {
    let desk = Desk::new().file("lossy.toml", lossy());
    let sweep = sweep(200, 2) + " --shard 1/1";
    let child = start(&desk, &sweep);
    wait_until("no unit is finished", || units(&desk).len() >= 3);
    signal(&child, "-TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("the same command resumes"), "{err}");
    let finished = units(&desk).len();
    let missing = desk.run(&format!("sweep {} --missing 1", line(200, 2)));
    let expected = format!("{} of 400 runs have no result", 400 - finished);
    assert!(missing.err.contains(&expected), "{finished}: {}", missing.err);
}

#[test]
fn stored_results_of_other_backends_are_refused_with_the_reason() {
    let desk = Desk::new().file("small.toml", SMALL);
    let vary = "--vary 'link.wire.both.delay=1 ms,2 ms'";
    for (line, text) in [
        (format!("sweep small.toml {vary} --on model --shard 1/2"), "only backend `sim`"),
        (format!("sweep small.toml {vary} --series '1 s' --missing 2"), "with recordings"),
        (format!("merge small.toml {vary} --on sim,model"), "nothing to merge"),
        ("sweep small.toml".to_owned(), "the scenario has no sweep"),
        (format!("sweep small.toml {vary} --shard 3/2"), "such as 3/100"),
        (format!("sweep small.toml {vary} --missing 0"), "--missing"),
    ] {
        let done = desk.run(&line);
        assert_eq!(done.code, Some(2), "{line}: {done:?}");
        assert!(done.err.contains(text), "{line}: {}", done.err);
    }
    assert_eq!(desk.names(""), ["small.toml"], "nothing has run");
}

#[test]
fn a_damaged_file_is_named_and_its_runs_are_repeated() {
    let desk = Desk::new().file("lossy.toml", lossy());
    let sweep = sweep(2, 1);
    succeeded(&desk.run(&sweep));
    let name = units(&desk).into_iter().next().unwrap();
    let path = desk.dir.path().join("results/lossy-sweep.units").join(name);
    let bytes = std::fs::read(&path).unwrap();
    // A file that is too short, and one with another digit in a result.
    let digit = bytes.iter().rposition(|byte| *byte == b'.').unwrap() + 1;
    let mut changed = bytes.clone();
    changed[digit] = if bytes[digit] == b'9' { b'1' } else { b'9' };
    for damaged in [&bytes[..bytes.len() - 7], &changed] {
        std::fs::write(&path, damaged).unwrap();
        let done = desk.run(&sweep);
        succeeded(&done);
        for piece in ["is damaged", "its runs are repeated; remove this file"] {
            assert!(done.err.contains(piece), "{}", done.err);
        }
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "the same result in the same file");
    }
}

/// The first results of a sweep of a million points, whose results are tables only.
#[test]
fn a_sweep_of_a_million_points_begins_at_once() {
    let desk = Desk::new().file("small.toml", SMALL);
    let sweep = "sweep small.toml --vary seed=lin:1:1000000:1000000 --threads 1 -q";
    let mut child = start(&desk, sweep);
    let folder = desk.dir.path().join("results/small-sweep.units");
    wait_until("no unit is finished", || folder.is_dir());
    let seconds = cpu_seconds(&child);
    child.kill().unwrap();
    child.wait().unwrap();
    // To build all points alone would take more than a minute.
    assert!(seconds < 20.0, "the first unit was finished after {seconds} s");
}
