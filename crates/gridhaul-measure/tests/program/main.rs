//! The program as users run it.

mod errors;
mod files;
mod rates;
mod stopped;

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
fn too_few_messages_for_a_percentile_are_reported() {
    let desk = tempfile::tempdir().unwrap();
    let done = run(desk.path(), "latency null --rate 1000 --messages 148 --no-floor -q");
    let out = String::from_utf8(done.stdout).unwrap();
    assert!(out.contains("too few messages (148) for an upper bound of the 98th"), "{out}");
    assert!(out.contains("149 are needed"), "{out}");
}

#[test]
fn one_message_is_a_message() {
    let desk = tempfile::tempdir().unwrap();
    let done = run(desk.path(), "latency null --messages 1 --no-floor -q");
    let out = String::from_utf8(done.stdout).unwrap();
    assert!(out.contains("1 message after the warm-up, of which 0 were lost"), "{out}");
    assert!(out.contains("too few messages (1)"), "{out}");
}

#[test]
fn the_exit_code_is_the_verdict_of_the_chosen_class() {
    let desk = tempfile::tempdir().unwrap();
    let verdict = |class: &str, messages: u32| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_gridhaul-measure"));
        let arguments = format!("latency null --rate 1000 --messages {messages} --no-floor -q");
        program.args(arguments.split(' ')).args(["--class", class]).current_dir(desk.path());
        let done = program.output().unwrap();
        (
            done.status.code(),
            String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap(),
        )
    };
    let (code, text) = verdict("tt1", 300);
    assert!(code == Some(0) && text.contains("TT1 *") && text.contains("pass"), "{code:?} {text}");
    // A loss of at most 0.001 % needs ln 0.05 / ln 0.99999 messages.
    let (code, text) = verdict("primary frequency control", 300);
    assert!(
        code == Some(1) && text.contains("not decidable: lost or late (300 of 299572)"),
        "{text}"
    );
    let (code, text) = verdict("TT9", 300);
    assert!(code == Some(2) && text.contains("choose from: TT1; TT2"), "{code:?} {text}");
}

#[test]
fn a_report_is_one_file_with_all_charts_and_verdicts() {
    let desk = tempfile::tempdir().unwrap();
    let arguments =
        "reliability null --rate 1000 --messages 300 --no-floor -q --json --out results";
    let summary = summary(desk.path(), arguments);
    let classes = summary["classes"].as_array().unwrap();
    assert!(
        classes.iter().any(|class| class["class"] == "TT6" && class["verdict"] == "not_measured")
    );
    assert!(classes.iter().all(|class| class["checked"] == false && class["source"].is_string()));
    let page = fs::read_to_string(desk.path().join("results/report.html")).unwrap();
    assert_eq!(page.matches("<figure>").count(), 3, "{page}");
    assert!(page.contains("Application classes") && page.contains("TT6 *"));
    assert!(!page.contains("<script") && !page.contains("src=\"http"));
    for chart in ["latency", "boxes", "time"] {
        assert!(desk.path().join(format!("results/{chart}.svg")).is_file(), "{chart}");
    }
}

#[test]
fn a_prediction_and_the_legs_are_beside_the_measurement() {
    let desk = tempfile::tempdir().unwrap();
    let arguments = "latency udp --system 5g-prototype --rate 400 --messages 400 --predict \
        --no-floor -q --json --out results";
    let summary = summary(desk.path(), arguments);
    let (path, prediction) = (&summary["path"], &summary["prediction"]);
    assert_eq!(path["captured_messages"], 400, "{path}");
    assert_eq!(path["stages"]["between_clients"]["messages"], 400, "{path}");
    assert!(path["stages"]["leg_1"].is_null(), "there is no broker: {path}");
    for source in ["measured", "predicted"] {
        assert_eq!(prediction[source]["whole"]["messages"], 400, "{prediction}");
    }
    // The uplink of the system takes at least 2.5 ms; a busy machine adds to the measurement.
    let least = |source: &str| prediction[source]["whole"]["quantiles"][0]["value_s"].as_f64();
    assert!((0.0025..0.003).contains(&least("predicted").unwrap()), "{prediction}");
    assert!((0.0025..0.5).contains(&least("measured").unwrap()), "{prediction}");
    let page = fs::read_to_string(desk.path().join("results/report.html")).unwrap();
    for text in
        ["Prediction compared with measurement", "Path of the messages", "the network explains"]
    {
        assert!(page.contains(text), "{text}");
    }
    for chart in ["path", "prediction"] {
        assert!(desk.path().join(format!("results/{chart}.svg")).is_file(), "{chart}");
    }
    let part = fs::File::open(desk.path().join("results/messages/part-00000.parquet")).unwrap();
    let reader = SerializedFileReader::new(part).unwrap();
    let row = reader.get_row_iter(None).unwrap().nth(500).unwrap().unwrap().to_string();
    let is_known = |column: &str| {
        row.contains(&format!("{column}: ")) && !row.contains(&format!("{column}: null"))
    };
    assert!(is_known("publisher_departure_ns") && is_known("subscriber_arrival_ns"), "{row}");
    assert!(!is_known("broker_arrival_ns") && !is_known("kernel_received_ns"), "{row}");
}

