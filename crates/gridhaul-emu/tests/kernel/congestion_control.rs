//! Congestion control algorithms of gridhaul-cc.

use gridhaul_scenario::answer::{ColumnData, Metric};

use crate::pair::pair;
use crate::{close, mean, run};

#[test]
fn vegas_keeps_a_few_segments_in_the_queue() {
    // Slow start ends with some segments in the queue; then Vegas changes its window by one segment
    // per round-trip time, until between alpha = 2 and beta = 4 segments are queued.
    let link = "both = { rate = '4 Mbit/s', delay = '20 ms', queue = '100 packets' }";
    let flows = "[stack.v]\ncongestion_control = 'vegas'\nvegas_alpha = 2\nvegas_beta = 4\n\
                 [flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 'v'";
    let times = "duration = '8 s'\nwarmup = '4 s'\nrecord = { interval = '20 ms' }";
    let Some(answer) = run(times, &pair(link, flows)) else { return };
    close(mean(&answer, "up", Metric::Goodput), 4e6 * 1460.0 / 1512.0, 0.02);
    let queue = mean(&answer, "wire.forward", Metric::QueueMean);
    // The packet in transmission does not count as queued.
    assert!((1.0..=4.0).contains(&queue), "{queue} packets are queued");
    let series = answer.series.iter().find(|series| series.name == "queues").unwrap();
    let Ok(ColumnData::Whole(packets)) = series.values(2, 0..series.row_count()) else {
        panic!("whole packets")
    };
    let late = &packets[packets.len() / 2..];
    assert!(late.iter().all(|packets| *packets <= 6), "at all times: {late:?}");
}

#[test]
fn classifications_by_medx_are_compared_with_the_loss_cause() {
    // Queue overflows and errors: the kernel reports the missing byte, the link emulator the cause.
    let link = "forward = { rate = '4 Mbit/s', delay = '10 ms', queue = '20 packets', loss = { \
                bernoulli = '4 %' } }\n\
                reverse = { rate = '4 Mbit/s', delay = '10 ms' }";
    let flows = "[stack.s]\ncongestion_control = 'medx'\n\
                 [flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 's'";
    let times = "duration = '8 s'\nwarmup = '1 s'";
    let Some(answer) = run(times, &pair(link, flows)) else { return };
    let count = |metric| mean(&answer, "up", metric);
    let of_queue =
        count(Metric::QueueLossClassifiedCongestion) + count(Metric::QueueLossClassifiedError);
    let of_errors =
        count(Metric::ErrorLossClassifiedCongestion) + count(Metric::ErrorLossClassifiedError);
    let of_nothing =
        count(Metric::NoLossClassifiedCongestion) + count(Metric::NoLossClassifiedError);
    let all = format!("{of_queue} by the queue, {of_errors} by errors, {of_nothing} by nothing");
    assert!(of_queue >= 2.0 && of_errors >= 5.0, "{all}");
    // A delayed segment is also reported as missing.
    assert!(of_nothing <= 0.2 * (of_queue + of_errors), "{all}");
}

#[test]
fn medx_does_not_reduce_its_window_at_errors() {
    let link = "forward = { rate = '4 Mbit/s', delay = '20 ms', queue = 'unlimited', loss = { \
                bernoulli = '2 %' } }\n\
                reverse = { rate = '4 Mbit/s', delay = '20 ms' }";
    let flows = |congestion_control: &str| {
        format!(
            "[stack.s]\ncongestion_control = '{congestion_control}'\nreceive_window = '60 kB'\n\
             [flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 's'"
        )
    };
    let times = "duration = '8 s'\nwarmup = '1 s'";
    let Some(medx) = run(times, &pair(link, &flows("medx"))) else { return };
    let Some(reno) = run(times, &pair(link, &flows("reno"))) else { return };
    let (errors, congestion) = (
        mean(&medx, "up", Metric::ErrorLossClassifiedError),
        mean(&medx, "up", Metric::ErrorLossClassifiedCongestion),
    );
    assert!(mean(&medx, "wire.forward", Metric::DropsLoss) > 20.0, "the emulator's own count");
    assert!(errors > 10.0 && congestion <= errors / 10.0, "{errors} against {congestion}");
    let (medx, reno) = (mean(&medx, "up", Metric::CwndMean), mean(&reno, "up", Metric::CwndMean));
    assert!(medx > 1.5 * reno, "the windows of medx, {medx} B, and of reno, {reno} B");
}

#[test]
fn each_connection_has_the_medx_of_its_stack() {
    // Two flows of one run, with a control that never reduces the window and one that always does.
    let link = "forward = { rate = '4 Mbit/s', delay = '20 ms', queue = 'unlimited', loss = { \
                bernoulli = '2 %' } }\n\
                reverse = { rate = '4 Mbit/s', delay = '20 ms' }";
    let flow = |name: &str, classifier: &str| {
        format!(
            "[stack.{name}]\ncongestion_control = 'medx'\nmedx_classifier = '{classifier}'\n\
             receive_window = '30 kB'\n\
             [flow.{name}]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = '{name}'\n"
        )
    };
    let flows = flow("keeps", "always_error") + &flow("halves", "always_congestion");
    let Some(answer) = run("duration = '8 s'\nwarmup = '1 s'", &pair(link, &flows)) else { return };
    let classified = |flow| {
        [Metric::ErrorLossClassifiedError, Metric::ErrorLossClassifiedCongestion]
            .map(|metric| mean(&answer, flow, metric))
    };
    let [error, congestion] = classified("keeps");
    assert!(error > 5.0 && congestion == 0.0, "{error} and {congestion}");
    let [error, congestion] = classified("halves");
    assert!(congestion > 5.0 && error == 0.0, "{error} and {congestion}");
}
