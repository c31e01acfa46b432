//! Export of stored answers.

use crate::support::{Desk, SMALL};

#[test]
fn stored_answers_have_the_csv_of_their_run() {
    let desk = Desk::new().file("small.toml", SMALL);
    let run = desk.run("sweep small.toml --vary seed=1,2 --on sim,model --csv -q");
    assert_eq!(run.code, Some(0), "{run:?}");
    let done = desk.run("export results/small-sweep --csv --parquet a.parquet");
    assert_eq!(done.code, Some(0), "{done:?}");
    // The lines are those of the run, with the name of the folder instead of that of the scenario.
    // Reading JSON may change the last digit of a number.
    let cells =
        |text: &str| -> Vec<String> { text.split([',', '\n']).map(str::to_owned).collect() };
    let (stored, printed) = (cells(&done.out.replace("small-sweep,", "small,")), cells(&run.out));
    assert_eq!(stored.len(), printed.len());
    for (stored, printed) in stored.iter().zip(&printed) {
        match (stored.parse::<f64>(), printed.parse::<f64>()) {
            (Ok(one), Ok(other)) => assert!((one - other).abs() <= 1e-12 * other.abs()),
            _ => assert_eq!(stored, printed),
        }
    }
    assert!(done.err.contains("written: a.parquet"), "{}", done.err);
    let parquet = std::fs::read(desk.dir.path().join("a.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let file = desk.run("export results/small-sweep/answer.json --csv=a.csv -q --only rtt_mean_s");
    assert_eq!((file.code, file.out.as_str()), (Some(0), ""), "{file:?}");
    let columns = "answer,backend,point,seed,seed_number,kind,name,count,rtt_mean_s";
    assert!(desk.text("a.csv").starts_with(columns));
}

#[test]
fn a_replication_has_the_same_row_in_csv_json_and_parquet() {
    let desk = Desk::new().file("small.toml", SMALL);
    let lossy = "--set 'link.wire.both.loss={bernoulli = \"1 %\"}' --replications 3";
    let sweep = "--vary 'link.wire.both.delay=10 ms,20 ms'";
    let run = desk.run(&format!("sweep small.toml {sweep} {lossy} --each-replication -q"));
    assert_eq!(run.code, Some(0), "{run:?}");
    let formats = "--csv --json=a.json --parquet a.parquet";
    let done = desk.run(&format!("export results/small-sweep --table replications {formats} -q"));
    assert_eq!(done.code, Some(0), "{done:?}");
    let mut reader = csv::Reader::from_reader(done.out.as_bytes());
    let names: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    // Two points, three replications, a flow and two directions.
    assert_eq!(rows.len(), 2 * 3 * 3);
    let json: Vec<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_str(&desk.text("a.json")).unwrap();
    assert_eq!(json.len(), rows.len());
    assert!(json[0].keys().eq(&names));
    for (object, row) in json.iter().zip(&rows) {
        for (value, cell) in object.values().zip(row) {
            match value {
                serde_json::Value::Null => assert_eq!(cell, ""),
                serde_json::Value::String(text) => assert_eq!(cell, text),
                number => assert_eq!(cell.parse::<f64>().ok(), number.as_f64()),
            }
        }
    }
    assert_eq!(json[17]["link.wire.both.delay_s"], 0.02);
    let distinct = |name: &str| {
        let flows = json.iter().filter(|row| row["kind"] == "flow" && row["point"] == 0);
        flows.map(|row| row[name].to_string()).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(distinct("replication"), 3);
    // Two of the three runs may have the same number.
    assert!(distinct("goodput_bit_per_s") > 1);
}

#[test]
fn means_alone_are_refused_as_a_table_of_replications() {
    let desk = Desk::new().file("small.toml", SMALL);
    let lossy = "--set 'link.wire.both.loss={bernoulli = \"1 %\"}' --replications 2";
    assert_eq!(desk.run(&format!("run small.toml {lossy} -q")).code, Some(0));
    let done = desk.run("export results/small --table replications --csv");
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.err.contains("small: point 0 has the means of 2 replications"), "{}", done.err);
    let done = desk.run("export results/small --table replicas --csv");
    assert!(done.code == Some(2) && done.err.contains("replications"), "{done:?}");
}

#[test]
fn an_export_names_what_is_missing() {
    let desk = Desk::new().file("small.toml", SMALL);
    std::fs::create_dir(desk.dir.path().join("empty")).unwrap();
    for (line, text) in [
        ("export empty --csv", "there is no answer.json in this folder"),
        ("export none --csv", "cannot read none"),
        ("export small.toml --csv", "not an answer of gridhaul"),
        ("export small.toml", "--csv"),
    ] {
        let done = desk.run(line);
        assert_eq!(done.code, Some(2), "{line}: {done:?}");
        assert!(done.err.contains(text), "{line}: {}", done.err);
    }
}

#[test]
fn compare_writes_a_report_without_further_options() {
    let desk = Desk::new().file("small.toml", SMALL);
    let done = desk.run("compare small.toml --on sim,model");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("report: results/compare-small/report.html"), "{}", done.err);
    assert_eq!(desk.names("results/compare-small"), ["comparison.json", "report.html"]);
}

#[test]
fn a_list_of_answers_is_exported_and_compared() {
    let desk = Desk::new().file("small.toml", SMALL);
    assert_eq!(desk.run("run small.toml --on sim,model -q").code, Some(0));
    let [sim, model] = ["answer.json", "answer-model.json"]
        .map(|name| desk.text(&format!("results/small/{name}")));
    let desk = desk.file("two.json", format!("\n[{sim},\n{model}]")).file("none.json", "[ ]");
    let done = desk.run("export two.json --csv --only goodput_bit_per_s");
    assert_eq!(done.code, Some(0), "{done:?}");
    let flows = |backend: &str| {
        let start = format!("two,{backend},");
        done.out.lines().filter(|line| line.starts_with(&start)).count()
    };
    assert!(flows("sim") > 0 && flows("sim") == flows("model"), "{}", done.out);
    let done = desk.run("compare two.json --json");
    assert_eq!(done.code, Some(0), "{done:?}");
    let comparison: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(comparison["labels"], serde_json::json!(["two (sim)", "two (model)"]));
    let done = desk.run("export none.json --csv");
    assert!(done.code == Some(2) && done.err.contains("the list is empty"), "{done:?}");
}
