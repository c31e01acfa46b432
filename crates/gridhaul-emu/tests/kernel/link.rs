//! Links: rates, delays, losses, and IP versions.

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::Metric;

use crate::pair::pair;
use crate::{close, mean, row, run, run_with};

#[test]
fn a_bulk_flow_fills_its_link() {
    let link = "both = { rate = '2 Mbit/s', delay = '10 ms', queue = '100 packets' }";
    let flows = "[stack.s]\ncongestion_control = 'cubic'\nreceive_window = '60 kB'\n\
                 [flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 's'";
    let Some(answer) = run("duration = '5 s'\nwarmup = '2 s'", &pair(link, flows)) else { return };
    // Full segments: 1460 B in packets of 1460 + 40 + 12 B of timestamps.
    close(mean(&answer, "up", Metric::Goodput), 2e6 * 1460.0 / 1512.0, 0.01);
    close(mean(&answer, "wire.forward", Metric::LinkThroughput), 2e6, 0.01);
    close(mean(&answer, "wire.forward", Metric::Utilisation), 1.0, 0.01);
    assert_eq!(mean(&answer, "up", Metric::Retransmissions), 0.0, "the window fits into the queue");
    // The round-trip time of a full window is window / goodput (Little's law).
    close(mean(&answer, "up", Metric::RttMean), 60e3 * 8.0 / (2e6 * 1460.0 / 1512.0), 0.05);
}

#[test]
fn delay_is_transmission_plus_propagation_time() {
    // 222 + 28 B at 100 kbit/s take 20 ms, and the propagation 30 ms.
    let link = "both = { rate = '100 kbit/s', delay = '30 ms' }";
    let flows = "[flow.ping]\nfrom = 'near'\nto = 'far'\ntransport = 'datagram'\n\
                 load = { periodic = { size = '222 B', every = '50 ms' } }";
    let Some(answer) = run("duration = '3 s'", &pair(link, flows)) else { return };
    let median = mean(&answer, "ping", Metric::DelayMedian);
    assert!((0.050..0.0515).contains(&median), "{median} s, expected 50 ms");
    // Messages of the last 50 ms are still in transit.
    assert!(mean(&answer, "ping", Metric::Messages) >= 58.0);
    assert_eq!(mean(&answer, "ping", Metric::MessageLoss), 0.0);
}

#[test]
fn echoes_return_over_ipv4_and_listed_packets_are_lost() {
    let link = "forward = { rate = '1 Mbit/s', delay = '5 ms', loss = { packets = [3, 7] } }\n\
                reverse = { rate = '1 Mbit/s', delay = '15 ms' }";
    let flows = "[flow.ping]\nfrom = 'near'\nto = 'far'\ntransport = 'echo'\n\
                 load = { periodic = { size = '97 B', every = '100 ms', synchronised = true } }";
    let Some(answer) = run("duration = '2050 ms'", &pair(link, flows)) else { return };
    let median = mean(&answer, "ping", Metric::DelayMedian);
    // Twice 125 B at 1 Mbit/s are 2 ms, and 20 ms of propagation.
    assert!((0.022..0.0235).contains(&median), "{median} s, expected 22 ms");
    let arrived = mean(&answer, "ping", Metric::Messages);
    assert_eq!(arrived, 21.0 - 2.0, "at 0 s, 0.1 s, ... 2 s, except the third and the seventh");
    assert_eq!(mean(&answer, "wire.forward", Metric::DropsLoss), 2.0);
}

#[test]
fn ipv6_has_longer_headers() {
    let link = "both = { rate = '1 Mbit/s', delay = '5 ms', queue = '30 packets' }";
    let flows = "[stack.six]\ntimestamps = false\n\
                 [flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 'six'\nip = 6";
    let Some(answer) = run("duration = '3 s'\nwarmup = '1 s'", &pair(link, flows)) else { return };
    close(mean(&answer, "up", Metric::Goodput), 1e6 * 1460.0 / 1520.0, 0.015);
}

#[test]
fn datagrams_use_ipv6() {
    let link = "both = { rate = '1 Mbit/s', delay = '5 ms' }";
    let flows = "[flow.ping]\nfrom = 'near'\nto = 'far'\ntransport = 'echo'\nip = 6\n\
                 load.periodic = { size = '202 B', every = '100 ms', synchronised = true }";
    let Some(answer) = run("duration = '2 s'", &pair(link, flows)) else { return };
    // 202 B and 48 B of headers take 2 ms in each direction.
    let median = mean(&answer, "ping", Metric::DelayMedian);
    assert!((0.014..0.0155).contains(&median), "{median} s, expected 14 ms");
    let arrived = mean(&answer, "ping", Metric::Messages);
    assert!(arrived >= 19.0, "{arrived} of 21, the last of which may be in transit");
    let rate = mean(&answer, "wire.forward", Metric::LinkThroughput);
    close(rate, mean(&answer, "wire.forward", Metric::PacketsOut) * 250.0 * 8.0 / 2.0, 1e-9);
}

#[test]
fn meters_have_individual_access_links_and_share_the_trunk() {
    let text = "title = 'meters'\n\
                [node]\nmeter = { count = 60 }\nrouter = {}\nhead = {}\n\
                [link.drop]\nfrom = 'meter'\nto = 'router'\nboth = { rate = '100 kbit/s', delay = \
                '2 ms' }\n\
                [link.trunk]\nfrom = 'router'\nto = 'head'\nboth = { rate = '2 Mbit/s', delay = \
                '20 ms' }\n\
                [flow.reading]\nfrom = 'meter'\nto = 'head'\ndeadline = '1 s'\n\
                load = { periodic = { size = '240 B', every = '1 s' } }";
    let Some(answer) = run("duration = '4 s'\nwarmup = '1 s'", text) else { return };
    let reading = row(&answer, "reading");
    assert_eq!(reading.count, 60);
    let messages = mean(&answer, "reading", Metric::Messages);
    assert!((170.0..=180.0).contains(&messages), "60 a second for 3 s: {messages}");
    assert_eq!(mean(&answer, "reading", Metric::DeadlineMet), 1.0);
    // 240 + 52 B at 100 kbit/s and at 2 Mbit/s, and 22 ms of propagation.
    let expected = 292.0 * 8.0 / 1e5 + 292.0 * 8.0 / 2e6 + 0.022;
    let median = mean(&answer, "reading", Metric::DelayMedian);
    assert!((expected..expected + 0.002).contains(&median), "{median} s, expected {expected}");
    assert_eq!(row(&answer, "drop.forward").count, 60);
}

#[test]
fn concurrent_runs_give_the_same_results_in_order() {
    let link = "both = { rate = '1 Mbit/s', delay = '5 ms', queue = '100 packets' }";
    let flows = "[stack.s]\nreceive_window = '30 kB'\n\
        [flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 's'\n\
        [[sweep]]\nvary.'link.wire.both.rate' = ['1 Mbit/s', '500 kbit/s', '250 kbit/s']";
    let text = format!("duration = '3 s'\nwarmup = '1 s'\n{}", pair(link, flows));
    let Some(answer) = run_with(&text, Emu { concurrent_runs: 3, ..Emu::default() }) else {
        return;
    };
    for (point, rate) in answer.points.iter().zip([1e6, 500e3, 250e3]) {
        let found = point.links[0].mean(Metric::LinkThroughput).expect("packets have passed");
        close(found, rate, 0.02);
    }
    assert_eq!(answer.points.len(), 3);
}
