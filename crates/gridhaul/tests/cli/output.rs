//! Output formats, and options that change a scenario.

use std::io::Write;
use std::process::Stdio;

use crate::support::{Desk, Done, SMALL};
use gridhaul_scenario::answer::{Answer, Metric};

/// Six points in one sweep, and two keys that vary together.
fn swept() -> String {
    SMALL.replace("[node]", "replications = 2\n[node]")
        + "[[sweep]]\nvary.\"link.wire.both.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\", \"3 Mbit/s\"]\n\
           [[sweep]]\nvary.seed = [1, 2]\nvary.\"link.wire.both.delay\" = [\"5 ms\", \"9 ms\"]\n"
}

/// Runs with a text on standard input.
fn piped(desk: &Desk, line: &str, text: &str) -> Done {
    let mut command = desk.command(line);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

fn answer(done: &Done) -> Answer {
    assert_eq!(done.code, Some(0), "{done:?}");
    serde_json::from_str(&done.out).unwrap()
}

/// The CSV contains the numbers of the JSON, in the columns that the reference lists.
#[test]
fn csv_has_a_line_for_each_row_of_each_point_and_backend() {
    let desk = Desk::new().file("swept.toml", swept());
    let done = desk.run("run swept.toml --on sim,model --csv --quiet");
    assert_eq!(done.code, Some(0), "{done:?}");
    let stored: Answer = serde_json::from_str(&desk.text("results/swept/answer.json")).unwrap();
    let mut reader = csv::Reader::from_reader(done.out.as_bytes());
    let headings = reader.headers().unwrap().clone();
    let first: Vec<_> = headings.iter().take(12).collect();
    assert_eq!(
        first,
        [
            "answer",
            "backend",
            "point",
            "link.wire.both.rate",
            "seed",
            "link.wire.both.delay",
            "link.wire.both.rate_bit_per_s",
            "seed_number",
            "link.wire.both.delay_s",
            "kind",
            "name",
            "count"
        ]
    );
    let at = |name: &str| headings.iter().position(|heading| heading == name).unwrap();
    let lines: Vec<_> = reader.records().map(Result::unwrap).collect();
    // Six points of a flow and two directions, by two backends.
    assert_eq!(lines.len(), 6 * 3 * 2);
    let goodput = stored.points[4].flows[0].metrics[&Metric::Goodput];
    let line = lines.iter().find(|l| &l[1] == "sim" && &l[2] == "4" && &l[9] == "flow").unwrap();
    assert_eq!(line[at("goodput_bit_per_s")].parse::<f64>().ok(), goodput.mean);
    assert_eq!(line[at("goodput_bit_per_s_ci95")].parse::<f64>().ok(), goodput.ci95);
    assert_eq!(&line[at("goodput_bit_per_s_n")], "2");
    assert_eq!((&line[3], &line[6], &line[0]), ("3 Mbit/s", "3000000", "swept"));
    assert_eq!(&line[at("utilisation_ratio")], "", "a flow has none");
}

#[test]
fn csv_is_written_to_a_file_in_addition_to_a_table_or_json() {
    let desk = Desk::new().file("small.toml", SMALL);
    let done = desk.run("run small.toml --csv=a.csv --only goodput_bit_per_s --json -q");
    let columns: Vec<_> = answer(&done).points[0].flows[0].metrics.keys().copied().collect();
    assert_eq!(columns, [Metric::Goodput]);
    let text = desk.text("a.csv");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2, "no line of a link: it has no goodput");
    assert!(
        lines[0].ends_with("count,goodput_bit_per_s,goodput_bit_per_s_ci95,goodput_bit_per_s_n")
    );
    let done = desk.run("run small.toml --csv --json");
    assert!(done.code == Some(2) && done.err.contains("--csv=answers.csv"), "{done:?}");
    let done = desk.run("compare small.toml results/small --csv");
    assert_eq!(done.out.lines().count(), 1 + 3 + 3, "{done:?}");
}

