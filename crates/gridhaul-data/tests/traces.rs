//! Recorded traces: accepted formats, and the messages for invalid traces. Read `traces.txt` as a
//! whole: every message should be sufficient to correct the trace.

use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use gridhaul_data::trace::{self, TraceError, TraceLimits, TraceReader, TraceRow};
use gridhaul_scenario::Scenario;
use gridhaul_scenario::scenario::{Load, Trace};
use gridhaul_scenario::units::Duration;
use gridhaul_testing::golden;
use parquet::data_type::{DoubleType, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

const LIMITS: TraceLimits = TraceLimits { members: 3, bytes_max: 1_472 };

fn csv(text: &[u8]) -> Result<Vec<TraceRow>, TraceError> {
    let text = Box::new(Cursor::new(text.to_vec()));
    rows(TraceReader::from_csv(text, "day.csv", LIMITS)?)
}

fn rows(mut reader: TraceReader) -> Result<Vec<TraceRow>, TraceError> {
    std::iter::from_fn(|| reader.next_row().transpose()).collect()
}

fn row(millis: u64, bytes: u64, member: Option<u64>) -> TraceRow {
    TraceRow { at: Duration::from_millis(millis), bytes, member }
}

/// Writes a Parquet file of one row group; not-a-number and -1 stand for null.
fn write_parquet(path: &Path, times: &[f64], bytes: &[i64]) {
    let schema = "message trace { OPTIONAL DOUBLE time_s; OPTIONAL INT64 bytes; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let levels = |known: Vec<bool>| known.into_iter().map(i16::from).collect::<Vec<_>>();
    let known = levels(times.iter().map(|time| !time.is_nan()).collect());
    let values: Vec<f64> = times.iter().copied().filter(|time| !time.is_nan()).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&values, Some(&known), None).unwrap();
    column.close().unwrap();
    let known = levels(bytes.iter().map(|bytes| *bytes != -1).collect());
    let values: Vec<i64> = bytes.iter().copied().filter(|bytes| *bytes != -1).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&values, Some(&known), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn csv_is_read_as_people_write_it() {
    let expected = [row(0, 200, None), row(1_500, 90, None), row(1_500, 1, None)];
    for text in [
        "time_s,bytes\n0,200\n1.5,90\n1.5,1\n",
        "\u{feff}time_s,bytes\r\n0,200\r\n1.5,90\r\n\r\n1.5,1",
        "bytes , note, TIME_MS\n200,\"a, b\",0\n90,,1.5e3\n\"1\",x,1500\n",
        "time_us,bytes\n0,2e2\n1500000,+90\n1_500_000,1.0\n",
        "time_ns,bytes\n0.4,200\n1500000000,90\n1500000000,1\n",
    ] {
        assert_eq!(csv(text.as_bytes()).unwrap(), expected, "{text}");
    }
    let members = csv(b"time_s,bytes,member\n0,200,2\n0,90,0\n").unwrap();
    assert_eq!(members, [row(0, 200, Some(2)), row(0, 90, Some(0))]);
}

#[test]
fn parquet_is_read_in_batches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("day.parquet");
    // More than one batch, and not a multiple of one.
    let times: Vec<f64> = (0..10_001).map(|index| f64::from(index) / 8.0).collect();
    let bytes: Vec<i64> = (0..10_001).map(|index| index % 999 + 1).collect();
    write_parquet(&path, &times, &bytes);
    let rows = rows(TraceReader::open(&path, LIMITS).unwrap()).unwrap();
    assert_eq!(rows.len(), 10_001);
    assert_eq!(rows[9_999], row(1_249_875, 10, None));
}

/// An endless CSV text that stores only the current line and its number.
struct Endless(Cursor<Vec<u8>>, u64);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer)?;
        if read > 0 {
            return Ok(read);
        }
        self.1 += 1;
        self.0 = Cursor::new(format!("{},200\n", self.1).into_bytes());
        self.0.read(buffer)
    }
}

#[test]
fn a_trace_longer_than_memory_is_streamed() {
    let text = Endless(Cursor::new(b"time_s,bytes\n".to_vec()), 0);
    let text = Box::new(BufReader::new(text));
    let mut reader = TraceReader::from_csv(text, "endless.csv", LIMITS).unwrap();
    for second in 1..100_000 {
        assert_eq!(reader.next_row().unwrap(), Some(row(second * 1_000, 200, None)));
    }
}

