//! Reading the configuration again, without ending a connection.

use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::BridgeConfig;

use super::Loop;
use super::setup::engine_settings;

impl Loop {
    /// Applies a configuration that was read again, as a whole or, with an error, not at all.
    pub(super) fn reload(&mut self, config: &RelayConfig) -> Result<(), String> {
        let bridge = config.bridge.as_ref().ok_or("there is no [bridge]")?;
        check_interfaces(self.state.config.bridge.as_ref(), bridge)?;
        let mtus = self.engine.settings().mtus;
        self.engine.set_settings(engine_settings(bridge, mtus));
        Ok(())
    }
}

/// Rules name the interfaces: those of other interfaces, or of the same ones in another order, do
/// not fit the ones that are open.
fn check_interfaces(running: Option<&BridgeConfig>, new: &BridgeConfig) -> Result<(), String> {
    let Some(running) = running.filter(|running| running.interfaces != new.interfaces) else {
        return Ok(());
    };
    Err(format!(
        "bridge.interfaces: a running bridge does not change its interfaces, {}\n  help: restart \
         the relay",
        running.interfaces.join(" and ")
    ))
}

/// Replaces the values of keys that a reload applies by those of another configuration.
pub(super) fn copy_reloaded(from: &RelayConfig, to: &mut RelayConfig) {
    let (Some(to), Some(from)) = (&mut to.bridge, &from.bridge) else { return };
    to.rule.clone_from(&from.rule);
    to.connections = from.connections;
    to.memory = from.memory;
    to.idle_timeout = from.idle_timeout;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bridge(interfaces: [&str; 2]) -> BridgeConfig {
        let text = format!("name = \"b\"\n[bridge]\ninterfaces = {interfaces:?}\n");
        RelayConfig::from_toml(&text, "b.toml").unwrap().bridge.unwrap()
    }

    #[test]
    fn interfaces_stay_and_keep_their_order() {
        let running = bridge(["left", "right"]);
        assert_eq!(check_interfaces(Some(&running), &running), Ok(()));
        for other in [["right", "left"], ["left", "third"]] {
            let error = check_interfaces(Some(&running), &bridge(other)).unwrap_err();
            assert!(error.contains("left and right") && error.contains("restart"), "{error}");
        }
    }
}
