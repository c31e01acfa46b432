//! Invalid input: exit code 2, a message with the position and the remedy, and no new files.

use std::fs::File;
use std::process::Stdio;

use crate::support::{Desk, Done, SMALL};

/// Checks exit code, message and unchanged folder of a rejected command.
fn refused(desk: &Desk, line: &str, pieces: &[&str]) {
    let before = desk.names(".");
    let done @ Done { code, .. } = &desk.run(line);
    assert_eq!(*code, Some(2), "{line}: {done:?}");
    assert_eq!(done.out, "", "{line}: standard output is for data");
    assert!(done.err.starts_with("error: "), "{line}: {done:?}");
    for piece in pieces {
        assert!(done.err.contains(piece), "{line}: no {piece:?} in:\n{}", done.err);
    }
    for internal in ["panicked", "backtrace", ".rs:"] {
        assert!(!done.err.contains(internal), "{line}: {}", done.err);
    }
    assert_eq!(desk.names("."), before, "{line}: the command left files");
}

#[test]
fn an_invalid_scenario_is_refused_with_key_and_remedy() {
    let cases: [(&str, &str, &[&str]); 12] = [
        ("[node]", "colour = \"red\"\n[node]", &["bad.toml:", "colour", "^"]),
        ("1 Mbit/s", "1 Mbps", &["bad.toml:", "rate", "Mbps", "Mbit/s"]),
        ("1 Mbit/s", "25 ms", &["rate", "25 ms"]),
        ("1 Mbit/s", "-1 Mbit/s", &["rate", "negative"]),
        ("\"1 Mbit/s\"", "nan", &["rate"]),
        ("\"1 Mbit/s\"", "1000000", &["rate", "unit"]),
        ("to = \"b\"\nload", "to = \"c\"\nload", &["flow.up.to", "c"]),
        ("both =", "reverse =", &["flow.up", "route"]),
        ("duration = \"5 s\"", "duration = \"0 s\"", &["duration"]),
        ("duration = \"5 s\"", "", &["duration"]),
        ("title = \"small\"", "title = \"small", &["bad.toml:2"]),
        ("load = \"bulk\"", "load = \"bulky\"", &["load", "bulky"]),
    ];
    for (from, to, pieces) in cases {
        assert!(SMALL.contains(from), "{from}");
        let desk = Desk::new().file("bad.toml", SMALL.replacen(from, to, 1));
        for command in ["run", "check", "sweep --vary seed=1,2", "compare bad.toml"] {
            refused(&desk, &format!("{command} bad.toml"), pieces);
        }
    }
}

