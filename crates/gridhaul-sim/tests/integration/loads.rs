//! Loads in the simulator, compared with schedules computed by hand.

use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::RunError;

use crate::support::{self, flow_metric, two_nodes};

fn run(text: &str) -> Result<Answer, RunError> {
    support::try_run(text, 1)
}

fn metric(answer: &Answer, metric: Metric) -> f64 {
    flow_metric(answer, metric).unwrap_or_else(|| panic!("no {metric}"))
}

/// `meters` flows over a link with a one-way delay of 15 ms, measured for 40 s after a warm-up of 4
/// s.
fn pair(meters: u32, stack: &str, load: &str) -> String {
    let rest = format!(
        r#"[stack.meter]
        profile = "ns2"
        congestion_control = "reno"
        mss = "200 B"
        restart_after_idle = false
        {stack}
        [flow.reading]
        from = "a"
        to = "b"
        count = {meters}
        stack = "meter"
        load.{load}"#
    );
    let link = r#"rate = "1 Gbit/s", delay = "15 ms", queue = "10000 packets""#;
    two_nodes("duration = \"44 s\"\nwarmup = \"4 s\"", link, &rest)
}

#[test]
fn the_mean_window_is_reduced_when_an_idle_connection_restarts() {
    let rest = "[stack.s]\nprofile = 'ns2'\ncongestion_control = 'reno'\nmss = '200 B'\n\
                handshake = false\ndelayed_ack = '0 s'\ninitial_window = '1 segments'\n\
                [flow.r]\nfrom = 'a'\nto = 'b'\nstack = 's'\n\
                load.periodic = { size = '200 B', every = '10 s', synchronised = true }";
    let link = "rate = '1 Gbit/s', delay = '1200 ms'";
    let answer = run(&two_nodes("duration = '100 s'", link, rest)).unwrap();
    // 200 B for the round trip of 2.4 s after each message, 400 B for the other 7.6 s.
    let mean = metric(&answer, Metric::CwndMean);
    assert!((mean - 352.0).abs() < 0.01, "{mean}");
}

const GREEDY: &str =
    r#"on_off = { on = "100 ms", off = "900 ms", size = "200 B", spread = "fixed" }"#;

#[test]
fn a_greedy_burst_fills_the_window_at_every_round_trip() {
    // A burst of 100 ms with a round-trip time of 30 ms: a full window is written at 0, 30, 60 and
    // 90 ms, because slow start is over after 4 s. 40 bursts in the measured 40 s.
    for window in [1, 2, 5] {
        let stack =
            format!("receive_window = \"{window} segments\"\ninitial_window = \"5 segments\"");
        let answer = run(&pair(1, &stack, GREEDY)).unwrap();
        assert_eq!(metric(&answer, Metric::Messages), f64::from(40 * 4 * window), "{window}");
        assert_eq!(metric(&answer, Metric::Retransmissions), 0.0);
        // A message is ready when it can be sent, so it never waits for the window.
        let delay = metric(&answer, Metric::DelayMax);
        assert!((0.015..0.0151).contains(&delay), "{delay}");
    }
}

#[test]
fn messages_longer_than_a_segment_and_small_ones_with_nagle() {
    // 600 B are three segments. The window of two sends two segments at 0, the third and the first
    // of the next message at 30 ms, its other two at 60 ms, and two of the last message at 90 ms,
    // whose third follows after the burst. So a burst has three messages, each of which is sent
    // completely.
    let long = GREEDY.replace("200 B", "600 B");
    let stack = "receive_window = \"2 segments\"\ninitial_window = \"5 segments\"";
    let answer = run(&pair(1, stack, &long)).unwrap();
    assert_eq!(metric(&answer, Metric::SegmentsSent), 40.0 * 9.0);
    assert_eq!(metric(&answer, Metric::Messages), 40.0 * 3.0);
    // With Nagle's algorithm the first small message is sent alone, and later ones fill segments:
    // at 0 one segment of 100 B and one of 200 B are sent, and two messages wait for the window.
    // Each of the three later round trips of a burst takes four more.
    let small = GREEDY.replace("200 B", "100 B");
    let answer = run(&pair(1, &format!("{stack}\nnagle = true"), &small)).unwrap();
    assert_eq!(metric(&answer, Metric::Messages), f64::from(40 * (5 + 3 * 4)));
}

