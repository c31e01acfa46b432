//! Congestion control algorithms of gridhaul-cc.

use gridhaul_scenario::answer::{ColumnData, Metric};

use crate::pair::pair;
use crate::{ask, close, mean};

#[test]
fn our_vegas_keeps_a_few_segments_in_the_queue() {
    // Slow start would end with a queue of some segments; then one segment is added or taken away
    // in a round trip, until between alpha = 2 and beta = 4 of them wait.
    let link = "both = { rate = '4 Mbit/s', delay = '20 ms', queue = '100 packets' }";
    let flows = "[stack.v]\ncongestion_control = 'vegas'\nvegas_alpha = 2\nvegas_beta = 4\n\
                 [flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 'v'";
    let times = "duration = '8 s'\nwarmup = '4 s'\nrecord = { interval = '20 ms' }";
    let Some(answer) = ask(times, &pair(link, flows)) else { return };
    close(mean(&answer, "up", Metric::Goodput), 4e6 * 1460.0 / 1512.0, 0.02);
    let queue = mean(&answer, "wire.forward", Metric::QueueMean);
    // The packet on the wire is none that waits.
    assert!((1.0..=4.0).contains(&queue), "{queue} packets wait");
    let series = answer.series.iter().find(|series| series.name == "queues").unwrap();
    let ColumnData::Whole(packets) = &series.columns[2].data else { panic!("whole packets") };
    let late = &packets[packets.len() / 2..];
    assert!(late.iter().all(|packets| *packets <= 6), "at every moment: {late:?}");
}

#[test]
fn what_our_medx_says_of_a_loss_stands_beside_its_cause() {
    // A queue that overflows, and errors: the kernel says which byte was missing, the wire why.
    let link = "forward = { rate = '4 Mbit/s', delay = '10 ms', queue = '20 packets', loss = { bernoulli = '4 %' } }\n\
                reverse = { rate = '4 Mbit/s', delay = '10 ms' }";
    let flows = "[stack.s]\ncongestion_control = 'medx'\n\
                 [flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 's'";
    let times = "duration = '8 s'\nwarmup = '1 s'";
    let Some(answer) = ask(times, &pair(link, flows)) else { return };
    let count = |metric| mean(&answer, "up", metric);
    let of_queue =
        count(Metric::QueueLossClassifiedCongestion) + count(Metric::QueueLossClassifiedError);
    let of_errors =
        count(Metric::ErrorLossClassifiedCongestion) + count(Metric::ErrorLossClassifiedError);
    let of_nothing =
        count(Metric::NoLossClassifiedCongestion) + count(Metric::NoLossClassifiedError);
    let all = format!("{of_queue} by the queue, {of_errors} by errors, {of_nothing} by nothing");
    assert!(of_queue >= 2.0 && of_errors >= 5.0, "{all}");
    // A segment that is late is missing as well.
    assert!(of_nothing <= 0.2 * (of_queue + of_errors), "{all}");
}

#[test]
fn our_medx_keeps_its_window_at_errors() {
    let link = "forward = { rate = '4 Mbit/s', delay = '20 ms', queue = 'unlimited', loss = { bernoulli = '2 %' } }\n\
                reverse = { rate = '4 Mbit/s', delay = '20 ms' }";
    let flows = |congestion_control: &str| {
        format!(
            "[stack.s]\ncongestion_control = '{congestion_control}'\nreceive_window = '60 kB'\n\
             [flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 's'"
        )
    };
    let times = "duration = '8 s'\nwarmup = '1 s'";
    let Some(medx) = ask(times, &pair(link, &flows("medx"))) else { return };
    let Some(reno) = ask(times, &pair(link, &flows("reno"))) else { return };
    let (errors, congestion) = (
        mean(&medx, "up", Metric::ErrorLossClassifiedError),
        mean(&medx, "up", Metric::ErrorLossClassifiedCongestion),
    );
    assert!(mean(&medx, "wire.forward", Metric::DropsLoss) > 20.0, "the emulator's own count");
    assert!(errors > 10.0 && congestion <= errors / 10.0, "{errors} against {congestion}");
    let (medx, reno) = (mean(&medx, "up", Metric::CwndMean), mean(&reno, "up", Metric::CwndMean));
    assert!(medx > 1.5 * reno, "the windows of medx, {medx} B, and of reno, {reno} B");
}
