//! The result sentences of a report, over a table of cases.

use gridhaul_report::{Report, charts, html, result};
use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{DeadlineCheck, DelayDistribution, Estimate, Metric, Point, Row};
use gridhaul_scenario::units::Duration;

use crate::answers;

const DELAYED_ACK: &str = "stack.linux.delayed_ack";
const LOSS: &str = "link.lossy.forward.loss.bernoulli";

/// Mean and half width of the confidence interval; a negative width for none.
type Value = (Metric, f64, f64);

fn row(name: &str, values: &[Value]) -> Row {
    let metrics = values.iter().map(|&(metric, mean, half)| {
        let ci95 = (half >= 0.0).then_some(half);
        (metric, Estimate { ci95, ..Estimate::exact(mean, if half >= 0.0 { 5 } else { 1 }) })
    });
    Row { name: name.into(), count: 1, metrics: metrics.collect(), ..Row::default() }
}

fn point(parameters: &[(&str, &str)], flows: Vec<Row>) -> Point {
    let text = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    Point { parameters: parameters.iter().map(text).collect(), flows, ..Point::default() }
}

fn download(goodput: f64, half: f64, rtt: f64) -> Vec<Row> {
    let rtt_half = if half < 0.0 { half } else { rtt * 0.02 };
    let values = [
        (Metric::Goodput, goodput, half),
        (Metric::RttMean, rtt, rtt_half),
        (Metric::RetransmissionRatio, 0.01, half.min(0.001)),
    ];
    vec![row("download", &values)]
}

fn reading(p98: f64, mean: f64) -> Row {
    let values = [
        (Metric::Goodput, 400.0, 1.0),
        (Metric::DelayMean, mean, mean * 0.05),
        (Metric::DelayP98, p98, p98 * 0.05),
    ];
    row("reading", &values)
}

fn sim(points: Vec<Point>) -> Answer {
    answers::answer("sim", points)
}

fn numbers(key: &str, values: &[(&str, f64, f64)]) -> Vec<Point> {
    let point = |(x, mean, half): &(&str, f64, f64)| {
        point(&[(key, x)], vec![row("up", &[(Metric::Goodput, *mean, *half)])])
    };
    values.iter().map(point).collect()
}

fn deadline(mut point: Point, share: Option<f64>) -> Point {
    point.deadline_checks =
        vec![DeadlineCheck::of_deadline("reading", Duration::from_secs(15), share)];
    point
}

fn two(one: Vec<Row>, other: Vec<Row>) -> Answer {
    let values = [("0 s", one), ("40 ms", other)];
    sim(values.map(|(value, rows)| point(&[(DELAYED_ACK, value)], rows)).into())
}

#[test]
fn one_point() {
    let mut text = String::new();
    let mut case = |name: &str, answer: &Answer| text += &sentences_of(name, &[("sim", answer)]);
    let mut full = point(&[], download(1.12e6, 2e4, 0.92));
    full.links = vec![
        answers::row("gprs.forward", 1, &[(Metric::Utilisation, 1.0)]),
        answers::row("dvbt.forward", 1, &[(Metric::Utilisation, 0.06)]),
    ];
    case("one stream and a saturated link", &sim(vec![full]));
    case("three flows", &sim(vec![answers::point(1.0)]));
    let flows = vec![row("steady", &[(Metric::DelayP98, 0.4137, 0.0)]), reading(0.438, 0.16)];
    case("messages, no significant difference", &sim(vec![point(&[], flows)]));
    let with_share = |share| sim(vec![deadline(point(&[], vec![reading(12.0, 3.0)]), share)]);
    case("a deadline that is met", &with_share(Some(0.991)));
    case("a deadline that is just missed", &with_share(Some(0.979_99)));
    case("a deadline that cannot be checked", &with_share(None));
    let mut transfer = row("file", &[(Metric::CompletionTime, 12.0, 1.0)]);
    transfer.metrics[0].n = 3;
    case("a transfer that finished in some runs", &sim(vec![point(&[], vec![transfer])]));
    case("no points", &sim(Vec::new()));
    insta::assert_snapshot!(text);
}