#[test]
fn members_are_independent_and_start_in_steady_state() {
    // 2,000 meters, exponential: each writes two messages when a burst begins and two at every
    // further round trip in it: 2 (1 + q + q^2 + ...) with q = exp(-30 / 100), 7.717 per burst.
    // Bursts begin every 1,000 ms on average: 2,000 * 40 * 7.717 = 617,300 in the measured time.
    let load = r#"on_off = { on = "100 ms", off = "900 ms", size = "200 B" }"#;
    let stack = "receive_window = \"2 segments\"\ninitial_window = \"2 segments\"";
    let answer = run(&pair(2_000, stack, load)).unwrap();
    let messages = metric(&answer, Metric::Messages);
    // After a pause shorter than a round trip the window is still full: about 3 % of the bursts
    // write their first messages up to a round trip late.
    assert!((0.97..1.005).contains(&(messages / 617_300.0)), "{messages}");
}

/// A link of 1 Mbit/s and 10 ms with a queue of `queue` packets, and a flow over it.
fn line(queue: u32, keys: &str) -> String {
    let link = format!(r#"rate = "1 Mbit/s", delay = "10 ms", queue = "{queue} packets""#);
    let flow = format!("[flow.reading]\nfrom = \"a\"\nto = \"b\"\n{keys}");
    two_nodes("duration = \"110 s\"\nwarmup = \"10 s\"", &link, &flow)
}

#[test]
fn offered_load_loss_and_delay_of_data_packets() {
    // A packet of 250 B every 100 ms: 20 kbit/s, 2 ms transmission and 10 ms propagation.
    let keys = r#"transport = "datagram"
        load.periodic = { size = "222 B", every = "100 ms", synchronised = true }"#;
    let answer = run(&line(10, keys)).unwrap();
    assert_eq!(metric(&answer, Metric::OfferedLoad).round(), 20_000.0);
    // The same over TCP: 210 B and 40 B of headers with the profile `ns2`.
    let keys = r#"stack = "plain"
        load.periodic = { size = "210 B", every = "100 ms", synchronised = true }
        [stack.plain]
        profile = "ns2"
        congestion_control = "reno""#;
    let answer = run(&line(10, keys)).unwrap();
    assert_eq!(metric(&answer, Metric::OfferedLoad).round(), 20_000.0);
    assert_eq!(metric(&answer, Metric::SegmentLoss), 0.0);
    assert!((metric(&answer, Metric::SegmentDelayMean) - 0.012).abs() < 1e-9);
    assert!((metric(&answer, Metric::SegmentDelayTotal) - 0.012).abs() < 1e-9);
}

#[test]
fn segment_loss_is_the_loss_at_the_link() {
    // Acknowledgements use the reverse direction, so all drops of the forward direction are data.
    let keys = r#"load = "bulk""#;
    let answer = run(&line(5, keys)).unwrap();
    let link = &answer.points[0].links[0];
    let [dropped, offered] = [Metric::DropsQueue, Metric::PacketsIn].map(|m| link.mean(m).unwrap());
    assert!(dropped > 10.0, "{dropped}");
    assert!((metric(&answer, Metric::SegmentLoss) - dropped / offered).abs() < 1e-12);
    assert!((metric(&answer, Metric::SegmentLossTotal) - dropped / offered).abs() < 1e-12);
    let delay = link.mean(Metric::LinkDelayMean).unwrap();
    assert!((metric(&answer, Metric::SegmentDelayMean) / delay - 1.0).abs() < 1e-3);
}

#[test]
fn deadlines_are_checked_for_datagrams() {
    // Ten members send simultaneously every second. Each packet takes 2 ms transmission and 10 ms
    // propagation, so the first five arrive within 20 ms. The last message that counts is ready 1 s
    // before the end.
    let keys = |deadline: &str| {
        format!(
            r#"transport = "datagram"
            count = 10
            deadline = "{deadline}"
            load.periodic = {{ size = "222 B", every = "1 s", synchronised = true }}"#
        )
    };
    let answer = run(&line(100, &keys("20 ms"))).unwrap();
    assert_eq!(metric(&answer, Metric::DeadlineMet), 0.5);
    let check = &answer.points[0].deadline_checks[0];
    assert_eq!((check.flow.as_str(), check.met), ("reading", Some(false)));
    let answer = run(&line(100, &keys("30 ms"))).unwrap();
    assert_eq!(answer.points[0].deadline_checks[0].met, Some(true));
    // Three of ten are dropped, and a lost message misses its deadline.
    let answer = run(&line(6, &keys("1 s"))).unwrap();
    assert_eq!(metric(&answer, Metric::DeadlineMet), 0.7);
    // No message could be checked.
    let answer = run(&line(100, &keys("101 s"))).unwrap();
    assert_eq!(answer.points[0].deadline_checks[0].met, None);
    assert!(answer.warnings[0].message.contains("early enough"), "{:?}", answer.warnings);
}

#[test]
fn a_message_that_tcp_never_delivers_misses_its_deadline() {
    // The link is down from 60 s on. Of the messages ready from 10 s to 105 s, those up to 60 s
    // arrive.
    let keys = r#"deadline = "5 s"
        load.periodic = { size = "100 B", every = "1 s", synchronised = true }"#;
    let text = line(100, keys)
        .replace("queue =", "outage = [{ start = \"60500 ms\", length = \"1 h\" }], queue =");
    let answer = run(&text).unwrap();
    assert_eq!(metric(&answer, Metric::DeadlineMet), 51.0 / 96.0);
}

#[test]
fn an_application_profile_has_a_deadline() {
    let keys = r#"load.application = { profile = "wide_area_measurement", every = "100 ms" }"#;
    let answer = run(&line(100, keys)).unwrap();
    let check = &answer.points[0].deadline_checks[0];
    assert_eq!(check.limit, "98 % of messages within 20 s");
    assert_eq!((check.measured, check.met), (Some(1.0), Some(true)));
    let strict = run(&line(100, &format!("deadline = \"10 ms\"\n{keys}"))).unwrap();
    assert_eq!(strict.points[0].deadline_checks[0].met, Some(false));
}

#[test]
fn a_burst_affects_a_share_of_the_members() {
    let keys = r#"transport = "datagram"
        count = 4000
        load.burst = { size = "22 B", at = "50 s", spread = "20 s", share = "25 %", count = 2 }"#;
    let answer = run(&line(100, keys)).unwrap();
    let messages = metric(&answer, Metric::Messages);
    // 2 · 1,000, standard deviation 2 · 27.
    assert!((1_840.0..2_160.0).contains(&messages), "{messages}");
}

/// Plays a trace over the link.
fn play(csv: &str, keys: &str) -> Result<Answer, RunError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    std::fs::write(&path, csv).unwrap();
    let load = format!("load.trace.file = '{}'\n{keys}", path.display());
    run(&line(1_000, &load))
}

