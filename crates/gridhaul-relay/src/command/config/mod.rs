//! `gridhaul relay config`: configurations of relays from the nodes of a scenario.

mod bridge;

use std::path::PathBuf;

use clap::Args;
use gridhaul_linux::congestion_control_name;
use gridhaul_scenario::scenario::{Aggregator, FullBufferPolicy, Node, Proxy, ProxyMode, Stack};
use gridhaul_scenario::units::{BufferLimit, Bytes, WindowSize};
use gridhaul_scenario::{RelayConfig, Scenario};

use super::CommandError;
use bridge::bridge;

/// Arguments of `config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Scenario file
    scenario: PathBuf,
    /// Node with an aggregator or a proxy
    #[arg(long, value_name = "NAME")]
    node: String,
    /// Address of the head of an aggregator, or of the server of a split proxy
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7070")]
    upstream: String,
    /// Address at which meters or clients connect
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:4059")]
    listen: String,
    /// Print the configuration of the aggregator's head instead, which delivers to file:PATH,
    /// tcp:HOST:PORT or mqtt:HOST:PORT
    #[arg(long, value_name = "DESTINATION")]
    deliver: Option<String>,
    /// Interfaces of a bridge with the proxy, of which the first leads to the `from` ends of flows
    /// [default: `eth0,eth1`]. A proxy of mode `split` becomes a bridge only with this option
    #[arg(long, value_name = "FIRST,SECOND", value_delimiter = ',')]
    interfaces: Option<Vec<String>>,
}

/// Prints the configuration.
pub(crate) fn config(args: &ConfigArgs) -> Result<(), CommandError> {
    let scenario = Scenario::load(&args.scenario).map_err(CommandError::Config)?;
    let text = derive(&scenario, args)?;
    // Values of options are part of the text: the reader of configurations checks them.
    if let Err(error) = RelayConfig::from_toml(&text, "the configuration") {
        return Err(CommandError::Usage(format!(
            "--upstream, --listen, --deliver, --interfaces: {error}"
        )));
    }
    print!("{text}");
    Ok(())
}

fn derive(scenario: &Scenario, args: &ConfigArgs) -> Result<String, CommandError> {
    let node: Option<&Node> = scenario.node.get(&args.node);
    let aggregator = node.and_then(|node| node.aggregator.as_ref());
    let proxy = node.and_then(|node| node.proxy.as_ref());
    let body = match (aggregator, proxy, &args.deliver) {
        (Some(aggregator), _, None) => collector(scenario, args, aggregator),
        (Some(aggregator), _, Some(deliver)) => head(scenario, args, aggregator, deliver)?,
        (None, Some(proxy), None) => match (proxy.mode, &args.interfaces) {
            (ProxyMode::Split, None) => split(scenario, args, proxy),
            _ => bridge(scenario, args, proxy),
        },
        (None, Some(_), Some(_)) => {
            let text = "--deliver: a proxy has no head\n  help: remove the option";
            return Err(CommandError::Usage(text.to_owned()));
        }
        (None, None, _) => return Err(CommandError::Usage(unsuitable(scenario, &args.node))),
    };
    Ok(format!("# Derived from node {:?} of {}.\n{body}", args.node, args.scenario.display()))
}

fn unsuitable(scenario: &Scenario, node: &str) -> String {
    let nodes = scenario.node.iter();
    let suitable = nodes.filter(|(_, node)| node.aggregator.is_some() || node.proxy.is_some());
    let names: Vec<_> = suitable.map(|(name, _)| name.as_str()).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!(
        "--node: {node:?}: not a node with an aggregator or a proxy\n  help: the scenario has: \
         {names}"
    )
}

fn stack<'a>(scenario: &'a Scenario, name: Option<&String>) -> Option<&'a Stack> {
    name.and_then(|name| scenario.stack.get(name))
}

