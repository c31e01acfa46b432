//! Status of a bridge.

use serde_json::{Map, Value, json};

use super::Loop;
use super::fail_open::FailOpen;
use crate::packet::{ConnectionStatus, EndCause, FrameDropCause, UntouchedCause};

/// Largest number of listed connections: no frames are handled, and no lease is renewed, while the
/// list is made.
const LISTED_MAX: usize = 10_000;

impl Loop {
    /// The document of a path.
    pub(super) fn document(&self, path: &str) -> Value {
        if path == "/details" {
            let listed = self.connection_list();
            let omitted = self.engine.totals().connections - listed.len();
            return json!({ "connections": listed, "omitted_count": omitted });
        }
        let (totals, counters) = (self.engine.totals(), self.engine.counters());
        let settings = self.engine.settings();
        let lease = self.fail_open.as_ref().and_then(FailOpen::counters);
        let opened: Map<_, _> =
            counters.opened().map(|(mode, count)| (mode.to_owned(), count.into())).collect();
        let by_cause = |causes: Vec<(&'static str, u64)>| -> Map<String, Value> {
            causes.into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect()
        };
        let ended = EndCause::ALL.iter().map(|cause| (cause.name(), counters.ended(*cause)));
        // With a lease, the kernel leaves fragments to its bridge.
        let fragments = lease.map_or(0, |lease| lease.fragments);
        let untouched = UntouchedCause::ALL.iter().map(|cause| {
            let by_kernel = if *cause == UntouchedCause::Fragment { fragments } else { 0 };
            (cause.name(), counters.untouched(*cause) + by_kernel)
        });
        let dropped =
            FrameDropCause::ALL.iter().map(|cause| (cause.name(), counters.dropped(*cause)));
        json!({
            "role": "bridge",
            "name": self.state.config.name,
            "connections_count": totals.connections,
            "connections_max_count": settings.connections,
            "bytes_at_risk_byte": totals.at_risk,
            "lost_byte": totals.lost,
            "memory_byte": totals.memory,
            "memory_max_byte": settings.memory.get(),
            "opened_count": opened,
            "ended_count": by_cause(ended.collect()),
            "untouched_count": by_cause(untouched.collect()),
            "passed_count": counters.passed,
            "forwarded_count": counters.forwarded,
            "generated_count": counters.generated,
            "retransmissions_count": totals.retransmissions,
            "timeouts_count": totals.timeouts,
            "path_mtu_lowered_count": counters.path_mtu_lowered,
            "dropped_count": by_cause(dropped.collect()),
            "withheld_count": lease.map(|lease| lease.withheld),
            "abandoned_resets_count": lease.map(|lease| lease.resets),
            "unprotected_count": self.fail_open.as_ref().map(|fail_open| fail_open.unprotected),
        })
    }

    fn connection_list(&self) -> Vec<Value> {
        let settings = self.engine.settings();
        let interface = |status: &ConnectionStatus| &self.interfaces[status.opened_from.index()];
        let rule = |status: &ConnectionStatus| Some(&settings.rules.get(status.rule?)?.name);
        let line = |status: ConnectionStatus| {
            let [client, server] = status.hosts;
            let [stored_of_client, stored_of_server] = status.stored;
            let retransmissions: u64 = status.statistics.retransmissions.iter().sum();
            json!({
                "rule": rule(&status),
                "mode": status.mode.to_string(),
                "client": client.to_string(),
                "server": server.to_string(),
                "vlan": status.vlans[0],
                "inner_vlan": status.vlans[1],
                "opened_from": interface(&status).name,
                "stored_of_client_byte": stored_of_client,
                "stored_of_server_byte": stored_of_server,
                "bytes_at_risk_byte": status.statistics.at_risk,
                "retransmissions_count": retransmissions,
                "age_s": status.age.as_secs_f64(),
                "idle_s": status.idle.as_secs_f64(),
            })
        };
        self.engine.connections(self.clock.now()).take(LISTED_MAX).map(line).collect()
    }
}
