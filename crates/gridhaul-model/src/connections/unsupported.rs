//! Keys that the equations of connections do not support.

use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::Scenario;

use super::exchange::opening_share;
use crate::meters;
use crate::model_rules::ModelRules;

/// Every unsupported key, with the reason.
pub(crate) fn unsupported_keys(scenario: &Scenario, rules: ModelRules) -> Vec<Unsupported> {
    let mut unsupported = meters::unsupported_keys(scenario, rules);
    let mut reject = |key: String, reason: &str| {
        unsupported.push(Unsupported { key, reason: reason.to_owned() });
    };
    for (name, flow) in &scenario.flow {
        if rules.are_of_a_paper()
            && let Some(key) = flow.connection_key()
        {
            let reason = "the paper's equations assume open connections; use backend `model`";
            reject(format!("flow.{name}.{key}"), reason);
        }
        if flow.acknowledgement.is_some() {
            let reason = "the equations have no acknowledgements of applications; use backend \
                          `sim`";
            reject(format!("flow.{name}.acknowledgement"), reason);
        }
        if flow.accept.is_some() {
            let reason = "the equations have no queue at a server; use backend `sim`";
            reject(format!("flow.{name}.accept"), reason);
        }
        if flow.tls.as_ref().is_some_and(|tls| tls.early_data) {
            let reason = "the equations have no message during a handshake; use backend `sim`";
            reject(format!("flow.{name}.tls.early_data"), reason);
        }
        if flow.fast_open {
            let reason = "the equations have no message during a handshake; use backend `sim`";
            reject(format!("flow.{name}.fast_open"), reason);
        }
        for (key, is_set) in [
            ("nat", flow.nat.is_some()),
            ("keep_alive", flow.keep_alive.is_some()),
            ("user_timeout", flow.user_timeout.is_some()),
        ] {
            if is_set {
                let reason = "the equations have no idle connections; use backend `sim`";
                reject(format!("flow.{name}.{key}"), reason);
            }
        }
        if flow.local_ports.is_some() {
            let reason = "the equations have no limit of ports; use backend `sim`";
            reject(format!("flow.{name}.local_ports"), reason);
        }
        if opening_share(flow.connection, &flow.load.plain()).is_none() {
            let reason = "with managed connections, the equations support `periodic`, `poisson` \
                          and `application`; use backend `sim`";
            reject(format!("flow.{name}.load"), reason);
        }
        if scenario.stages(name).map_or(1, |stages| stages.len()) > 1 {
            let reason = "with managed connections, the equations support no aggregators; use \
                          backend `sim` and a flow for each stage";
            reject(format!("flow.{name}.to"), reason);
        }
    }
    unsupported.extend(lossy_links(scenario));
    unsupported.sort_by(|a, b| a.key.cmp(&b.key));
    unsupported.dedup_by(|a, b| a.key == b.key);
    unsupported
}

/// Keys of links that lose packets.
fn lossy_links(scenario: &Scenario) -> Vec<Unsupported> {
    let mut unsupported = Vec::new();
    for (name, link) in &scenario.link {
        let given = [("both", &link.both), ("forward", &link.forward), ("reverse", &link.reverse)];
        for (side, direction) in given {
            let Some(direction) = direction else { continue };
            let losses = [
                ("loss", direction.loss.is_some()),
                ("corrupt", direction.corrupt.is_some()),
                ("corrupt_undetected", direction.corrupt_undetected.is_some()),
            ];
            for (key, _) in losses.into_iter().filter(|(_, present)| *present) {
                let reason = "with managed connections, the equations assume that no packet is \
                              lost; use backend `sim`";
                unsupported.push(Unsupported {
                    key: format!("link.{name}.{side}.{key}"),
                    reason: reason.to_owned(),
                });
            }
        }
    }
    unsupported
}