/// The path is checked before the run, which would otherwise be lost.
#[test]
fn a_csv_file_that_cannot_be_written_is_refused_before_the_run() {
    let desk = Desk::new().file("small.toml", SMALL);
    for command in
        ["run small.toml", "sweep small.toml --vary seed=1,2", "compare small.toml small.toml"]
    {
        for path in ["absent/a.csv", "."] {
            let done = desk.run(&format!("{command} --csv={path}"));
            assert_eq!(done.code, Some(2), "{done:?}");
            let expected = format!("error: --csv: cannot write {path}: ");
            assert!(done.err.starts_with(&expected) && done.err.contains("help: "), "{done:?}");
        }
    }
    assert_eq!(desk.names(""), ["small.toml"], "nothing has run");
    // The check creates no file, and a file in the results folder is written after them.
    let done = desk.run("run small.toml --csv=results/small/a.csv -q");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(desk.text("results/small/a.csv").starts_with("answer,backend,"));
    let done = desk.run("run absent.toml --csv=b.csv");
    assert!(done.code == Some(2) && !desk.names("").contains(&"b.csv".into()), "{done:?}");
}

#[test]
fn only_selected_columns_are_printed_and_the_results_keep_all() {
    let desk = Desk::new().file("swept.toml", swept());
    for command in ["run swept.toml", "sweep swept.toml --vary duration='5 s','6 s'"] {
        let done =
            desk.run(&format!("{command} --only loss_ratio,utilisation_ratio -q --out here"));
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.out.starts_with("Links\n") && done.out.contains("loss"), "{}", done.out);
        assert!(!done.out.contains("goodput"), "{}", done.out);
        let stored: Answer = serde_json::from_str(&desk.text("here/answer.json")).unwrap();
        assert!(stored.points[0].flows[0].metrics.len() > 5);
        let done = desk.run(&format!("{command} --only goodput"));
        assert!(done.code == Some(2) && done.err.contains("goodput_bit_per_s"), "{done:?}");
    }
}

/// The environment variable `COLUMNS` sets the width of the terminal.
#[test]
fn tables_are_at_most_as_wide_as_the_terminal() {
    let desk = Desk::new().file("swept.toml", swept()).file("small.toml", SMALL);
    for line in [
        "run swept.toml -q",
        "run small.toml -q",
        "run swept.toml --on sim,model -q",
        "compare swept.toml swept.toml -q",
    ] {
        let whole = desk.run(line).out;
        for columns in ["40", "60", "80", "120"] {
            let done = desk.command(line).env("COLUMNS", columns).output().unwrap();
            let out = String::from_utf8(done.stdout).unwrap();
            let maximum: usize = columns.parse().unwrap();
            for line in out.lines() {
                assert!(line.chars().count() <= maximum, "{columns}: {line}\n{out}");
            }
        }
        assert!(whole.lines().all(|line| !line.contains(['─', '\u{202f}'])), "{whole}");
    }
    let narrow =
        desk.command("run swept.toml -q --out narrow").env("COLUMNS", "30").output().unwrap();
    let narrow = String::from_utf8(narrow.stdout).unwrap();
    let narrow = narrow.replace('\n', " ");
    assert!(narrow.contains("Omitted at a width of 30: ") && narrow.contains("--only"), "{narrow}");
}

#[test]
fn options_replace_sweeps_of_the_file_with_a_note() {
    let desk = Desk::new().file("swept.toml", swept());
    let done = desk.run("run swept.toml --set 'link.wire.both.rate=7 Mbit/s' --json");
    assert!(
        done.err
            .contains("note: swept.toml: --set link.wire.both.rate=7 Mbit/s replaces the 3 values"),
        "{done:?}"
    );
    let points = answer(&done).points;
    assert_eq!(points.len(), 2);
    assert!(!points[0].parameters.contains_key("link.wire.both.rate"));
    assert!(desk.text("results/swept/scenario.toml").contains("7 Mbit/s"));

    let done = desk.run("sweep swept.toml --vary 'link.wire.both.rate=7 Mbit/s,8 Mbit/s' --json");
    let points = answer(&done).points;
    assert_eq!(points.len(), 4);
    assert!(points.iter().all(|point| {
        ["7 Mbit/s", "8 Mbit/s"].contains(&&*point.parameters["link.wire.both.rate"])
    }));

    // Of two keys that vary together, one is replaced: the other is still swept.
    let done = desk.run("run swept.toml --seed 9 --json");
    assert!(done.err.contains("--seed 9 replaces the 2 values"), "{done:?}");
    assert!(done.err.contains("`link.wire.both.delay` no longer vary"), "{done:?}");
    let nine = answer(&done);
    assert_eq!((nine.seed, nine.points.len()), (9, 6));
    assert!(!nine.points[0].parameters.contains_key("seed"));
    assert!(!desk.run("run swept.toml --seed 9 --quiet").err.contains("note"));

    let done = desk.run("sweep swept.toml --vary seed=1,2 --set seed=3");
    assert!(done.code == Some(2) && done.err.contains("remove one of the two options"), "{done:?}");
    let whole = swept().replace("vary.seed = [1, 2]\n", "").replace(
        "vary.\"link.wire.both.delay\" = [\"5 ms\", \"9 ms\"]",
        "vary.\"link.wire.both\" = [{ rate = \"1 kbit/s\" }]",
    );
    let desk = desk.file(
        "whole.toml",
        whole
            .replace("vary.\"link.wire.both.rate\"", "vary.seed")
            .replace("[\"1 Mbit/s\", \"2 Mbit/s\", \"3 Mbit/s\"]", "[1]"),
    );
    let done = desk.run("run whole.toml --set 'link.wire.both.delay=1 ms'");
    assert!(done.code == Some(2) && done.err.contains("give all of `link.wire.both`"), "{done:?}");
}

