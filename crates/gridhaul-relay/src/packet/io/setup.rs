//! Start of a bridge.

use std::path::Path;
use std::sync::Arc;

use gridhaul_linux::{Clock, EventFlags, FrameBatch, interface_index, interface_mtu};
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::BridgeConfig;
use gridhaul_scenario::units::{Duration, Instant};

use super::fail_open::FailOpen;
use super::hand_over::HandedOver;
use super::interface::Interface;
use super::token::BridgeToken;
use super::{BATCH, FRAME_SIZE, Loop};
use crate::packet::{BridgePort, Engine, EngineSettings, Rule};
use crate::runtime::event_loop::{Drain, LoopState};
use crate::runtime::listening_sockets::ListeningSockets;
use crate::runtime::management::StatusRequests;
use crate::runtime::poll::{Poll, Waker};
use crate::runtime::systemd::Watchdog;
use crate::runtime::{RunError, random};

/// Checks a configuration on the machine where it is used.
pub(crate) fn check(bridge: &BridgeConfig) -> Result<(), RunError> {
    for name in &bridge.interfaces {
        if interface_index(name).is_err() {
            return Err(RunError::Invalid(format!(
                "bridge.interfaces: there is no interface {name:?} here\n  help: `ip link` lists \
                 the interfaces; start the relay in the network namespace that has them"
            )));
        }
    }
    if let (true, [first, second]) = (bridge.fail_open, &bridge.interfaces[..]) {
        FailOpen::check([first, second])?;
    }
    Ok(())
}

/// Parameters of the engine.
pub(super) fn engine_settings(bridge: &BridgeConfig, mtus: [u32; 2]) -> EngineSettings {
    EngineSettings {
        rules: Rule::all(bridge),
        connections: bridge.connections as usize,
        memory: bridge.memory,
        idle_timeout: bridge.idle_timeout,
        mtus,
        // With a lease, the program in the kernel resets the connections of an earlier relay.
        detects_losses: !bridge.fail_open,
    }
}

impl Loop {
    pub(super) fn new(
        config: &RelayConfig,
        bridge: &BridgeConfig,
        folder: &Path,
        waker: Arc<Waker>,
        mut sockets: ListeningSockets,
    ) -> Result<Self, RunError> {
        let [first, second] = &bridge.interfaces[..] else {
            return Err(RunError::Invalid("bridge.interfaces: expected two".to_owned()));
        };
        let poll = Poll::new(&waker)?;
        let requests = StatusRequests::serve(config, folder, &mut sockets, &waker)?;
        let interfaces = [Interface::open(first)?, Interface::open(second)?];
        for (port, interface) in BridgePort::BOTH.into_iter().zip(&interfaces) {
            let added = poll.add(&interface.socket, BridgeToken(port), EventFlags::IN);
            added.map_err(gridhaul_linux::Error::call("watching an interface"))?;
        }
        let mut batch = FrameBatch::new(BATCH, FRAME_SIZE);
        let mut handed_over = HandedOver::read(&sockets.take_connections().state);
        let lease = handed_over.lease.take();
        let attach = || FailOpen::attach(&interfaces, &mut batch, lease);
        let fail_open = bridge.fail_open.then(attach).transpose()?;
        let mtus = [interface_mtu(first)?, interface_mtu(second)?];
        let mut engine = Engine::new(engine_settings(bridge, mtus), || random() as u32);
        let clock = Clock::starts_in(Duration::ZERO);
        handed_over.adopt(clock.now(), &mut engine);
        Ok(Self {
            clock,
            poll,
            waker,
            events: Vec::new(),
            state: LoopState { config: config.clone(), requests },
            engine,
            interfaces,
            fail_open,
            batch,
            unsupported: 0,
            check_at: Instant::ZERO,
            watchdog: Watchdog::from_environment(),
            drain: Drain::default(),
            handed_over: None,
        })
    }
}