#[test]
fn two_points() {
    let mut text = String::new();
    let mut case = |name: &str, answer: &Answer| text += &sentences_of(name, &[("sim", answer)]);
    let doubled = two(download(0.56e6, 1e4, 1.81), download(1.12e6, 2e4, 0.92));
    case("doubled", &doubled);
    let mut labelled = doubled.clone();
    for (point, label) in
        labelled.points.iter_mut().zip(["every segment acknowledged", "delayed acknowledgements"])
    {
        point.labels.insert(DELAYED_ACK.into(), label.into());
    }
    case("labelled", &labelled);
    case("within the intervals", &two(download(1.10e6, 6e4, 0.92), download(1.12e6, 6e4, 0.92)));
    case("identical", &two(download(1.10e6, 0.0, 0.92), download(1.10e6, 0.0, 0.92)));
    let mut single = two(download(0.56e6, -1.0, 1.81), download(0.71e6, -1.0, 0.92));
    single.replications = 1;
    case("single runs", &single);
    let lossy = |loss: f64| {
        vec![row("alarm", &[(Metric::DelayP98, 0.1, 0.0), (Metric::MessageLoss, loss, 0.0)])]
    };
    case("a loss from zero on", &two(lossy(0.0), lossy(0.023)));
    let flows = |camera: f64, meters: f64| {
        vec![
            row("camera", &[(Metric::Goodput, camera, 1e3)]),
            row("meters", &[(Metric::Goodput, meters, 1e2)]),
        ]
    };
    case("one flow at the cost of another", &two(flows(2e5, 5e4), flows(9e5, 4e4)));
    let json = |mode: &str| point(&[("link.a.forward.loss", mode)], download(1e6, 1e3, 0.5));
    let mut burst = json(r#"{"gilbert_elliott":{"p":"1 %","r":"30 %"}}"#);
    burst.flows = download(0.4e6, 1e3, 0.5);
    case("values that are tables", &sim(vec![json(r#"{"bernoulli":"1 %"}"#), burst]));
    insta::assert_snapshot!(text);
}

#[test]
fn sweeps() {
    let mut text = String::new();
    let mut case =
        |name: &str, points: Vec<Point>| text += &sentences_of(name, &[("sim", &sim(points))]);
    case(
        "falling",
        numbers(LOSS, &[("0.1 %", 2.2e6, 9e4), ("1 %", 2.21e6, 9e4), ("10 %", 8.9e4, 4e3)]),
    );
    case(
        "a best value between",
        numbers(LOSS, &[("0.1 %", 1e6, 1e4), ("1 %", 2e6, 1e4), ("10 %", 5e5, 1e4)]),
    );
    case(
        "level",
        numbers(LOSS, &[("0.1 %", 1.0e6, 1e5), ("1 %", 1.1e6, 1e5), ("10 %", 1.05e6, 1e5)]),
    );
    let words = [("reno", 2.2e6, 1e4), ("cubic", 2.80e6, 5e4), ("bbr", 2.82e6, 5e4)];
    case("words, two as good", numbers("stack.x.congestion", &words));
    case("loss and algorithm", answers::sweep(1.0));
    let meters = [("100", 0.999), ("200", 0.985), ("400", 0.62), ("800", 0.1)];
    let with_share = |(count, share): (&str, f64)| {
        deadline(
            point(&[("flow.reading.count", count)], vec![reading(20.0 - share, 3.0)]),
            Some(share),
        )
    };
    case("a deadline up to a number", meters.map(with_share).into());
    let always = [("100", 0.999), ("200", 0.985), ("400", 0.99)];
    case("a deadline that always holds", always.map(with_share).into());
    insta::assert_snapshot!(text);
}

/// At each loss, the two algorithms are compared with these half widths.
fn algorithms(half: f64) -> String {
    let at = |loss: &str, algorithm: &str, goodput: f64| {
        let mut point = numbers(LOSS, &[(loss, goodput, goodput * half)]).remove(0);
        point.parameters.insert("stack.x.congestion".to_owned(), algorithm.to_owned());
        point
    };
    let pairs = [("0.1 %", 1e6), ("1 %", 4e5), ("10 %", 1e5)];
    let points = pairs.map(|(loss, mean)| [at(loss, "reno", mean), at(loss, "cubic", mean * 1.05)]);
    sentences_of("", &[("sim", &sim(points.concat()))])
}

#[test]
fn the_best_at_all_values_is_significantly_better() {
    let found = algorithms(0.01);
    assert!(found.contains("; cubic is best at all 3 values of the loss"), "{found}");
    let found = algorithms(0.2);
    let expected = "; no significant difference between the best and the second best at any value \
                    of the loss";
    assert!(found.contains(expected), "{found}");
}

#[test]
fn several_answers() {
    let mut text = String::new();
    let answer_of = |backend: &str, scale: f64, half: f64| {
        let points = [("1 %", 1e6), ("5 %", 5e5), ("10 %", 2e5)];
        let points = points.map(|(loss, mean)| (loss, mean * scale, half));
        answers::answer(backend, numbers(LOSS, &points))
    };
    let (one, close, distant) =
        (answer_of("sim", 1.0, 1e3), answer_of("model", 1.04, -1.0), answer_of("model", 0.6, -1.0));
    text += &sentences_of("close agreement", &[("sim", &one), ("model", &close)]);
    text += &sentences_of("large deviation", &[("sim", &one), ("model", &distant)]);
    text += &sentences_of(
        "within the intervals",
        &[("sim", &answer_of("sim", 1.0, 9e4)), ("emu", &answer_of("emu", 1.04, 9e4))],
    );
    let mut silent = close.clone();
    silent.points.iter_mut().for_each(|point| point.flows.clear());
    text += &sentences_of("nothing to compare", &[("sim", &one), ("model", &silent)]);
    let congestion_control = |hash: &str, goodput: f64| Answer {
        scenario_sha256: hash.into(),
        ..sim(vec![point(&[], download(goodput, 1e4, 1.0))])
    };
    let (before, after) = (congestion_control("a", 1e6), congestion_control("b", 1.31e6));
    text += &sentences_of("two variants of a scenario", &[("before", &before), ("after", &after)]);
    insta::assert_snapshot!(text);
}

#[test]
fn the_page_starts_with_the_result_and_shows_four_charts() {
    let mut answer = sim(answers::sweep(1.0));
    answer.warnings.push(answers::warning());
    answer.series = answers::series(40);
    for (index, point) in answer.points.iter_mut().enumerate() {
        let delay_s = vec![0.01 * (index + 1) as f64, 0.5, 2.0];
        let curve = DelayDistribution { messages: 99, share: vec![0.0, 0.5, 1.0], delay_s };
        point.delays.insert("camera".into(), Some(curve));
    }
    let answers = [("sim".to_owned(), &answer)];
    let report = Report {
        description: "A **bold** word.",
        answers: &answers,
        scenario_toml: "title = \"t\"",
        ..Report::default()
    };
    let page = html(&report);
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
    let parts = [
        "<h1>",
        "class=\"result\"",
        "class=\"warnings\"",
        "<figure",
        "<strong>bold</strong>",
        "<details>",
        "<footer>",
    ];
    assert!(parts.map(place).is_sorted(), "result, warnings, charts, description, details, footer");
    let (open, folded) = page.split_at(place("<details"));
    assert_eq!(open.matches("<figure").count(), 4);
    assert_eq!(folded.matches("<figure").count(), charts(&answers).len() - 4);
    assert_eq!(page.matches("<details>").count(), page.matches("</details>").count());
    assert!(!page.contains("<details open"), "all other sections are folded");
    // Wide content is in a scrolling container, and each table has few enough columns for a printed
    // page.
    let tables = folded.split("<table>").skip(1).take_while(|table| !table.contains("<footer>"));
    for table in tables {
        let head = table.split("</thead>").next().unwrap();
        assert!(head.matches("class=\"n\"").count() <= 6, "{head}");
    }
    let main = &page[..place("</main>")];
    assert_eq!(main.matches("<div class=\"scroll\"").count(), main.matches("<table>").count());
    // In print, folded sections are expanded and nothing scrolls.
    let style = &page[place("<style>")..place("</style>")];
    let print = style.split("@media print{@page").nth(1).unwrap();
    for rule in [
        ".scroll{overflow:visible",
        "details::details-content{content-visibility:visible",
        "pre-wrap",
    ] {
        assert!(print.contains(rule), "{rule}");
    }
    assert!(page.contains("prefers-color-scheme:dark") && page.contains("name=\"viewport\""));
    // Every chart has an alternative text.
    assert_eq!(page.matches("<svg").count(), page.matches("role=\"img\"").count());
    assert_eq!(
        page.matches("<svg").count(),
        page.matches("aria-label=\"").count() - labelled(&page)
    );
}

/// Number of labels of elements other than charts.
fn labelled(page: &str) -> usize {
    ["<section", "<aside", "<div"]
        .iter()
        .map(|tag| {
            let opened = page.split(tag).skip(1);
            opened
                .filter(|rest| rest.split('>').next().unwrap_or("").contains("aria-label"))
                .count()
        })
        .sum()
}

fn sentences_of(name: &str, answers: &[(&str, &Answer)]) -> String {
    let answers: Vec<_> =
        answers.iter().map(|(label, answer)| ((*label).to_owned(), *answer)).collect();
    let sentences = result(&answers);
    assert!(sentences.len() <= 2, "{sentences:?}");
    let lines: Vec<String> = sentences.iter().map(|sentence| format!("  {sentence}\n")).collect();
    format!("{name}\n{}", lines.concat())
}
