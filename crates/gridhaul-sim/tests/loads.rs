//! Loads as the simulator carries them, against schedules worked out by hand.

use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress, RunError};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

fn run(text: &str) -> Result<Answer, RunError> {
    let scenario = Scenario::from_toml(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    Sim { threads: 1 }.run(&scenario, &NoProgress)
}

fn metric(answer: &Answer, metric: Metric) -> f64 {
    answer.points[0].flows[0].mean(metric).unwrap_or_else(|| panic!("no {metric}"))
}

/// Two nodes with 15 ms each way, `meters` flows from `a` to `b`, for 40 s from 4 s on.
fn pair(meters: u32, stack: &str, load: &str) -> String {
    format!(
        r#"
        title = "greedy"
        duration = "44 s"
        warmup = "4 s"
        [node]
        a = {{}}
        b = {{}}
        [link.wire]
        from = "a"
        to = "b"
        both = {{ rate = "1 Gbit/s", delay = "15 ms", queue = "10000 packets" }}
        [stack.meter]
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
        load.{load}
        "#
    )
}

const GREEDY: &str =
    r#"on_off = { on = "100 ms", off = "900 ms", size = "200 B", spread = "fixed" }"#;

#[test]
fn a_greedy_burst_fills_the_window_at_every_round_trip() {
    // A burst of 100 ms at a round trip of 30 ms: written at 0, 30, 60 and 90 ms, a whole window
    // each time, since after 4 s the window is open. 40 bursts in the measured 40 s.
    for window in [1, 2, 5] {
        let stack =
            format!("receive_window = \"{window} segments\"\ninitial_window = \"5 segments\"");
        let answer = run(&pair(1, &stack, GREEDY)).unwrap();
        assert_eq!(metric(&answer, Metric::Messages), f64::from(40 * 4 * window), "{window}");
        assert_eq!(metric(&answer, Metric::Retransmissions), 0.0);
        // A message is ready when it can leave: it never waits for the window.
        let delay = metric(&answer, Metric::DelayMax);
        assert!((0.015..0.0151).contains(&delay), "{delay}");
    }
}

#[test]
fn messages_longer_than_a_segment_and_small_ones_with_nagle() {
    // 600 B are three segments: two leave with the window of two; at 30 ms the third and the first
    // of the next message; at 60 ms its other two; at 90 ms two of the last message, whose third
    // follows after the burst. So three messages a burst, and each is sent whole.
    let long = GREEDY.replace("200 B", "600 B");
    let stack = "receive_window = \"2 segments\"\ninitial_window = \"5 segments\"";
    let answer = run(&pair(1, stack, &long)).unwrap();
    assert_eq!(metric(&answer, Metric::SegmentsSent), 40.0 * 9.0);
    assert_eq!(metric(&answer, Metric::Messages), 40.0 * 3.0);
    // With Nagle's algorithm the first small message leaves alone, and those behind it fill segments: at 0
    // one of 100 B leaves and one of 200 B, and two messages wait for room in the window. Each of the three
    // round trips behind it in a burst takes four more.
    let small = GREEDY.replace("200 B", "100 B");
    let answer = run(&pair(1, &format!("{stack}\nnagle = true"), &small)).unwrap();
    assert_eq!(metric(&answer, Metric::Messages), f64::from(40 * (5 + 3 * 4)));
}

#[test]
fn members_are_independent_and_begin_in_the_stationary_state() {
    // 2,000 meters, exponential: each writes two messages when a burst begins and two at every
    // further round trip in it: 2 (1 + q + q^2 + ...) with q = exp(-30 / 100), 7.717 a burst.
    // Bursts begin every 1,000 ms on average: 2,000 * 40 * 7.717 = 617,300 in the measured time.
    let load = r#"on_off = { on = "100 ms", off = "900 ms", size = "200 B" }"#;
    let stack = "receive_window = \"2 segments\"\ninitial_window = \"2 segments\"";
    let answer = run(&pair(2_000, stack, load)).unwrap();
    let messages = metric(&answer, Metric::Messages);
    // Silences shorter than a round trip find the window still full: about 3 % begin so, and
    // write their first messages up to a round trip late.
    assert!((0.97..1.005).contains(&(messages / 617_300.0)), "{messages}");
}

/// A line of 1 Mbit/s and 10 ms with room for `queue` packets, and a flow over it.
fn line(queue: u32, keys: &str) -> String {
    format!(
        r#"
        title = "line"
        duration = "110 s"
        warmup = "10 s"
        [node]
        a = {{}}
        b = {{}}
        [link.wire]
        from = "a"
        to = "b"
        both = {{ rate = "1 Mbit/s", delay = "10 ms", queue = "{queue} packets" }}
        [flow.reading]
        from = "a"
        to = "b"
        {keys}
        "#
    )
}

#[test]
fn offered_load_loss_and_delay_of_data_packets() {
    // A packet of 250 B on the wire every 100 ms: 20 kbit/s, 2 ms of wire and 10 ms of way.
    let keys = r#"transport = "datagram"
        load.periodic = { size = "222 B", every = "100 ms", synchronised = true }"#;
    let answer = run(&line(10, keys)).unwrap();
    // The last is sent as the run ends: 1,001 in 100 s.
    assert_eq!(metric(&answer, Metric::OfferedLoad).round(), 20_020.0);
    // The same over TCP: 210 B and 40 B of headers with the profile `ns2`.
    let keys = r#"stack = "plain"
        load.periodic = { size = "210 B", every = "100 ms", synchronised = true }
        [stack.plain]
        profile = "ns2"
        congestion_control = "reno""#;
    let answer = run(&line(10, keys)).unwrap();
    assert_eq!(metric(&answer, Metric::OfferedLoad).round(), 20_020.0);
    assert_eq!(metric(&answer, Metric::SegmentLoss), 0.0);
    assert!((metric(&answer, Metric::SegmentDelayMean) - 0.012).abs() < 1e-9);
    assert!((metric(&answer, Metric::SegmentDelayTotal) - 0.012).abs() < 1e-9);
}

#[test]
fn segment_loss_is_what_the_link_drops() {
    // Acknowledgements take the other direction: all that the forward one drops is data.
    let keys = r#"load = "bulk""#;
    let answer = run(&line(5, keys)).unwrap();
    let wire = &answer.points[0].links[0];
    let [dropped, offered] = [Metric::DropsQueue, Metric::PacketsIn].map(|m| wire.mean(m).unwrap());
    assert!(dropped > 10.0, "{dropped}");
    assert!((metric(&answer, Metric::SegmentLoss) - dropped / offered).abs() < 1e-12);
    assert!((metric(&answer, Metric::SegmentLossTotal) - dropped / offered).abs() < 1e-12);
    let delay = wire.mean(Metric::LinkDelayMean).unwrap();
    assert!((metric(&answer, Metric::SegmentDelayMean) / delay - 1.0).abs() < 1e-3);
}

#[test]
fn deadlines_are_judged_for_datagrams_and_over_tcp() {
    // Ten members at once, every second: 2 ms of wire each behind 10 ms of way, so the first five
    // arrive within 20 ms. A message 1 s before the end is the last that counts.
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
    let verdict = &answer.points[0].deadline_checks[0];
    assert_eq!((verdict.flow.as_str(), verdict.met), ("reading", Some(false)));
    let answer = run(&line(100, &keys("30 ms"))).unwrap();
    assert_eq!(answer.points[0].deadline_checks[0].met, Some(true));
    // Three of ten are dropped: what never arrives is late.
    let answer = run(&line(6, &keys("1 s"))).unwrap();
    assert_eq!(metric(&answer, Metric::DeadlineMet), 0.7);
    // No message could be judged.
    let answer = run(&line(100, &keys("101 s"))).unwrap();
    assert_eq!(answer.points[0].deadline_checks[0].met, None);
    assert!(answer.warnings[0].message.contains("early enough"), "{:?}", answer.warnings);
}

#[test]
fn a_message_that_tcp_never_delivers_is_late() {
    // The line is dead from 60 s on: of those ready from 10 s to 105 s, those up to 60 s arrive.
    let keys = r#"deadline = "5 s"
        load.periodic = { size = "100 B", every = "1 s", synchronised = true }"#;
    let text = line(100, keys)
        .replace("queue =", "outage = [{ start = \"60500 ms\", length = \"1 h\" }], queue =");
    let answer = run(&text).unwrap();
    assert_eq!(metric(&answer, Metric::DeadlineMet), 51.0 / 96.0);
}

#[test]
fn an_application_brings_its_deadline() {
    let keys = r#"load.application = { profile = "wide_area_measurement", every = "100 ms" }"#;
    let answer = run(&line(100, keys)).unwrap();
    let verdict = &answer.points[0].deadline_checks[0];
    assert_eq!(verdict.limit, "98 % of messages within 20 s");
    assert_eq!((verdict.measured, verdict.met), (Some(1.0), Some(true)));
    let strict = run(&line(100, &format!("deadline = \"10 ms\"\n{keys}"))).unwrap();
    assert_eq!(strict.points[0].deadline_checks[0].met, Some(false));
}

#[test]
fn a_burst_reports_once_from_each_member_that_is_hit() {
    let keys = r#"transport = "datagram"
        count = 4000
        load.burst = { size = "22 B", at = "50 s", spread = "20 s", share = "25 %", count = 2 }"#;
    let answer = run(&line(100, keys)).unwrap();
    let messages = metric(&answer, Metric::Messages);
    // 2 · 1,000, standard deviation 2 · 27.
    assert!((1_840.0..2_160.0).contains(&messages), "{messages}");
}

/// Plays a trace over the line: all that arrives, or why not.
fn play(csv: &str, keys: &str) -> Result<Answer, RunError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    std::fs::write(&path, csv).unwrap();
    let load = format!("load.trace.file = '{}'\n{keys}", path.display());
    run(&line(1_000, &load))
}

