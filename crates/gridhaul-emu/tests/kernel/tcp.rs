//! TCP: opening, retransmission, and the parameters of stacks.

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::Metric;

use crate::pair::pair;
use crate::{mean, row, run, run_with};

#[test]
fn a_lost_segment_is_retransmitted_and_a_transfer_completes() {
    let link = "forward = { rate = '1 Mbit/s', delay = '20 ms', loss = { packets = [12] } }\n\
                reverse = { rate = '1 Mbit/s', delay = '20 ms' }";
    let flows = "[flow.file]\nfrom = 'near'\nto = 'far'\nload = { transfer = { size = '100 kB' } }";
    let Some(answer) = run("duration = '3 s'", &pair(link, flows)) else { return };
    assert_eq!(mean(&answer, "file", Metric::Retransmissions), 1.0);
    assert_eq!(mean(&answer, "file", Metric::Timeouts), 0.0, "SACK detects the loss");
    // 69 segments of 1460 B; 100 kB take at least 0.83 s; one loss adds less than 0.5 s.
    let time = mean(&answer, "file", Metric::CompletionTime);
    assert!((0.83..1.3).contains(&time), "{time} s");
    assert_eq!(mean(&answer, "file", Metric::SegmentsSent), 70.0);
}

#[test]
fn a_retransmitted_syn_is_not_a_data_segment() {
    // The first packet is SYN: the kernel retransmits it after a second.
    let link = "forward = { rate = '1 Mbit/s', delay = '5 ms', loss = { packets = [1] } }\n\
                reverse = { rate = '1 Mbit/s', delay = '5 ms' }";
    let flows = "[flow.file]\nfrom = 'near'\nto = 'far'\nload = { transfer = { size = '14 kB' } }";
    let Some(answer) = run("duration = '4 s'", &pair(link, flows)) else { return };
    assert!(mean(&answer, "file", Metric::CompletionTime) > 1.0, "SYN was lost");
    // 14,000 B are 10 segments of 1448 B.
    assert_eq!(mean(&answer, "file", Metric::SegmentsSent), 10.0);
    assert_eq!(mean(&answer, "file", Metric::Retransmissions), 0.0);
    assert_eq!(mean(&answer, "file", Metric::RetransmissionRatio), 0.0);
}

#[test]
fn connections_open_with_their_first_message() {
    // 40 meters over one line of 64 kbit/s. In a second before the warm-up ends all are open: The
    // transmission of SYN and of SYN-ACK takes 7.5 ms each, and the propagation 10 ms.
    let text = |flow: &str| {
        format!(
            "title = 'meters'\n[node]\nmeter = {{ count = 40 }}\nhead = {{}}\n\
             [link.line]\nfrom = 'meter'\nto = 'head'\nshared = true\n\
             both = {{ rate = '64 kbit/s', delay = '10 ms', queue = '5 packets' }}\n\
             [flow.reading]\nfrom = 'meter'\nto = 'head'\n{flow}\n\
             load = {{ periodic = {{ size = '100 B', every = '2 s' }} }}"
        )
    };
    let Some(answer) = run("duration = '4 s'", &text("")) else { return };
    assert_eq!(mean(&answer, "reading", Metric::ConnectionsOpened), 40.0);
    assert_eq!(mean(&answer, "reading", Metric::ConnectionsFailed), 0.0);
    let open = mean(&answer, "reading", Metric::HandshakeTimeMean);
    assert!((0.035..0.2).contains(&open), "{open}");
    let due = mean(&answer, "reading", Metric::MessagesDue);
    assert!((79.0..=80.0).contains(&due), "{due}");
    // With a simultaneous start, six SYN arrive and the others are retransmitted after a second.
    let Some(answer) = run("duration = '800 ms'", &text("start_spread = '0 s'")) else { return };
    let opened = mean(&answer, "reading", Metric::ConnectionsOpened);
    assert!((5.0..=12.0).contains(&opened), "{opened}");
    let Some(answer) = run("duration = '1900 ms'", &text("start_spread = '0 s'")) else { return };
    let failed = mean(&answer, "reading", Metric::ConnectionsFailed);
    let opened = mean(&answer, "reading", Metric::ConnectionsOpened);
    assert!(failed > 10.0 && failed + opened == 40.0, "{failed} {opened}");
    assert!(row(&answer, "reading").mean(Metric::HandshakeTimeP98).is_none());
    assert!(answer.warnings.iter().any(|warning| warning.message.contains("failed to open")));
}

#[test]
fn a_kernel_accepts_the_limits_of_the_ranges() {
    let minimum = "dupthresh = 1\nreceive_window = '1152 B'\nmss = '500 B'\nrto_min = '11 ms'\n\
        rto_max = '1 s'\ndelayed_ack = '11 ms'";
    let maximum = "dupthresh = 300\nreceive_window = '1073725440 B'\nrto_min = '120 s'\n\
        rto_max = '120 s'\ndelayed_ack = '200 ms'";
    for stack in [minimum, maximum] {
        let flows = format!(
            "[stack.s]\n{stack}\n[flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 's'"
        );
        let link = "both = { rate = '10 Mbit/s', delay = '1 ms' }";
        let Some(answer) = run("duration = '300 ms'", &pair(link, &flows)) else { return };
        assert!(mean(&answer, "up", Metric::Goodput) > 1e5, "{stack}");
    }
}

#[test]
fn stacks_of_one_node_have_different_minimum_timeouts() {
    // A single segment and its tail loss probe are lost: only a timeout remains.
    let text = "title = 'test'\nduration = '4 s'\n\
        [node]\nnear = {}\nfar = {}\nother = {}\n\
        [stack.rfc]\nrto_min = '1 s'\n[stack.six]\nrto_min = '1500 ms'\n";
    let mut text = text.to_owned();
    for (name, to, stack) in [("a", "far", "rfc"), ("b", "other", "own"), ("c", "far6", "six")] {
        let own = if stack == "own" { "[stack.own]\n" } else { "" };
        let node = if to == "far6" { "[node.far6]\n" } else { "" };
        let ip = if to == "far6" { 6 } else { 4 };
        text += &format!(
            "{own}{node}[link.{name}]\nfrom = 'near'\nto = '{to}'\n\
             forward = {{ rate = '10 Mbit/s', delay = '10 ms', loss = {{ packets = [3, 4] }} }}\n\
             reverse = {{ rate = '10 Mbit/s', delay = '10 ms' }}\n\
             [flow.{name}]\nfrom = 'near'\nto = '{to}'\nstack = '{stack}'\nip = {ip}\n\
             load = {{ periodic = {{ size = '1 kB', every = '10 s', synchronised = true }} }}\n"
        );
    }
    let Some(answer) = run_with(&text, Emu::default()) else { return };
    for (flow, minimum) in [("a", 1.0), ("b", 0.2), ("c", 1.5)] {
        assert_eq!(mean(&answer, flow, Metric::Timeouts), 1.0, "flow {flow}");
        // Each timeout adds a round-trip time, rounded up to ticks; the delivery takes another one.
        let time = mean(&answer, flow, Metric::DelayMedian);
        assert!((2.0 * minimum..2.0 * minimum + 0.3).contains(&time), "flow {flow}: {time} s");
    }
}