#[test]
fn a_trace_is_played_by_all_members_or_by_the_named_one() {
    // Three messages before the end of the warm-up, two after it, one after the end of the run.
    let times = [0.0, 1.0, 9.9, 10.0, 60.5, 110.1];
    let rows = |member: &str| -> String { times.map(|t| format!("{t},222{member}\n")).concat() };
    for transport in ["tcp", "datagram"] {
        let keys = format!("transport = \"{transport}\"\ncount = 4\ndeadline = \"1 s\"");
        let all_rows = format!("time_s,bytes\n{}", rows(""));
        let all = play(&all_rows, &keys).unwrap();
        assert_eq!(metric(&all, Metric::Messages), 8.0, "{transport}");
        let late = |answer: &Answer| {
            let warnings = answer.warnings.iter().map(|warning| warning.message.as_str());
            warnings.filter(|message| message.contains("after the end of the run")).count()
        };
        assert_eq!(late(&all), 1, "{:?}", all.warnings);
        assert_eq!(all.points[0].deadline_checks[0].measured, Some(1.0));
        let named = format!("time_s,bytes,member\n{}", rows(",3"));
        let one = play(&named, &keys).unwrap();
        assert_eq!(metric(&one, Metric::Messages), 2.0, "{transport}");
        let in_time = all_rows.rsplit_once("110.1").unwrap().0;
        assert_eq!(late(&play(in_time, &keys).unwrap()), 0, "{transport}");
    }
}

#[test]
fn an_invalid_row_of_a_trace_stops_the_run() {
    let csv = "time_s,bytes\n1,200\n20,200\n30,many\n";
    for keys in ["", "transport = \"datagram\""] {
        let error = play(csv, keys).unwrap_err().to_string();
        assert!(error.contains("trace.csv:4:4: column `bytes`: expected a number"), "{error}");
    }
    let error = play("time_s,bytes\n1,65508\n", "transport = \"datagram\"").unwrap_err();
    assert!(
        error.to_string().contains("exceed the payload of a datagram in one packet"),
        "{error}"
    );
    // Rows after the end of the run are not read.
    assert!(play("time_s,bytes\n20,200\n120,200\n130,many\n", "").is_ok());
}

