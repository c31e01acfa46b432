//! Shapers: the token buckets of the kernel.

use gridhaul_scenario::answer::Metric;

use crate::pair::pair;
use crate::{close, mean, run};

#[test]
fn a_shaper_enforces_guarantees_and_limits_without_a_queue_downstream() {
    // An offered load of 3 + 3 Mbit/s of datagrams at 4 Mbit/s; one flow is limited to 2.8 Mbit/s.
    let link = "[link.wire.forward]\nrate = '10 Mbit/s'\ndelay = '1 ms'\n\
        [link.wire.forward.shaper]\nrate = '4 Mbit/s'\n\
        share.one = { guarantee = '2 Mbit/s', limit = '2800 kbit/s' }\n\
        share.six.guarantee = '500 kbit/s'\n\
        [link.wire.reverse]\nrate = '10 Mbit/s'";
    let datagrams = |name: &str| {
        format!(
            "[flow.{name}]\nfrom = 'near'\nto = 'far'\ntransport = 'datagram'\n\
             load = {{ periodic = {{ size = '972 B', every = '2667 us' }} }}\n"
        )
    };
    let six = "[flow.six]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nip = 6";
    let flows = format!("{}{}{six}", datagrams("one"), datagrams("two"));
    let Some(answer) = run("duration = '5 s'\nwarmup = '1 s'", &pair(link, &flows)) else { return };
    let rate = |name| mean(&answer, name, Metric::Throughput);
    close(mean(&answer, "wire.forward", Metric::LinkThroughput), 4e6, 0.01);
    // Each flow has its guarantee; the others share the remaining rate.
    assert!((2e6..2.81e6).contains(&rate("one")), "{}", rate("one"));
    assert!(rate("six") > 0.45e6, "{}", rate("six"));
    assert!(rate("two") > 0.3e6, "the rate without a guarantee: {}", rate("two"));
    // Packets leave one by one and do not queue at the link.
    let waiting = mean(&answer, "wire.forward", Metric::QueueMean);
    assert!(waiting < 0.2, "{waiting} packets");
}

#[test]
fn a_shaper_cuts_a_burst_into_packets() {
    // A file of 60 kB at once: without a shaper it would queue at the link. It leaves at 500
    // kbit/s.
    let link = "[link.wire.forward]\nrate = '1 Mbit/s'\ndelay = '5 ms'\n\
        [link.wire.forward.shaper]\nrate = '500 kbit/s'\nburst = '1500 B'\n\
        [link.wire.reverse]\nrate = '1 Mbit/s'";
    let flows = "[stack.s]\ninitial_window = '60 kB'\n\
                 [flow.file]\nfrom = 'near'\nto = 'far'\nload = { transfer = { size = '60 kB' } \
                 }\nstack = 's'";
    let Some(answer) = run("duration = '2500 ms'", &pair(link, flows)) else { return };
    // 42 segments with 52 B of headers, two of them as a burst.
    let time = mean(&answer, "file", Metric::CompletionTime);
    let expected = (60_000.0 + 42.0 * 52.0 - 3_000.0) * 8.0 / 500e3;
    assert!((expected..expected + 0.1).contains(&time), "{time} s, expected {expected} s");
    assert!(mean(&answer, "wire.forward", Metric::QueueMax) <= 2.0);
    assert_eq!(mean(&answer, "file", Metric::Retransmissions), 0.0);
}