const WRONG: &[(&str, &[u8])] = &[
    ("nothing", b""),
    ("only the names", b"time_s,bytes\n"),
    ("no time", b"seconds,bytes\n0,200\n"),
    ("no size", b"time_s,payload\n0,200\n"),
    ("no names", b"0,200\n1,200\n"),
    ("two columns of times", b"time_s,time_ms,bytes\n0,0,200\n"),
    ("a column twice", b"time_s,bytes,member,bytes\n0,200,0,200\n"),
    ("semicolons", b"time_s;bytes\n0;200\n"),
    ("a word", b"time_s,bytes\n0,200\nnoon,200\n"),
    ("a unit", b"time_s,bytes\n0 s,200\n"),
    ("a decimal comma", b"time_s,bytes\n0,5,200\n"),
    ("a gap", b"time_s,bytes\n0,200\n1,\n"),
    ("a cell too few", b"time_s,bytes\n0,200\n1\n"),
    ("not a number", b"time_s,bytes\nNaN,200\n"),
    ("negative time", b"time_s,bytes\n-0.5,200\n"),
    ("time goes backwards", b"time_s,bytes\n0,200\n2,200\n\n1.5,200\n"),
    ("too large a time", b"time_s,bytes\n1e30,200\n"),
    ("half a byte", b"time_s,bytes\n0,0.5\n"),
    ("no bytes", b"time_s,bytes\n0,0\n"),
    ("more than a datagram", b"time_s,bytes\n0,1473\n"),
    ("no such member", b"time_s,bytes,member\n0,200,2\n1,200,3\n"),
    ("not UTF-8", b"time_s,bytes\n0,200\n1,\xff\xfe\n"),
    ("compressed", b"\x1f\x8b\x08\x00\x00\xff"),
];

#[test]
fn messages_are_as_expected() {
    let mut page = String::from("# CSV\n\n");
    for (name, text) in WRONG {
        let error = csv(text).expect_err(name);
        page += &format!("## {name}\n\n{error}\n\n");
    }
    let long = [b"time_s,bytes\n".as_slice(), &[b'1'; 70_000]].concat();
    page += &format!("## a line without end\n\n{}\n\n", csv(&long).unwrap_err());
    page += "# Parquet\n\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("day.parquet");
    let mut add_case = |name: &str| {
        let message = TraceReader::open(&path, LIMITS).and_then(rows).expect_err(name).to_string();
        let message = message.replace(&path.display().to_string(), "day.parquet");
        page += &format!("## {name}\n\n{message}\n\n");
    };
    add_case("no such file");
    // A socket is not a regular file; nor is a named pipe, which would block the reader.
    std::os::unix::net::UnixListener::bind(&path).unwrap();
    add_case("not a regular file");
    fs::remove_file(&path).unwrap();
    write_parquet(&path, &[0.0, f64::NAN], &[200, 200]);
    add_case("a null");
    write_parquet(&path, &[0.0, 1.0], &[200, -1]);
    add_case("a null size");
    write_parquet(&path, &[1.0, 0.5], &[200, 200]);
    add_case("time goes backwards");
    write_parquet(&path, &[-1.0], &[200]);
    add_case("negative time");
    write_parquet(&path, &[f64::INFINITY], &[200]);
    add_case("infinite");
    write_parquet(&path, &[0.0], &[-5]);
    add_case("negative size");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    add_case("cut off");
    golden::check("crates/gridhaul-data/tests/traces.txt", &page);
}

const SCENARIO: &str = r#"
title = "A day"
duration = "10 s"
[node]
meter.count = 3
head = {}
[link]
feeder = { from = "meter", to = "head", both.rate = "1 Mbit/s" }
[flow.reading]
from = "meter"
to = "head"
load.trace.file = "day.csv"
"#;

#[test]
fn a_path_is_relative_to_the_scenario_and_the_merged_scenario_still_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("day.toml");
    fs::write(&path, SCENARIO).unwrap();
    let error = trace::load_scenario(&path).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("day.toml:12:19: flow.reading.load.trace.file"), "{message}");
    assert!(message.contains("help: check the spelling"), "{message}");
    fs::write(folder.path().join("day.csv"), "time_s,bytes,member\n0,200,3\n").unwrap();
    let message = trace::load_scenario(&path).unwrap_err().to_string();
    assert!(message.contains("there is no member 3: the flow has 3"), "{message}");
    fs::write(folder.path().join("day.csv"), "time_s,bytes,member\n0,200,2\n").unwrap();
    let scenario = trace::load_scenario(&path).unwrap();
    let elsewhere = tempfile::tempdir().unwrap().path().join("merged.toml");
    fs::create_dir_all(elsewhere.parent().unwrap()).unwrap();
    fs::write(&elsewhere, scenario.to_toml()).unwrap();
    let merged = trace::load_scenario(&elsewhere).unwrap();
    assert_eq!(merged, scenario);
    assert_eq!(merged.sha256(), scenario.sha256());
    // Without a file there is no folder: nothing is opened.
    assert!(Scenario::from_toml(SCENARIO, "text.toml").is_ok());
}

