//! Charts: snapshots, and properties for arbitrary values.

use gridhaul_report::chart::{
    Axis, Bar, BarChart, BarSeries, BoxPlot, BoxStatistics, Chart, DataPoint, LineChart,
    LineSeries, Panels, Reference, StackedChart, Stroke, Uncertainty,
};
use proptest::prelude::*;

#[test]
fn a_small_line_chart() {
    let curve = |scale: f64| {
        [1e-4, 1e-3, 1e-2].map(|x: f64| {
            let y = scale / (1.0 + (x * 1e3).sqrt());
            DataPoint { x, y, ci95: Some(y * 0.1) }
        })
    };
    let chart = LineChart::new(
        "Goodput against loss",
        Axis::new("loss", "").log(),
        Axis::new("goodput", "bit/s"),
    )
    .with(LineSeries::new("reno", curve(2e6)))
    .with(LineSeries::new("paper", curve(1.9e6)).stroke(Stroke::Points))
    .with_reference(Reference::Y(2e6, "link rate".into()));
    insta::assert_binary_snapshot!("line.svg", chart.to_svg().into_bytes());
}

#[test]
fn a_small_bar_chart() {
    let chart = BarChart::new(
        "Throughput, Table 2",
        Axis::new("throughput", "bit/s"),
        ["DVB-T", "GPRS", "hybrid"],
    )
    .with(BarSeries::new("paper", [1.21e6, 0.4e6, 2.35e6]))
    .with(BarSeries::new("ns-2", [1.20e6, 0.41e6, 2.36e6]))
    .with(BarSeries::new(
        "gridhaul",
        [
            Bar { value: Some(1.2e6), ci95: Some(3e4) },
            Bar { value: Some(0.4e6), ci95: Some(1e4) },
            Bar::default(),
        ],
    ));
    insta::assert_binary_snapshot!("bar.svg", chart.to_svg().into_bytes());
}

fn latencies(scale: f64) -> BoxStatistics {
    BoxStatistics {
        whiskers: [0.4 * scale, 1.6 * scale],
        quartiles: [0.8 * scale, 1.1 * scale],
        mean: scale,
        tail: Some(2.5 * scale),
        max: 4.0 * scale,
    }
}

#[test]
fn a_box_plot_shows_every_number_of_a_box() {
    let chart = BoxPlot::new("Latency", Axis::new("latency", "s").log(), ["MQTT", "SV"])
        .with("10/s", [Some(latencies(1e-3)), Some(latencies(1e-4))])
        .with("100/s", [None, Some(latencies(2e-4))]);
    let svg = chart.to_svg();
    well_formed(&svg);
    assert_eq!(svg.matches("quartiles").count(), 3);
    assert!(svg.contains("SV, 10/s: mean 100 µs, quartiles 80 µs to 110 µs, whiskers"), "{svg}");
    assert!(svg.contains("tail 250 µs, max 400 µs"), "{svg}");
    // The legend of the marks.
    assert!(svg.contains("99.9th percentile") && svg.contains("largest value"), "{svg}");
    let without_tail = BoxStatistics { tail: None, ..latencies(1e-3) };
    let chart = BoxPlot::new("", Axis::new("latency", "s"), ["SV"]).with("", [Some(without_tail)]);
    let svg = chart.to_svg();
    assert!(!svg.contains("99.9th percentile") && svg.contains("largest value"), "{svg}");
    let empty = BoxPlot::default().to_svg();
    well_formed(&empty);
    assert!(!empty.contains("largest value"), "{empty}");
}

#[test]
fn stacked_bars_end_at_the_sum_of_their_parts() {
    let chart = StackedChart::new("Bytes", Axis::new("size", "B"), ["MQTT", "SV"])
        .with(BarSeries::new("Ethernet", [28.0, 14.0]))
        .with(BarSeries::new("payload", [306.0, 40.0]));
    let svg = chart.to_svg();
    well_formed(&svg);
    assert!(svg.contains("\n334\n") && svg.contains("\n54\n"), "{svg}");
    assert!(svg.contains("MQTT, payload: 306 B"), "{svg}");
    well_formed(&StackedChart::default().to_svg());
}

