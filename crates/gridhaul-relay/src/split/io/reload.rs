//! Reading the configuration again, without ending a session.

use gridhaul_scenario::RelayConfig;

use super::Loop;
use super::setup::{file_limits, leg_options, timeouts};

impl Loop {
    /// Applies a configuration that was read again, as a whole or, with an error, not at all.
    pub(super) fn reload(&mut self, config: &RelayConfig) -> Result<(), String> {
        let split = config.split.as_ref().ok_or("there is no [split]")?;
        // Whatever can fail comes first, so that a configuration is applied as a whole.
        let client_options = leg_options(&split.client).map_err(|error| error.to_string())?;
        self.server_options = leg_options(&split.server).map_err(|error| error.to_string())?;
        for listener in &mut self.listeners {
            if let Some(new) = split.listener.get(&listener.name) {
                listener.reload(new, client_options.clone());
            }
        }
        self.timeouts = timeouts(split);
        self.open_max = file_limits(split).0;
        self.shared.memory_max = split.memory.get();
        Ok(())
    }
}

/// Replaces the values of keys that a reload applies by those of another configuration.
pub(super) fn copy_reloaded(from: &RelayConfig, to: &mut RelayConfig) {
    let (Some(to), Some(from)) = (&mut to.split, &from.split) else { return };
    to.client.clone_from(&from.client);
    to.server.clone_from(&from.server);
    to.connections = from.connections;
    to.memory = from.memory;
    to.connect_timeout = from.connect_timeout;
    to.half_close_timeout = from.half_close_timeout;
    to.idle_timeout = from.idle_timeout;
    for (name, listener) in &mut to.listener {
        // A listener cannot become transparent, or cease to be so.
        let from = from.listener.get(name).filter(|listener| listener.upstream.is_some());
        if let Some(from) = from.filter(|_| listener.upstream.is_some()) {
            listener.upstream.clone_from(&from.upstream);
        }
    }
}
