//! Reading the configuration again, without ending a connection.

use gridhaul_scenario::RelayConfig;

use super::Loop;
use super::setup::engine_settings;

impl Loop {
    /// Applies a configuration that was read again, as a whole or, with an error, not at all.
    pub(super) fn reload(&mut self, config: &RelayConfig) -> Result<(), String> {
        let bridge = config.bridge.as_ref().ok_or("there is no [bridge]")?;
        let mtus = self.engine.settings().mtus;
        self.engine.set_settings(engine_settings(bridge, mtus));
        Ok(())
    }
}

/// Replaces the values of keys that a reload applies by those of another configuration.
pub(super) fn copy_reloaded(from: &RelayConfig, to: &mut RelayConfig) {
    let (Some(to), Some(from)) = (&mut to.bridge, &from.bridge) else { return };
    to.rule.clone_from(&from.rule);
    to.connections = from.connections;
    to.memory = from.memory;
    to.idle_timeout = from.idle_timeout;
}
