//! The program as users run it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

fn run(folder: &Path, arguments: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_gridhaul-measure"));
    program.args(arguments.split(' ')).current_dir(folder).output().unwrap()
}

fn summary(folder: &Path, arguments: &str) -> Value {
    let done = run(folder, arguments);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn the_log_holds_a_row_for_each_message() {
    let desk = tempfile::tempdir().unwrap();
    let arguments = "latency udp --rate 1000 --messages 500 --no-floor -q --json --out results";
    let summary = summary(desk.path(), arguments);
    assert_eq!((&summary["messages"], &summary["lost"]), (&500.into(), &0.into()));
    let results = desk.path().join("results");
    let written: Value =
        serde_json::from_str(&fs::read_to_string(results.join("summary.json")).unwrap()).unwrap();
    assert_eq!(written, summary);
    assert!(fs::read_to_string(results.join("latency.svg")).unwrap().contains("<svg"));
    let part = fs::File::open(results.join("messages/part-00000.parquet")).unwrap();
    let reader = SerializedFileReader::new(part).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 1_500, "with the warm-up");
    let columns = reader.metadata().file_metadata().schema_descr();
    assert_eq!(columns.column(1).name(), "intended_ns");
}

#[test]
fn a_second_run_does_not_overwrite_a_log() {
    let desk = tempfile::tempdir().unwrap();
    fs::create_dir_all(desk.path().join("results/messages")).unwrap();
    fs::write(desk.path().join("results/messages/part-00000.parquet"), "kept").unwrap();
    let done = run(desk.path(), "latency null --messages 1 --no-floor -q --out results");
    let error = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2), "{error}");
    assert!(error.contains("the log of another run") && error.contains("--out"), "{error}");
    assert_eq!(
        fs::read_to_string(desk.path().join("results/messages/part-00000.parquet")).unwrap(),
        "kept"
    );
}

#[test]
fn too_few_messages_for_a_percentile_are_reported() {
    let desk = tempfile::tempdir().unwrap();
    let done = run(desk.path(), "latency null --rate 1000 --messages 148 --no-floor -q");
    let out = String::from_utf8(done.stdout).unwrap();
    assert!(out.contains("148 messages are too few for an upper bound of the 98th"), "{out}");
    assert!(out.contains("149 are needed"), "{out}");
}

#[test]
fn a_closed_port_is_an_error_with_the_address() {
    let desk = tempfile::tempdir().unwrap();
    let done = run(desk.path(), "latency mqtt --broker 127.0.0.1:1 --no-floor -q");
    let error = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2), "{error}");
    assert!(error.contains("127.0.0.1:1"), "{error}");
}

#[test]
fn invalid_arguments_name_what_is_expected() {
    let desk = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        ("latency udp --rate 0", "between 0.01 and 1000000"),
        ("latency udp --bytes 15", "between 16"),
        ("latency udp --horizon 5", "5"),
        ("latency udp --scenario missing.toml --no-floor", "missing.toml"),
    ] {
        let done = run(desk.path(), arguments);
        let error = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{error}");
        assert!(error.contains(expected), "{arguments}: {error}");
    }
}

#[test]
fn help_texts() {
    let desk = tempfile::tempdir().unwrap();
    for command in ["", "efficiency", "latency", "outage", "reliability"] {
        let done = run(desk.path(), format!("{command} --help").trim());
        let name = format!("help__measure_{command}_long").replace("__long", "_long");
        insta::assert_snapshot!(name, String::from_utf8(done.stdout).unwrap());
    }
}
