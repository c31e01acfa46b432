//! Reading the configuration again, without ending a connection.

use gridhaul_scenario::RelayConfig;

use super::super::{Level, report, tls};
use super::Loop;
use super::arrivals::RateLimit;
use crate::config::framing_of;

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
        let collector = config.aggregate.as_ref().ok_or("there is no [aggregate]")?;
        // Whatever can fail comes first, so that a configuration is applied as a whole.
        let upstream = tls::upstream(collector, &self.folder).map_err(|it| it.to_string())?;
        let mut configured = Vec::new();
        for listener in &self.listeners {
            let Some(new) = collector.listener.get(&listener.name) else {
                configured.push((listener.config.clone(), listener.tls.clone()));
                continue;
            };
            let key = format!("aggregate.listener.{}.tls", listener.name);
            let files = new.tls.as_ref().map(|it| tls::meters(&key, it, &self.folder));
            configured.push((new.clone(), files.transpose().map_err(|it| it.to_string())?));
        }
        for (listener, (config, tls)) in self.listeners.iter_mut().zip(configured) {
            (listener.framing, listener.idle_gap) = framing_of(&config.framing);
            (listener.config, listener.tls) = (config, tls);
        }
        for shard in &mut self.upstreams {
            shard.set_tls(upstream.clone());
        }
        self.set_limits(collector);
        self.handshakes = RateLimit::new(collector.handshakes_per_second);
        if needs_restart(&self.config, &config) {
            let text = "keys other than those of TLS, limits of connections, framing, `allow`, `proxy_protocol` and \
                        `when_full` have changed: they are applied by a restart";
            report(Level::Warning, text);
        }
        self.config = config;
        Ok(())
    }
}

/// Whether configurations differ in keys that a running relay cannot change.
fn needs_restart(old: &RelayConfig, new: &RelayConfig) -> bool {
    let mut same = new.clone();
    if let (Some(same), Some(old)) = (&mut same.aggregate, &old.aggregate) {
        same.tls.clone_from(&old.tls);
        same.meters = old.meters;
        same.connections_per_source = old.connections_per_source;
        same.handshakes_per_second = old.handshakes_per_second;
        same.handshake_limit = old.handshake_limit;
        same.when_full = old.when_full;
        for (name, listener) in &mut same.listener {
            if let Some(old) = old.listener.get(name).filter(|old| old.address == listener.address)
            {
                listener.clone_from(old);
            }
        }
    }
    same != *old
}
