//! Arguments of runs on two machines.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use clap::Args;
use gridhaul_measure::measurement::Fingerprint;

use super::exit_codes::EXIT_CODES;

/// Arguments of `agent`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct AgentArgs {
    /// Address and port of the control channel, such as 192.0.2.7:7420; port 0 for a free one
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) listen: SocketAddr,

    /// File with the token that controllers must present, 16 to 256 B, readable only for its owner;
    /// without this option, the environment variable GRIDHAUL_AGENT_TOKEN
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// PEM file with the private key, such as `openssl genpkey -algorithm ed25519` writes; without
    /// this option, a new key at each start
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,

    /// Interface at which the frames of `sv` and `goose` arrive, such as eth1; without it, they are
    /// refused. Needs root or CAP_NET_RAW
    #[arg(long, value_name = "DEVICE")]
    pub(crate) interface: Option<String>,

    /// No lines about connections on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// The other machine of a run.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Two machines")]
pub(crate) struct RemoteArgs {
    /// Control channel of a `gridhaul measure agent` on another machine: messages of protocols over
    /// UDP or TCP are sent here and received there. The clocks are compared over this address
    #[arg(long, value_name = "ADDRESS", value_parser = address, requires = "fingerprint")]
    pub(crate) agent: Option<SocketAddr>,

    /// Fingerprint of the key of the agent, which the agent prints at its start
    #[arg(long, value_name = "TEXT", requires = "agent")]
    pub(crate) fingerprint: Option<Fingerprint>,

    /// File with the token of the agent; without this option, the environment variable
    /// GRIDHAUL_AGENT_TOKEN
    #[arg(long, value_name = "FILE", requires = "agent")]
    pub(crate) token_file: Option<PathBuf>,

    /// Address of the agent on the network under test; by default that of the control channel
    #[arg(long, value_name = "ADDRESS", requires = "agent")]
    pub(crate) agent_address: Option<IpAddr>,

    /// Interface of this machine through which `sv` and `goose` send frames to the agent, which has
    /// an --interface of its own
    #[arg(long, value_name = "DEVICE", requires = "agent")]
    pub(crate) interface: Option<String>,
}

/// An address and port; a name of a host is resolved.
fn address(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected an address and a port, such as 192.0.2.7:7420";
    let mut found = text.to_socket_addrs().map_err(|error| format!("{error}; {expected}"))?;
    found.next().ok_or_else(|| expected.into())
}
