//! Explicit congestion notification: queues that mark, and senders that react.

use gridhaul_scenario::answer::{Answer, Metric};

use crate::schedulers::{close, mean, run};
use crate::support::captured;

const ECN: &str = include_str!("../../../../scenarios/ecn.toml");

/// Lost and retransmitted packets of an answer.
fn losses(answer: &Answer) -> f64 {
    let of_flow = [Metric::Retransmissions, Metric::Timeouts, Metric::FastRetransmits];
    let of_flow: f64 = of_flow.into_iter().map(|metric| mean(answer, "upload", metric)).sum();
    of_flow + mean(answer, "line.forward", Metric::DropsQueue)
}

#[test]
fn marks_replace_losses_at_the_calculated_goodput() {
    let text = ECN.replace("duration = \"20 s\"", "duration = \"404 s\"");
    let answer = run(&text);
    // The calculation is in the comment of the scenario; here 400 s are measured.
    close(mean(&answer, "upload", Metric::Goodput), 10.0e6, 0.03);
    let reductions = mean(&answer, "upload", Metric::EcnReductions);
    close(reductions, 400.0 / 1.113, 0.05);
    assert_eq!(losses(&answer), 0.0);
    let marks = mean(&answer, "upload", Metric::CongestionMarks);
    close(marks, reductions, 0.02);
    // A packet may be marked before an end of the measured time and arrive after it.
    assert!((mean(&answer, "line.forward", Metric::Marked) - marks).abs() <= 1.0);
    // Where one of both does not support marks, the same packets are lost.
    for (key, without) in [("{ ecn = true } }", "{} }"), ("\necn = true\n", "\n")] {
        let answer = run(&text.replace(key, without));
        let dropped = mean(&answer, "line.forward", Metric::DropsQueue);
        close(dropped, mean(&answer, "upload", Metric::Retransmissions), 0.02);
        close(dropped, reductions, 0.1);
        let has_marks = |metric| answer.points[0].links[0].mean(metric).is_some();
        assert_eq!(has_marks(Metric::Marked), without == "\n");
    }
}

/// Every queue management marks, in each profile, also without selective acknowledgements; the
/// sender receives its marks and loses nothing once the slow start is over.
#[test]
fn each_queue_management_marks_for_each_profile() {
    let red = "red = { min = \"10 packets\", max = \"200 packets\", ecn = true }";
    let disciplines =
        ["codel = { ecn = true }", red, "pie = { ecn = true }", "fq_codel = { ecn = true }"];
    let sack = "profile = \"linux\"\nsack = false\n";
    let profiles = [
        "profile = \"linux\"\n",
        sack,
        "profile = \"rfc\"\n",
        "profile = \"ns2\"\n\
         receive_window = \"4 MB\"\nmss = \"1448 B\"\ndelayed_ack = \"100 ms\"\n",
    ];
    for (aqm, profile) in disciplines.into_iter().flat_map(|aqm| profiles.map(|p| (aqm, p))) {
        let text = ECN
            .replace("codel = { ecn = true }", aqm)
            .replace("profile = \"linux\"\n", profile)
            .replace("duration = \"20 s\"", "duration = \"84 s\"")
            .replace("warmup = \"4 s\"", "warmup = \"24 s\"");
        let answer = run(&text);
        let reductions = mean(&answer, "upload", Metric::EcnReductions);
        let marks = mean(&answer, "upload", Metric::CongestionMarks);
        assert!(reductions > 10.0 && marks >= reductions, "{aqm} {profile}: {reductions} {marks}");
        assert_eq!(losses(&answer), 0.0, "{aqm} {profile}");
        assert!(mean(&answer, "line.forward", Metric::Utilisation) > 0.8, "{aqm} {profile}");
    }
}

/// Packets after the queue that has marked them, in a capture: new data is ECN-capable or marked,
/// and the handshake and acknowledgements are neither.
#[test]
fn captures_have_the_marks() {
    let (before, flow) = ECN.split_once("[stack.marked]").unwrap();
    let text = format!(
        "{before}[node.hub]\n\
         [link.access]\nfrom = \"centre\"\nto = \"hub\"\nboth = {{ rate = \"1 Gbit/s\" }}\n\
         [stack.marked]{flow}"
    );
    let text = text
        .replace("to = \"centre\"\nstack", "to = \"hub\"\nstack")
        .replace("warmup = \"4 s\"", "record.pcap = [\"access\"]");
    let answer = run(&text);
    let mut marked = 0.0;
    for packet in captured(&answer) {
        let ecn = packet.headers[1] & 3;
        marked += f64::from(u8::from(ecn == 3));
        // Of 1,448 B of data; SYN and acknowledgements are shorter.
        assert_eq!(ecn != 0, packet.length > 1_000, "{ecn} in a packet of {} B", packet.length);
    }
    let marks = mean(&answer, "upload", Metric::CongestionMarks);
    assert!(marks > 10.0, "{marks}");
    // The last one may be on its way.
    assert!((marked - marks).abs() <= 1.0, "{marked} captured, {marks} received");
}
