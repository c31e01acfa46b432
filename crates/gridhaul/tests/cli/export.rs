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
    assert!(desk.text("a.csv").starts_with("answer,backend,point,seed,kind,name,count,rtt_mean_s"));
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
