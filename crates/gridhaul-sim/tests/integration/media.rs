//! Rates that change, shared media and shapers, in whole runs with the audit.

use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_testing::LinkCase;

use crate::support;

/// The emulator runs the same cases.
#[test]
fn links_have_the_results_that_are_known_by_hand() {
    for case in LinkCase::all().into_iter().chain(LinkCase::shapers()) {
        let answer = support::run(&case.scenario);
        case.check(|row, column| {
            let metric = Metric::ALL.iter().find(|metric| metric.info().column == column)?;
            let point = &answer.points[0];
            let mut rows = point.flows.iter().chain(&point.links);
            rows.find(|found| found.name == row)?.mean(*metric)
        });
    }
}

/// A metric of the row of this direction.
fn link_metric(answer: &Answer, name: &str, metric: Metric) -> f64 {
    let row = answer.points[0].links.iter().find(|row| row.name == name).expect("a direction");
    row.mean(metric).unwrap_or_else(|| panic!("{name} has no {metric:?}"))
}

#[track_caller]
fn close(value: f64, expected: f64, relative: f64) {
    let off = (value / expected - 1.0).abs();
    assert!(off <= relative, "{value} is {:.2} % off {expected}", off * 100.0);
}

#[test]
fn a_bulk_flow_follows_the_rate_of_its_link() {
    // 4 Mbit/s for 10 s, then 1 Mbit/s for 10 s: 2.5 Mbit/s on average.
    let run = |window: &str| {
        let link = "rate = '4 Mbit/s', delay = '5 ms', queue = '30 packets', \
                    rate_change = [{ at = '10 s', rate = '1 Mbit/s' }]";
        let rest = "[stack.s]\nprofile = 'rfc'\ncongestion_control = 'reno'\n\
                    receive_window = '30 kB'\n\
                    [flow.up]\nfrom = 'a'\nto = 'b'\nload = 'bulk'\nstack = 's'";
        support::run(&support::two_nodes(window, link, rest))
    };
    let both = run("duration = '20 s'");
    close(link_metric(&both, "line.forward", Metric::LinkThroughput), 2.5e6, 0.01);
    close(link_metric(&both, "line.forward", Metric::Utilisation), 1.0, 0.01);
    let after = run("duration = '20 s'\nwarmup = '11 s'");
    close(link_metric(&after, "line.forward", Metric::LinkThroughput), 1e6, 0.01);
    close(link_metric(&after, "line.forward", Metric::Utilisation), 1.0, 0.01);
}

#[test]
fn a_single_modem_waits_for_the_slots_of_its_backoff_only() {
    // G3-PLC, 100 + 28 B at 35 kbit/s: 9.73 ms of priority resolution, 3.5 slots of 1.39 ms on
    // average, 15.115 ms of preamble and 29.257 ms of transmission.
    let text = "title = 'line'\nduration = '10 h'\n[node]\nmeter = {}\nhead = {}\n\
                [medium.line.csma_ca]\nstandard = 'g3-plc'\n\
                [link.line]\nfrom = 'meter'\nto = 'head'\nmedium = 'line'\n\
                both.rate = '35 kbit/s'\n\
                [flow.reading]\nfrom = 'meter'\nto = 'head'\ntransport = 'datagram'\n\
                load.periodic = { size = '100 B', every = '15 s' }";
    let answer = support::run(text);
    let mean = support::flow_metric(&answer, Metric::DelayMean).expect("messages arrive");
    let expected = 0.00973 + 3.5 * 0.00139 + 0.015_115 + 128.0 * 8.0 / 35e3;
    // 2,400 readings, each with a standard deviation of 2.29 slots.
    close(mean, expected, 0.005);
    let slowest = support::flow_metric(&answer, Metric::DelayMax).expect("messages arrive");
    close(slowest, expected + 3.5 * 0.00139, 1e-3);
    assert_eq!(link_metric(&answer, "line.forward", Metric::Collisions), 0.0);
}

#[test]
fn data_and_acknowledgements_share_a_half_duplex_line() {
    // Alone, the direction of the data has 2 Mbit/s. With time slots of equal length for both
    // directions it has half of it, whether or not the other direction is in use.
    let run = |medium: &str| {
        let text = format!(
            "title = 'line'\nduration = '20 s'\nwarmup = '2 s'\n[node]\na = {{}}\nb = {{}}\n\
             {medium}\n[link.line]\nfrom = 'a'\nto = 'b'\n\
             medium = 'line'\nboth = {{ rate = '2 Mbit/s', queue = '50 packets' }}\n\
             [stack.s]\nprofile = 'rfc'\nreceive_window = '40 kB'\ntimestamps = false\n\
             [flow.up]\nfrom = 'a'\nto = 'b'\nload = 'bulk'\nstack = 's'"
        );
        let answer = support::run(&text);
        let throughput =
            |side| link_metric(&answer, &format!("line.{side}"), Metric::LinkThroughput);
        [throughput("forward"), throughput("reverse")]
    };
    let [data, _] = run("[medium.line.tdma]\nslot = '10 ms'");
    close(data, 1e6, 0.01);
    let [data, _] = run("[medium.line.tdma]\nslot = '10 ms'\nguard = '2 ms'");
    close(data, 0.8e6, 0.01);
    // Without random numbers and times between packets, the medium is occupied all the time by data
    // of 1500 B and acknowledgements of 40 B.
    let [data, acks] = run("[medium.line.csma_ca]\nslot = '1 us'\ninterframe = '0 s'\n\
                            priority_resolution = '0 s'\npreamble = '0 s'\nresponse = '0 s'\n\
                            windows = [2, 4, 8, 16, 32, 64]\ndeferral = [0, 0, 0, 0, 0, 0]");
    assert!(data + acks < 2e6 && data + acks > 1.2e6, "{data} and {acks}");
}

#[test]
fn more_meters_collide_more_often_and_no_reading_is_lost_before_the_last_attempt() {
    let run = |meters: u32| {
        let text = format!(
            "title = 'line'\nduration = '5 min'\n\
             [node]\nmeter = {{ count = {meters} }}\nhead = {{}}\n\
             [medium.line.csma_ca]\nstandard = 'ieee-1901'\n\
             [link.line]\nfrom = 'meter'\nto = 'head'\nmedium = 'line'\n\
             forward.rate = '3 Mbit/s'\n\
             [flow.reading]\nfrom = 'meter'\nto = 'head'\ntransport = 'datagram'\n\
             load.poisson = {{ size = '500 B', every = '1 s' }}"
        );
        let answer = support::run(&text);
        assert_eq!(link_metric(&answer, "line.forward", Metric::DropsLoss), 0.0);
        link_metric(&answer, "line.forward", Metric::Collisions)
            / link_metric(&answer, "line.forward", Metric::PacketsOut)
    };
    let [few, many] = [20, 200].map(run);
    assert!(few > 0.0 && many > 3.0 * few, "{few} and {many}");
}
