//! The lease by which the kernel's bridge leaves TCP to the relay, and takes over when the relay
//! ends or hangs.

use std::net::SocketAddr;

use gridhaul_linux::{
    FrameBatch, Lease, LeaseCounters, LeaseError, LeaseHandOver, Probe, ProtectedFlow, Renewal,
};
use gridhaul_scenario::units::{Duration, Instant};

use super::interface::Interface;
use crate::packet::{ConnectionAtRisk, Engine};
use crate::runtime::{Level, RunError, report};

/// The lease, and connections that are protected by it.
pub(super) struct FailOpen {
    lease: Lease,
    renew_at: Instant,
    /// How often hosts of abandoned connections are still to be probed, and when.
    probes: u32,
    probe_at: Instant,
    /// Connections at risk that could not be protected.
    pub(super) unprotected: u64,
}

/// Actions of the caller after a renewal.
pub(super) struct Renewed {
    /// The lease had expired: frames that wait are older than those that the kernel has forwarded.
    pub(super) discards_waiting: bool,
    /// Frames that let silent hosts of abandoned connections answer.
    pub(super) probes: Vec<Probe>,
}

/// Probes of each host, because one may get lost, and the time between them.
const PROBES: u32 = 3;
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

impl FailOpen {
    /// Whether the kernel has a bridge of these interfaces.
    pub(super) fn check(interfaces: [&str; 2]) -> Result<(), RunError> {
        Lease::check(interfaces).map_err(|error| failed(&error))
    }

    /// Attaches the programs, and lets the sockets receive only what they withhold. The lease
    /// begins with the first [`Self::renew`], or continues that of the previous version of the
    /// program.
    pub(super) fn attach(
        interfaces: &[Interface; 2],
        batch: &mut FrameBatch,
        earlier: Option<LeaseHandOver>,
    ) -> Result<Self, RunError> {
        let names = interfaces.each_ref().map(|interface| &*interface.name);
        let lease = match earlier {
            Some(earlier) => Lease::take_over(names, earlier),
            None => Lease::attach(names),
        };
        let lease = lease.map_err(|error| failed(&error))?;
        for interface in interfaces {
            lease.filter(&interface.socket).map_err(|error| failed(&error))?;
            // Frames that have arrived before: the kernel's bridge forwards them.
            while interface.receive(batch)? > 0 {}
        }
        let (renew_at, probe_at) = (Instant::ZERO, Instant::ZERO);
        Ok(Self { lease, renew_at, probes: PROBES, probe_at, unprotected: 0 })
    }

    pub(super) const fn deadline(&self) -> Instant {
        self.renew_at
    }

    /// Renews the lease if it is time. To be called before frames are handled: after the lease has
    /// expired, the state of all connections is outdated.
    pub(super) fn renew(&mut self, now: Instant, engine: &mut Engine) -> Result<Renewed, RunError> {
        let mut renewed = Renewed { discards_waiting: false, probes: Vec::new() };
        if now < self.renew_at {
            return Ok(renewed);
        }
        self.renew_at = now + interval();
        if self.lease.renew().map_err(|error| failed(&error))? == Renewal::Expired {
            report(
                Level::Error,
                "the kernel's bridge has forwarded segments, because the relay did not answer in \
                 time: connections with bytes at risk are reset, all others continue without a \
                 proxy",
            );
            engine.forget();
            renewed.discards_waiting = true;
            (self.probes, self.probe_at) = (PROBES, now);
        }
        for connection in engine.take_no_longer_at_risk() {
            self.lease.unprotect(&flow(&connection)).map_err(|error| failed(&error))?;
        }
        if self.probes > 0 && self.probe_at <= now {
            self.probes -= 1;
            self.probe_at = now + PROBE_INTERVAL;
            renewed.probes = self.lease.probes().map_err(|error| failed(&error))?;
        }
        Ok(renewed)
    }

    /// Leaves the lease to the next version of the program.
    pub(super) fn hand_over(self) -> Option<LeaseHandOver> {
        // An error has the effect of an expired lease: protected connections are reset.
        self.lease.hand_over().ok().flatten()
    }

    /// Ends the protection of connections that the engine has ended, before the relay ends.
    pub(super) fn unprotect(&self, engine: &mut Engine) {
        for connection in engine.take_no_longer_at_risk() {
            // A connection that stays protected is reset again, which is of no effect.
            let _ = self.lease.unprotect(&flow(&connection));
        }
    }

    /// Protects the connections that are at risk from now on.
    pub(super) fn protect(&mut self, engine: &mut Engine) {
        for connection in engine.take_newly_at_risk() {
            // The relay works without this protection, which only matters if it fails.
            self.unprotected += u64::from(self.lease.protect(&flow(&connection)).is_err());
        }
    }

    /// Counters of the programs in the kernel.
    pub(super) fn counters(&self) -> Option<LeaseCounters> {
        self.lease.counters().ok()
    }
}

/// Time between renewals.
const fn interval() -> Duration {
    Duration::from_nanos(Lease::INTERVAL.as_nanos() as u64)
}

fn failed(error: &LeaseError) -> RunError {
    RunError::Unsupported(format!("bridge.fail_open: {error}"))
}

fn flow(connection: &ConnectionAtRisk) -> ProtectedFlow {
    ProtectedFlow {
        addresses: connection.hosts.map(|host: SocketAddr| host.ip()),
        ports: connection.hosts.map(|host| host.port()),
        vlans: connection.vlans,
        hardware: connection.hardware,
        seq: connection.seq,
        interface: connection.opened_from.index(),
    }
}
