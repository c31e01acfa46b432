//! Warnings about differences between Linux and the simulator that affect a result.

use crate::support;

/// The warnings about a flow over a link and a stack with these keys.
fn warnings(link: &str, stack: &str) -> Vec<String> {
    let link = format!("rate = '2 Mbit/s', delay = '20 ms', queue = '40 packets'{link}");
    let rest = format!(
        "[stack.s]\ncongestion_control = 'reno'\n{stack}\n\
         [flow.up]\nfrom = 'a'\nto = 'b'\nload = 'bulk'\nstack = 's'\n"
    );
    let answer = support::run(&support::two_nodes("duration = '10 s'", &link, &rest));
    assert!(answer.warnings.iter().all(|warning| warning.about == "flow.up"));
    answer.warnings.into_iter().map(|warning| warning.message).collect()
}

#[test]
fn a_timer_that_expires_close_to_the_end_of_an_outage_is_reported() {
    // The timer doubles with each expiration, and its precision is an eighth of its duration: some
    // of the outages end close to one. Without an outage that ends, there is nothing to report.
    let outage = |length| format!(", outage = [{{ start = '3 s', length = '{length} s' }}]");
    let reported = |length: &f64| {
        let found = warnings(&outage(*length), "receive_window = '10 kB'");
        assert!(found.iter().all(|warning| warning.contains("end of an outage")), "{found:?}");
        !found.is_empty()
    };
    let lengths: Vec<f64> = (10..40).map(|tenths| f64::from(tenths) / 10.0).collect();
    let count = lengths.iter().filter(|length| reported(length)).count();
    assert!((1..=15).contains(&count), "{count} of {}", lengths.len());
    assert!(!reported(&10.0));
}

#[test]
fn a_receive_window_that_limits_a_flow_is_reported() {
    // 20 kB in 40 ms are 4 Mbit/s.
    let link = |rate| format!("rate = '{rate}', delay = '20 ms', queue = '100 packets'");
    let warnings_with = |rate, load| {
        let rest = format!(
            "[stack.s]\nreceive_window = '20 kB'\n[flow.up]\nfrom = 'a'\nto = \
             'b'\nload{load}\nstack = 's'\n"
        );
        let answer = support::run(&support::two_nodes("duration = '10 s'", &link(rate), &rest));
        answer.warnings.into_iter().map(|warning| warning.message).collect::<Vec<_>>()
    };
    let limited = warnings_with("20 Mbit/s", " = 'bulk'");
    assert!(matches!(&limited[..], [one] if one.contains("receive window limits")), "{limited:?}");
    assert!(warnings_with("20 Mbit/s", ".transfer.size = '3 MB'")[0].contains(
        "receive window \
        limits"
    ));
    // The link limits the flow, or the application does.
    assert_eq!(warnings_with("2 Mbit/s", " = 'bulk'"), [""; 0]);
    assert_eq!(warnings_with("20 Mbit/s", ".periodic = { size = '1 kB', every = '1 s' }"), [""; 0]);
}

#[test]
fn bursts_of_packets_on_a_link_with_few_packets_are_reported() {
    let warnings_with = |loss: &str, every: &str| {
        let link =
            format!("rate = '1 Mbit/s', delay = '20 ms', loss.gilbert_elliott = {{ {loss} }}");
        let rest = format!(
            "[flow.up]\nfrom = 'a'\nto = 'b'\ntransport = 'datagram'\n\
             load.periodic = {{ size = '1 kB', every = '{every}' }}\n"
        );
        let answer = support::run(&support::two_nodes("duration = '100 s'", &link, &rest));
        answer.warnings.into_iter().map(|warning| warning.message).collect::<Vec<_>>()
    };
    let per_packet = "good_to_bad = '1 %', bad_to_good = '10 %'";
    // Packets of 8 ms each second use 0.8 % of the link; every 10 ms 82 %.
    let sparse = warnings_with(per_packet, "1 s");
    assert!(matches!(&sparse[..], [one] if one.contains("further apart")), "{sparse:?}");
    assert_eq!(warnings_with(per_packet, "10 ms"), [""; 0]);
    assert_eq!(warnings_with("mean_good = '10 s', mean_bad = '200 ms'", "1 s"), [""; 0]);
}
