//! Reports: tables, charts, and escaping.

use gridhaul_report::chart::{Chart, Scale};
use gridhaul_report::{
    Detail, NamedChart, Report, Summary, TextTable, charts, deadline_checks, html, table, tables,
};
use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{DeadlineCheck, Metric, Point, Warning};
use gridhaul_scenario::units::Duration;

use crate::answers;

#[test]
fn tables_of_one_answer_a_sweep_and_two_answers() {
    let single = answers::answer("sim", vec![answers::point(1.0)]);
    let sweep = answers::answer("sim", answers::sweep(1.0));
    let mut text = draw(&table(&single));
    text += &draw(&tables(&[(String::new(), &sweep)], Detail::Full)[0]);
    let model = answers::answer("model", vec![answers::point(0.93)]);
    for table in tables(&[("sim".into(), &single), ("model".into(), &model)], Detail::Headline) {
        text += &draw(&table);
    }
    insta::assert_snapshot!(text);
}

/// A transfer of a tenth of the run has ten times the goodput of the whole run.
#[test]
fn different_times_of_goodput_and_throughput_are_named() {
    let row = |goodput, part: &[(Metric, f64)]| {
        let rates = [(Metric::Goodput, goodput), (Metric::Throughput, 2e5)];
        answers::row("file", 1, &[&rates, part].concat())
    };
    let note = |row| {
        let point = Point { flows: vec![row], ..answers::point(1.0) };
        let answer = answers::answer("sim", vec![point]);
        let answers = [(String::new(), &answer)];
        let note = tables(&answers, Detail::Headline)[0].note.clone().unwrap_or_default();
        let titles: String = charts(&answers).iter().map(|named| named.chart.title()).collect();
        [note.contains("Goodput of transfers"), titles.contains("while in progress")]
    };
    let finished = (Metric::TransfersFinished, 1.0);
    assert_eq!(note(row(1.8e6, &[finished])), [true; 2]);
    assert_eq!(note(row(1.9e5, &[finished])), [false; 2]);
    // Requests and responses count in both directions.
    assert_eq!(note(row(1.8e6, &[])), [false; 2]);
}

#[test]
fn deadline_checks_precede_the_charts() {
    let mut answer = answers::answer("sim", vec![answers::point(1.0), answers::point(1.0)]);
    let second = Duration::from_secs(1);
    for (point, share) in answer.points.iter_mut().zip([Some(0.979_99), None]) {
        point.parameters.insert("seed".into(), "1".into());
        point.deadline_checks = vec![DeadlineCheck::of_deadline("reading", second, share)];
    }
    answer.points[0].deadline_checks.push(DeadlineCheck::of_deadline("alarm", second, Some(1.0)));
    let table = deadline_checks(&[(String::new(), &answer)]).unwrap();
    assert_eq!(table.headers, ["seed", "flow", "required", "deadline met", "check"]);
    let limit = "98 % of messages within 1 s";
    assert_eq!(table.rows[0], ["1", "reading", limit, "97.9 %", "NOT met"]);
    assert_eq!(table.rows[1], ["1", "alarm", limit, "100.0 %", "met"]);
    assert_eq!(table.rows[2][3..], ["–", "not known"]);
    let answers = [(String::new(), &answer)];
    let page = html(&Report { answers: &answers, ..Report::default() });
    assert!(page.find("NOT met") < page.find("<figure"), "before the charts");
    answer.points.iter_mut().for_each(|point| point.deadline_checks.clear());
    assert_eq!(deadline_checks(&[(String::new(), &answer)]), None);
}

