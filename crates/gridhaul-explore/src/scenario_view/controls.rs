//! The controls of a scenario: the keys that a slider or a list of choices sets.

use gridhaul_scenario::Scenario;
use gridhaul_scenario::scenario::{
    CongestionControlAlgorithm, Direction, Loss, Profile, Proxy, ProxyMode, Transport,
};
use gridhaul_scenario::units::QueueLimit;
use serde::Serialize;

/// A control.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Control {
    /// Name in the address of the page.
    pub(crate) id: String,
    /// Heading of the controls of one link, node or stack.
    pub(crate) group: String,
    pub(crate) label: String,
    #[serde(flatten)]
    pub(crate) values: Values,
}

/// The values of a control.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Values {
    /// A quantity.
    Quantity {
        quantity: Quantity,
        /// Present value in base units; null if there is no limit.
        value: Option<f64>,
        /// The same as text.
        text: String,
        min: f64,
        max: f64,
        /// Settings, in which `{}` stands for the value.
        settings: Vec<String>,
    },
    /// One of several choices.
    Choice { value: String, options: Vec<ChoiceOption> },
}

/// Kind of a quantity: it determines the unit and the scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Quantity {
    BitRate,
    Duration,
    Probability,
    Packets,
    Bytes,
    Count,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ChoiceOption {
    pub(crate) value: String,
    pub(crate) settings: Vec<String>,
}

/// Name of the stack that a choice of congestion control gives to flows without one.
const STACK: &str = "explored";

/// The controls, in the order of the scenario.
pub(crate) fn of(scenario: &Scenario) -> Vec<Control> {
    let mut controls = Vec::new();
    for (name, link) in &scenario.link {
        let directions = [
            ("both", "", link.both.as_ref()),
            ("forward", " forward", link.forward.as_ref()),
            ("reverse", " reverse", link.reverse.as_ref()),
        ];
        for (key, suffix, direction) in directions {
            if let Some(direction) = direction {
                let of = DirectionKeys { link: name, key, suffix };
                controls.extend(of.controls(direction));
            }
        }
    }
    controls.extend(congestion_control(scenario));
    for (name, node) in &scenario.node {
        if let Some(proxy) = &node.proxy {
            controls.push(proxy_mode(name, proxy));
        }
        if node.count > 1 {
            let key = format!("node.{name}.count");
            controls.push(count(format!("Nodes {name}"), "number", &key, node.count));
        }
    }
    for (name, flow) in &scenario.flow {
        if flow.count > 1 {
            let key = format!("flow.{name}.count");
            controls.push(count(format!("Flow {name}"), "number of flows", &key, flow.count));
        }
    }
    controls
}

/// Keys of one direction of a link, or of both.
struct DirectionKeys<'a> {
    link: &'a str,
    key: &'a str,
    suffix: &'a str,
}

impl DirectionKeys<'_> {
    fn controls(&self, direction: &Direction) -> Vec<Control> {
        let mut controls = Vec::new();
        let rate = direction.rate.as_bits_per_sec() as f64;
        if !direction.has_measured_rate() {
            controls.push(self.control(
                "rate",
                "rate",
                Values::Quantity {
                    quantity: Quantity::BitRate,
                    value: Some(rate),
                    text: direction.rate.to_string(),
                    min: 1e4_f64.min(rate),
                    max: 1e8_f64.max(rate),
                    settings: vec![self.setting("rate")],
                },
            ));
        }
        let delay = direction.delay.as_secs_f64();
        controls.push(self.control(
            "delay",
            "delay",
            Values::Quantity {
                quantity: Quantity::Duration,
                value: Some(delay),
                text: direction.delay.to_string(),
                min: 0.0,
                max: 1_f64.max(delay),
                settings: vec![self.setting("delay")],
            },
        ));
        let loss = match &direction.loss {
            None => Some(0.0),
            Some(Loss::Bernoulli(probability)) => Some(probability.ratio()),
            // Bursts and lists of packets have no single probability.
            Some(_) => None,
        };
        if let Some(loss) = loss {
            controls.push(self.control(
                "loss",
                "loss",
                Values::Quantity {
                    quantity: Quantity::Probability,
                    value: Some(loss),
                    text: format!("{} %", loss * 100.0),
                    min: 0.0,
                    max: 0.3_f64.max(loss),
                    settings: vec![self.setting("loss.bernoulli")],
                },
            ));
        }
        controls.push(self.queue(direction.queue));
        controls
    }

    fn queue(&self, limit: QueueLimit) -> Control {
        let (quantity, value, max) = match limit {
            QueueLimit::Packets(packets) => (Quantity::Packets, Some(f64::from(packets)), 1000.0),
            QueueLimit::Bytes(bytes) => (Quantity::Bytes, Some(bytes.get() as f64), 1e7),
            QueueLimit::Unlimited => (Quantity::Packets, None, 1000.0),
        };
        self.control(
            "queue",
            "queue",
            Values::Quantity {
                quantity,
                value,
                text: limit.to_string(),
                min: value.unwrap_or(1.0).min(if quantity == Quantity::Bytes {
                    1500.0
                } else {
                    1.0
                }),
                max: value.map_or(max, |value| value.max(max)),
                settings: vec![self.setting("queue")],
            },
        )
    }

    fn control(&self, key: &str, label: &str, values: Values) -> Control {
        let Self { link, suffix, .. } = self;
        let direction =
            suffix.trim().get(..1).map_or_else(String::new, |_| format!(".{}", suffix.trim()));
        Control {
            id: format!("link.{link}{direction}.{key}"),
            group: format!("Link {link}"),
            label: format!("{label}{suffix}"),
            values,
        }
    }

    fn setting(&self, key: &str) -> String {
        let Self { link, key: direction, .. } = self;
        format!("link.{link}.{direction}.{key}={{}}")
    }
}

