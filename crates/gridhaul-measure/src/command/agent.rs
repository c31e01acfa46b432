//! `gridhaul measure agent`.

use std::process::ExitCode;

use anyhow::Context;
use gridhaul_cli::{print, say};
use gridhaul_linux::{Clock, PacketSocket};
use gridhaul_measure::agent::{Agent, AgentClock, AgentKey, Token};
use gridhaul_measure::run::Observer;
use gridhaul_scenario::units::Duration;

use super::observer::TerminalObserver;
use crate::args::AgentArgs;

/// Serves controllers until the program is interrupted.
pub(crate) fn run(args: &AgentArgs) -> anyhow::Result<ExitCode> {
    let interrupt = TerminalObserver::new(args.quiet)?;
    let token = Token::read(args.token_file.as_deref())?;
    let key = args.key.as_deref().map_or_else(AgentKey::generate, AgentKey::read)?;
    let clock = AgentClock { clock: Clock::starts_in(Duration::ZERO), injected: None };
    let agent = Agent::bind(args.listen, token, &key, clock)?;
    if let Some(device) = &args.interface {
        // A wrong name, or a missing right, is an error now and not in the first run.
        PacketSocket::open(device, PacketSocket::ALL_PROTOCOLS)
            .with_context(|| format!("--interface: cannot receive frames at {device}"))?;
    }
    let agent = agent.with_interface(args.interface.clone());
    let address = agent.address().context("reading the address of the control channel")?;
    // Both values are arguments of the controller.
    print(&format!("--agent {address} --fingerprint {}\n", agent.fingerprint()))?;
    agent.run(interrupt.stop(), &|line| {
        if !args.quiet {
            say(format_args!("{line}"));
        }
    });
    Ok(ExitCode::SUCCESS)
}
