//! Corrupted packets and copies of packets.

use gridhaul_scenario::answer::Metric;

use crate::pair::pair;
use crate::{ask, mean};

#[test]
fn damaged_packets_reach_the_kernel_and_are_thrown_away_there() {
    let link = "both = { rate = '2 Mbit/s', delay = '5 ms', corrupt = '2 %', duplicate = '2 %' }";
    let flows = "[flow.file]\nfrom = 'near'\nto = 'far'\nload = { transfer = { size = '300 kB' } }";
    let Some(answer) = ask("duration = '6 s'", &pair(link, flows)) else { return };
    let damaged = mean(&answer, "wire.forward", Metric::Corrupted);
    assert!(damaged > 0.0, "with this seed some are");
    assert!(mean(&answer, "wire.forward", Metric::Duplicated) > 0.0);
    assert!(mean(&answer, "file", Metric::Retransmissions) >= damaged / 2.0);
    assert!(mean(&answer, "file", Metric::CompletionTime) > 1.2, "the file is whole all the same");
}

#[test]
fn damaged_datagrams_are_lost_messages_and_copies_are_no_more_of_them() {
    let link = "both = { rate = '2 Mbit/s', delay = '5 ms', corrupt = '20 %', duplicate = '50 %' }";
    let flows = "[flow.values]\nfrom = 'near'\nto = 'far'\ntransport = 'datagram'\n\
                 load = { periodic = { size = '100 B', every = '20 ms', synchronised = true } }";
    let Some(answer) = ask("duration = '1990 ms'", &pair(link, flows)) else { return };
    let damaged = mean(&answer, "wire.forward", Metric::Corrupted);
    assert!(damaged > 5.0 && mean(&answer, "wire.forward", Metric::Duplicated) > 20.0);
    assert_eq!(mean(&answer, "values", Metric::Messages), 100.0 - damaged);
    assert_eq!(mean(&answer, "values", Metric::MessageLoss), damaged / 100.0);
}

#[test]
fn damaged_data_with_a_right_checksum_are_taken() {
    let link = "both = { rate = '2 Mbit/s', delay = '5 ms', corrupt_undetected = '5 %' }";
    let flows = "[flow.file]\nfrom = 'near'\nto = 'far'\nload = { transfer = { size = '300 kB' } }\n\
        [flow.state]\nfrom = 'near'\nto = 'far'\ntransport = 'datagram'\n\
        load = { periodic = { size = '101 B', every = '10 ms' } }";
    let Some(answer) = ask("duration = '3 s'", &pair(link, flows)) else { return };
    assert!(mean(&answer, "wire.forward", Metric::Corrupted) > 5.0, "with this seed some are");
    assert_eq!(mean(&answer, "file", Metric::Retransmissions), 0.0);
    assert!(mean(&answer, "file", Metric::CompletionTime) < 2.0);
    assert!(mean(&answer, "state", Metric::Messages) >= 299.0, "nothing is lost");
}