/// A list of algorithms for each stack, and one for all TCP flows without a stack.
fn congestion_control(scenario: &Scenario) -> Vec<Control> {
    let mut controls = Vec::new();
    for (name, stack) in &scenario.stack {
        let present = stack.congestion_control.unwrap_or(stack.profile.congestion_control());
        controls.push(algorithms(format!("Stack {name}"), name, present, &[]));
    }
    let flows = scenario.flow.iter();
    let without = flows.filter(|(_, flow)| {
        flow.transport == Transport::Tcp && flow.stack.is_none() && flow.to_stack.is_none()
    });
    let settings: Vec<_> = without.map(|(name, _)| format!("flow.{name}.stack={STACK}")).collect();
    if !settings.is_empty() && !scenario.stack.contains_key(STACK) {
        let present = Profile::default().congestion_control();
        controls.push(algorithms("TCP".to_owned(), STACK, present, &settings));
    }
    controls
}

fn algorithms(
    group: String,
    stack: &str,
    present: CongestionControlAlgorithm,
    settings: &[String],
) -> Control {
    let options = CongestionControlAlgorithm::ALL.iter().map(|algorithm| {
        let value = algorithm.name().to_owned();
        let own = format!("stack.{stack}.congestion_control={value}");
        ChoiceOption { value, settings: [&[own], settings].concat() }
    });
    let values = Values::Choice { value: present.name().to_owned(), options: options.collect() };
    Control {
        id: format!("stack.{stack}.congestion_control"),
        group,
        label: "congestion control".to_owned(),
        values,
    }
}

fn proxy_mode(node: &str, proxy: &Proxy) -> Control {
    let options = ProxyMode::ALL.into_iter().map(|mode| {
        let value = mode.to_string();
        let mut settings = vec![format!("node.{node}.proxy.mode={value}")];
        // These modes serve one end of the flow.
        if matches!(mode, ProxyMode::Snoop | ProxyMode::Ack) && proxy.toward.is_none() {
            let toward = if mode == ProxyMode::Snoop { "to" } else { "from" };
            settings.push(format!("node.{node}.proxy.toward={toward}"));
        }
        ChoiceOption { value, settings }
    });
    Control {
        id: format!("node.{node}.proxy"),
        group: format!("Proxy {node}"),
        label: "mode".to_owned(),
        values: Values::Choice { value: proxy.mode.to_string(), options: options.collect() },
    }
}

fn count(group: String, label: &str, key: &str, value: u32) -> Control {
    Control {
        id: key.to_owned(),
        group,
        label: label.to_owned(),
        values: Values::Quantity {
            quantity: Quantity::Count,
            value: Some(f64::from(value)),
            text: value.to_string(),
            min: 1.0,
            max: (f64::from(value) * 10.0).max(100.0),
            settings: vec![format!("{key}={{}}")],
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controls(rest: &str) -> Vec<Control> {
        let text = format!(
            "title = \"t\"\nduration = \"1 s\"\n[node]\na = {{ count = 7 }}\nb = {{}}\n[flow.f]\n\
             from = \"a\"\nto = \"b\"\nload = \"bulk\"\n[link.l]\nfrom = \"a\"\nto = \"b\"\n{rest}"
        );
        of(&Scenario::from_toml(&text, "a.toml").unwrap())
    }

    fn ids(controls: &[Control]) -> Vec<&str> {
        controls.iter().map(|control| control.id.as_str()).collect()
    }

    #[test]
    fn equal_directions_have_one_slider_and_different_ones_two() {
        let equal = controls("both = { rate = \"1 Mbit/s\" }\n");
        assert_eq!(
            ids(&equal),
            [
                "link.l.rate",
                "link.l.delay",
                "link.l.loss",
                "link.l.queue",
                "stack.explored.congestion_control",
                "node.a.count"
            ]
        );
        let Values::Quantity { settings, .. } = &equal[2].values else { panic!("{equal:?}") };
        assert_eq!(settings, &["link.l.both.loss.bernoulli={}"]);
        let different = controls(
            "forward = { rate = \"1 Mbit/s\", loss.packets = [3] }\n\
             reverse = { rate = \"2 Mbit/s\" }\n",
        );
        let forward = ["link.l.forward.rate", "link.l.forward.delay", "link.l.forward.queue"];
        assert_eq!(ids(&different)[..3], forward, "a list of packets is no probability");
        assert_eq!(different[3].label, "rate reverse");
    }

    #[test]
    fn a_choice_of_congestion_control_reaches_flows_without_a_stack() {
        let controls = controls("both = { rate = \"1 Mbit/s\" }\n");
        let Values::Choice { value, options } = &controls[4].values else { panic!("{controls:?}") };
        assert_eq!(value, "cubic");
        let reno = options.iter().find(|option| option.value == "reno").unwrap();
        let expected = ["stack.explored.congestion_control=reno", "flow.f.stack=explored"];
        assert_eq!(reno.settings, expected);
    }

    #[test]
    fn a_queue_without_a_limit_has_no_value() {
        let controls = controls("both = { rate = \"1 Mbit/s\", queue = \"unlimited\" }\n");
        let Values::Quantity { value, text, .. } = &controls[3].values else { panic!() };
        assert_eq!((*value, text.as_str()), (None, "unlimited"));
    }
}
