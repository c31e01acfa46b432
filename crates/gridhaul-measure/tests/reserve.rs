//! Table 5 of RESERVE D4.6 as the program prints it, and on the page of the paper.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use gridhaul_testing::{has_file, has_program};
use serde_json::Value;

const LAYERS: [&str; 6] = ["Ethernet", "IPv4", "TCP", "protocol", "payload", "total"];

/// Parts of the measurements.
const PARTS: [&str; 3] = ["efficiency", "outages", "latency"];

/// File of the measurements in a folder of results.
const MEASUREMENTS: &str = "measurements.jsonl";

fn efficiency(arguments: &[&str]) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_gridhaul-measure"));
    let output = program.arg("efficiency").args(arguments).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the program prints UTF-8")
}

#[test]
fn the_page_of_the_paper_has_the_printed_numbers() {
    let page = include_str!("../../../papers/reserve/README.md");
    let document: Value = serde_json::from_str(&efficiency(&["--json"])).expect("JSON");
    for layer in LAYERS {
        let row = page.lines().find(|line| line.starts_with(&format!("| {layer} |")));
        let cells: Vec<_> = row.expect("a row").split('|').skip(2).map(str::trim).collect();
        let columns = document["table_5"].as_array().expect("the columns");
        assert_eq!(columns.len(), 5);
        for (column, cell) in columns.iter().zip(cells) {
            let rows = column["rows"].as_array().expect("the rows");
            let known = rows.iter().find(|row| row["layer"] == layer).expect("the layer");
            assert_eq!(known["agrees"], true, "{layer}: {column}");
            let [report, formula] = ["report_bytes", "formula_bytes"]
                .map(|key| known[key].as_f64().expect("a number of bytes"));
            let expected =
                if report == 0.0 { String::new() } else { format!("{report} / {formula:.1}") };
            assert_eq!(cell, expected, "{layer}: {}", column["name"]);
        }
    }
}

/// The reduced measurements: test 8 with fewer messages, outages, and one repetition of the
/// latencies. The counts and the behaviour of clients do not depend on the machine; one repetition
/// has no interval and decides nothing about a latency.
#[test]
fn the_reduced_measurements_decide_what_does_not_depend_on_the_machine() {
    if !has_program("mosquitto") || !has_program("rabbitmq-server") || !has_file("/dev/net/tun") {
        return;
    }
    let desk = tempfile::tempdir().expect("a folder");
    let run = |folder: &str, arguments: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_gridhaul-measure"));
        program.args(["reserve", "--quick", "--quiet", "--json", "--repetitions", "1", "--out"]);
        program.arg(folder).args(arguments);
        program.current_dir(desk.path()).output().expect("the program starts")
    };
    // The parts mostly wait for messages: they are measured at the same time, in folders of their
    // own.
    thread::scope(|scope| {
        for part in PARTS {
            scope.spawn(move || run(part, &["--part", part]));
        }
    });
    join_measurements(desk.path(), "results");
    let output = run("results", &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    let document: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
    let list = |key: &str| document[key].as_array().expect("a list").clone();
    // The sentence has only their number.
    let mut deviations = list("claims");
    deviations.retain(|claim| claim["as_recorded"] == false);
    assert!(output.status.success() && deviations.is_empty(), "{errors}{deviations:#?}");
    assert!(errors.contains("verdicts are as recorded"), "{errors}");
    assert_eq!(list("cells").len(), 16);
    for cell in list("cells") {
        assert!(cell["error"].is_null() && !list("claims").is_empty(), "{cell}");
    }
    for series in list("series") {
        assert_eq!((&series["delivered"], &series["missed"]), (&200.into(), &0.into()), "{series}");
    }
    let verdict = |name: &str| {
        let claims = list("claims");
        let claim = claims.iter().find(|claim| claim["name"] == name).expect("the claim").clone();
        (claim["measured_verdict"].as_str().expect("a verdict").to_owned(), claim)
    };
    for (name, expected) in [
        ("table-5-besides-the-payload", "agrees"),
        ("table-5-protocol-protobuf", "agrees"),
        ("table-5-protocol-json", "differs"),
        ("outage-broker-mqtt-stays-lost", "agrees"),
        ("outage-any-client-stays-lost", "differs"),
        ("ready-amqp-range", "undecided"),
        ("prototype-downlink-range", "unknown"),
    ] {
        let (found, claim) = verdict(name);
        assert_eq!(found, expected, "{claim}");
    }
    let page = fs::read_to_string(desk.path().join("results/report.html")).expect("a report");
    assert_eq!(page.matches("<figure>").count(), 7);
    assert!(
        page.contains("Tables 1 to 3")
            && page.contains("largest value")
            && !page.contains("<script")
    );
    // The series are complete: the command takes them from the folder, and measures nothing.
    let again = run("results", &["--part", "efficiency"]);
    let again: Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!(again["series"], document["series"]);
}

/// Joins the measurements of all parts in one folder. The program measures nothing that this folder
/// has.
fn join_measurements(desk: &Path, folder: &str) {
    let mut lines = Vec::new();
    for part in PARTS {
        let text = fs::read_to_string(desk.join(part).join(MEASUREMENTS)).expect(part);
        assert!(text.lines().count() > 1, "{part}: {text}");
        // Each file begins with the version of the program.
        let heading = usize::from(!lines.is_empty());
        lines.extend(text.lines().skip(heading).map(|line| line.to_owned() + "\n"));
    }
    fs::create_dir(desk.join(folder)).expect("a folder");
    fs::write(desk.join(folder).join(MEASUREMENTS), lines.concat()).expect("a file");
}

#[test]
fn the_table_lists_all_protocols() {
    let text = efficiency(&["--payload", "132"]);
    for name in
        ["RESERVE D4.6, Table 5", "Sampled Values", "UDP", "AMQP 1.0", "One message of 132 B"]
    {
        assert!(text.contains(name), "{name}: {text}");
    }
}
