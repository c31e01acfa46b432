//! Keys that are set and have no effect, because of other keys.

mod links;
mod stacks;

use super::Scenario;

/// A key without effect, such as `stack.s.vegas_alpha`, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IneffectiveKey {
    pub key: String,
    pub reason: &'static str,
}

/// The keys of one part of a scenario, whose path is the prefix.
struct Keys<'a> {
    part: String,
    found: &'a mut Vec<IneffectiveKey>,
}

impl Scenario {
    /// Keys of stacks and links that have no effect; in a sweep, at no point. Parts in which a plan
    /// chooses values are left out, since a key may belong to another choice.
    pub(crate) fn ineffective_keys(&self) -> Vec<IneffectiveKey> {
        let mut found = self.at_all_points(|point| {
            let mut found = Vec::new();
            stacks::find(point, &mut found);
            links::find(point, &mut found);
            found
        });
        found.retain(|found| !self.plan_chooses_in(&found.key));
        found
    }

    /// Whether a plan chooses a value of the same stack or link.
    fn plan_chooses_in(&self, key: &str) -> bool {
        let part = |key: &str| key.splitn(3, '.').take(2).map(str::to_owned).collect::<Vec<_>>();
        let chosen = self.plan.iter().flat_map(|plan| plan.choose.keys());
        chosen.into_iter().any(|chosen| part(chosen) == part(key))
    }
}

