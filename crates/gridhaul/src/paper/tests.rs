//! Consistency of the folders in `papers/`.

use std::collections::BTreeSet;

use super::*;
use gridhaul_report::quantity;

#[test]
fn every_cell_refers_to_an_existing_row_of_its_scenario() {
    let papers = Paper::all().unwrap();
    assert!(papers.iter().any(|paper| paper.name == "hybrid"));
    for paper in &papers {
        for quick in [false, true] {
            let scenarios = paper.definition.scenario.iter();
            let scenarios: IndexMap<_, _> =
                scenarios.map(|experiment| paper.scenario(experiment, quick).unwrap()).collect();
            // A quick run may omit lines that no claim of it needs.
            for figure in paper.definition.figure.iter().filter(|_| !quick) {
                for line in &figure.line {
                    line_has_points(figure, line, &scenarios);
                }
            }
            for timeline in &paper.definition.timeline {
                let scenario = &scenarios[&timeline.scenario];
                let link = timeline.of.split('.').next().unwrap_or_default();
                let known = scenario.flow.contains_key(link) || scenario.link.contains_key(link);
                assert!(scenario.record.interval.is_some() && known, "timeline {}", timeline.name);
            }
            for cell in &paper.cells {
                if let Some(other) = cell.tolerance.other() {
                    let known = paper.cells.iter().any(|cell| cell.cell == other);
                    assert!(known, "{}: there is no cell {other}", cell.cell);
                }
                let place = format!("papers/{}/expected.csv: {}", paper.name, cell.cell);
                let scenario = scenarios.get(&cell.scenario).expect(&place);
                let points = scenario.points().unwrap();
                let parameters = points.iter().map(|point| &point.parameters);
                let own = points_of(cell, parameters);
                let without_seed = own.iter().map(|index| {
                    let mut parameters = points[*index].parameters.clone();
                    parameters.shift_remove("seed");
                    parameters
                });
                let different: BTreeSet<_> = without_seed.map(|run| format!("{run:?}")).collect();
                assert_eq!(different.len(), 1, "{place}: parameters");
                assert!(cell.select.exists_in(scenario), "{place}: select");
                assert!(paper.definition.table.contains_key(&cell.table), "{place}: table");
            }
        }
    }
}

#[test]
fn values_measured_on_a_kernel_are_repeated() {
    for paper in &Paper::all().unwrap() {
        for experiment in &paper.definition.scenario {
            if !experiment.on.iter().any(|backend| backend == "emu") {
                continue;
            }
            let (name, scenario) = paper.scenario(experiment, false).unwrap();
            let points = scenario.points().unwrap();
            let seeds: BTreeSet<_> =
                points.iter().filter_map(|point| point.parameters.get("seed")).collect();
            let runs = seeds.len().max(1) * scenario.replications.max() as usize;
            assert!(runs >= 3, "{}, {name}: {runs} runs on a kernel; expected 3", paper.name);
        }
    }
}

fn line_has_points(figure: &Figure, line: &figure::Line, scenarios: &IndexMap<String, Scenario>) {
    for source in &line.from {
        let place = format!("figure {}, line {}", figure.name, line.name);
        let scenario = &scenarios[&source.scenario];
        let select = source.select.as_ref().unwrap_or(&figure.y.select);
        assert!(select.exists_in(scenario), "{place}: {select}");
        let points = scenario.points().unwrap();
        let mut own = points.iter().filter(|point| source.selects(&point.parameters)).peekable();
        assert!(own.peek().is_some(), "{place}: no point has {:?}", source.parameters);
        for point in own {
            let has_position = match (&figure.x.key, &figure.x.select) {
                (Some(key), None) => {
                    let text = point.parameters.get(key);
                    source.x.is_some() || text.is_some_and(|text| quantity(text).is_some())
                }
                (None, Some(select)) => select.exists_in(scenario) && figure.agree.is_none(),
                _ => false,
            };
            assert!(has_position, "{place}: no position on the axis");
        }
    }
}

#[test]
fn names_of_cells_are_unique() {
    for paper in Paper::all().unwrap() {
        let mut names: Vec<_> = paper.cells.iter().map(|cell| &cell.cell).collect();
        names.sort();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "{}", paper.name);
    }
}