#[test]
fn the_charts_of_a_summary_follow_its_first_sentence() {
    let mut answer = answers::answer("sim", vec![answers::point(1.0)]);
    let (about, message) = ("flow.reading".to_owned(), "a warning".to_owned());
    answer.warnings.push(Warning { about, message });
    let answers = [("sim".to_owned(), &answer)];
    let charts = charts(&answers);
    let finding = "The first sentence.\n\nAn explanation.";
    let summary = Summary { finding, charts: &charts[..1], ..Summary::default() };
    let page = html(&Report { title: "plan", answers: &answers, summary, ..Report::default() });
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    let order = ["The first sentence.", "<figure", "An explanation.", "a warning"].map(place);
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn charts_depend_on_the_kind_of_answer() {
    let mut single = answers::answer("sim", vec![answers::point(1.0)]);
    single.series = answers::series(400);
    let model = answers::answer("model", vec![answers::point(0.93)]);
    let sweep = answers::answer("sim", answers::sweep(1.0));
    let mut over_time = swept("stack.tcp.delayed_ack", &["0 s", "40 ms"]);
    for point in 0..2 {
        for mut series in answers::series(400) {
            series.name += &format!("-{point}");
            over_time.series.push(series);
        }
    }
    let text = [
        outline("one answer", &charts(&[(String::new(), &single)])),
        outline("two answers", &charts(&[("sim".into(), &single), ("model".into(), &model)])),
        outline("a sweep of loss and algorithm", &charts(&[(String::new(), &sweep)])),
        outline(
            "a sweep of words",
            &charts(&[(String::new(), &swept("stack.tcp", &["reno", "cubic"]))]),
        ),
        outline(
            "a sweep with zero",
            &charts(&[(String::new(), &swept("loss", &["0", "0.001", "0.01", "0.1"]))]),
        ),
        outline(
            "a sweep of rates",
            &charts(&[(String::new(), &swept("rate", &["1 Mbit/s", "500 kbit/s"]))]),
        ),
        outline("a sweep over time", &charts(&[(String::new(), &over_time)])),
        outline("two keys with labels", &charts(&[(String::new(), &labelled())])),
    ];
    insta::assert_snapshot!(text.concat());
}

#[test]
fn a_report_is_one_file_and_escapes_its_input() {
    let hostile = "<b>\"&'<script>";
    let mut answer = answers::answer("sim", vec![answers::point(1.0)]);
    answer.title = hostile.into();
    answer.backend = hostile.into();
    answer.series = answers::series(40);
    answer.warnings.push(answers::warning());
    answer.warnings[0].about = hostile.into();
    answer.points[0].flows[0].name = hostile.into();
    let answers = [(hostile.to_owned(), &answer)];
    let report = Report {
        description: hostile,
        answers: &answers,
        scenario_toml: hostile,
        ..Report::default()
    };
    let page = html(&report);
    for never in
        ["<script", "<b>", "http://", "https://", "@import", "url(", "<link", "<img", "NaN"]
    {
        assert!(!page.contains(never), "{never}");
    }
    assert!(page.contains("&lt;b&gt;&quot;&amp;"));
    let order = ["<aside", "<figure", "<details", "<table", "<footer"].map(|tag| page.find(tag));
    assert!(order.is_sorted() && order[0].is_some(), "{order:?}");
    assert_eq!(page, html(&report), "the same input gives the same bytes");
    for svg in page.split("<svg").skip(1).filter_map(|rest| rest.split_once("</svg>")) {
        roxmltree::Document::parse(&format!("<svg{}</svg>", svg.0)).expect("well-formed XML");
    }
}

#[test]
fn answers_to_different_scenarios_cause_a_warning() {
    let one = answers::answer("sim", vec![answers::point(1.0)]);
    let other = Answer { scenario_sha256: "0".into(), ..one.clone() };
    let answers = [("one".to_owned(), &one), ("other".to_owned(), &other)];
    let page = html(&Report { answers: &answers, ..Report::default() });
    assert!(page.contains("different scenarios"));
}

#[test]
fn empty_answers_make_a_page() {
    let empty = answers::answer("sim", Vec::new());
    let answers = [(String::new(), &empty)];
    assert!(html(&Report { answers: &answers, ..Report::default() }).ends_with("</html>\n"));
    assert!(html(&Report::default()).ends_with("</html>\n"));
    assert_eq!(table(&empty), TextTable::default());
}

/// An answer to a sweep of two keys with labels, neither of which differs at each point.
fn labelled() -> Answer {
    let mut answer = swept("resumption", &["never", "always", "always"]);
    let others = [(50, "full"), (50, "resumed"), (200, "resumed, faster")];
    for (point, (accepted, label)) in answer.points.iter_mut().zip(others) {
        point.parameters.insert("per_second".into(), accepted.to_string());
        for key in ["resumption", "per_second"] {
            point.labels.insert(key.into(), label.into());
        }
    }
    answer
}

/// An answer to a sweep of one key.
fn swept(key: &str, values: &[&str]) -> Answer {
    let points = values.iter().zip(1..).map(|(value, index)| Point {
        parameters: [(key.to_owned(), (*value).to_owned())].into_iter().collect(),
        deterministic: false,
        flows: vec![answers::row("up", 1, &[(Metric::Goodput, f64::from(index) * 1e5)])],
        ..Point::default()
    });
    answers::answer("sim", points.collect())
}

fn outline(heading: &str, charts: &[NamedChart]) -> String {
    let mut text = format!("{heading}\n");
    for NamedChart { name, section, chart } in charts {
        let scale = |scale| if scale == Scale::Log { "log" } else { "linear" };
        let (kind, names): (_, Vec<_>) = match chart {
            Chart::Line(chart) => (
                format!(
                    "lines, {} {}, {} y",
                    scale(chart.x.scale),
                    chart.x.unit,
                    scale(chart.y.scale)
                ),
                chart.series.iter().map(|series| series.name.as_str()).collect(),
            ),
            Chart::Bar(chart) => (
                format!("bars of {}", chart.groups.join(" | ")),
                chart.series.iter().map(|series| series.name.as_str()).collect(),
            ),
            Chart::Box(chart) => (
                format!("boxes of {}", chart.groups.join(" | ")),
                chart.series.iter().map(|series| series.name.as_str()).collect(),
            ),
            Chart::Stacked(chart) => (
                format!("stacked bars of {}", chart.0.groups.join(" | ")),
                chart.0.series.iter().map(|series| series.name.as_str()).collect(),
            ),
            Chart::Region(chart) => (
                format!("region of {}", chart.value.label),
                chart.reasons.iter().map(String::as_str).collect(),
            ),
        };
        text +=
            &format!("  {section}: {} [{name}] ({kind}): {}\n", chart.title(), names.join(" | "));
    }
    text
}

fn draw(table: &TextTable) -> String {
    let mut lines = vec![&table.headers];
    lines.extend(&table.rows);
    let widths: Vec<usize> = (0..table.headers.len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = format!("{}\n", table.title);
    for line in lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column < table.key_columns {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        text += &format!("  {}\n", cells.collect::<Vec<_>>().join("  "));
    }
    text + table.note.as_deref().unwrap_or_default() + "\n"
}