#[test]
fn a_scenario_is_read_from_standard_input() {
    let trace = SMALL.replace("load = \"bulk\"", "load.trace.file = \"day.csv\"");
    let desk = Desk::new().file("day.csv", "time_s,bytes\n1,200\n2,200\n");
    for name in ["-", "/dev/stdin"] {
        let done = piped(&desk, &format!("run {name} --json"), &trace);
        assert_eq!(answer(&done).points[0].flows[0].metrics[&Metric::Messages].mean, Some(2.0));
        assert!(done.err.contains("results/stdin/report.html"), "{done:?}");
        // The merged scenario finds its trace from another folder.
        let again = desk.run("run results/stdin/scenario.toml --json --out elsewhere/again");
        assert_eq!(again.out, done.out);
        assert_eq!(
            piped(&desk, &format!("check {name}"), SMALL).out,
            format!("ok  {name}: small (2 nodes, 1 link, 1 flow, 1 point)\n")
        );
    }
    let done = piped(&desk, "sweep - --vary seed=1,x", SMALL);
    assert!(
        done.code == Some(2) && done.err.starts_with("error: standard input: --vary seed"),
        "{done:?}"
    );
    let done = piped(&desk, "run -", &SMALL.replace("5 s", "5 seconds"));
    assert!(done.code == Some(2) && done.err.starts_with("error: standard input:3:"), "{done:?}");
    let done = desk.run("run -");
    assert!(done.code == Some(2) && done.err.contains("the input is empty"), "{done:?}");
}

#[test]
fn errors_show_the_position_in_an_argument() {
    let desk = Desk::new().file("small.toml", SMALL);
    for (line, under) in [
        ("run small.toml --set 'link.wire.both.rate=3 km'", "3 km"),
        ("run small.toml --set link.wire.both.rat=3", "link.wire.both.rat"),
        (
            "run small.toml --set 'flow.up.load={ periodic = { size = \"240 X\", every = \"1 s\" } \
             }'",
            "\"240 X\"",
        ),
        ("sweep small.toml --vary 'link.wire.both.delay=1 ms,2 kB,3 ms'", "2 kB"),
        ("sweep small.toml --vary 'link.wire.both.delay=lin:x:2 ms:3'", "x"),
        ("sweep small.toml --vary 'link.wire.both.delay=lin:1 ms:2 ms:1'", "1"),
    ] {
        let done = desk.run(line);
        assert_eq!(done.code, Some(2), "{line}: {done:?}");
        let lines: Vec<_> = done.err.lines().collect();
        let caret = lines.iter().position(|line| line.contains('^')).expect("a caret");
        let (first, last) = (lines[caret].find('^').unwrap(), lines[caret].rfind('^').unwrap());
        assert_eq!(&lines[caret - 1][first..=last], under, "{}", done.err);
    }
}

/// The rows of a trace are read during the run; only the first row is valid.
#[test]
fn errors_show_the_position_in_a_trace() {
    let trace = SMALL.replace("load = \"bulk\"", "load.trace.file = \"day.csv\"");
    let desk = Desk::new().file("day.toml", trace).file("day.csv", "time_s,bytes\n1,200\n2, x7\n");
    let done = desk.run("run day.toml");
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.err.contains("day.csv:3:4: column `bytes`"), "{}", done.err);
    assert!(done.err.contains("\n3 | 2, x7\n  |    ^^\n"), "{}", done.err);
}