#[test]
fn the_fates_of_bit_errors_add_up() {
    let desk = tempfile::tempdir().unwrap();
    let summary = summary(desk.path(), "corruption --values 3 --json");
    let rows = summary["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3 * 10);
    for row in rows {
        let count = |key: &str| row[key].as_u64().unwrap();
        let sum = count("rejected") + count("unchanged") + count("silently_wrong");
        assert!(sum == count("messages") && sum > 0, "{row}");
    }
    let floats = rows.iter().find(|row| row["subject"] == "raw 32-bit floats").unwrap();
    assert_eq!((&floats["messages"], &floats["silently_wrong"]), (&96.into(), &96.into()));
}

#[test]
fn an_injected_clock_is_bounded_and_its_step_is_detected() {
    let desk = tempfile::tempdir().unwrap();
    let arguments = "sync --exchanges 100 --every 10ms --offset -250ms --drift 100 --step 300ms \
        --step-at 500ms --json";
    // On a busy machine a delay can hide the step, but not the truth from the bounds.
    for attempt in 0..5 {
        let summary = summary(desk.path(), arguments);
        assert_eq!(summary["exchanges"], 100, "{summary}");
        if summary["detected"] == true {
            assert_eq!(summary["bounded"], true, "{summary}");
            let step = &summary["rows"][2];
            assert!((step["estimate"].as_f64().unwrap() - 0.3).abs() < 0.05, "{step}");
            return;
        }
        assert!(attempt < 4, "{summary}");
    }
}

#[test]
fn the_highest_rate_is_found_within_the_range() {
    let desk = tempfile::tempdir().unwrap();
    let arguments = "rate null --rate 200 --rate-min 50 --rate-max 400 --trial 200ms \
                     --confirmations 0 -q --json";
    let summary = summary(desk.path(), arguments);
    let trials = summary["trials"].as_array().unwrap();
    // On a busy machine the generator is the limit, and the trial says so.
    let is_explained = |trial: &Value| {
        trial["failure"].as_str().is_none_or(|failure| failure.contains("generator"))
    };
    assert!(!trials.is_empty() && trials.iter().all(is_explained), "{summary}");
    let is_whole = trials.iter().all(|trial| trial["failure"].is_null());
    assert!(!is_whole || summary["sustained_per_s"] == 400.0, "{summary}");
    let done = run(desk.path(), "rate null --rate 10 --rate-min 20");
    assert_eq!(done.status.code(), Some(2));
}

#[test]
fn an_outage_that_did_not_happen_is_not_found() {
    let desk = tempfile::tempdir().unwrap();
    let arguments = "outage null --of observed --rate 1000 --messages 200 --no-floor -q --json";
    let summary = summary(desk.path(), arguments);
    let gap = summary["interruption"]["duration_s"].as_f64().unwrap();
    // The load of the machine may interrupt the messages as well.
    assert_eq!(summary["outage"]["without_arrival_s"].is_null(), gap < 0.1, "{summary}");
    assert_eq!((&summary["lost"], &summary["interruption"]["lost"]), (&0.into(), &0.into()));
    let done =
        run(desk.path(), "outage null --of observed --rate 1000 --messages 50 --no-floor -q");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("survival time that bridges it"), "{text}");
}

#[test]
fn the_longest_frames_pass_the_loopback_device_with_a_vlan_tag() {
    let desk = tempfile::tempdir().unwrap();
    for protocol in ["sv --bytes 1440", "goose --bytes 1388 --no-retransmission"] {
        let arguments =
            format!("latency {protocol} --vlan 5 --rate 1000 --messages 200 --no-floor -q --json");
        let summary = summary(desk.path(), &arguments);
        let counts = (&summary["messages"], &summary["lost"], &summary["refused"]);
        assert_eq!(counts, (&200.into(), &0.into(), &0.into()), "{summary}");
        assert_eq!(summary["settings"]["vlan"], "5, priority 4");
    }
}