/// Messages from `a` to `b` over these links; `flow` has the rest of the flow's keys.
fn messages(duration: &str, links: &str, flow: &str) -> String {
    format!(
        r#"
        title = "messages"
        duration = "{duration}"
        [node]
        a = {{}}
        m = {{}}
        b = {{}}
        {links}
        [flow.reading]
        from = "a"
        to = "b"
        {flow}
        "#
    )
}

#[test]
fn a_duplicated_message_counts_once() {
    // 100 datagrams or echoes, each duplicated by the first link. The second link loses its first
    // two packets, both copies of the first message, and one copy of the fourth.
    let links = r#"
        [link.one]
        from = "a"
        to = "m"
        both = { rate = "1 Mbit/s", duplicate = "100 %" }
        [link.two]
        from = "m"
        to = "b"
        forward = { rate = "1 Mbit/s", loss.packets = [1, 2, 7] }
        reverse = { rate = "1 Mbit/s" }"#;
    for transport in ["datagram", "echo"] {
        let flow = format!(
            r#"transport = "{transport}"
            deadline = "50 ms"
            load.periodic = {{ size = "200 B", every = "100 ms", synchronised = true }}"#
        );
        let answer = run(&messages("9990 ms", links, &flow)).unwrap();
        assert_eq!(metric(&answer, Metric::Messages), 99.0, "{transport}");
        assert_eq!(metric(&answer, Metric::MessageLoss), 0.01, "{transport}");
        assert_eq!(metric(&answer, Metric::DeadlineMet), 0.99, "{transport}");
        // The application receives every copy that arrives: 200 of 200 B less three.
        let copies = metric(&answer, Metric::Goodput) * 9.99 / 8.0 / 200.0;
        assert!((copies - 197.0).abs() < 1e-6, "{transport}: {copies}");
    }
}

