//! Corrupted and duplicated packets.

use gridhaul_scenario::answer::Metric;

use crate::pair::pair;
use crate::{mean, run};

#[test]
fn corrupted_packets_are_dropped_by_the_receiving_kernel() {
    let link = "both = { rate = '2 Mbit/s', delay = '5 ms', corrupt = '2 %', duplicate = '2 %' }";
    let flows = "[flow.file]\nfrom = 'near'\nto = 'far'\nload = { transfer = { size = '300 kB' } }";
    let Some(answer) = run("duration = '6 s'", &pair(link, flows)) else { return };
    let corrupted = mean(&answer, "wire.forward", Metric::Corrupted);
    assert!(corrupted > 0.0, "some packets are corrupted with this seed");
    assert!(mean(&answer, "wire.forward", Metric::Duplicated) > 0.0);
    assert!(mean(&answer, "file", Metric::Retransmissions) >= corrupted / 2.0);
    assert!(mean(&answer, "file", Metric::CompletionTime) > 1.2, "the file is complete");
}

#[test]
fn corrupted_datagrams_are_lost_and_duplicates_are_not_counted_as_messages() {
    let link = "both = { rate = '2 Mbit/s', delay = '5 ms', corrupt = '20 %', duplicate = '50 %' }";
    let flows = "[flow.values]\nfrom = 'near'\nto = 'far'\ntransport = 'datagram'\n\
                 load = { periodic = { size = '100 B', every = '20 ms', synchronised = true } }";
    let Some(answer) = run("duration = '1990 ms'", &pair(link, flows)) else { return };
    let corrupted = mean(&answer, "wire.forward", Metric::Corrupted);
    assert!(corrupted > 5.0 && mean(&answer, "wire.forward", Metric::Duplicated) > 20.0);
    assert_eq!(mean(&answer, "values", Metric::Messages), 100.0 - corrupted);
    assert_eq!(mean(&answer, "values", Metric::MessageLoss), corrupted / 100.0);
}

#[test]
fn undetected_corruption_is_accepted() {
    let link = "both = { rate = '2 Mbit/s', delay = '5 ms', corrupt_undetected = '5 %' }";
    let flows = "[flow.file]\nfrom = 'near'\nto = 'far'\nload = { transfer = { size = '300 kB' } \
                 }\n\
                 [flow.state]\nfrom = 'near'\nto = 'far'\ntransport = 'datagram'\n\
                 load = { periodic = { size = '101 B', every = '10 ms' } }";
    let Some(answer) = run("duration = '3 s'", &pair(link, flows)) else { return };
    assert!(
        mean(&answer, "wire.forward", Metric::Corrupted) > 5.0,
        "some packets are corrupted with this seed"
    );
    assert_eq!(mean(&answer, "file", Metric::Retransmissions), 0.0);
    assert!(mean(&answer, "file", Metric::CompletionTime) < 2.0);
    assert!(mean(&answer, "state", Metric::Messages) >= 299.0, "nothing is lost");
}