/// The line of the congestion control of a stack; empty if it is the default.
fn congestion_control(stack: Option<&Stack>, key: &str) -> String {
    let Some(algorithm) = stack.and_then(|stack| stack.congestion_control) else {
        return String::new();
    };
    match congestion_control_name(algorithm) {
        Some(name) => format!("{key} = {name:?}\n"),
        None => {
            "# Linux has no such congestion control as the scenario's stack: its default is used.\n"
                .to_owned()
        }
    }
}

fn collector(scenario: &Scenario, args: &ConfigArgs, aggregator: &Aggregator) -> String {
    let mut text = format!("name = {0:?}\nlog.folder = \"{0}-log\"\n", args.node);
    if let BufferLimit::Bytes(bytes) = aggregator.buffer {
        text +=
            &format!("# The simulated aggregator has a buffer of {bytes}; the log is on disk.\n");
    }
    text += "management.address = \"127.0.0.1:9180\"\n\n[collector]\n";
    // The simulated aggregator acknowledges what its buffer has, as tier `local` does with its log.
    text += &format!("upstream = {:?}\ntier = \"local\"\n", args.upstream);
    text += &congestion_control(stack(scenario, aggregator.stack.as_ref()), "congestion_control");
    if aggregator.when_full == FullBufferPolicy::Drop {
        text += "# The simulated aggregator drops segments when its buffer is full; the relay \
            closes receive windows.\n";
    }
    text + &format!("\n[collector.listener.meters]\naddress = {:?}\n", args.listen)
}

/// Smallest window of a head.
const HEAD_WINDOW: Bytes = Bytes::new(4_000_000);

fn head(
    scenario: &Scenario,
    args: &ConfigArgs,
    aggregator: &Aggregator,
    deliver: &str,
) -> Result<String, CommandError> {
    let (key, value) = match deliver.split_once(':') {
        Some(("file", path)) => ("file", path),
        Some(("tcp", server)) => ("tcp.server", server),
        Some(("mqtt", broker)) => ("mqtt.broker", broker),
        _ => {
            let expected = "expected file:PATH, tcp:HOST:PORT or mqtt:HOST:PORT";
            return Err(CommandError::Usage(format!("--deliver: {expected}, found {deliver:?}")));
        }
    };
    let window = stack(scenario, aggregator.stack.as_ref()).and_then(|stack| stack.receive_window);
    // The window of a head counts whole batches, of up to 1 MiB: the receive window of a simulated
    // TCP may be smaller than one.
    let window = match window {
        Some(WindowSize::Bytes(bytes)) => bytes.max(HEAD_WINDOW),
        _ => HEAD_WINDOW,
    };
    Ok(format!(
        "name = \"{}-head\"\nlog.folder = \"{0}-head-log\"\nmanagement.address \
         = \"127.0.0.1:9181\"\n\n\
         [head]\naddress = {:?}\nwindow = \"{window}\"\ndeliver.{key} = {value:?}\n",
        args.node, args.upstream
    ))
}

fn split(scenario: &Scenario, args: &ConfigArgs, proxy: &Proxy) -> String {
    let stack = stack(scenario, proxy.stack.as_ref());
    let mut text =
        format!("name = {:?}\nmanagement.address = \"127.0.0.1:9180\"\n\n[split]\n", args.node);
    text += "# The buffer of the simulated proxy; Linux doubles the value.\n";
    for leg in ["client", "server"] {
        let receive_buffer = proxy.buffer.max(Bytes::new(2_000));
        text += &format!("{leg}.receive_buffer = \"{receive_buffer}\"\n");
        text += &congestion_control(stack, &format!("{leg}.congestion_control"));
        if let Some(mss) = stack.and_then(|stack| stack.mss) {
            text += &format!("{leg}.mss = {}\n", mss.get());
        }
        if let Some(delay) = stack.and_then(|stack| stack.delayed_ack) {
            text += &format!("{leg}.delayed_ack = \"{delay}\"\n");
        }
    }
    if proxy.flows.is_some() {
        text += "# The simulated proxy serves some flows only: let other connections bypass the \
            relay.\n";
    }
    let addresses = format!("address = {:?}\nupstream = {:?}\n", args.listen, args.upstream);
    text + &format!("\n[split.listener.clients]\n{addresses}")
}
