//! `gridhaul relay config`: the configuration of a collector from the aggregator of a scenario.

use std::path::PathBuf;

use clap::Args;
use gridhaul_linux::congestion_control_name;
use gridhaul_scenario::scenario::{FullBufferPolicy, Node};
use gridhaul_scenario::units::BufferLimit;
use gridhaul_scenario::{RelayConfig, Scenario};

use super::CommandError;

/// Arguments of `config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Scenario file
    scenario: PathBuf,
    /// Node with an aggregator
    #[arg(long, value_name = "NAME")]
    node: String,
    /// Address of the head
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7070")]
    upstream: String,
    /// Address at which meters connect
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:4059")]
    listen: String,
}

/// Prints the configuration.
pub(crate) fn config(args: &ConfigArgs) -> Result<(), CommandError> {
    let scenario = Scenario::load(&args.scenario).map_err(CommandError::Config)?;
    print!("{}", derive(&scenario, args)?);
    Ok(())
}

fn derive(scenario: &Scenario, args: &ConfigArgs) -> Result<String, CommandError> {
    let node: Option<&Node> = scenario.node.get(&args.node);
    let Some(aggregator) = node.and_then(|node| node.aggregator.as_ref()) else {
        let with = scenario.node.iter().filter(|(_, node)| node.aggregator.is_some());
        let names: Vec<_> = with.map(|(name, _)| name.as_str()).collect();
        return Err(CommandError::Usage(format!(
            "--node: {:?} is not a node with an aggregator\n  help: the scenario has: {}",
            args.node,
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        )));
    };
    let mut text = format!(
        "# Derived from node {:?} of {}.\nname = {:?}\nlog.folder = \"{}-log\"\n",
        args.node,
        args.scenario.display(),
        args.node,
        args.node
    );
    if let BufferLimit::Bytes(bytes) = aggregator.buffer {
        text +=
            &format!("# The simulated aggregator has a buffer of {bytes}; the log is on disk.\n");
    }
    text += "management.address = \"127.0.0.1:9180\"\n\n[aggregate]\n";
    text += &format!("upstream = {:?}\ntier = \"local\"\n", args.upstream);
    let stack = aggregator.stack.as_ref().and_then(|name| scenario.stack.get(name));
    if let Some(algorithm) = stack.and_then(|stack| stack.congestion_control) {
        match congestion_control_name(algorithm) {
            Some(name) => text += &format!("congestion_control = {name:?}\n"),
            None => {
                text += "# Linux has no such congestion control as the scenario's stack: its default is used.\n";
            }
        }
    }
    if aggregator.when_full == FullBufferPolicy::Drop {
        text += "# The simulated aggregator drops segments when its buffer is full; the relay closes receive windows.\n";
    }
    text += &format!("\n[aggregate.listener.meters]\naddress = {:?}\n", args.listen);
    if let Err(error) = RelayConfig::from_toml(&text, "the configuration") {
        return Err(CommandError::Usage(format!("--upstream, --listen: {error}")));
    }
    Ok(text)
}
