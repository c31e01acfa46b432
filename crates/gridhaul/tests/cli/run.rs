//! Output and result files of `run`, `sweep`, `compare` and `paper`.

use std::process::Command;
use std::slice;

use crate::support::{Desk, Done, SMALL, has_all, repository};
use gridhaul_scenario::answer::{Answer, Metric, Row};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_testing::has_program;

#[test]
fn run_prints_a_table_and_writes_a_results_folder() {
    let desk = Desk::new().file("small.toml", SMALL);
    let done = desk.run("run small.toml --series '1 s' --pcap wire");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("up") && done.out.contains("goodput"), "{}", done.out);
    assert!(!done.out.contains('\u{1b}') && !done.out.contains('─'), "plain when no terminal");
    assert!(done.err.contains("results/small/report.html"), "{}", done.err);
    assert_eq!(desk.names("results"), ["small"]);
    let names = desk.names("results/small");
    for name in ["answer.json", "report.html", "scenario.toml"] {
        assert!(names.iter().any(|found| found == name), "{names:?}");
    }
    for ending in [".parquet", ".pcapng"] {
        assert!(names.iter().any(|found| found.ends_with(ending)), "{names:?}");
    }
    let answer: Answer = serde_json::from_str(&desk.text("results/small/answer.json")).unwrap();
    let merged = desk.text("results/small/scenario.toml");
    let merged = Scenario::from_toml(&merged, "scenario.toml").unwrap();
    assert_eq!(answer.scenario_sha256, merged.sha256());
}

#[test]
fn json_is_the_answer_and_nothing_else() {
    let desk = Desk::new().file("small.toml", SMALL);
    let done = desk.run("run small.toml --json --quiet --seed 7 --replications 3 --out here");
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    assert_eq!(done.out, desk.text("here/answer.json"));
    let answer: Answer = serde_json::from_str(&done.out).unwrap();
    assert_eq!((answer.schema, answer.seed, answer.replications), (Answer::SCHEMA, 7, 3));
    assert_eq!(answer.points[0].flows[0].name, "up");
    assert!(!desk.dir.path().join("results").exists());
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let desk = Desk::new().file("small.toml", SMALL);
    for (out, threads) in [("one", 1), ("two", 2)] {
        let line = format!("run small.toml --replications 4 --series '1 s' --threads {threads}");
        assert_eq!(desk.run(&format!("{line} --out {out}")).code, Some(0));
    }
    assert_eq!(desk.names("one"), desk.names("two"));
    for name in desk.names("one") {
        let read = |folder: &str| std::fs::read(desk.dir.path().join(folder).join(&name)).unwrap();
        assert_eq!(read("one"), read("two"), "{name}");
    }
}

/// Compares the pictures of README.md with the output of the program; `cargo xtask docs`
/// regenerates them.
#[test]
fn the_pictures_of_the_readme_are_up_to_date() {
    let desk = Desk::new();
    let file = repository().join("scenarios/hybrid.toml");
    let done = desk.run(&format!("run '{}' --svg --quiet --out here", file.display()));
    assert_eq!(done.code, Some(0), "{done:?}");
    for (chart, picture) in [
        ("goodput-bit-per-s-download.svg", "hybrid-goodput.svg"),
        ("queues-queue-packets.svg", "hybrid-queue.svg"),
    ] {
        let drawn = desk.text(&format!("here/{chart}"));
        let path = repository().join("docs/pictures").join(picture);
        if std::env::var_os("GRIDHAUL_UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &drawn).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(stored == drawn, "{picture} is not what is drawn; run: cargo xtask docs");
    }
}

#[test]
fn set_and_vary_change_the_scenario() {
    let desk = Desk::new().file("small.toml", SMALL);
    let line = "sweep small.toml --set 'link.wire.both.delay=30 ms' \
                --vary 'link.wire.both.rate=lin:1 Mbit/s:3 Mbit/s:3' --vary seed=1,2 --json";
    let done = desk.run(line);
    assert_eq!(done.code, Some(0), "{done:?}");
    let answer: Answer = serde_json::from_str(&done.out).unwrap();
    assert_eq!(answer.points.len(), 6);
    assert_eq!(answer.points[5].parameters["link.wire.both.rate"], "3 Mbit/s");
    let merged = desk.text("results/small-sweep/scenario.toml");
    assert!(merged.contains("30 ms"), "{merged}");
}

#[test]
fn results_are_replaced_as_a_whole() {
    let desk = Desk::new().file("small.toml", SMALL);
    assert_eq!(desk.run("run small.toml --svg").code, Some(0));
    assert_eq!(desk.run("run small.toml").code, Some(0));
    let names = desk.names("results/small");
    assert!(!names.iter().any(|name| name.ends_with(".svg")), "{names:?}");
    assert_eq!(desk.names("results"), ["small"]);
}

#[test]
fn compare_takes_scenarios_folders_and_answers() {
    let slow = SMALL.replace("1 Mbit/s", "500 kbit/s");
    let desk = Desk::new().file("small.toml", SMALL).file("slow.toml", slow);
    assert_eq!(desk.run("run small.toml --replications 3 --quiet").code, Some(0));
    let done = desk.run("compare results/small results/small/answer.json --must-agree");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("agree"), "{}", done.out);
    let done = desk.run("compare results/small slow.toml --replications 3 --out both --json");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(desk.names("both"), ["comparison.json", "report.html"]);
    let comparison: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(comparison["labels"], serde_json::json!(["small", "slow"]));
}

