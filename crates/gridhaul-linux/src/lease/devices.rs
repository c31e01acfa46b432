//! The two devices of a lease, and the bridge that forwards between them without it.

use crate::{NetworkDevice, network_devices};

use super::LeaseError;

/// Two ports of a bridge that has no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Devices {
    pub(super) indexes: [u32; 2],
    /// Hardware addresses of the bridge and its ports, without duplicates.
    pub(super) addresses: Vec<[u8; 6]>,
}

impl Devices {
    /// Finds the devices in the namespace of the calling thread.
    pub(super) fn find(names: [&str; 2]) -> Result<Self, LeaseError> {
        Self::of(&network_devices()?, names)
    }

    fn of(devices: &[NetworkDevice], names: [&str; 2]) -> Result<Self, LeaseError> {
        let [left, right] = names.map(|name| {
            let found = devices.iter().find(|device| device.name == name);
            found.ok_or_else(|| LeaseError::NoDevice { name: name.to_owned() })
        });
        let ports = [left?, right?];
        let bridge = |port: &NetworkDevice| {
            let master = port.master?;
            devices.iter().find(|device| device.index == master && device.kind == "bridge")
        };
        let bridges = ports.map(bridge);
        let [Some(bridge), Some(other)] = bridges else {
            let missing = names.into_iter().zip(bridges).filter(|(_, bridge)| bridge.is_none());
            let missing: Vec<_> = missing.map(|(name, _)| name).collect();
            return Err(LeaseError::NoBridge {
                devices: missing.join(" and "),
                remedy: remedy(names),
            });
        };
        if bridge.index != other.index {
            let bridges = [bridge, other].map(|bridge| bridge.name.clone());
            return Err(LeaseError::TwoBridges { devices: names.map(str::to_owned), bridges });
        }
        let is_other = |device: &&NetworkDevice| {
            device.master == Some(bridge.index) && !names.contains(&device.name.as_str())
        };
        if let Some(other) = devices.iter().find(is_other) {
            let (bridge, port) = (bridge.name.clone(), other.name.clone());
            return Err(LeaseError::OtherPort { bridge, port });
        }
        let mut addresses: Vec<_> =
            [ports[0], ports[1], bridge].iter().filter_map(|device| device.address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        Ok(Self { indexes: ports.map(|port| port.index), addresses })
    }
}

/// Commands that make a bridge of the devices.
fn remedy([left, right]: [&str; 2]) -> String {
    format!(
        "ip link add br0 type bridge && ip link set br0 up && ip link set {left} master br0 && \
         ip link set {right} master br0"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(index: u32, name: &str, master: Option<u32>, kind: &str) -> NetworkDevice {
        let address = Some([2, 0, 0, 0, 0, index as u8]);
        NetworkDevice { index, name: name.to_owned(), address, master, kind: kind.to_owned() }
    }

    fn devices() -> Vec<NetworkDevice> {
        let mut bridge = device(4, "br0", None, "bridge");
        // A bridge has the lowest address of its ports.
        bridge.address = Some([2, 0, 0, 0, 0, 2]);
        vec![
            device(2, "eth0", Some(4), ""),
            device(3, "eth1", Some(4), "veth"),
            bridge,
            device(5, "bond0", None, "bond"),
            device(6, "eth2", Some(5), ""),
        ]
    }

    #[test]
    fn the_two_ports_of_a_bridge_are_found() {
        let found = Devices::of(&devices(), ["eth1", "eth0"]).unwrap();
        let addresses = vec![[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 3]];
        assert_eq!(found, Devices { indexes: [3, 2], addresses });
    }

    #[test]
    fn devices_without_a_common_bridge_are_refused_with_the_remedy() {
        let error = |names| Devices::of(&devices(), names).unwrap_err().to_string();
        assert!(error(["eth0", "absent"]).contains("no network device absent"));
        let text = error(["eth0", "eth2"]);
        assert!(text.starts_with("eth2: no port of a bridge"), "{text}");
        assert!(text.contains("ip link set eth2 master br0"), "{text}");
        let text = error(["eth2", "bond0"]);
        assert!(text.starts_with("eth2 and bond0"), "{text}");
        let mut third = devices();
        third[4].master = Some(4);
        let error = Devices::of(&third, ["eth0", "eth1"]).unwrap_err().to_string();
        assert!(error.contains("br0") && error.contains("eth2"), "{error}");
        let mut two = devices();
        two.push(device(7, "br1", None, "bridge"));
        two[1].master = Some(7);
        let error = Devices::of(&two, ["eth0", "eth1"]).unwrap_err().to_string();
        assert!(error.contains("br0") && error.contains("br1"), "{error}");
    }
}
