//! Connections that a NAT forgets, with keep-alive and user timeout of the kernel.

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::Metric;

use crate::{mean, run_with};

/// Messages at 0 s, 5 s and 10 s over connections that are forgotten after 3 s. Each flow is a
/// device of its own.
const DEVICES: &str = "title = 't'\nduration = '12 s'\n\
    [node]\nresets = {}\nsilent = {}\nlimited = {}\nprobing = {}\nfar = {}\n";

#[test]
fn a_nat_forgets_idle_connections_of_the_kernel() {
    let flow = |name: &str, answers: &str, keys: &str| {
        format!(
            "[link.{name}]\nfrom = '{name}'\nto = 'far'\n\
             both = {{ rate = '1 Mbit/s', delay = '10 ms' }}\n\
             [flow.{name}]\nfrom = '{name}'\nto = 'far'\nreconnect.pause = '100 ms'\n\
             load.periodic = {{ size = '200 B', every = '5 s', synchronised = true }}\n\
             nat = {{ idle_timeout = '3 s', answers = '{answers}' }}\n{keys}\n"
        )
    };
    let flows = [
        flow("resets", "reset", ""),
        flow("silent", "drop", ""),
        flow("limited", "drop", "user_timeout = '1 s'"),
        flow("probing", "drop", "keep_alive = { idle = '1 s', interval = '1 s' }"),
    ];
    let text = format!("{DEVICES}{}", flows.concat());
    let Some(answer) = run_with(&text, Emu::default()) else { return };
    let values = |name: &str, metrics: [Metric; 3]| metrics.map(|of| mean(&answer, name, of));
    let counts = [Metric::Messages, Metric::ConnectionsLost, Metric::MessagesInterrupted];
    // Each message but the first finds its connection forgotten, and follows on another one.
    assert_eq!(values("resets", counts), [3.0, 2.0, 2.0]);
    // The kernel retransmits for 15 min.
    assert_eq!(values("silent", counts), [1.0, 0.0, 0.0]);
    // The message of 5 s follows after the timeout.
    let [messages, lost, _] = values("limited", counts);
    assert!(messages >= 2.0 && lost >= 1.0, "{messages} messages, {lost} connections lost");
    assert!(mean(&answer, "limited", Metric::DelayMax) >= 1.0);
    // Two probes may be late before the connection is forgotten.
    assert_eq!(values("probing", counts), [3.0, 0.0, 0.0]);
    assert_eq!(mean(&answer, "probing", Metric::ConnectionsOpened), 1.0);
}
