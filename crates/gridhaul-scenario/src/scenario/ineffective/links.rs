//! Keys of links and of their directions without effect.

use super::super::{Aqm, Direction, LoadLatency, PowerLine, Radio, Scenario, Scheduler, Transport};
use super::{IneffectiveKey, Keys};

/// Finds the keys of links that have no effect.
pub(super) fn find(scenario: &Scenario, found: &mut Vec<IneffectiveKey>) {
    for (name, link) in &scenario.link {
        if let Some(line) = &link.power_line {
            let mut keys = Keys { part: format!("link.{name}.power_line"), found };
            keys_of_power_line(line, &mut keys);
        }
        for (side, direction) in link.given() {
            let mut keys = Keys { part: format!("link.{name}.{side}"), found };
            keys_of_radio(direction.radio.as_ref(), &mut keys);
            keys_of_latency(direction.load_latency.as_ref(), &mut keys);
            keys_of_segments(scenario, direction, &mut keys);
            keys_of_marks(scenario, direction, &mut keys);
            if let Some(scheduler) = &direction.scheduler {
                keys_of_scheduler(scenario, scheduler, &mut keys);
                let has_own_limits = scheduler.class.values().all(|class| class.queue.is_some());
                let is_set = direction.queue != Direction::default_queue();
                let reason = "each class of the scheduler has its own `queue`";
                keys.report_if(is_set && has_own_limits, "queue", reason);
            }
        }
    }
}

fn keys_of_power_line(line: &PowerLine, keys: &mut Keys<'_>) {
    let is_used = line.distance.is_some() || line.shadowing;
    let reason = "without `distance` and `shadowing`, a line has no spans";
    keys.report_if(line.span.is_some() && !is_used, "span", reason);
}

fn keys_of_radio(radio: Option<&Radio>, keys: &mut Keys<'_>) {
    let Some(radio) = radio else { return };
    if radio.parameters().transmissions == 1 {
        let reason = "with one transmission, no block is repeated";
        keys.report_if(radio.round_trip.is_some(), "radio.round_trip", reason);
        keys.report_if(radio.repetition_error.is_some(), "radio.repetition_error", reason);
    }
}

fn keys_of_latency(latency: Option<&LoadLatency>, keys: &mut Keys<'_>) {
    let Some(latency) = latency.filter(|latency| latency.paired_with.is_none()) else { return };
    let is_set = latency.paired != LoadLatency::default_paired();
    let reason = "without `paired_with`, no direction is paired with this one";
    keys.report_if(is_set, "load_latency.paired", reason);
}

/// Keys that concern segments of TCP only.
fn keys_of_segments(scenario: &Scenario, direction: &Direction, keys: &mut Keys<'_>) {
    if scenario.flow.values().any(|flow| flow.transport == Transport::Tcp) {
        return;
    }
    let reason = "no flow of the scenario is a TCP flow";
    keys.report_if(direction.mss_clamp.is_some(), "mss_clamp", reason);
    keys.report_if(direction.packet_too_big.is_some(), "packet_too_big", reason);
}

/// Queues that mark packets of which none is capable of ECN.
fn keys_of_marks(scenario: &Scenario, direction: &Direction, keys: &mut Keys<'_>) {
    if scenario.stack.values().any(|stack| stack.ecn == Some(true)) {
        return;
    }
    let reason = "no stack has `ecn`, so that packets are dropped";
    let name = |aqm: &Aqm| aqm.marks().then(|| format!("aqm.{}.ecn", aqm.name()));
    if let Some(key) = direction.aqm.as_ref().and_then(name) {
        keys.report_if(true, &key, reason);
    }
    let classes = direction.scheduler.iter().flat_map(|scheduler| &scheduler.class);
    for (class, table) in classes {
        if let Some(key) = table.aqm.as_ref().and_then(name) {
            keys.report_if(true, &format!("scheduler.class.{class}.{key}"), reason);
        }
    }
}

fn keys_of_scheduler(scenario: &Scenario, scheduler: &Scheduler, keys: &mut Keys<'_>) {
    let weighted = scheduler.class.values().filter(|class| class.priority.is_none()).count();
    if weighted < 2 {
        let reason = "only classes without a priority share the time";
        let is_set = scheduler.quantum != Scheduler::default_quantum();
        keys.report_if(is_set, "scheduler.quantum", reason);
        for (name, class) in &scheduler.class {
            let key = format!("scheduler.class.{name}.weight");
            keys.report_if(class.weight.is_some(), &key, reason);
        }
    }
    for (name, class) in &scheduler.class {
        let has_packets = class.takes_other_packets()
            || !class.flows.is_empty()
            || scenario.flow.values().any(|flow| class.dscp.contains(&flow.dscp));
        let reason = "no flow has a code point of this class";
        keys.report_if(!has_packets, &format!("scheduler.class.{name}"), reason);
    }
}
