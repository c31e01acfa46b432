//! Reading the configuration again, without ending a connection.

use std::path::Path;

use gridhaul_scenario::RelayConfig;

use super::Loop;
use super::arrivals::RateLimit;
use super::framing::framing_of;
use crate::runtime::tls;

impl Loop {
    /// Applies a configuration that was read again, as a whole or, with an error, not at all.
    pub(super) fn reload(&mut self, config: &RelayConfig, folder: &Path) -> Result<(), String> {
        let keys = config.collector.as_ref().ok_or("there is no [collector]")?;
        // Whatever can fail comes first, so that a configuration is applied as a whole.
        let upstream = tls::upstream(keys, folder).map_err(|error| error.to_string())?;
        let mut configured = Vec::new();
        for listener in &self.listeners {
            let Some(new) = keys.listener.get(&listener.name) else {
                configured.push((listener.config.clone(), listener.tls.clone()));
                continue;
            };
            let key = format!("collector.listener.{}.tls", listener.name);
            let files = new.tls.as_ref().map(|tls| tls::meters(&key, tls, folder));
            configured.push((new.clone(), files.transpose().map_err(|error| error.to_string())?));
        }
        for (listener, (config, tls)) in self.listeners.iter_mut().zip(configured) {
            (listener.framing, listener.idle_gap) = framing_of(&config.framing);
            (listener.config, listener.tls) = (config, tls);
        }
        for shard in &mut self.upstreams {
            shard.set_tls(upstream.clone());
        }
        self.set_limits(keys);
        self.message_wait = keys.message_wait;
        self.idle_timeout = keys.idle_timeout;
        self.watch_idle_meters();
        self.handshakes = RateLimit::new(keys.handshakes_per_second);
        Ok(())
    }
}

/// Replaces the values of keys that a reload applies by those of another configuration.
pub(super) fn copy_reloaded(from: &RelayConfig, to: &mut RelayConfig) {
    let (Some(to), Some(from)) = (&mut to.collector, &from.collector) else { return };
    to.tls.clone_from(&from.tls);
    to.meters = from.meters;
    to.connections_per_source = from.connections_per_source;
    to.handshakes_per_second = from.handshakes_per_second;
    to.handshake_limit = from.handshake_limit;
    to.message_wait = from.message_wait;
    to.idle_timeout = from.idle_timeout;
    to.when_full = from.when_full;
    for (name, listener) in &mut to.listener {
        if let Some(from) = from.listener.get(name).filter(|old| old.address == listener.address) {
            // `ack` decides who terminates the connections: a restart applies it.
            let ack = listener.ack;
            listener.clone_from(from);
            listener.ack = ack;
        }
    }
}