#[test]
fn the_sha256_does_not_depend_on_the_folder_but_on_the_path_as_written() {
    let sha256 = |name: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("day.toml");
        fs::write(&path, SCENARIO.replace("day.csv", name)).unwrap();
        fs::write(folder.path().join(name), "time_s,bytes\n0,200\n").unwrap();
        let scenario = trace::load_scenario(&path).unwrap();
        assert!(scenario.to_toml().contains(folder.path().to_str().unwrap()));
        scenario.sha256()
    };
    assert_eq!(sha256("day.csv"), sha256("day.csv"));
    assert_ne!(sha256("day.csv"), sha256("night.csv"));
}

#[test]
fn relative_folders_start_at_the_scenario_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("day.toml");
    fs::create_dir(folder.path().join("data")).unwrap();
    fs::write(folder.path().join("data/day.csv"), "time_s,bytes\n0,200\n").unwrap();
    fs::write(&path, format!("folder = 'data'{SCENARIO}")).unwrap();
    let scenario = trace::load_scenario(&path).unwrap();
    let whole = folder.path().join("data");
    assert_eq!(scenario.folder.as_deref(), whole.to_str());
}

#[test]
fn swept_trace_paths_are_relative_to_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("day.toml");
    for (name, bytes) in [("day.csv", 200), ("night.csv", 90)] {
        fs::write(folder.path().join(name), format!("time_s,bytes\n0,{bytes}\n")).unwrap();
    }
    let of_files = format!(
        "{SCENARIO}[[sweep]]\nvary.\"flow.reading.load.trace.file\" = ['day.csv', 'night.csv']\n"
    );
    let of_loads = SCENARIO.replace("load.trace.file = \"day.csv\"", "load = \"bulk\"")
        + "[[sweep]]\nvary.\"flow.reading.load\" = [\n\
           { trace = { file = 'day.csv' } }, { trace = { file = 'night.csv' } } ]\n";
    for text in [of_files, of_loads] {
        fs::write(&path, text).unwrap();
        let points = trace::load_scenario(&path).unwrap().points().unwrap();
        let first_rows = points.iter().map(|point| {
            let mut trace = trace::open(&point.scenario, "reading").unwrap().unwrap();
            trace.next_row().unwrap().unwrap().bytes
        });
        assert_eq!(first_rows.collect::<Vec<_>>(), [200, 90]);
        // Answers contain the paths as written in the scenario.
        assert!(points[1].parameters.values().all(|value| !value.contains('/')));
    }
}

#[test]
fn a_trace_that_a_sweep_or_a_change_replaces_need_not_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("day.toml");
    fs::write(folder.path().join("night.csv"), "time_s,bytes\n0,90\n").unwrap();
    fs::write(&path, SCENARIO).unwrap();
    let mut scenario = Scenario::load(&path).unwrap();
    let message = trace::check(&scenario).unwrap_err().to_string();
    assert!(message.starts_with("flow.reading.load.trace.file: "), "{message}");
    assert!(message.contains("day.csv: cannot read this file"), "{message}");
    let load = &mut scenario.flow["reading"].load;
    *load = Load::Trace(Trace { file: "night.csv".into() });
    trace::check(&scenario).unwrap();
    let swept = |files: &str| {
        let sweep = format!("[[sweep]]\nvary.\"flow.reading.load.trace.file\" = [{files}]\n");
        fs::write(&path, format!("{SCENARIO}{sweep}")).unwrap();
        trace::load_scenario(&path).map_err(|error| error.to_string())
    };
    swept("'night.csv'").unwrap();
    let message = swept("'night.csv', 'dusk.csv'").unwrap_err();
    assert!(message.contains("dusk.csv: cannot read this file"), "{message}");
    assert!(message.contains("day.toml:14:"), "the sweep names it: {message}");
    assert_eq!(message.matches("cannot read").count(), 1, "{message}");
}
