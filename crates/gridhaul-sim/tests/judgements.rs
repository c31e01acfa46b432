//! What senders say of losses, against the cause that the link knows.

use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

/// A bulk flow over 1.2 Mbit/s (10 ms for a packet of 1500 B) and 20 ms each way, for 20 s. Its window
/// of 40 segments makes a round trip of 400 ms, far below the timeout of 1 s.
fn run(congestion_control: &str, forward: &str, reverse: &str) -> Answer {
    let text = format!(
        r#"
        title = "judgements"
        duration = "20 s"
        seed = 4
        [node]
        a = {{}}
        b = {{}}
        [link.wire]
        from = "a"
        to = "b"
        forward = {{ rate = "1.2 Mbit/s", delay = "20 ms", {forward} }}
        reverse = {{ rate = "1 Gbit/s", delay = "20 ms", {reverse} }}
        [stack.sender]
        profile = "rfc"
        congestion_control = "{congestion_control}"
        handshake = false
        sack = false
        mss = "1460 B"
        receive_window = "40 segments"
        [flow.data]
        from = "a"
        to = "b"
        stack = "sender"
        load = "bulk"
        "#
    );
    let scenario =
        Scenario::from_toml(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    Sim { threads: 1 }.run(&scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"))
}

fn value(answer: &Answer, metric: Metric) -> f64 {
    answer.points[0].flows[0].mean(metric).unwrap_or_else(|| panic!("no {metric}"))
}

/// Judgements: of losses by a full queue, by errors, and of nothing, called congestion and error.
fn judged(answer: &Answer) -> [[f64; 2]; 3] {
    use Metric::*;
    [
        [QueueLossClassifiedCongestion, QueueLossClassifiedError],
        [ErrorLossClassifiedCongestion, ErrorLossClassifiedError],
        [NoLossClassifiedCongestion, NoLossClassifiedError],
    ]
    .map(|pair| pair.map(|metric| value(answer, metric)))
}

#[test]
fn the_cause_of_a_loss_is_the_links() {
    for congestion_control in ["medx", "veno"] {
        let [queue, error, nothing] = judged(&run(
            congestion_control,
            "queue = \"unlimited\", loss.packets = [40, 80, 200]",
            "",
        ));
        // Three losses, far apart, each found by duplicates: three judgements of errors.
        assert_eq!(
            (queue, error[0] + error[1], nothing),
            ([0.0; 2], 3.0, [0.0; 2]),
            "{congestion_control}"
        );
        let [queue, error, nothing] =
            judged(&run(congestion_control, "queue = \"10 packets\"", ""));
        // Only the queue loses.
        assert!(queue[0] + queue[1] > 0.0, "{congestion_control}: {queue:?}");
        assert_eq!((error, nothing), ([0.0; 2], [0.0; 2]), "{congestion_control}");
    }
}

#[test]
fn what_is_found_missing_and_was_not_lost_is_neither() {
    // All acknowledgements are lost for longer than the timeout of 1 s.
    let outage = "outage = [{ start = \"5 s\", length = \"2 s\" }]";
    let [queue, error, nothing] = judged(&run("medx", "queue = \"unlimited\"", outage));
    assert_eq!((queue, error), ([0.0; 2], [0.0; 2]));
    // The first timeout is judged; later ones without any delay since are not.
    assert_eq!(nothing[0] + nothing[1], 1.0);
}

#[test]
fn effort_is_what_the_acknowledgements_make_of_it() {
    let overflowing = |congestion_control| run(congestion_control, "queue = \"20 packets\"", "");
    let medx = overflowing("medx");
    // Every acknowledgement reports a delay.
    assert_eq!(value(&medx, Metric::EstimatorUpdates), value(&medx, Metric::SegmentsReceived));
    // Reactive: at most once for a loss that begins a recovery and once for a timeout.
    let asked = value(&medx, Metric::FastRetransmits) + value(&medx, Metric::Timeouts);
    let evaluations = value(&medx, Metric::EstimatorEvaluations);
    assert!(0.0 < evaluations && evaluations <= asked, "{evaluations} of {asked}");
    // Every judgement is in the table of truth.
    assert_eq!(judged(&medx).as_flattened().iter().sum::<f64>(), evaluations);
    // Proactive: once in each round trip of 40 to 250 ms.
    let vegas = value(&overflowing("vegas"), Metric::EstimatorEvaluations);
    assert!((20.0 / 0.25..20.0 / 0.04).contains(&vegas), "{vegas}");
    let reno = overflowing("reno").points[0].flows[0].mean(Metric::EstimatorEvaluations);
    assert_eq!(reno, None, "Reno measures nothing");
}

#[test]
fn an_option_of_twelve_bytes_is_on_the_wire() {
    // A full segment of MEDX takes 1460 + 40 + 12 bytes, as with timestamps.
    for congestion_control in ["medx", "reno"] {
        let answer = run(congestion_control, "queue = \"100 packets\"", "");
        let bytes = value(&answer, Metric::OfferedLoad) * 20.0 / 8.0;
        let each = bytes / value(&answer, Metric::SegmentsSent);
        assert!((each - 1512.0).abs() < 1e-6, "{congestion_control}: {each}");
    }
}