impl Keys<'_> {
    /// Reports a key of this part if it `is_without_effect`.
    fn report_if(&mut self, is_without_effect: bool, key: &str, reason: &'static str) {
        if is_without_effect {
            self.found.push(IneffectiveKey { key: format!("{}.{key}", self.part), reason });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORK: &str = "title = 'keys'\nduration = '1 s'\nnode = { a = {}, b = {} }\n";
    const FLOW: &str =
        "[flow.f]\nfrom = 'a'\nto = 'b'\nload.burst = { at = '0 s', size = '5 kB' }\nstack = 's'\n";

    /// Keys without effect in the keys of a stack and of a direction.
    fn found(stack: &str, direction: &str, rest: &str) -> Vec<String> {
        let text = format!(
            "{NETWORK}link.l = {{ from = 'a', to = 'b', both = {{ rate = '1 Mbit/s', delay = '1 \
             ms'{direction} }} }}\n{rest}\n{FLOW}[stack.s]\n{stack}\n"
        );
        let scenario = Scenario::from_toml(&text, "keys.toml").expect("a scenario");
        scenario.ineffective_keys().into_iter().map(|found| found.key).collect()
    }

    #[test]
    fn keys_of_an_algorithm_that_the_stack_does_not_use_have_no_effect() {
        let all = "vegas_alpha = 1.0\nmedx_beta = 1.5\nhystart = true\n";
        let with = |algorithm: &str| found(&format!("{all}{algorithm}"), "", "");
        assert_eq!(with(""), ["stack.s.vegas_alpha", "stack.s.medx_beta"]);
        let vegas = "congestion_control = 'vegas'";
        assert_eq!(with(vegas), ["stack.s.medx_beta", "stack.s.hystart"]);
        let fixed = "congestion_control = 'fixed'\nfixed_window = '9 segments'\n\
                     initial_window = '2 segments'\ninitial_ssthresh = '5 segments'";
        assert_eq!(found(fixed, "", ""), ["stack.s.initial_window", "stack.s.initial_ssthresh"]);
    }

    #[test]
    fn prr_needs_rack_or_profile_linux_and_ack_every_needs_a_delay() {
        assert_eq!(found("prr = true", "", ""), [""; 0]);
        assert_eq!(found("profile = 'rfc'\nprr = true", "", ""), ["stack.s.prr"]);
        assert_eq!(found("recovery = 'new_reno'\nprr = true", "", ""), ["stack.s.prr"]);
        let at_once = "delayed_ack = '0 s'\nack_every = 4\nquick_ack = 3";
        assert_eq!(found(at_once, "", ""), ["stack.s.ack_every", "stack.s.quick_ack"]);
    }

    #[test]
    fn a_sweep_or_a_plan_may_give_a_key_its_effect() {
        let swept = "[[sweep]]\nvary.'stack.s.congestion_control' = ['vegas', 'cubic']\n";
        assert_eq!(found("vegas_alpha = 1.0", "", swept), [""; 0]);
        let planned = "plan.choose = { 'stack.s.congestion_control' = ['vegas', 'cubic'], \
                       'link.l.both.rate' = ['1 Mbit/s', '2 Mbit/s'] }\n\
                       plan.cost = { 'link.l.both.rate' = 5 }\nplan.limit.f = { loss = '1 %' }\n";
        assert_eq!(found("vegas_alpha = 1.0", "", planned), [""; 0]);
        assert_eq!(found("vegas_alpha = 1.0", "", ""), ["stack.s.vegas_alpha"]);
    }

    #[test]
    fn a_queue_that_marks_needs_a_stack_with_ecn() {
        let queue = ", aqm.codel.ecn = true";
        assert_eq!(found("ecn = true", queue, ""), [""; 0]);
        // Without marks as well, Reno reduces its window once for the losses of a window.
        assert_eq!(found("ecn = true", "", ""), [""; 0]);
        assert_eq!(found("", queue, ""), ["link.l.both.aqm.codel.ecn"]);
    }

    #[test]
    fn retransmission_keys_of_a_radio_need_a_second_transmission() {
        let with = |direction: &str| found("", direction, "");
        let radio = ", radio = { standard = 'lte', transmissions = 1, round_trip = '9 ms', \
                     repetition_error = '2 %' }";
        let keys = ["round_trip", "repetition_error"];
        assert_eq!(with(radio), keys.map(|key| format!("link.l.both.radio.{key}")));
        assert_eq!(with(", radio = { standard = 'lte', round_trip = '9 ms' }"), [""; 0]);
    }

    #[test]
    fn a_paired_latency_needs_a_paired_direction() {
        let paired = ", load_latency.paired = '9 s'";
        assert_eq!(found("", paired, ""), ["link.l.both.load_latency.paired"]);
    }

    #[test]
    fn keys_of_segments_have_an_effect_on_a_tcp_flow() {
        assert_eq!(found("", ", mss_clamp = '500 B'", ""), [""; 0]);
    }

    /// A scheduler of two classes: the first has a priority and a queue, the other these keys.
    fn scheduler(other: &str) -> String {
        format!(
            "class = {{ first = {{ flows = ['f'], priority = 1, queue = '9 packets' }}, other = \
             {{ {other} }} }}"
        )
    }

    #[test]
    fn keys_of_weights_need_two_classes_without_priority() {
        let with = |keys: &str| found("", &format!(", scheduler = {{ {keys} }}"), "");
        let quantum = format!("quantum = '3 kB', {}", scheduler(""));
        assert_eq!(with(&quantum), ["link.l.both.scheduler.quantum"]);
        let weight = with(&scheduler("weight = 3"));
        assert_eq!(weight, ["link.l.both.scheduler.class.other.weight"]);
    }

    #[test]
    fn the_queue_of_a_direction_needs_a_class_without_its_own() {
        let with = |other: &str| {
            let scheduler = scheduler(other);
            found("", &format!(", queue = '7 packets', scheduler = {{ {scheduler} }}"), "")
        };
        assert_eq!(with("queue = '5 packets'"), ["link.l.both.queue"]);
        assert_eq!(with(""), [""; 0]);
    }

    #[test]
    fn a_class_needs_a_flow_with_its_code_point() {
        let direction = ", scheduler.class = { urgent = { dscp = ['EF'] }, other = {} }";
        assert_eq!(found("", direction, ""), ["link.l.both.scheduler.class.urgent"]);
    }
}
