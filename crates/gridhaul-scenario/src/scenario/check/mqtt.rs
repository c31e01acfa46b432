//! Checks of MQTT publications and subscriptions.

use super::Report;
use crate::scenario::{ConnectionPolicy, Flow, Load, Mqtt, MqttSubscription};
use crate::units::{Bytes, Duration};

/// Longest text of a packet (MQTT 3.1.1, section 1.5.3), and largest keep alive in seconds
/// (section 3.1.2.10).
const NUMBER_MAX: u64 = 65_535;

/// The unit of the keep alive (section 3.1.2.10).
const SECOND: Duration = Duration::from_secs(1);

/// Largest message: the remaining length of a packet is at most 268,435,455 B (section 2.2.3), of
/// which the longest topic name, its length, a packet identifier and the properties are a part.
const PACKET_MAX: Bytes = Bytes::new(268_435_455 - NUMBER_MAX - 5);

impl Report<'_> {
    pub(super) fn mqtt(&mut self, key: &str, load: &Mqtt) {
        self.some_size(&format!("{key}.size"), load.size);
        if load.size > PACKET_MAX {
            self.refuse(
                format!("{key}.size"),
                "a packet of MQTT has at most 256 MiB (section 2.2.3)",
                "write a smaller size, such as \"200 B\"",
            );
        }
        self.some_time(&format!("{key}.every"), load.every);
        self.qos(&format!("{key}.qos"), load.qos);
        for (name, size) in [("topic", load.topic), ("client_id", load.client_id)] {
            if size.get() == 0 || size > Bytes::new(NUMBER_MAX) {
                self.refuse(
                    format!("{key}.{name}"),
                    format!("a text of MQTT has 1 B to {NUMBER_MAX} B"),
                    "write \"24 B\", or leave it out",
                );
            }
        }
        if load.in_flight == 0 || u64::from(load.in_flight) > NUMBER_MAX {
            self.refuse(
                format!("{key}.in_flight"),
                format!("packet identifiers permit 1 to {NUMBER_MAX} messages"),
                "write 20, or leave it out",
            );
        }
        if load.keep_alive > Duration::from_secs(NUMBER_MAX) {
            self.refuse(
                format!("{key}.keep_alive"),
                format!("a CONNECT packet has at most {NUMBER_MAX} s"),
                "write \"60 s\", or leave it out",
            );
        }
        if !load.keep_alive.as_nanos().is_multiple_of(SECOND.as_nanos()) {
            self.refuse(
                format!("{key}.keep_alive"),
                "a CONNECT packet has whole seconds (MQTT 3.1.1, section 3.1.2.10)",
                "write \"1 s\", or \"0 s\" for none",
            );
        }
    }

    fn qos(&mut self, key: &str, qos: u8) {
        if qos > 2 {
            self.refuse(
                key,
                format!("expected a quality of service, and got {qos}"),
                "write 0 (at most once), 1 (at least once) or 2 (exactly once)",
            );
        }
    }

    pub(super) fn mqtt_subscription(&mut self, key: &str, load: &MqttSubscription) {
        self.qos(&format!("{key}.qos"), load.qos);
    }

    /// The publications of a subscription, and the connections of both.
    pub(super) fn mqtt_flow(&mut self, key: &str, flow: &Flow) {
        if !matches!(flow.load, Load::Mqtt(_) | Load::MqttSubscription(_)) {
            return;
        }
        if flow.connection != ConnectionPolicy::Persistent {
            self.refuse(
                format!("{key}.connection"),
                "the connections of MQTT clients stay open",
                "use connection = \"persistent\", or `periodic` with `acknowledgement`",
            );
        }
        let Load::MqttSubscription(keys) = &flow.load else { return };
        let publisher = self.scenario.flow.get(&keys.publications);
        let is_here = publisher.is_some_and(|publisher| {
            matches!(publisher.load, Load::Mqtt(_)) && publisher.to == flow.to
        });
        if !is_here {
            self.refuse(
                format!("{key}.load.mqtt_subscription.publications"),
                format!("no flow {:?} publishes to the broker {}", keys.publications, flow.to),
                "name a flow with load.mqtt whose `to` is that of this flow",
            );
        }
        if self.scenario.connections(flow) != 1 {
            self.refuse(
                format!("{key}.load.mqtt_subscription"),
                "a subscription is one connection from one subscriber to one broker",
                "write a flow for each subscriber, without `count` and groups",
            );
        }
    }
}
