//! Definitions of goodput and completion time for the loads that share them.

use gridhaul_scenario::answer::Metric;

use crate::support;

/// 30 members report 1 kB each at the same time, or send as much by a transfer: the same work has
/// the same goodput.
#[test]
fn a_burst_has_the_goodput_of_equal_transfers() {
    let goodput = |load: &str| {
        let text = format!(
            r#"
            title = "burst or transfer"
            duration = "60 s"
            [node]
            m = {{ count = 30 }}
            c = {{}}
            [link.l]
            from = "m"
            to = "c"
            shared = true
            both = {{ rate = "1 Mbit/s", delay = "20 ms", queue = "1000 packets" }}
            [stack.s]
            profile = "rfc"
            handshake = false
            delayed_ack = "0 s"
            [flow.f]
            from = "m"
            to = "c"
            stack = "s"
            start_spread = "0 s"
            {load}
            "#
        );
        support::flow_metric(&support::run(&text), Metric::Goodput).unwrap()
    };
    let transfer = goodput("load.transfer.size = \"1 kB\"");
    let burst = goodput("load.burst = { size = \"1 kB\", at = \"0 s\" }");
    // 30 kB in 30 · 1052 B and 20 ms: 0.88 Mbit/s.
    assert!((burst / transfer - 1.0).abs() < 0.01, "{burst} {transfer}");
    assert!((0.8e6..0.95e6).contains(&transfer), "{transfer}");
}

#[test]
fn the_goodput_of_a_dialogue_counts_requests_and_responses() {
    let load =
        "load.request_response = { request = \"100 B\", response = \"900 B\", pause = \"1 s\" }";
    let rest = format!("[flow.f]\nfrom = \"a\"\nto = \"b\"\n{load}\n");
    let text =
        support::two_nodes("duration = \"100 s\"", "rate = \"10 Mbit/s\", delay = \"1 ms\"", &rest);
    let goodput = support::flow_metric(&support::run(&text), Metric::Goodput).unwrap();
    // 1000 B each second and some milliseconds.
    assert!((7_800.0..8_100.0).contains(&goodput), "{goodput}");
}

#[test]
fn transfers_have_deadlines_and_percentiles() {
    let rest = "[flow.f]\nfrom = \"a\"\nto = \"b\"\ncount = 50\nstart_spread = \"50 s\"\ndeadline \
                = \"200 ms\"\n\
                load.transfer.size = \"20 kB\"\n";
    let link = "rate = \"2 Mbit/s\", delay = \"20 ms\", queue = \"100 packets\"";
    let answer = support::run(&support::two_nodes("duration = \"60 s\"", link, rest));
    let metric = |metric| support::flow_metric(&answer, metric).unwrap();
    let (mean, p98) = (metric(Metric::CompletionTime), metric(Metric::CompletionTimeP98));
    assert!(mean < p98 && p98 <= metric(Metric::CompletionTimeMax), "{mean} {p98}");
    let met = metric(Metric::DeadlineMet);
    // Handshake and two rounds: 160 ms without other transfers.
    assert!((0.3..1.0).contains(&met), "{met}");
    assert_eq!(answer.points[0].deadline_checks.len(), 1);
}

/// In the same network, a kernel (Linux 6.18) has a goodput of 1.91 Mbit/s.
#[test]
fn packets_held_back_by_more_than_a_round_trip_do_not_slow_linux_down() {
    let link = "rate = '2 Mbit/s', delay = '25 ms', queue = '100 packets', \
                reorder = { probability = '10 %', delay = '60 ms' }";
    let rest = "[stack.s]\ncongestion_control = 'reno'\n\
                [flow.f]\nfrom = 'a'\nto = 'b'\nload = 'bulk'\nstack = 's'\n";
    let text = support::two_nodes("duration = '30 s'", link, rest);
    let goodput = support::flow_metric(&support::run(&text), Metric::Goodput).unwrap();
    assert!(goodput > 1.8e6, "{goodput}");
}

/// An event of 200 meters each 30 s at a link of 100 kbit/s; the warm-up ends half a second after
/// the first event, whose messages need 2 s.
fn cut_burst(flow: &str, link: &str) -> String {
    format!(
        "title = 'a burst that the warm-up cuts'\nduration = '60 s'\nwarmup = '10500 ms'\n\
         [node]\nm = {{ count = 200 }}\nh = {{}}\n\
         [link.c]\nfrom = 'm'\nto = 'h'\nshared = true\n\
         both = {{ rate = '100 kbit/s', delay = '20 ms', queue = 'unlimited'{link} }}\n\
         [flow.g]\nfrom = 'm'\nto = 'h'\n{flow}\n\
         load.burst = {{ size = '97 B', at = '10 s', every = '30 s' }}\n"
    )
}

#[test]
fn a_burst_that_the_warm_up_cuts_has_at_most_the_goodput_of_the_link() {
    let of_transport = |flow: &str| {
        let answer = support::run(&cut_burst(flow, ""));
        let metric = |metric| support::flow_metric(&answer, metric).unwrap();
        (metric(Metric::Goodput), metric(Metric::LastCompletion))
    };
    // A datagram takes 10 ms: 152 from 10.5 s to 12.02 s, and 200 from 40 s to 42.02 s.
    let (goodput, last) = of_transport("transport = 'datagram'");
    assert!((goodput / (352.0 * 97.0 * 8.0 / 3.54) - 1.0).abs() < 0.01, "{goodput}");
    // The time of the last completion is that of the second event.
    assert!((last - 2.02).abs() < 1e-6, "{last}");
    let (goodput, _) = of_transport("");
    assert!((20e3..77.6e3).contains(&goodput), "{goodput}");
}

#[test]
fn lost_datagrams_are_those_of_messages_after_the_warm_up() {
    for link in [", loss.bernoulli = '60 %'", ", loss.bernoulli = '60 %', duplicate = '50 %'"] {
        let answer = support::run(&cut_burst("transport = 'datagram'", link));
        let metric = |metric| support::flow_metric(&answer, metric).unwrap();
        let arrived = metric(Metric::Messages) / metric(Metric::MessagesDue);
        assert!((0.3..0.6).contains(&arrived), "{arrived}");
        assert!((metric(Metric::MessageLoss) - (1.0 - arrived)).abs() < 1e-9, "{link}");
    }
}
