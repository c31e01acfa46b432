//! Table 5 of RESERVE D4.6 as the program prints it, and on the page of the paper.

use std::process::Command;

use gridhaul_testing::{has_file, has_program};
use serde_json::Value;

const LAYERS: [&str; 6] = ["Ethernet", "IPv4", "TCP", "protocol", "payload", "total"];

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

/// The reduced matrix on the emulated systems. The latencies depend on the machine; their order does not.
#[test]
fn the_reduced_matrix_is_measured_and_its_statements_are_checked() {
    if !has_program("mosquitto") || !has_program("rabbitmq-server") || !has_file("/dev/net/tun") {
        return;
    }
    let desk = tempfile::tempdir().expect("a folder");
    let mut program = Command::new(env!("CARGO_BIN_EXE_gridhaul-measure"));
    program.args(["reserve", "--quick", "--quiet", "--json", "--out", "results"]);
    let output = program.current_dir(desk.path()).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let list = |key: &str| document[key].as_array().expect("a list").clone();
    let cells = list("cells");
    assert_eq!(cells.len(), 16);
    for cell in &cells {
        assert!(cell["result"]["messages"].as_u64().is_some_and(|count| count >= 100), "{cell}");
        assert!(cell["error"].is_null(), "{cell}");
    }
    let claim = |start: &str| {
        let claims = list("claims");
        let found = claims.iter().find(|it| {
            it["statement"].as_str().is_some_and(|statement| statement.starts_with(start))
        });
        found.expect("the statement").clone()
    };
    for start in ["Ethernet is faster than the 5G prototype", "No protocol loses a message"] {
        assert_eq!(claim(start)["holds"], true, "{}", claim(start));
    }
    // AMQP is measured on the system of Figure 7; it is not compared with what is not measured.
    let decided = |start: &str| !claim(start)["holds"].is_null();
    assert!(decided("5G-ready: the mean latency of AMQP is between 15 and 25 ms"));
    assert!(
        decided("In most cases the mean latency of MQTT is higher") && !decided("AMQP: Ethernet")
    );
    let sampled_values = claim("After an outage, Sampled Values");
    assert!(!sampled_values["holds"].is_null(), "{sampled_values}");
    let page = std::fs::read_to_string(desk.path().join("results/report.html")).expect("a report");
    assert_eq!(page.matches("<figure>").count(), 6);
    assert!(page.contains("What the report could not run") && !page.contains("<script"));
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