/// A reader of a printed chart sees no tooltip.
#[test]
fn labels_of_groups_are_complete_up_to_fifty_characters() {
    let label = "MQTT, Protobuf: measured, mosquitto, second attempt";
    // The first label has the least space: only the margin is to its left.
    for groups in [6, 12, 20] {
        let names = (0..groups).map(|group| if group == 0 { label } else { "UDP" });
        let svg = BarChart::new("Bytes", Axis::new("size", "B"), names)
            .with(BarSeries::new("", vec![1.0; groups]))
            .to_svg();
        well_formed(&svg);
        assert!(!svg.contains('…'), "{groups} groups: {svg}");
    }
}

#[test]
fn a_text_that_is_cut_has_a_tooltip_with_the_full_text() {
    let long = |name: &str| format!("{name}{}", " of all meters of the district".repeat(20));
    let axis = |name: &str| Axis::new(long(name), "");
    let chart = LineChart::new(long("title"), axis("across"), axis("up"))
        .with(LineSeries::new(long("series"), [(0.0, 1.0), (1.0, 2.0)]));
    let svg = chart.to_svg();
    for name in ["title", "across", "up", "series"] {
        assert!(svg.contains(&format!("<title>{}</title>", long(name))), "{name}: {svg}");
    }
}

#[test]
fn a_span_is_shaded_from_its_start_to_its_end() {
    let chart = LineChart::new("Latency", Axis::new("time", "s"), Axis::new("latency", "s"))
        .with(LineSeries::new("", [(0.0, 1.0), (10.0, 1.0)]));
    let shaded = chart.clone().with_reference(Reference::Span(4.0, 6.0, "outage".into()));
    assert_eq!(chart.to_svg().matches("fill-opacity").count(), 0);
    let svg = shaded.to_svg();
    well_formed(&svg);
    assert_eq!(svg.matches("fill-opacity=\"0.16\"").count(), 1);
    assert!(svg.contains(">outage<"));
}

#[test]
fn panels_are_side_by_side() {
    let chart = |y: f64| {
        let chart = LineChart::new(format!("Panel {y}"), Axis::new("x", "s"), Axis::new("y", ""));
        Chart::from(chart.with(LineSeries::new("", [(0.0, 0.0), (1.0, y)])))
    };
    let charts = (1..=5).map(|index| chart(f64::from(index))).collect();
    let svg = Panels { label: "five <panels>".into(), columns: 2, charts }.to_svg();
    well_formed(&svg);
    assert_eq!(svg.matches("<svg").count(), 6);
    assert_eq!(svg.matches("<style").count(), 1);
    well_formed(&Panels { label: String::new(), columns: 0, charts: Vec::new() }.to_svg());
}

#[test]
fn long_series_stay_small() {
    let points = (0..100_000).map(|i| (f64::from(i), f64::from(i % 977)));
    let chart = LineChart::new("Window", Axis::new("time", "s"), Axis::new("window", "B"))
        .with(LineSeries::new("flow", points));
    let svg = chart.to_svg();
    assert!(svg.len() < 50_000, "{} bytes", svg.len());
    well_formed(&svg);
}

#[test]
fn hostile_names_are_text() {
    let name = "<b>\"&'\u{1}\u{7}]]> --> </svg><script>alert(1)</script>";
    let line = LineChart::new(name, Axis::new(name, name), Axis::new(name, name))
        .with(LineSeries::new(name, [(1.0, 2.0), (2.0, 3.0)]))
        .with_reference(Reference::X(1.5, name.into()))
        .with_reference(Reference::Y(2.5, name.into()));
    let bar =
        BarChart::new(name, Axis::new(name, name), [name; 9]).with(BarSeries::new(name, [1.0; 9]));
    for svg in [line.to_svg(), bar.to_svg()] {
        assert!(!svg.contains("<script") && !svg.contains("<b>"));
        well_formed(&svg);
    }
}