#[test]
fn must_agree_exits_with_1_if_the_answers_differ() {
    let slow =
        SMALL.replace("1 Mbit/s", "500 kbit/s").replace("[node]", "replications = 3\n[node]");
    let desk = Desk::new().file("small.toml", SMALL).file("slow.toml", slow);
    let line = "compare small.toml slow.toml --replications 3 --only goodput_bit_per_s";
    assert_eq!(desk.run(line).code, Some(0));
    let done = desk.run(&format!("{line} --must-agree"));
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.out.contains("differ"), "{}", done.out);
}

#[test]
fn an_unknown_column_is_reported_with_the_most_similar_name() {
    let desk = Desk::new().file("small.toml", SMALL);
    let done = desk.run("compare small.toml small.toml --only goodput_bits_per_s");
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.err.contains("did you mean `goodput_bit_per_s`?"), "{}", done.err);
    let done = desk.run("run small.toml --only goodput");
    assert!(done.err.contains("did you mean `goodput_bit_per_s`?"), "{}", done.err);
    let done = desk.run("compare small.toml small.toml --only foo");
    assert!(done.err.contains("known names: `goodput_bit_per_s`,"), "{}", done.err);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let desk = Desk::new();
    let script = format!(
        "'{}' schema | head -c 1 >&2; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_gridhaul")
    );
    let done = Command::new("bash").args(["-c", &script]).current_dir(desk.dir.path()).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(done.stderr, b"{");
}

#[test]
fn papers_are_listed_and_every_scenario_of_the_repository_is_valid() {
    let desk = Desk::new();
    let done = desk.run("paper");
    assert!(done.code == Some(0) && done.out.contains("hybrid"), "{done:?}");
    assert!(done.out.contains("reserve"), "{done:?}");
    let systems = std::fs::read_dir(repository().join("scenarios/systems")).unwrap();
    for entry in std::fs::read_dir(repository().join("scenarios")).unwrap().chain(systems) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let done = desk.run(&format!("check '{}'", path.display()));
        assert_eq!(done.code, Some(0), "{done:?}");
    }
}

#[test]
fn every_scenario_of_the_repository_is_answered() {
    let desk = Desk::new();
    let mut answered = 0;
    for entry in std::fs::read_dir(repository().join("scenarios")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let answer = |on: &str| {
            let line =
                format!("run '{}' --on {on} --replications 1 --quiet --json", path.display());
            (desk.run(&line), line)
        };
        let (mut done, mut line) = answer("sim");
        if done.err.contains("use backend `emu`") {
            (done, line) = answer("emu --concurrent-runs 4");
            if lacks_emulator_prerequisites(&done) {
                continue;
            }
        }
        assert_eq!(done.code, Some(0), "{line}: {}", done.err);
        let answer: Answer = serde_json::from_str(&done.out).unwrap();
        let rows = answer.points.iter().flat_map(|point| &point.flows);
        let alive = |row: &&Row| {
            [Metric::Goodput, Metric::Messages]
                .iter()
                .any(|metric| row.mean(*metric).is_some_and(|mean| mean > 0.0))
        };
        // One of the uploads of this scenario stalls in a black hole.
        let stalls = path.ends_with("path-mtu.toml");
        assert!(stalls || rows.clone().all(|row| alive(&row)), "{line}: a flow carried nothing");
        assert!(rows.clone().all(delays_are_consistent), "{line}: delays contradict each other");
        answered += 1;
    }
    assert!(answered >= 5);
}