#[test]
fn a_saturated_link_is_used_by_at_most_its_whole_time() {
    // A packet takes 0.6 s transmission and 0.7 s propagation. If counted at arrival, packets of
    // the warm-up would give a utilisation of 112 % in the 2.7 s measured.
    let scenario = |warmup: &str, load: &str| {
        format!(
            r#"title = "t"
            duration = "6 s"
            warmup = "{warmup}"
            node.a = {{}}
            node.b = {{}}
            [link.line]
            from = "a"
            to = "b"
            forward = {{ rate = "20 kbit/s", delay = "700 ms" }}
            reverse = {{ rate = "20 kbit/s", delay = "700 ms" }}
            [flow.f]
            from = "a"
            to = "b"
            {load}"#
        )
    };
    let used = |warmup: &str, load: &str| {
        let answer = run(&scenario(warmup, load)).unwrap();
        answer.points[0].links[0].mean(Metric::Utilisation).unwrap()
    };
    for warmup in ["3 s", "3.1 s", "3.3 s", "3.7 s", "5.9 s"] {
        let bulk = used(warmup, r#"load = "bulk""#);
        assert!((0.0..=1.0).contains(&bulk), "{warmup}: {bulk}");
        // 1250 B with headers every 500 ms are the whole rate.
        let full = r#"transport = "datagram"
            load.periodic = { size = "1222 B", every = "500 ms", synchronised = true }"#;
        let share = used(warmup, full);
        assert!((share - 1.0).abs() < 1e-3, "{warmup}: {share}");
    }
}

#[test]
fn delays_of_messages_have_a_distribution_pooled_over_replications() {
    // A datagram of 100 B with headers takes 100 ms, the delay 400 ms: each message 500 ms.
    let links = r#"[link.line]
        from = "a"
        to = "b"
        forward = { rate = "8 kbit/s", delay = "400 ms" }
        reverse = { rate = "8 kbit/s" }"#;
    let flow = r#"transport = "datagram"
        load.periodic = { size = "72 B", every = "1 s", synchronised = true }"#;
    let text = messages("10 s", links, flow);
    let answer = run(&format!("replications = 3\n{text}")).unwrap();
    let point = &answer.points[0];
    let found = point.delays["reading"].as_ref().unwrap();
    let delivered = point.flows[0].mean(Metric::Messages).unwrap();
    assert_eq!(found.messages as f64, 3.0 * delivered);
    // Three significant digits.
    assert!(found.delay_s.iter().all(|delay| (delay - 0.5).abs() < 0.001), "{found:?}");
    let bulk = run(&messages("10 s", links, r#"load = "bulk""#)).unwrap();
    assert!(bulk.points[0].delays.is_empty(), "a bulk flow has no messages");
}

#[test]
fn an_outage_does_not_count_as_utilisation() {
    // 1000 B with headers take 1 s of transmission, which an outage of 4 s interrupts.
    let flow = r#"transport = "datagram"
        load.periodic = { size = "972 B", every = "20 s", synchronised = true }"#;
    for (mode, arrived) in [("hold", 1.0), ("drop", 0.0)] {
        let links = format!(
            r#"[link.line]
            from = "a"
            to = "b"
            forward = {{ rate = "8 kbit/s", outage = [{{ start = "500 ms", length = "4 s", mode = "{mode}" }}] }}
            reverse = {{ rate = "8 kbit/s" }}"#
        );
        let answer = run(&messages("10 s", &links, flow)).unwrap();
        let link = &answer.points[0].links[0];
        assert_eq!(link.mean(Metric::PacketsOut), Some(arrived), "{mode}");
        assert_eq!(link.mean(Metric::Utilisation), Some(0.1), "{mode}");
    }
}

/// One periodic datagram of 97 B in every ten seconds, from 0 s on.
const PERIODIC: &str = r#"
    [flow.reading]
    from = "a"
    to = "b"
    transport = "datagram"
    load.periodic = { size = "97 B", every = "10 s", synchronised = true }"#;

#[test]
fn a_run_ends_before_the_message_of_the_next_period() {
    let link = r#"rate = "1 Mbit/s", delay = "10 ms""#;
    for (keys, messages) in [
        ("duration = \"10 s\"", 1.0),
        ("duration = \"40 s\"", 4.0),
        ("duration = \"40 s\"\nrecord.interval = \"10 s\"", 4.0),
        // A message that is due at the end of the warm-up is the first of the measured time.
        ("duration = \"40 s\"\nwarmup = \"20 s\"", 2.0),
        ("duration = \"40 s\"\nwarmup = \"20 s\"\nrecord.interval = \"7 s\"", 2.0),
    ] {
        let answer = run(&two_nodes(keys, link, PERIODIC)).unwrap();
        for counted in [Metric::MessagesDue, Metric::Messages] {
            assert_eq!(metric(&answer, counted), messages, "{keys}: {counted}");
        }
        let offered = answer.points[0].links[0].mean(Metric::PacketsIn);
        assert_eq!(offered, Some(messages), "{keys}");
    }
}

#[test]
fn a_series_has_a_row_for_the_end_of_the_run() {
    let keys = "duration = \"40 s\"\nrecord.interval = \"10 s\"";
    let answer = run(&two_nodes(keys, r#"rate = "1 Mbit/s", delay = "10 ms""#, PERIODIC)).unwrap();
    let queues = answer.series.iter().find(|series| series.name == "queues");
    let rows = queues.map(gridhaul_scenario::answer::Series::row_count);
    // Two directions, at 0, 10, 20, 30 and 40 s.
    assert_eq!(rows, Some(10));
}

#[test]
fn a_link_loses_at_most_all_packets() {
    // Ten packets of 125 B with their headers take a second each; nine are offered before the
    // measured time and lost within it.
    let link = r#"rate = "1 kbit/s", delay = "0 s", loss.bernoulli = "100 %""#;
    let flows = r#"
        [flow.early]
        from = "a"
        to = "b"
        transport = "datagram"
        load.burst = { size = "97 B", at = "0 s", count = 10, gap = "1 ms" }
        [flow.late]
        from = "a"
        to = "b"
        transport = "datagram"
        load.burst = { size = "97 B", at = "12 s", count = 1 }"#;
    let keys = "duration = \"20 s\"\nwarmup = \"1500 ms\"";
    let answer = run(&two_nodes(keys, link, flows)).unwrap();
    let link = &answer.points[0].links[0];
    assert_eq!(link.mean(Metric::PacketsIn), Some(1.0));
    assert_eq!(link.mean(Metric::DropsLoss), Some(10.0));
    assert_eq!(link.mean(Metric::LossRatio), Some(1.0));
}