#[test]
fn repetitions_are_runs_of_their_own_with_a_spread() {
    let desk = tempfile::tempdir().unwrap();
    let arguments = "latency udp --rate 1000 --messages 200 --no-floor -q --json --repetitions 3 \
        --out results --class TT1";
    let document = summary(desk.path(), arguments);
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3, "{document}");
    let medians = runs.iter().map(|run| &run["latency_from_send"]["quantiles"][2]["value_s"]);
    let mut medians: Vec<_> = medians.map(|median| median.as_f64().unwrap()).collect();
    medians.sort_by(f64::total_cmp);
    let spread = &document["between_runs"]["p50_s"];
    let found = ["min", "median", "max"].map(|key| spread[key].as_f64().unwrap());
    assert_eq!(found[..], medians[..], "{spread}");
    assert!(spread["median_low95"].is_null(), "three runs are too few: {spread}");
    let class = &document["classes"][0];
    assert_eq!((&class["class"], &class["pass"]), (&"TT1".into(), &3.into()), "{class}");
    for number in 1..=3 {
        let folder = desk.path().join(format!("results/run-{number}"));
        let text = fs::read_to_string(folder.join("summary.json")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), runs[number - 1]);
        assert!(folder.join("messages/part-00000.parquet").is_file());
    }
    let done = run(desk.path(), "latency null --messages 10 --no-floor -q --repetitions 2");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("median of the medians") && text.contains("2 runs"), "{text}");
}

#[test]
fn a_pinned_generator_is_a_setting_of_the_result() {
    let desk = tempfile::tempdir().unwrap();
    // A processor that this test may use.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let usable = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let first = usable.trim().split([',', '-']).next().unwrap();
    let arguments = format!("latency null --messages 10 --no-floor -q --json --pin {first}");
    assert_eq!(summary(desk.path(), &arguments)["settings"]["generator_processor"], first);
}

#[test]
fn cross_traffic_is_reported_with_its_losses() {
    let desk = tempfile::tempdir().unwrap();
    if !gridhaul_testing::has_file("/dev/net/tun") {
        return;
    }
    let arguments = "latency udp --system plc-broadband --messages 100 --no-floor -q --json \
        --cross-traffic 1Mbit/s";
    let document = summary(desk.path(), arguments);
    let loads = document["cross_traffic"].as_array().unwrap();
    let [load] = &loads[..] else { panic!("{document}") };
    assert_eq!((&load["direction"], &load["packet_bytes"]), (&"forward".into(), &1_200.into()));
    assert!(load["sent"].as_u64().unwrap() > 100 && load["offered_bit_per_s"].is_f64(), "{load}");
}

