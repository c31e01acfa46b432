//! Random publications of MQTT.

use gridhaul_scenario::scenario::{Load, Mqtt, MqttVersion};
use gridhaul_scenario::units::{Bytes, Duration};
use proptest::prelude::*;

use super::{size, time};

pub(super) fn publications() -> impl Strategy<Value = Load> {
    let version = prop_oneof![Just(MqttVersion::V3_1_1), Just(MqttVersion::V5)];
    let text = || (1..=65_535_u64).prop_map(Bytes::new);
    let seconds = (0..=65_535_u64).prop_map(Duration::from_secs);
    let times = (time(1), any::<bool>(), seconds);
    (size(), times, 0..=2_u8, version, text(), text(), 1..=65_535_u32).prop_map(
        |(size, (every, synchronised, keep_alive), qos, version, topic, client_id, in_flight)| {
            Load::Mqtt(Mqtt {
                size,
                every,
                synchronised,
                qos,
                version,
                topic,
                client_id,
                in_flight,
                keep_alive,
            })
        },
    )
}
