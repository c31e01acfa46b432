//! Files that are no scenarios, and scenarios that are written and read again.

use std::fs::{self, File};
use std::path::Path;

use gridhaul_scenario::Scenario;

const SMALL: &str = r#"
title = "small"
duration = "60 s"
node.a = {}
node.b.count = 3
link.l = { from = "a", to = "b", both.rate = "3 Mbit/s" }
flow.f = { from = "b", to = "a", load = "bulk" }
"#;

fn refused(path: &Path) -> String {
    let error = Scenario::load(path).unwrap_err();
    assert_eq!(error.file, path.display().to_string());
    error.to_string().replace(&error.file, "FILE")
}

#[test]
fn other_files_are_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("grid.toml");
    assert_eq!(
        refused(folder.path()),
        "FILE: this is a directory, not a file\n  \
         help: name a TOML file"
    );
    assert_eq!(
        refused(&file),
        "FILE: cannot read this file: No such file or directory (os error 2)\n  \
         help: check the spelling and the directory"
    );
    fs::write(&file, b"title = \"x\"\n\x89PNG\xff\xff").unwrap();
    assert_eq!(
        refused(&file),
        "FILE: this is not a text file: line 2 is not valid UTF-8\n  \
         help: name a TOML file; if it is one, save it as UTF-8 in your editor"
    );
    assert_eq!(
        refused(Path::new("/dev/zero")),
        "FILE: this is not a regular file\n  \
         help: name a TOML file"
    );
    fs::write(&file, b"").unwrap();
    assert!(refused(&file).starts_with("FILE: the file lacks the required key `title`"));
}

#[test]
fn a_huge_file_is_refused_without_reading_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.toml");
    // A sparse file of ten gigabytes occupies no disk space.
    File::create(&path).unwrap().set_len(10_000_000_000).unwrap();
    assert!(refused(&path).starts_with("FILE: this is larger than 4 MB"));
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    for (open, close) in [("[", "]"), ("{a=", "}")] {
        let text = format!("x = {}1{}", open.repeat(100_000), close.repeat(100_000));
        assert!(Scenario::from_toml(&text, "deep.toml").is_err());
    }
    assert!(Scenario::from_toml(&"a.".repeat(500_000), "deep.toml").is_err());
    assert!(Scenario::from_toml(&format!("{}a = 1", "a.".repeat(2_000)), "deep.toml").is_err());
}

#[test]
fn long_lines_are_cut_around_the_caret() {
    let text = format!("title = \"{}\" oops", "long ".repeat(10_000));
    let error = Scenario::from_toml(&text, "long.toml").unwrap_err().to_string();
    assert!(error.lines().all(|line| line.chars().count() < 130), "{error}");
}

#[test]
fn the_number_of_reported_errors_is_limited() {
    let mut text =
        String::from("title = \"many\"\nduration = \"60 s\"\n[node]\na = {}\n[flow]\n[link]\n");
    for link in 0..20_000 {
        text +=
            &format!("l{link} = {{ from = \"a\", to = \"b{link}\", both.rate = \"1 Mbit/s\" }}\n");
    }
    let error = Scenario::from_toml(&text, "many.toml").unwrap_err();
    assert_eq!(error.diagnostics.len(), 100);
    assert_eq!(error.to_string().matches("many.toml:").count(), 10);
    assert!(error.to_string().ends_with("and at least 90 more errors"));
}

#[test]
fn the_merged_scenario_spells_out_defaults_and_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.toml");
    fs::write(&path, SMALL).unwrap();
    let scenario = Scenario::load(&path).unwrap();
    let merged = scenario.to_toml();
    assert!(merged.contains("queue = \"100 packets\""), "{merged}");
    assert_eq!(Scenario::from_toml(&merged, "merged.toml").unwrap(), scenario);
    assert_eq!(scenario.sha256().len(), 64);
    let spaced = SMALL.replace(" = ", "   =   ") + "# and a comment\n";
    assert_eq!(Scenario::from_toml(&spaced, "spaced.toml").unwrap().sha256(), scenario.sha256());
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_are_fine() {
    Scenario::from_toml(&SMALL.replace('\n', "\r\n"), "dos.toml").unwrap();
    Scenario::from_toml(&format!("\u{feff}{SMALL}"), "bom.toml").unwrap();
}

#[test]
fn the_fuzzer_starts_from_valid_scenarios() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/scenario");
    for seed in fs::read_dir(seeds).unwrap() {
        let scenario = Scenario::load(&seed.unwrap().path()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(scenario.points().unwrap().len(), scenario.point_count().unwrap());
    }
}