/// Whether this machine lacks a prerequisite of the emulator, which is an error in CI.
fn lacks_emulator_prerequisites(done: &Done) -> bool {
    let lacks = done.code != Some(0) && done.err.contains("gridhaul doctor");
    !has_all(if lacks { slice::from_ref(&done.err) } else { &[] })
}

/// Whether the delays of a row can belong to one distribution, as far as they are known.
fn delays_are_consistent(row: &Row) -> bool {
    let known = |metric| row.mean(metric);
    let (Some(mean), Some(largest)) = (known(Metric::DelayMean), known(Metric::DelayMax)) else {
        return true;
    };
    let (Some(median), Some(p98)) = (known(Metric::DelayMedian), known(Metric::DelayP98)) else {
        return true;
    };
    // Percentiles may be rounded in the third digit.
    let at_most = |a: f64, b: f64| a <= b * 1.003;
    at_most(median, p98)
        && at_most(p98, largest)
        // At most half of the delays exceed the median, and at most 2 % exceed the 98th percentile.
        && at_most(mean, 0.5 * median + 0.48 * p98 + 0.02 * largest)
}

#[test]
fn wireshark_reads_the_packets() {
    if !has_program("tshark") {
        return;
    }
    let desk = Desk::new().file("small.toml", SMALL);
    assert_eq!(desk.run("run small.toml --pcap wire --out out").code, Some(0));
    let names = desk.names("out");
    let captures: Vec<_> = names.iter().filter(|name| name.ends_with(".pcapng")).collect();
    assert!(!captures.is_empty(), "{names:?}");
    for capture in captures {
        let path = desk.dir.path().join("out").join(capture);
        let fields = ["-T", "fields", "-e", "tcp.len", "-e", "_ws.malformed", "-e", "ip.src"];
        let read = Command::new("tshark").arg("-r").arg(&path).args(fields).output().unwrap();
        let text = String::from_utf8(read.stdout).unwrap();
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        assert!(text.lines().count() > 100, "{capture}: {} packets", text.lines().count());
        assert!(!text.contains("alformed"), "{text}");
    }
}

#[test]
fn wireshark_reads_ipv6_without_warnings() {
    if !has_program("tshark") {
        return;
    }
    let flows = "stack = \"own\"\nip = 6\n[stack.own]\n[flow.datagram]\nfrom = \"a\"\nto \
                 = \"b\"\nip = 6\n\
                 transport = \"echo\"\nload.periodic = { size = \"100 B\", every = \"100 ms\" }\n\
                 [flow.four]\nfrom = \"b\"\nto = \"a\"\ntransport = \"datagram\"\n\
                 load.periodic = { size = \"1 B\", every = \"100 ms\" }\n";
    let desk = Desk::new().file("six.toml", SMALL.to_owned() + flows);
    let done = desk.run("run six.toml --pcap wire --out out");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let names = desk.names("out");
    let (mut six, mut four, mut verified) = (0, 0, 0);
    for capture in names.iter().filter(|name| name.ends_with(".pcapng")) {
        let path = desk.dir.path().join("out").join(capture);
        let checked =
            ["tcp.check_checksum:TRUE", "udp.check_checksum:TRUE", "ip.check_checksum:TRUE"];
        let options = checked.iter().flat_map(|option| ["-o", option]);
        let fields = [
            "ip.version",
            "ipv6.plen",
            "frame.len",
            "_ws.malformed",
            "ip.checksum.status",
            "tcp.checksum.status",
            "udp.checksum.status",
            "_ws.expert.severity",
            "_ws.expert.message",
        ];
        let fields = fields.iter().flat_map(|field| ["-e", field]);
        let read = Command::new("tshark")
            .arg("-r")
            .arg(&path)
            .args(options)
            .args(["-T", "fields"])
            .args(fields)
            .output()
            .unwrap();
        let text = String::from_utf8(read.stdout).unwrap();
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        for line in text.lines() {
            let fields: Vec<_> = line.split('\t').collect();
            let [version, payload, length, malformed, sums @ .., severity, message] = &fields[..]
            else {
                panic!("{line}");
            };
            assert_eq!(*malformed, "", "{line}");
            // 0 is bad, 1 good, 2 unverified: data of which only the length is known has no
            // checksum.
            assert!(!sums.contains(&"0"), "{line}");
            verified += usize::from(sums[1..].contains(&"1"));
            // PI_WARN, PI_ERROR. Missing or retransmitted segments of a connection are not a defect
            // of the capture.
            let severe = severity.split(',').any(|value| ["6291456", "8388608"].contains(&value));
            assert!(!severe || message.contains("segment"), "{line}");
            if version.contains('6') {
                six += 1;
                let (payload, length): (u32, u32) =
                    (payload.parse().unwrap(), length.parse().unwrap());
                assert_eq!(payload + 40, length, "{line}");
            } else {
                four += 1;
            }
        }
    }
    assert!(six > 500 && four > 40 && verified > 200, "{six}, {four}, {verified}");
}