#[test]
fn files_that_are_no_scenarios_are_refused() {
    let junk: Vec<u8> =
        (0..4096_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let desk = Desk::new().file("junk.toml", junk).file("empty.toml", "");
    File::create(desk.dir.path().join("huge.toml")).unwrap().set_len(10_000_000_000).unwrap();
    std::fs::create_dir(desk.dir.path().join("folder")).unwrap();
    for command in ["run", "check"] {
        refused(&desk, &format!("{command} junk.toml"), &["junk.toml", "text"]);
        refused(&desk, &format!("{command} empty.toml"), &["empty.toml", "title", "help:"]);
        refused(&desk, &format!("{command} huge.toml"), &["huge.toml", "larger"]);
        refused(&desk, &format!("{command} folder"), &["folder", "directory"]);
        refused(&desk, &format!("{command} none.toml"), &["none.toml", "cannot read", "help:"]);
        refused(&desk, &format!("{command} /dev/zero"), &["/dev/zero", "regular"]);
    }
    refused(&desk, "compare folder folder", &["folder", "answer.json", "help:"]);
    refused(&desk, "compare junk.json empty.toml", &["junk.json"]);
    for (text, reason) in [
        ("{\"schema\": \"x\"}", "expected a whole number from 0 to 4294967295, found the text"),
        ("[]", "is not an answer"),
        ("{}", "lacks the required key `schema`"),
        ("{\"schema\": 1, \"points\": 3}", "expected a list, found `3`"),
        ("{", "is not an answer"),
    ] {
        std::fs::write(desk.dir.path().join("a.json"), text).unwrap();
        refused(&desk, "compare a.json a.json", &["a.json:1:", reason, "help:"]);
        let done = desk.run("compare a.json a.json");
        for word in ["struct", "u32", "sequence", "invalid type", "missing field"] {
            assert!(!done.err.contains(word), "{}", done.err);
        }
    }
}

#[test]
fn compare_refuses_answers_that_it_cannot_compare() {
    let desk = Desk::new().file("small.toml", SMALL);
    let run = |line: &str| assert_eq!(desk.run(line).code, Some(0), "{line}");
    run("run small.toml -q");
    run("sweep small.toml --vary seed=1,2 -q");
    run("sweep small.toml --vary seed=2,3 -q --out results/other");
    refused(
        &desk,
        "compare results/small results/small-sweep --must-agree",
        &["no point", "only in small-sweep: seed = 1; seed = 2", "help:"],
    );
    refused(
        &desk,
        "compare results/small results/small --replications 3",
        &["--replications", "stored", "help:"],
    );
    let done = desk.run("compare results/small-sweep results/other");
    assert_eq!(done.code, Some(0), "{done:?}");
    for note in ["only in small-sweep: seed = 1", "only in other: seed = 3"] {
        assert!(done.out.contains(note), "{}", done.out);
    }
}

#[test]
fn invalid_arguments_are_refused_with_the_option_and_the_expectation() {
    let desk = Desk::new().file("small.toml", SMALL).file("mine.txt", "mine");
    let run = |changes: &str, pieces: &[&str]| {
        refused(&desk, &format!("run small.toml {changes}"), pieces);
    };
    run("--set link.wire.both.rat='3 Mbit/s'", &["--set link.wire.both.rat"]);
    run("--set link.wirr.both.rate='3 Mbit/s'", &["--set link.wirr.both.rate", "wire"]);
    run("--set link.wire.both.rate=3", &["--set link.wire.both.rate"]);
    run("--set link.wire.both.rate='3 km'", &["--set link.wire.both.rate", "3 km"]);
    let absent = ["--set link.wire.both.outage.0.length", "has no entry 0", "give the whole list"];
    run("--set link.wire.both.outage.0.length='3 s'", &absent);
    run("--set sweep=1", &["sweep"]);
    run("--replications 0", &["replications"]);
    run("--replications -1", &["'-1'", "--replications", "expected a whole number"]);
    run("--seed abc", &["'abc'", "--seed", "expected a whole number"]);
    run("--set node.a=[]", &["--set node.a", "expected a table of keys, found a list"]);
    run("--pcap nowhere", &["nowhere"]);
    run("--out mine.txt", &["mine.txt", "folder", "--out"]);
    run("--out .", &["current folder", "--out"]);
    run("--out .. --force", &["current folder"]);
    refused(&desk, "sweep small.toml --vary link.wire.both.delay='lin:1 ms:9 kB:3'", &["--vary"]);
    refused(&desk, "sweep small.toml --vary flow.up.too=1,2", &["--vary flow.up.too"]);
    for prefix in ["../x", "a/b", "''"] {
        let line = format!("emu up small.toml --prefix {prefix}");
        refused(&desk, &line, &["--prefix", "letters", "digits"]);
    }
    // The scenario does not exist, so that the command ends even if the option is accepted.
    refused(&desk, "emu up none.toml --prefix=-x", &["--prefix", "no leading `-`"]);
    let of_runs = [
        ("--pcap wire", "tcpdump"),
        ("--series '100 ms'", "ss -ti"),
        ("--replications 3", "run --on emu --replications"),
    ];
    for (change, instead) in of_runs {
        let option = change.split(' ').next().unwrap();
        let line = format!("emu up none.toml {change}");
        refused(&desk, &line, &[option, "run --on emu", instead, "unexpected"]);
    }
    refused(&desk, "paper nothing", &["nothing", "hybrid"]);
    refused(&desk, "paper reserve --svg", &["reserve", "--svg", "--json"]);
    assert_eq!(desk.text("mine.txt"), "mine");
}

#[test]
fn closed_outputs_are_no_errors() {
    let desk = Desk::new().file("small.toml", SMALL).file("bad.toml", "no toml");
    for (line, code) in [("run small.toml --out results/there", 0), ("check bad.toml", 2)] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let status = desk.command(line).stdout(Stdio::null()).stderr(full).status().unwrap();
        assert_eq!(status.code(), Some(code), "{line}: {status}");
    }
    assert!(desk.dir.path().join("results/there/answer.json").exists());
}

#[test]
fn more_threads_than_runs_are_accepted() {
    let desk = Desk::new().file("small.toml", SMALL);
    let done = desk.run("run small.toml --threads 100000 --replications 2");
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn foreign_folders_are_not_changed() {
    let desk = Desk::new().file("small.toml", SMALL);
    std::fs::create_dir_all(desk.dir.path().join("results/small")).unwrap();
    let desk = desk.file("results/small/thesis.txt", "years of work");
    refused(&desk, "run small.toml", &["thesis.txt", "--force", "--out"]);
    assert_eq!(desk.text("results/small/thesis.txt"), "years of work");
    assert_eq!(desk.names("results"), ["small"]);
}

/// `external` is for sessions: the file is valid, but a run of the default backend refuses it.
#[test]
fn check_warns_of_what_a_run_refuses() {
    let external =
        format!("{SMALL}\n[flow.outside]\nfrom = \"a\"\nto = \"b\"\nload = \"external\"\n");
    let desk = Desk::new().file("external.toml", external).file("small.toml", SMALL);
    let done = desk.run("check external.toml");
    assert_eq!(done.code, Some(0), "{done:?}");
    let expected = "flow.outside.load: `gridhaul run` refuses this with backend `sim`";
    assert!(done.err.starts_with("warning: external.toml:"), "{}", done.err);
    assert!(done.err.contains(expected) && done.err.contains("help: a run has"), "{}", done.err);
    assert_eq!(desk.run("run external.toml").code, Some(2));
    assert_eq!(desk.run("check small.toml").err, "");
}

#[test]
fn check_reports_all_files() {
    let desk = Desk::new()
        .file("good.toml", SMALL)
        .file("bad.toml", SMALL.replace("5 s", "5 seconds"))
        .file("worse.toml", "no toml");
    let done = desk.run("check good.toml bad.toml worse.toml");
    assert_eq!(done.code, Some(2));
    assert!(done.out.starts_with("ok  good.toml: small"), "{}", done.out);
    assert!(done.err.contains("bad.toml") && done.err.contains("worse.toml"), "{}", done.err);
    assert_eq!(desk.run("check good.toml").code, Some(0));
}