#[test]
fn a_matrix_measures_all_combinations_and_keeps_the_others_if_one_fails() {
    let desk = tempfile::tempdir().unwrap();
    let arguments = "matrix --vary protocol=null,udp,mqtt --vary rate=500,1000 --quiet --json \
        --out results -- \
                     --messages 20 --broker 127.0.0.1:1";
    let done = run(desk.path(), arguments);
    let error = String::from_utf8(done.stderr).unwrap();
    // The option applies to MQTT only.
    assert_eq!(done.status.code(), Some(2), "{error}");
    assert!(error.contains("gridhaul measure latency null --rate 500"), "{error}");
    assert!(error.contains("--broker has no effect with null"), "{error}");

    let arguments = "matrix --vary protocol=null,udp,mqtt --vary rate=500,1000 --vary \
        broker=127.0.0.1:1 --quiet \
                     --json --out results -- --messages 20";
    let done = run(desk.path(), arguments);
    assert_eq!(done.status.code(), Some(1), "{}", String::from_utf8_lossy(&done.stderr));
    let document: Value = serde_json::from_slice(&done.stdout).unwrap();
    let measurements = document["measurements"].as_array().unwrap();
    assert_eq!(measurements.len(), 6);
    for measurement in &measurements[..4] {
        assert_eq!(
            (&measurement["result"]["messages"], &measurement["error"]),
            (&20.into(), &Value::Null),
            "{measurement}"
        );
        assert!(measurement["parameters"]["broker"].is_null(), "{measurement}");
        let log = format!(
            "results/{}/messages/part-00000.parquet",
            measurement["folder"].as_str().unwrap()
        );
        assert!(desk.path().join(log).is_file(), "{measurement}");
    }
    for measurement in &measurements[4..] {
        assert!(
            measurement["error"].as_str().unwrap().contains("cannot connect by mqtt"),
            "{measurement}"
        );
    }
    let results = desk.path().join("results");
    let written = fs::read_to_string(results.join("matrix.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), document);
    let report = fs::read_to_string(results.join("report.html")).unwrap();
    assert!(report.contains("<svg") && report.contains("measure latency udp --rate 1000"));
}

#[test]
fn help_texts() {
    let desk = tempfile::tempdir().unwrap();
    for command in [
        "",
        "agent",
        "corruption",
        "efficiency",
        "latency",
        "matrix",
        "outage",
        "rate",
        "reliability",
        "run",
        "sync",
    ] {
        let done = run(desk.path(), format!("{command} --help").trim());
        let name = format!("help__measure_{command}_long").replace("__long", "_long");
        insta::assert_snapshot!(name, String::from_utf8(done.stdout).unwrap());
    }
}

#[test]
fn outages_and_repetitions_have_predictions_as_well() {
    let desk = tempfile::tempdir().unwrap();
    let title = "Prediction compared with measurement";
    for arguments in [
        "outage udp --start 1s --length 200ms --rate 100 --messages 150",
        "latency udp --rate 200 --messages 100 --repetitions 2",
    ] {
        let network = "--system ethernet --predict --no-floor --out results";
        let done = run(desk.path(), &format!("{arguments} {network}"));
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let page = ["results/report.html", "results/run-1/report.html"];
        let pages = page.map(|page| fs::read_to_string(desk.path().join(page)).unwrap_or_default());
        assert!(text.contains(title) || pages[1].contains(title), "{arguments}: {text}");
        fs::remove_dir_all(desk.path().join("results")).unwrap();
    }
}

#[test]
fn a_polling_receiver_loses_nothing_and_the_result_says_that_it_polls() {
    let desk = tempfile::tempdir().unwrap();
    let arguments = "latency udp --rate 1000 --messages 200 --busy-poll --no-floor -q --json";
    let summary = summary(desk.path(), arguments);
    assert_eq!((&summary["messages"], &summary["lost"]), (&200.into(), &0.into()));
    assert_eq!(summary["settings"]["busy_poll"], "true", "{summary}");
    assert!(summary["settings"]["idle_states"].is_string(), "{summary}");
}

#[test]
fn the_result_has_the_settings_of_tcp_of_the_network() {
    let desk = tempfile::tempdir().unwrap();
    let text = "title = \"small buffers\"\nduration = \"1 min\"\n[node]\na = {}\nb = \
        {}\n[link.wire]\nfrom = \"a\"\nto = \"b\"\n\
        both = { rate = \"10 Mbit/s\", delay = \"1 ms\" }\n[stack.small]\nprofile \
        = \"linux\"\ncongestion_control = \"reno\"\n\
        receive_window = \"500000 B\"\n[flow.test]\nfrom = \"a\"\nto = \"b\"\nstack \
        = \"small\"\nload = \"bulk\"\n";
    std::fs::write(desk.path().join("small.toml"), text).unwrap();
    let arguments = "latency zeromq --rate 100 --messages 20 --no-floor -q --json";
    let emulated = summary(desk.path(), &format!("{arguments} --scenario small.toml"));
    let settings = &emulated["settings"];
    assert_eq!(settings["congestion_control"], "reno", "{settings}");
    // Linux announces about half of a buffer.
    assert_eq!(settings["tcp_rmem"], "4096 131072 1000000", "{settings}");
    let here = summary(desk.path(), arguments);
    let kernel = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    assert_eq!(here["settings"]["congestion_control"], kernel.trim());
}

/// 16 kB in a round-trip time of 0.1 s are 160 kB/s, and 400 kB/s are offered: after half a second,
/// messages are late by more than 0.5 s. The other flow has a larger window.
#[test]
fn a_small_receive_window_limits_the_rate() {
    let desk = tempfile::tempdir().unwrap();
    let text = "title = \"long path\"\nduration = \"1 min\"\n[node]\na = {}\nb = \
        {}\n[link.wire]\nfrom = \"a\"\nto = \"b\"\n\
        both = { rate = \"10 Mbit/s\", delay = \"50 ms\" }\n\
        [flow.test]\nfrom = \"a\"\nto = \"b\"\nload = \"bulk\"\n\
        [flow.other]\nfrom = \"a\"\nto = \"b\"\nload = \"bulk\"\n";
    std::fs::write(desk.path().join("long.toml"), text).unwrap();
    let arguments = "latency zeromq --scenario long.toml --flow test --rate 400 --bytes 1000 \
        --messages 200 --warm-up 0 --no-floor -q --json --receive-window";
    let largest = |window: &str, buffers: &str| {
        let summary = summary(desk.path(), &format!("{arguments} {window}"));
        assert_eq!(summary["settings"]["tcp_rmem"], buffers, "{summary}");
        summary["latency_from_schedule"]["max_s"].as_f64().unwrap()
    };
    let [small, large] =
        [largest("16kB", "4096 32000 32000"), largest("256kB", "4096 131072 512000")];
    assert!(small > large + 0.25, "{small} s with 16 kB, {large} s with 256 kB");
}
