//! Classification of losses by senders, compared with the cause at the link.

use gridhaul_scenario::answer::{Answer, Metric};

use crate::support;

/// A bulk flow over 1.2 Mbit/s (10 ms for a packet of 1500 B) and a one-way delay of 20 ms, for 20
/// s. The window of 40 segments limits the round-trip time to 400 ms, far below the timeout of 1 s.
fn run(congestion_control: &str, forward: &str, reverse: &str) -> Answer {
    let stack = format!("congestion_control = \"{congestion_control}\"");
    run_stack(&stack, forward, reverse)
}

/// As [`run`], with these keys of the stack.
fn run_stack(stack: &str, forward: &str, reverse: &str) -> Answer {
    let text = format!(
        r#"
        title = "loss classification"
        duration = "20 s"
        seed = 4
        [node]
        a = {{}}
        b = {{}}
        [link.line]
        from = "a"
        to = "b"
        forward = {{ rate = "1.2 Mbit/s", delay = "20 ms", {forward} }}
        reverse = {{ rate = "1 Gbit/s", delay = "20 ms", {reverse} }}
        [stack.sender]
        profile = "rfc"
        {stack}
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
    support::run(&text)
}

fn value(answer: &Answer, metric: Metric) -> f64 {
    support::flow_metric(answer, metric).unwrap_or_else(|| panic!("no {metric}"))
}

/// Numbers of losses by a full queue, of losses by errors, and of missing segments that were not
/// lost, each classified as congestion and as error.
fn classified(answer: &Answer) -> [[f64; 2]; 3] {
    use Metric::*;
    [
        [QueueLossClassifiedCongestion, QueueLossClassifiedError],
        [ErrorLossClassifiedCongestion, ErrorLossClassifiedError],
        [NoLossClassifiedCongestion, NoLossClassifiedError],
    ]
    .map(|pair| pair.map(|metric| value(answer, metric)))
}

#[test]
fn the_cause_of_a_loss_is_recorded_at_the_link() {
    for congestion_control in ["medx", "veno"] {
        let [queue, error, nothing] = classified(&run(
            congestion_control,
            "queue = \"unlimited\", loss.packets = [40, 80, 200]",
            "",
        ));
        // Three losses at long intervals, each detected by duplicate acknowledgements: three
        // classifications.
        assert_eq!(
            (queue, error[0] + error[1], nothing),
            ([0.0; 2], 3.0, [0.0; 2]),
            "{congestion_control}"
        );
        let [queue, error, nothing] =
            classified(&run(congestion_control, "queue = \"10 packets\"", ""));
        // Only the queue drops packets.
        assert!(queue[0] + queue[1] > 0.0, "{congestion_control}: {queue:?}");
        assert_eq!((error, nothing), ([0.0; 2], [0.0; 2]), "{congestion_control}");
    }
}

#[test]
fn a_spurious_timeout_has_no_cause() {
    // All acknowledgements are lost for longer than the timeout of 1 s.
    let outage = "outage = [{ start = \"5 s\", length = \"2 s\" }]";
    let [queue, error, nothing] = classified(&run("medx", "queue = \"unlimited\"", outage));
    assert_eq!((queue, error), ([0.0; 2], [0.0; 2]));
    // The first timeout is classified; later ones without a new delay sample are not.
    assert_eq!(nothing[0] + nothing[1], 1.0);
}

#[test]
fn estimator_counters_follow_the_acknowledgements() {
    let overflowing = |congestion_control| run(congestion_control, "queue = \"20 packets\"", "");
    let medx = overflowing("medx");
    // Every acknowledgement is a delay sample.
    assert_eq!(value(&medx, Metric::EstimatorUpdates), value(&medx, Metric::SegmentsReceived));
    // Reactive: at most one evaluation for each fast retransmit and each timeout.
    let events = value(&medx, Metric::FastRetransmits) + value(&medx, Metric::Timeouts);
    let evaluations = value(&medx, Metric::EstimatorEvaluations);
    assert!(0.0 < evaluations && evaluations <= events, "{evaluations} of {events}");
    // The table of causes has every classification.
    assert_eq!(classified(&medx).as_flattened().iter().sum::<f64>(), evaluations);
    // Proactive: one evaluation in each round trip of 40 to 250 ms.
    let vegas = value(&overflowing("vegas"), Metric::EstimatorEvaluations);
    assert!((20.0 / 0.25..20.0 / 0.04).contains(&vegas), "{vegas}");
    let reno = overflowing("reno").points[0].flows[0].mean(Metric::EstimatorEvaluations);
    assert_eq!(reno, None, "Reno has no estimator");
}

#[test]
fn a_tcp_option_of_twelve_bytes_counts_as_load() {
    // A full segment of MEDX takes 1460 + 40 + 12 bytes, as with timestamps.
    for congestion_control in ["medx", "reno"] {
        let answer = run(congestion_control, "queue = \"100 packets\"", "");
        let bytes = value(&answer, Metric::OfferedLoad) * 20.0 / 8.0;
        let each = bytes / value(&answer, Metric::SegmentsSent);
        assert!((each - 1512.0).abs() < 1e-6, "{congestion_control}: {each}");
    }
}

/// MEDX with this classifier, on a link with errors and a queue that overflows.
fn classified_by(classifier: &str) -> Answer {
    let stack = format!("congestion_control = \"medx\"\nmedx_classifier = \"{classifier}\"");
    run_stack(&stack, "queue = \"10 packets\", loss.bernoulli = \"2 %\"", "")
}

#[test]
fn the_oracle_is_always_right() {
    let [queue, error, _] = classified(&classified_by("oracle"));
    assert!(queue[0] > 0.0 && error[1] > 0.0, "both causes occur: {queue:?}, {error:?}");
    assert_eq!((queue[1], error[0]), (0.0, 0.0));
}

#[test]
fn an_explicit_notification_reports_errors_only() {
    let [queue, error, _] = classified(&classified_by("explicit_notification"));
    assert!(queue[0] > 0.0 && queue[1] == 0.0, "no drop of a queue is reported: {queue:?}");
    // Only timeouts can precede the report.
    assert!(error[1] > 5.0 * error[0], "{error:?}");
}

#[test]
fn controls_without_information_have_one_answer() {
    let [queue, error, _] = classified(&classified_by("always_error"));
    assert!(queue[1] > 0.0 && error[1] > 0.0);
    assert_eq!((queue[0], error[0]), (0.0, 0.0));
    let [queue, error, _] = classified(&classified_by("always_congestion"));
    assert!(queue[0] > 0.0 && error[0] > 0.0);
    assert_eq!((queue[1], error[1]), (0.0, 0.0));
}

#[test]
fn congestion_marks_keep_the_queue_below_its_limit() {
    let run = |classifier: &str| {
        let stack = format!(
            "congestion_control = \"medx\"\nmedx_classifier = \"{classifier}\"\ninitial_ssthresh \
             = \"12 segments\""
        );
        run_stack(&stack, "queue = \"20 packets\"", "")
    };
    // The mark at 10 of 20 packets halves the window before the queue overflows.
    assert_eq!(value(&run("ecn"), Metric::Retransmissions), 0.0);
    assert!(value(&run("always_congestion"), Metric::Retransmissions) > 0.0);
}
