//! Names of results folders, and which results a run replaces.

use std::fs::File;
use std::io::read_to_string;

use crate::support::{Desk, SMALL};

#[test]
fn captures_are_deleted_only_with_force() {
    let desk = Desk::new().file("small.toml", SMALL);
    assert_eq!(desk.run("run small.toml --pcap wire -q").code, Some(0));
    let before = desk.names("results/small");
    let done = desk.run("run small.toml -q");
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(
        done.err.contains("contains captured packets (wire.forward.pcapng), which this command"),
        "{}",
        done.err
    );
    assert!(done.err.contains("--force"), "{}", done.err);
    assert_eq!(desk.names("results/small"), before);
    assert_eq!(desk.run("run small.toml --pcap wire -q").code, Some(0));
    assert_eq!(desk.run("run small.toml -q --force").code, Some(0));
    assert!(!desk.names("results/small").iter().any(|name| name.ends_with(".pcapng")));
}

#[test]
fn results_of_another_scenario_or_command_are_deleted_only_with_force() {
    let other = SMALL.replace("title = \"small\"", "title = \"other\"");
    assert_ne!(other, SMALL);
    let desk = Desk::new().file("small.toml", SMALL).file("other.toml", other);
    assert_eq!(desk.run("run small.toml -q --out here").code, Some(0));
    let done = desk.run("run other.toml -q --out here");
    assert!(done.err.contains("the results of another scenario, \"small\""), "{done:?}");
    assert_eq!(desk.run("run small.toml -q --out here --on sim,model").code, Some(0));
    let done = desk.run("run small.toml -q --out here");
    assert!(done.err.contains("the answer of another backend (answer-model.json)"), "{done:?}");
    let done = desk.run("compare small.toml other.toml -q --out here");
    assert!(done.err.contains("results of `gridhaul run` (answer.json)"), "{done:?}");
    assert_eq!(done.code, Some(2));
    assert_eq!(desk.run("compare small.toml other.toml -q --out here --force").code, Some(0));
}

#[test]
fn a_sweep_and_a_run_replace_each_other_only_with_force() {
    let desk = Desk::new().file("small.toml", SMALL);
    for backend in ["sim", "model"] {
        let run = format!("run small.toml -q --out {backend} --on {backend}");
        let sweep = run.replace("run ", "sweep ") + " --vary seed=1,2";
        assert_eq!(desk.run(&run).code, Some(0));
        let done = desk.run(&sweep);
        assert_eq!(done.code, Some(2), "{done:?}");
        let lost = "contains the results of a run without a sweep (answer.json)";
        assert!(done.err.contains(lost), "{done:?}");
        assert_eq!(desk.run(&format!("{sweep} --force")).code, Some(0));
        assert_eq!(desk.run(&sweep).code, Some(0));
        let done = desk.run(&run);
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.err.contains("contains the results of a sweep (answer.json)"), "{done:?}");
        assert_eq!(desk.run(&format!("{run} --set duration=1s --force")).code, Some(0));
        assert_eq!(desk.run(&run).code, Some(0));
    }
}

#[test]
fn a_run_of_a_swept_scenario_names_the_tables_that_it_would_delete() {
    let swept = format!("{SMALL}\n[[sweep]]\nvary.seed = [1, 2]\n");
    let desk = Desk::new().file("swept.toml", swept);
    assert_eq!(desk.run("run swept.toml -q --out here").code, Some(0));
    assert_eq!(desk.run("sweep swept.toml -q --out here").code, Some(0));
    let done = desk.run("run swept.toml -q --out here --series 1s");
    assert!(done.err.contains("contains tables of a sweep (answers.parquet)"), "{done:?}");
    let done = desk.run("sweep swept.toml -q --out series --series 1s");
    assert_eq!(done.code, Some(0), "{done:?}");
    let done = desk.run("sweep swept.toml -q --out series");
    assert!(done.err.contains("contains recorded series ("), "{done:?}");
}

#[test]
fn the_scenario_of_a_results_folder_has_the_name_of_the_folder() {
    let desk = Desk::new().file("a.toml", SMALL).file("b.toml", SMALL);
    for name in ["a", "b"] {
        assert_eq!(desk.run(&format!("run {name}.toml -q")).code, Some(0));
        assert_eq!(desk.run(&format!("run results/{name}/scenario.toml -q")).code, Some(0));
        assert_eq!(
            desk.run(&format!("sweep results/{name}/scenario.toml -q --vary seed=1,2")).code,
            Some(0)
        );
    }
    assert_eq!(
        desk.names("results"),
        ["a", "a-run", "a-sweep", "a-sweep.units", "b", "b-run", "b-sweep", "b-sweep.units"],
        "no results replace others"
    );
}

#[test]
fn a_csv_file_is_replaced_as_a_whole() {
    let desk = Desk::new().file("small.toml", SMALL).file("a.csv", "old");
    let reader = File::open(desk.dir.path().join("a.csv")).unwrap();
    assert_eq!(desk.run("run small.toml -q --csv=a.csv").code, Some(0));
    // The old file was not changed, so that no reader sees a part of the new one.
    assert_eq!(read_to_string(reader).unwrap(), "old");
    assert!(desk.text("a.csv").starts_with("answer,backend,point,"));
    assert_eq!(desk.names("."), ["a.csv", "results", "small.toml"]);
}
