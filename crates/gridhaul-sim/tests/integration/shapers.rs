//! Shapers: the scenarios and expectations of the test on the kernel
//! (`crates/gridhaul-emu/tests/kernel/shaper.rs`).

use gridhaul_scenario::answer::Metric;

use crate::schedulers::{close, mean, run};

fn pair(link: &str, flows: &str) -> String {
    format!(
        "title = 'test'\n[node]\nnear = {{}}\nfar = {{}}\n\
         [link.wire]\nfrom = 'near'\nto = 'far'\n{link}\n{flows}"
    )
}

#[test]
fn a_shaper_enforces_guarantees_and_limits() {
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
    let times = "duration = '5 s'\nwarmup = '1 s'\n";
    let answer = run(&(times.to_owned() + &pair(link, &flows)));
    let rate = |name| mean(&answer, name, Metric::Throughput);
    close(mean(&answer, "wire.forward", Metric::LinkThroughput), 4e6, 0.01);
    assert!((2e6..2.81e6).contains(&rate("one")), "{}", rate("one"));
    assert!(rate("six") > 0.45e6, "{}", rate("six"));
    assert!(rate("two") > 0.3e6, "the rate without a guarantee: {}", rate("two"));
}

#[test]
fn a_shaper_cuts_a_burst_into_packets() {
    let link = "[link.wire.forward]\nrate = '1 Mbit/s'\ndelay = '5 ms'\n\
        [link.wire.forward.shaper]\nrate = '500 kbit/s'\nburst = '1500 B'\n\
        [link.wire.reverse]\nrate = '1 Mbit/s'";
    let flows = "[stack.s]\ninitial_window = '60 kB'\n\
                 [flow.file]\nfrom = 'near'\nto = 'far'\nload = { transfer = { size = '60 kB' } \
                 }\nstack = 's'";
    let answer = run(&("duration = '2500 ms'\n".to_owned() + &pair(link, flows)));
    // 42 segments with 52 B of headers, two of them as a burst.
    let time = mean(&answer, "file", Metric::CompletionTime);
    let expected = (60_000.0 + 42.0 * 52.0 - 3_000.0) * 8.0 / 500e3;
    assert!((expected..expected + 0.1).contains(&time), "{time} s, expected {expected} s");
    assert_eq!(mean(&answer, "file", Metric::Retransmissions), 0.0);
}