#[test]
fn compare_reports_which_deadlines_are_met() {
    let load = "load.periodic = { size = \"200 B\", every = \"1 s\" }\ndeadline = ";
    let with = |deadline: &str| SMALL.replace("load = \"bulk\"", &format!("{load}{deadline}"));
    let desk = Desk::new().file("slow.toml", with("\"1 s\"")).file("fast.toml", with("\"1 ms\""));
    let done = desk.run("compare slow.toml fast.toml -q");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let (_, deadlines) = done.out.split_once("Deadlines\n").expect("a table of them");
    let verdict_of =
        |answer: &str| deadlines.lines().find(|line| line.contains(answer)).unwrap_or("");
    assert!(
        verdict_of("slow").ends_with("met")
            && !verdict_of("slow").ends_with(
                "NOT \
        met"
            ),
        "{deadlines}"
    );
    assert!(verdict_of("fast").ends_with("NOT met"), "{deadlines}");
}

/// Independent of the current folder, and of whether the file or the command line names the trace.
#[test]
fn trace_paths_are_relative_to_the_scenario() {
    let day = SMALL.replace("load = \"bulk\"", "load.trace.file = \"day.csv\"");
    let desk = Desk::new();
    std::fs::create_dir(desk.dir.path().join("other")).unwrap();
    let desk = desk.file("other/lost.toml", day.replace("day.csv", "lost.csv"));
    let desk = desk.file("other/day.toml", day).file("other/bulk.toml", SMALL);
    let desk = desk.file("other/day.csv", "time_s,bytes\n1,200\n2,200\n");
    let desk = desk.file("other/night.csv", "time_s,bytes\n1,200\n2,200\n3,200\n");
    let messages = |line: &str| -> Vec<Option<f64>> {
        let done = desk.run(line);
        assert_eq!(done.code, Some(0), "{done:?}");
        let answer: Answer = serde_json::from_str(&done.out).unwrap();
        let messages = |row: &Row| row.metrics[&Metric::Messages].mean;
        answer.points.iter().map(|point| messages(&point.flows[0])).collect()
    };
    assert_eq!(messages("run other/day.toml --json"), [Some(2.0)]);
    let vary = "--vary flow.up.load.trace.file=day.csv,night.csv";
    assert_eq!(messages(&format!("sweep other/day.toml {vary} --json")), [Some(2.0), Some(3.0)]);
    let set = "--set 'flow.up.load={ trace = { file = \"night.csv\" } }'";
    assert_eq!(messages(&format!("run other/bulk.toml {set} --json --out new")), [Some(3.0)]);
    // A trace that the command line replaces need not exist.
    let set = "--set flow.up.load.trace.file=night.csv";
    assert_eq!(messages(&format!("run other/lost.toml {set} --json")), [Some(3.0)]);
    let done = desk.run("run other/lost.toml --set seed=2");
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("lost.toml: flow.up.load.trace.file: "), "{done:?}");
    // The merged scenario finds the traces from another folder and gives the same answer.
    assert_eq!(messages("run new/scenario.toml --json --out again"), [Some(3.0)]);
    assert_eq!(desk.text("new/answer.json"), desk.text("again/answer.json"));
}