#[test]
fn a_trace_is_played_by_all_members_or_by_the_one_it_names() {
    // Three before the warm-up ends, two after, one after the end.
    let times = [0.0, 1.0, 9.9, 10.0, 60.5, 110.1];
    let rows = |member: &str| -> String { times.map(|t| format!("{t},222{member}\n")).concat() };
    for transport in ["tcp", "datagram"] {
        let keys = format!("transport = \"{transport}\"\ncount = 4\ndeadline = \"1 s\"");
        let all = play(&format!("time_s,bytes\n{}", rows("")), &keys).unwrap();
        assert_eq!(metric(&all, Metric::Messages), 8.0, "{transport}");
        assert_eq!(all.points[0].deadline_checks[0].measured, Some(1.0));
        let named = format!("time_s,bytes,member\n{}", rows(",3"));
        let one = play(&named, &keys).unwrap();
        assert_eq!(metric(&one, Metric::Messages), 2.0, "{transport}");
    }
}

#[test]
fn a_trace_that_is_wrong_further_on_stops_the_run() {
    let csv = "time_s,bytes\n1,200\n20,200\n30,many\n";
    for keys in ["", "transport = \"datagram\""] {
        let error = play(csv, keys).unwrap_err().to_string();
        assert!(error.contains("trace.csv:4:4: column `bytes`: expected a number"), "{error}");
    }
    let error = play("time_s,bytes\n1,65508\n", "transport = \"datagram\"").unwrap_err();
    assert!(error.to_string().contains("more than a datagram carries"), "{error}");
    // What comes after the end of the run is not read.
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
fn a_message_counts_once_however_often_it_arrives() {
    // 100 datagrams and echoes, each copied on either link; the second link loses the first two that come,
    // which are the two copies of the first message, and then one copy of the fourth.
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
        // The application is handed every copy that arrives: 200 of 200 B less three.
        let handed = metric(&answer, Metric::Goodput) * 9.99 / 8.0 / 200.0;
        assert!((handed - 197.0).abs() < 1e-6, "{transport}: {handed}");
    }
}

#[test]
fn a_saturated_link_is_used_by_at_most_its_whole_time() {
    // A packet takes 0.6 s of the link and arrives 0.7 s later. Counted at their arrival, packets
    // of the warm-up would make it 112 % of the 2.7 s that are measured.
    let scenario = |warmup: &str, load: &str| {
        format!(
            r#"title = "t"
            duration = "6 s"
            warmup = "{warmup}"
            node.a = {{}}
            node.b = {{}}
            [link.wire]
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
    let links = r#"[link.wire]
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
fn a_wire_that_stands_still_is_not_used() {
    // 1000 B with headers take a second of the wire, and the outage 4 s in the middle of it.
    let flow = r#"transport = "datagram"
        load.periodic = { size = "972 B", every = "20 s", synchronised = true }"#;
    for (mode, arrived) in [("hold", 1.0), ("drop", 0.0)] {
        let links = format!(
            r#"[link.wire]
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
