//! Plots CPU time and memory over the number of meters: `scaling TABLE.csv CHART.svg`, with the
//! table of `cargo xtask bench meters`.

use std::fs;

use gridhaul_report::chart::{Axis, Chart, LineChart, LineSeries, Panels, Reference};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let [table, picture] = names.as_slice() else {
        return Err("usage: scaling TABLE.csv CHART.svg".into());
    };
    let text = fs::read_to_string(table)?;
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let time = Axis::new("CPU time for 300 s", "s").log();
    let memory = Axis::new("peak memory", "B").log();
    let panels = Panels {
        label: "CPU time and peak memory of a simulation over the number of meters".to_owned(),
        columns: 2,
        charts: vec![
            chart(&rows, "Time", time, 2, Reference::Y(15.0, "goal for 400,000".to_owned()))?,
            chart(&rows, "Memory", memory, 3, Reference::Y(400e6, "goal for 400,000".to_owned()))?,
        ],
    };
    fs::write(picture, panels.to_svg())?;
    Ok(())
}

fn chart(
    rows: &[Vec<&str>],
    title: &str,
    axis: Axis,
    column: usize,
    bar: Reference,
) -> Result<Chart, Box<dyn std::error::Error>> {
    let meters = Axis::new("meters", "").log();
    let mut chart = LineChart::new(title, meters, axis).with_reference(bar);
    for program in ["gridhaul", "ns-2"] {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for row in rows.iter().filter(|row| row.first() == Some(&program)) {
            let number = |index: usize| -> Result<f64, Box<dyn std::error::Error>> {
                Ok(row.get(index).ok_or("too few columns")?.parse()?)
            };
            points.push((number(1)?, number(column)?));
        }
        chart = chart.with(LineSeries::new(program, points));
    }
    Ok(Chart::Line(chart))
}
