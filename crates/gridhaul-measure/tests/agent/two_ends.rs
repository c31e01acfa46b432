//! `rate` and `outage` as users run them, with agent and controller in network namespaces of their
//! own.

use std::net::IpAddr;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use gridhaul_emu::StandaloneNetwork;
use gridhaul_linux::Clock;
use gridhaul_scenario::units::Duration;
use serde_json::Value;

use crate::namespaces::{SCENARIO, network};
use crate::{Agent, error, turn};

/// The answer of a controller at `here` to an agent at `there`. The control channel uses `control`,
/// a flow of the scenario, and the messages the flow `test`.
fn measure(network: &StandaloneNetwork, control: &str, arguments: &str) -> Value {
    let to = |flow: &str| -> IpAddr { network.ends(flow).unwrap()[1].1 };
    let stop = AtomicBool::new(false);
    let controller = |agent: &Agent| -> Output {
        agent.run(&format!("{arguments} --json --agent-address {}", to("test")))
    };
    let clock = Clock::starts_in(Duration::ZERO);
    let done = thread::scope(|scope| {
        scope.spawn(|| network.run(clock, || stop.load(Ordering::Relaxed)).unwrap());
        let agent = network.enter("there", || Agent::listening(to(control)));
        let done = agent.and_then(|agent| network.enter("here", || controller(&agent)));
        stop.store(true, Ordering::Relaxed);
        done.unwrap()
    });
    assert!(done.status.success(), "{}", error(&done));
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn the_highest_rate_is_that_of_the_link_between_both_machines() {
    let _turn = turn();
    // Messages have 160 B with the headers of IP and UDP: 250 messages/s.
    let forward = "forward = { rate = \"100 Mbit/s\", queue = \"1000 packets\"";
    let narrow = "forward = { rate = \"320 kbit/s\", queue = \"20 packets\"";
    let Some(network) = network(&SCENARIO.replace(forward, narrow)) else { return };
    let arguments = "rate udp --rate 100 --rate-min 50 --rate-max 400 --resolution 0.5 --trial 1s \
        --confirmations 0 --horizon 1s";
    let summary = measure(&network, "control", arguments);
    assert_eq!((&summary["complete"], &summary["fault"]), (&true.into(), &Value::Null));
    let trials = summary["trials"].as_array().unwrap();
    // On a busy machine the generator is the limit, and the answer says so.
    if summary["limited_by"] == "machine" {
        return;
    }
    let sustained = summary["sustained_per_s"].as_f64().unwrap();
    assert!((150.0..=250.0).contains(&sustained), "{summary}");
    // Four times the rate of the link: messages are lost in the queue.
    let is_failed = |trial: &&Value| trial["rate_per_s"] == 400.0 && trial["result"] == "failed";
    let failed = trials.iter().find(is_failed).unwrap();
    assert!(failed["missing"].as_u64().unwrap() > 50, "{summary}");
    assert_eq!(summary["settings"]["echo"], "false", "{summary}");
}

#[test]
fn an_outage_of_the_network_is_found_from_the_messages() {
    let _turn = turn();
    let outage = "{ outage = [{ start = \"7 s\", length = \"2 s\" }],";
    let [forward, reverse] =
        ["forward = {", "reverse = {"].map(|direction| (direction, direction.replace('{', outage)));
    let scenario = SCENARIO.replace(forward.0, &forward.1).replace(reverse.0, &reverse.1);
    // The control channel survives an interruption of its own network.
    for control in ["control", "test"] {
        let Some(network) = network(&scenario) else { return };
        let arguments = "outage udp --rate 100 --messages 1000 --length 3s --out results";
        let summary = measure(&network, control, arguments);
        assert_eq!(
            (&summary["outage"]["of"], &summary["fault"]),
            (&"observed".into(), &Value::Null)
        );
        let without_arrival = summary["outage"]["without_arrival_s"].as_f64().unwrap();
        // An interval between messages, and the load of the machine.
        assert!((1.95..2.5).contains(&without_arrival), "{control}: {without_arrival}");
        let found = &summary["interruption"];
        let lost = found["lost"].as_u64().unwrap();
        assert!((150..=205).contains(&lost), "{control}: {found}");
        assert_eq!(summary["lost"].as_u64(), Some(lost), "{control}: {summary}");
        assert!(found["survival_time_s"].as_f64().unwrap() < without_arrival, "{found}");
    }
}
