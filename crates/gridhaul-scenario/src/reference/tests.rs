//! The pages in `docs/reference` and the schemas agree with the types that generate them.

use gridhaul_testing::golden;

use crate::{reference, schema};

#[test]
fn the_pages_are_not_stale() {
    golden::check("docs/reference/scenario.md", &reference::scenario_reference());
    golden::check("docs/reference/answer.md", &reference::answer_reference());
    golden::check("docs/reference/series.md", &reference::series_reference());
    golden::check("docs/reference/tables.md", &reference::tables_reference());
    golden::check("docs/reference/events.md", &reference::events_reference());
    golden::check("docs/reference/relay.md", &reference::relay_reference());
}

#[test]
fn the_schemas_are_not_stale() {
    for (name, schema) in [
        ("scenario", schema::json_schema()),
        ("answer", schema::answer_schema()),
        ("relay", schema::relay_schema()),
    ] {
        golden::check(&format!("docs/reference/{name}.schema.json"), &format!("{schema:#}\n"));
    }
}

#[test]
fn every_key_has_a_meaning() {
    for page in [
        reference::scenario_reference(),
        reference::answer_reference(),
        reference::relay_reference(),
    ] {
        let bare: Vec<_> = page.lines().filter(|line| line.ends_with("|  |")).collect();
        assert!(bare.is_empty(), "{bare:#?}");
    }
}
