//! Writes one chart and one report of each kind to a directory: `gallery <directory>`; or the
//! report of stored answers to a file: `gallery <file> <answer.json>...`.

mod answers;

use std::path::Path;

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::DelayDistribution;

use gridhaul_report::Report;
use gridhaul_report::chart::{
    Axis, Bar, BarChart, BarSeries, Chart, DataPoint, LineChart, LineSeries, Reference, Stroke,
    Uncertainty,
};

fn main() -> std::io::Result<()> {
    let target = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let stored: Vec<String> = std::env::args().skip(2).collect();
    if !stored.is_empty() {
        return std::fs::write(&target, of_stored(&stored)?);
    }
    for (name, chart) in [
        ("loss", loss()),
        ("paper", paper()),
        ("window", window()),
        ("many", many()),
        ("names", names()),
        ("empty", LineChart::new("Nothing", Axis::new("x", "s"), Axis::new("y", "")).into()),
    ] {
        std::fs::write(Path::new(&target).join(format!("{name}.svg")), chart.to_svg())?;
    }
    let mut single = answers::answer("sim", vec![answers::point(1.0)]);
    single.series = answers::series(2000);
    single.warnings.push(answers::warning());
    for (flow, scale) in [("meters", 1.0), ("control", 0.2)] {
        let share: Vec<f64> = (0..=50).map(|step| f64::from(step) / 50.0).collect();
        let delay_s = share.iter().map(|share| scale * 0.1 / (1.02 - share)).collect();
        let curve = DelayDistribution { messages: 12_345, share, delay_s };
        single.points[0].delays.insert(flow.to_owned(), Some(curve));
    }
    let sweep = [1.0, 0.9].map(|scale| answers::answer("sim", answers::sweep(scale)));
    let model = answers::answer("model", vec![answers::point(0.93)]);
    let label = |name: &str| name.to_owned();
    let pages: [(&str, Vec<(String, &Answer)>); 3] = [
        ("single", vec![(label("sim"), &single)]),
        ("sweep", vec![(label("sim"), &sweep[0])]),
        ("compare", vec![(label("sim"), &single), (label("model"), &model)]),
    ];
    for (name, answers) in pages {
        let report = Report {
            title: "",
            description: "A substation sends meter readings, a camera picture and control \
                          messages.\n\n\
                          The camera starves the meters when the power line is noisy.",
            answers: &answers,
            scenario_toml: "title = \"A substation\"\nduration = \"60 s\"\n\n[link.plc]\nforward = \
                            { rate = \"3 Mbit/s\" }\n",
            ..Report::default()
        };
        std::fs::write(
            Path::new(&target).join(format!("{name}.html")),
            gridhaul_report::html(&report),
        )?;
    }
    Ok(())
}

/// The report of answers that are stored as JSON.
fn of_stored(files: &[String]) -> std::io::Result<String> {
    let read = |file: &String| -> std::io::Result<Answer> {
        Ok(serde_json::from_slice(&std::fs::read(file)?)?)
    };
    let answers = files.iter().map(read).collect::<std::io::Result<Vec<_>>>()?;
    let labelled: Vec<(String, &Answer)> =
        answers.iter().map(|answer| (answer.backend.clone(), answer)).collect();
    Ok(gridhaul_report::html(&Report { answers: &labelled, ..Report::default() }))
}

fn loss() -> Chart {
    let places = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1];
    let curve = |scale: f64, bend: f64| {
        places.map(|x| {
            let y = scale / (1.0 + (x * 1e4 / bend).sqrt());
            DataPoint { x, y, ci95: Some(y * 0.08) }
        })
    };
    LineChart::new(
        "Goodput against loss",
        Axis::new("loss", "").log(),
        Axis::new("goodput", "bit/s"),
    )
    .with(LineSeries::new("reno", curve(2.8e6, 1.0)))
    .with(LineSeries::new("cubic", curve(2.9e6, 3.0)))
    .with(LineSeries::new("bbr", curve(2.9e6, 90.0)))
    .with(
        LineSeries::new("paper, Table 3", places.map(|x| (x, 2.6e6 / (1.0 + (x * 1e4).sqrt()))))
            .stroke(Stroke::Points),
    )
    .with_reference(Reference::Y(3e6, "link rate".into()))
    .with_reference(Reference::X(2e-3, "measured in the field".into()))
    .into()
}

fn paper() -> Chart {
    let bar = |value, ci95| Bar { value: Some(value), ci95: Some(ci95) };
    BarChart::new(
        "Throughput over the hybrid link",
        Axis::new("throughput", "bit/s"),
        ["DVB-T alone", "GPRS alone", "hybrid", "hybrid, loss 1 %"],
    )
    .with(BarSeries::new("paper", [1.21e6, 0.04e6, 2.35e6, 0.72e6]))
    .with(BarSeries::new("ns-2", [1.20e6, 0.041e6, 2.36e6, 0.74e6]))
    .with(BarSeries::new(
        "gridhaul",
        [bar(1.205e6, 0.03e6), bar(0.041e6, 0.003e6), bar(2.355e6, 0.05e6), Bar::default()],
    ))
    .into()
}

fn window() -> Chart {
    let saw = |period: f64, top: f64| {
        (0..100_000).map(move |i| {
            let t = f64::from(i) * 0.003;
            let y = top * (0.5 + 0.5 * (t % period) / period);
            (t, if (120.0..135.0).contains(&t) { f64::NAN } else { y })
        })
    };
    let mut band = LineSeries::new(
        "mean of all",
        (0..200).map(|i| DataPoint {
            x: f64::from(i) * 1.5,
            y: 20_000.0 + f64::from(i % 40) * 100.0,
            ci95: Some(3000.0),
        }),
    );
    band.uncertainty = Uncertainty::Band;
    LineChart::new("Congestion window", Axis::new("time", "s"), Axis::new("congestion window", "B"))
        .with(LineSeries::new("meter-1", saw(31.0, 64_000.0)).stroke(Stroke::Step))
        .with(LineSeries::new("meter-2", saw(17.0, 48_000.0)))
        .with(band)
        .into()
}

fn many() -> Chart {
    let chart = LineChart::new(
        "Loss at the aggregator over the number of meters, with a long heading that is wrapped to \
         two lines",
        Axis::new("meters", "").log(),
        Axis::new("loss", "").including(0.0),
    );
    (0..8)
        .fold(chart, |chart, index| {
            let points = [1e3, 3e3, 1e4, 3e4, 1e5, 4e5]
                .map(|x: f64| (x, 1.0 - 1.0 / (1.0 + x / 1e4 / f64::from(index + 1))));
            chart.with(LineSeries::new(format!("{} aggregators, Reno", (index + 1) * 10), points))
        })
        .into()
}

fn names() -> Chart {
    let groups = (1..=14).map(|i| format!("substation-{i}.forward"));
    let chart = BarChart::new("Packets lost, by reason", Axis::new("packets", ""), groups);
    (0..8)
        .fold(chart, |chart, index| {
            chart.with(BarSeries::new(
                format!("reason {index}"),
                (0..14).map(|i| f64::from((i * 37 + index * 11) % 50) * 30.0),
            ))
        })
        .into()
}
