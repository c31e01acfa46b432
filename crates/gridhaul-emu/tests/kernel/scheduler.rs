//! Schedulers: classes by the code points that sockets set.

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::Metric;

use crate::pair::pair;
use crate::{close, mean, run, run_with};

#[test]
fn control_messages_wait_for_one_packet_of_the_readings() {
    let text = include_str!("../../../../scenarios/priority.toml");
    let Some(answer) = run_with(text, Emu::default()) else { return };
    let delay = mean(&answer, "control", Metric::DelayP98);
    // The comment of the scenario has the calculation; the emulator adds at most 1 ms.
    assert!((0.0241..0.0720).contains(&delay), "{delay} s");
    assert_eq!(mean(&answer, "control", Metric::MessageLoss), 0.0);
    let used =
        |class: &str| mean(&answer, &format!("backhaul.forward.{class}"), Metric::Utilisation);
    close(used("control"), 128.0 * 8.0 / 256e3, 0.12);
    assert!(used("readings") > 0.97, "the readings saturate the backhaul: {}", used("readings"));
}

#[test]
fn classes_share_a_link_by_their_weights_with_both_ip_versions() {
    let link = "[link.wire.forward]\nrate = '2 Mbit/s'\ndelay = '2 ms'\n\
        scheduler.class.alarm = { dscp = ['AF21'], weight = 3 }\n\
        scheduler.class.slow = { flows = ['slow'], rate = '200 kbit/s' }\n\
        scheduler.class.other = {}\n\
        [link.wire.reverse]\nrate = '2 Mbit/s'\ndelay = '2 ms'";
    let flow = |name: &str, keys: &str| {
        format!("[flow.{name}]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\n{keys}\n")
    };
    let flows = [flow("alarm", "dscp = 18\nip = 6"), flow("slow", "dscp = 18"), flow("other", "")];
    let Some(answer) = run("duration = '6 s'\nwarmup = '1 s'", &pair(link, &flows.concat())) else {
        return;
    };
    let used = |class: &str| mean(&answer, &format!("wire.forward.{class}"), Metric::Utilisation);
    close(used("slow"), 0.1, 0.05);
    close(used("alarm") / used("other"), 3.0, 0.05);
}