#[test]
fn charts_without_data_are_well_formed() {
    let axis = || Axis::new("", "");
    let charts: [Chart; 4] = [
        LineChart::new("", axis(), axis()).into(),
        LineChart::new("", axis().log(), axis().log())
            .with(LineSeries::new("", [(0.0, -1.0)]))
            .into(),
        BarChart::new("", axis(), Vec::<String>::new()).into(),
        BarChart::new("", axis(), ["a"]).with(BarSeries::new("", [None, Some(1.0)])).into(),
    ];
    for chart in charts {
        well_formed(&chart.to_svg());
    }
    let equal = LineChart::new("", axis(), axis()).with(LineSeries::new("", [(5.0, 5.0); 3]));
    well_formed(&equal.to_svg());
}

/// The same quantity from two sources has one colour, and markers for measured values only.
#[test]
fn a_series_can_share_the_style_of_another() {
    let axis = || Axis::new("axis", "");
    let points = [(1.0, 1.0), (2.0, 2.0)];
    let svg = LineChart::new("", axis(), axis())
        .with(LineSeries::new("reno", points).stroke(Stroke::Curve))
        .with(LineSeries::new("vegas", points).stroke(Stroke::Curve))
        .with(LineSeries::new("vegas, measured", points).stroke(Stroke::Points).same_style_as(1))
        .to_svg();
    well_formed(&svg);
    assert!(!svg.contains("class=\"gh-s2\""), "the third series has a colour of its own");
    // Two points and the sample in the legend.
    assert_eq!(svg.matches("class=\"gh-hollow\"").count(), 3);
}

proptest! {
    #[test]
    fn any_numbers_make_well_formed_lines(
        points in prop::collection::vec((number(), number(), prop::option::of(number())), 0..90),
        kinds in (any::<bool>(), any::<bool>(), 0..4_usize, any::<bool>()),
        at in number(),
    ) {
        let points = points.into_iter().map(|(x, y, ci95)| DataPoint { x, y, ci95 });
        let mut series = LineSeries::new("series", points);
        series.stroke = [Stroke::Line, Stroke::Step, Stroke::Points, Stroke::Curve][kinds.2];
        series.uncertainty = if kinds.3 { Uncertainty::Bars } else { Uncertainty::Band };
        let axis = |unit, log| if log { Axis::new("axis", unit).log() } else { Axis::new("axis",
            unit) };
        let chart = LineChart::new("chart", axis("s", kinds.0), axis("bit/s", kinds.1))
            .with(series.clone())
            .with(series)
            .with_reference(Reference::X(at, "here".into()))
            .with_reference(Reference::Y(at, "here".into()));
        let svg = chart.to_svg();
        well_formed(&svg);
        prop_assert_eq!(svg, chart.to_svg());
    }

    #[test]
    fn any_numbers_make_well_formed_bars(
        values in prop::collection::vec((prop::option::of(number()), prop::option::of(number())),
            0..30),
        groups in 0..30_usize,
        names in ".{0,40}",
        log: bool,
    ) {
        let bars: Vec<_> = values.into_iter().map(|(value, ci95)| Bar { value, ci95 }).collect();
        let axis = Axis::new("axis", "B");
        let axis = if log { axis.log() } else { axis };
        let mut chart = BarChart::new(&names, axis, (0..groups).map(|group| format!("{names} \
                                                                                     {group}")));
        for index in 0..groups % 10 {
            chart = chart.with(BarSeries::new(format!("series {index}"), bars.iter().copied()));
        }
        well_formed(&chart.to_svg());
    }
}

/// Any float, with typical values more often.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), -1e3..1e7, Just(0.0), Just(f64::NAN), Just(f64::INFINITY), Just(1.0)]
}

/// Checks that the SVG is well-formed and all coordinates are within or close to the drawing.
fn well_formed(svg: &str) {
    let document = roxmltree::Document::parse(svg).expect("well-formed XML");
    for node in document.descendants() {
        for attribute in node.attributes() {
            let value = attribute.value();
            match attribute.name() {
                "x" | "y" | "x1" | "x2" | "y1" | "y2" | "width" | "height" => {
                    let number: f64 = value.parse().expect("a number");
                    assert!((-100.0..2000.0).contains(&number), "{value} in {svg}");
                }
                "d" | "transform" => {
                    assert!(!value.contains("NaN") && !value.contains("inf"), "{value}");
                }
                _ => {}
            }
        }
    }
}
