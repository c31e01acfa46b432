//! Warnings about differences between Linux and the simulator that affect a result.

mod support;

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
fn only_reordering_beyond_the_wait_of_rack_is_reported() {
    // The round-trip time is 40 ms.
    let reorder = |by| format!(", reorder = {{ probability = '10 %', delay = '{by}' }}");
    let far = warnings(&reorder("60 ms"), "");
    assert!(matches!(&far[..], [one] if one.contains("reordered")), "{far:?}");
    assert_eq!(warnings(&reorder("10 ms"), ""), [""; 0]);
    assert_eq!(
        warnings(&reorder("60 ms"), "profile = 'rfc'"),
        [""; 0],
        "the profile models no real host"
    );
}

#[test]
fn a_timer_that_expires_close_to_the_end_of_an_outage_is_reported() {
    // The timer doubles with each expiration, and its precision is an eighth of its duration: about a quarter of the
    // outages end close to one. Without an outage that ends, there is nothing to report.
    let outage = |length| format!(", outage = [{{ start = '3 s', length = '{length} s' }}]");
    let reported = |length: &f64| {
        let found = warnings(&outage(*length), "receive_window = '10 kB'");
        assert!(found.iter().all(|warning| warning.contains("end of an outage")), "{found:?}");
        !found.is_empty()
    };
    let lengths: Vec<f64> = (10..40).map(|tenths| f64::from(tenths) / 10.0).collect();
    let count = lengths.iter().filter(|length| reported(length)).count();
    assert!((3..=15).contains(&count), "{count} of {}", lengths.len());
    assert!(!reported(&10.0));
}

#[test]
fn losses_without_sack_are_reported() {
    let without = warnings("", "sack = false");
    assert!(matches!(&without[..], [one] if one.contains("selective")), "{without:?}");
    assert_eq!(warnings("", ""), [""; 0]);
    let unharmed = warnings("", "sack = false\nreceive_window = '20 kB'");
    assert_eq!(unharmed, [""; 0], "there are no retransmissions");
}
