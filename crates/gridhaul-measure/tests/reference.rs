//! Schema and reference page of measurement files. `cargo xtask docs` runs this test with the
//! feature `schema`.

use gridhaul_measure::measurement::reference;
use gridhaul_testing::golden;

#[test]
fn the_reference_and_the_schema_are_not_stale() {
    let page = reference::page();
    golden::check("docs/reference/measurement.md", &page);
    let schema = reference::json_schema();
    golden::check("docs/reference/measurement.schema.json", &format!("{schema:#}\n"));
    let bare: Vec<_> = page.lines().filter(|line| line.ends_with("|  |")).collect();
    assert!(bare.is_empty(), "{bare:#?}");
}
