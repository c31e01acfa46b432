//! Synthetic answers for charts and tests.

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{
    Column, ColumnData, Estimate, Metric, Point, Row, Series, Warning,
};

/// An answer with these points.
pub(crate) fn answer(backend: &str, points: Vec<Point>) -> Answer {
    Answer {
        schema: Answer::SCHEMA,
        gridhaul: "0.1.0".into(),
        backend: backend.into(),
        title: "A substation reports over power line and GPRS".into(),
        scenario_sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into(),
        seed: 7,
        replications: 5,
        points,
        warnings: Vec::new(),
        series: Vec::new(),
        incomplete: false,
        captures: Vec::new(),
        event_logs: Vec::new(),
    }
}

/// A warning as in answers of backends.
pub(crate) fn warning() -> Warning {
    Warning {
        about: "link.plc.forward.loss".into(),
        message: "Losses come in bursts longer than the measured time of 60 s; the interval is \
            too narrow."
            .into(),
    }
}

/// One point without a sweep: three flows over two links; numbers are scaled by `scale`.
pub(crate) fn point(scale: f64) -> Point {
    let flow = |name: &str, count: u64, rate: f64| {
        row(
            name,
            count,
            &[
                (Metric::Goodput, rate * scale),
                (Metric::Throughput, rate * 1.03 * scale),
                (Metric::SegmentsSent, rate / 117.0),
                (Metric::Retransmissions, rate / 9000.0 * scale),
                (Metric::FastRetransmits, rate / 20_000.0),
                (Metric::Timeouts, 3.0 * scale),
                (Metric::RetransmissionRatio, 0.013 / scale),
                (Metric::RttMean, 0.148 / scale),
                (Metric::CwndMean, 31_000.0 * scale),
                (Metric::DelayMean, 0.21 / scale),
                (Metric::DelayMedian, 0.18),
                (Metric::DelayP98, 0.62),
                (Metric::DelayMax, 2.4),
                (Metric::Messages, 12_345.0),
                (Metric::Fairness, 0.973),
            ],
        )
    };
    let link = |name: &str, rate: f64, loss: f64| {
        row(
            name,
            1,
            &[
                (Metric::LinkThroughput, rate * scale),
                (Metric::Utilisation, 0.87 * scale),
                (Metric::PacketsIn, rate / 100.0),
                (Metric::PacketsOut, rate / 100.0 * (1.0 - loss)),
                (Metric::DropsQueue, rate / 100.0 * loss * 0.7),
                (Metric::DropsLoss, rate / 100.0 * loss * 0.3),
                (Metric::LossRatio, loss),
                (Metric::QueueMean, 12.4 * scale),
                (Metric::QueueMax, 50.0),
                (Metric::LinkDelayMean, 0.093),
            ],
        )
    };
    Point {
        flows: vec![
            flow("meters", 200, 412_000.0),
            flow("camera", 1, 1_130_000.0),
            flow("control", 1, 38_000.0),
        ],
        links: vec![
            link("plc.forward", 1_610_000.0, 0.021),
            link("plc.reverse", 52_000.0, 0.0004),
            link("gprs.forward", 31_000.0, 0.11),
            link("gprs.reverse", 9_800.0, 0.0),
        ],
        ..Point::default()
    }
}

/// A sweep over loss with three algorithms.
pub(crate) fn sweep(scale: f64) -> Vec<Point> {
    let mut points = Vec::new();
    for (order, algorithm) in ["reno", "cubic", "bbr"].into_iter().enumerate() {
        for loss in ["1e-5", "1e-4", "0.001", "0.01", "0.1"] {
            let p: f64 = loss.parse().unwrap_or(0.0);
            let rate = 2.9e6 * scale / (1.0 + (p * 1e4 / 10f64.powi(order as i32)).sqrt());
            let mut point = point(scale);
            point.parameters = [
                ("link.plc.forward.loss.bernoulli".to_owned(), loss.to_owned()),
                ("stack.tcp.congestion".to_owned(), algorithm.to_owned()),
            ]
            .into_iter()
            .collect();
            point.flows = vec![row(
                "camera",
                1,
                &[
                    (Metric::Goodput, rate),
                    (Metric::RetransmissionRatio, p * 1.1),
                    (Metric::RttMean, 0.1 + rate / 4e7),
                ],
            )];
            point.links.truncate(2);
            point.links[0].metrics.insert(Metric::LossRatio, estimate(p));
            points.push(point);
        }
    }
    points
}

/// Windows and queues over time.
pub(crate) fn series(rows: u32) -> Vec<Series> {
    let real = |f: &dyn Fn(f64, u32) -> f64| {
        ColumnData::Real((0..rows).map(|row| f(f64::from(row / 2) * 0.1, row % 2)).collect())
    };
    let keyed = |name: &str, key: &str, words: [&str; 2], columns: Vec<(&str, ColumnData)>| {
        let text = ColumnData::Text {
            words: words.map(str::to_owned).to_vec(),
            rows: (0..rows).map(|row| row % 2).collect(),
        };
        let mut all = vec![("time_s", real(&|t, _| t)), (key, text)];
        all.extend(columns);
        let columns = all.into_iter().map(|(name, data)| Column { name: name.into(), data });
        Series::from_columns(name, columns.collect())
    };
    let saw = |t: f64, k: u32| {
        64_000.0 / f64::from(k + 1)
            * (0.5 + 0.5 * (t % f64::from(7 + 5 * k)) / f64::from(7 + 5 * k))
    };
    vec![
        keyed(
            "windows",
            "flow",
            ["meters", "camera"],
            vec![("cwnd_byte", real(&saw)), ("rtt_s", real(&|t, k| 0.1 + saw(t, k) / 4e5))],
        ),
        keyed(
            "queues",
            "link",
            ["plc.forward", "gprs.forward"],
            vec![("queue_packets", real(&|t, k| (saw(t, k) / 1400.0).floor()))],
        ),
    ]
}

/// A row of these means, each with an interval.
pub(crate) fn row(name: &str, count: u64, metrics: &[(Metric, f64)]) -> Row {
    let metrics = metrics.iter().map(|(metric, mean)| (*metric, estimate(*mean)));
    Row { name: name.into(), count, metrics: metrics.collect(), ..Row::default() }
}

fn estimate(mean: f64) -> Estimate {
    Estimate { ci95: Some(mean * 0.043), ..Estimate::exact(mean, 5) }
}
