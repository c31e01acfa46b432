//! Messages that the application of the receiver acknowledges.

use gridhaul_scenario::answer::{Answer, Metric};

use crate::pair::pair;
use crate::{mean, run};

/// An excerpt of scenarios/acknowledged-readings.toml: a message every 2 s, and an outage
/// from 3 s to 7 s.
fn excerpt(keys: &str) -> Option<Answer> {
    let link = "both = { rate = '200 kbit/s', delay = '20 ms', \
        outage = [{ start = '3 s', length = '4 s' }] }";
    let flow = format!(
        "[flow.up]\nfrom = 'near'\nto = 'far'\n\
         load.periodic = {{ size = '200 B', every = '2 s', synchronised = true }}\n\
         acknowledgement = {{ size = '20 B', timeout = '500 ms', {keys}"
    );
    run("duration = '14 s'", &pair(link, &flow))
}

#[test]
fn messages_that_the_sender_gives_up_arrive_on_the_same_connection() {
    let Some(answer) = excerpt("retransmissions = 1 }") else { return };
    let count = |metric| mean(&answer, "up", metric);
    // TCP delivers every message; its retransmission after the outage comes before 12 s.
    assert_eq!((count(Metric::MessagesDue), count(Metric::Messages)), (7.0, 7.0));
    assert_eq!((count(Metric::MessageLoss), count(Metric::ConnectionsLost)), (0.0, 0.0));
    // The message of 4 s is given up at 5 s, and both of its copies arrive.
    assert!(count(Metric::GivenUp) >= 1.0);
    assert!(count(Metric::DuplicateMessages) >= 1.0);
    assert_eq!(count(Metric::Acknowledged) + count(Metric::GivenUp), 7.0);
    // Nothing arrives before the end of the outage.
    assert!(count(Metric::DelayMax) >= 3.0);
}

#[test]
fn messages_are_acknowledged_on_a_new_connection() {
    let keys = "retransmissions = 9, retransmit_on = 'new_connection' }\n\
        reconnect = { timeout = '500 ms', pause = '500 ms', factor = 1 }";
    let Some(answer) = excerpt(keys) else { return };
    let count = |metric| mean(&answer, "up", metric);
    assert_eq!((count(Metric::Messages), count(Metric::Acknowledged)), (7.0, 7.0));
    assert_eq!((count(Metric::GivenUp), count(Metric::MessageLoss)), (0.0, 0.0));
    // The connection is aborted, and attempts during the outage fail.
    assert!(count(Metric::ConnectionsLost) >= 1.0);
    assert!(count(Metric::ConnectionsFailed) >= 1.0);
    assert!(count(Metric::MessageRetransmissions) >= 1.0);
    assert!(count(Metric::DelayMax) >= 3.0);
}
