//! Reading the configuration again, without ending a session.

use gridhaul_scenario::RelayConfig;

use super::super::{Level, report};
use super::Loop;
use super::setup::{file_limits, leg_options, timeouts};

impl Loop {
    /// Applies a configuration that was read again. With an error, the present one stays.
    pub(super) fn reload(&mut self, read: Result<RelayConfig, String>) {
        match read.and_then(|config| self.apply(config)) {
            Ok(()) => report(Level::Notice, "the configuration was read again"),
            Err(error) => {
                report(Level::Error, &format!("{error}\nthe present configuration stays in use"));
            }
        }
    }

    fn apply(&mut self, config: RelayConfig) -> Result<(), String> {
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
        if needs_restart(&self.config, &config) {
            let text = "keys other than those of legs, time limits, `connections`, `memory` and `upstream` have changed: an \
                        upgrade (SIGUSR2) or a restart applies them";
            report(Level::Warning, text);
        }
        self.config = config;
        Ok(())
    }
}

/// Whether configurations differ in keys that a running relay cannot change.
fn needs_restart(old: &RelayConfig, new: &RelayConfig) -> bool {
    let mut same = new.clone();
    if let (Some(same), Some(old)) = (&mut same.split, &old.split) {
        same.client.clone_from(&old.client);
        same.server.clone_from(&old.server);
        same.connections = old.connections;
        same.memory = old.memory;
        same.connect_timeout = old.connect_timeout;
        same.half_close_timeout = old.half_close_timeout;
        same.idle_timeout = old.idle_timeout;
        for (name, listener) in &mut same.listener {
            if let Some(old) = old.listener.get(name).filter(|it| it.upstream.is_some()) {
                listener.upstream.clone_from(&old.upstream);
            }
        }
    }
    same != *old
}
