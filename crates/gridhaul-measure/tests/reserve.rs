//! Table 5 of RESERVE D4.6 as the program prints it, and on the page of the paper.

use std::process::Command;

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

#[test]
fn the_table_lists_all_protocols() {
    let text = efficiency(&["--payload", "132"]);
    for name in
        ["RESERVE D4.6, Table 5", "Sampled Values", "UDP", "AMQP 1.0", "One message of 132 B"]
    {
        assert!(text.contains(name), "{name}: {text}");
    }
}
