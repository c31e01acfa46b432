//! The lease by which the kernel's bridge leaves TCP to the relay, and takes over when the relay
//! ends or hangs.

use std::net::SocketAddr;

use gridhaul_linux::{FrameBatch, Lease, LeaseCounters, LeaseError, Probe, ProtectedFlow, Renewal};
use gridhaul_scenario::units::{Duration, Instant};

use super::interface::Interface;
use crate::packet::{ConnectionAtRisk, Engine};
use crate::runtime::{Level, RunError, report};

/// The lease, and connections that are protected by it.
pub(super) struct FailOpen {
    lease: Lease,
    renew_at: Instant,
    /// When hosts of abandoned connections are probed again, in case that a probe was lost.
    probe_at: Instant,
    /// Connections at risk that could not be protected.
    pub(super) unprotected: u64,
}

impl FailOpen {
    /// Attaches the programs, and lets the sockets receive only what they withhold. The lease
    /// begins with the first [`Self::renew`].
    pub(super) fn attach(
        interfaces: &[Interface; 2],
        batch: &mut FrameBatch,
    ) -> Result<Self, RunError> {
        let [first, second] = interfaces;
        let lease = Lease::attach([&first.name, &second.name]).map_err(|error| failed(&error))?;
        for interface in interfaces {
            lease.filter(&interface.socket).map_err(|error| failed(&error))?;
            // Frames that have arrived before: the kernel's bridge forwards them.
            while interface.receive(batch)? > 0 {}
        }
        let (renew_at, probe_at) = (Instant::ZERO, Instant::NEVER);
        Ok(Self { lease, renew_at, probe_at, unprotected: 0 })
    }

    pub(super) const fn deadline(&self) -> Instant {
        self.renew_at
    }

    /// Renews the lease if it is time. Returns segments by which silent hosts notice that their
    /// connections are reset, because an earlier process has abandoned them.
    pub(super) fn renew(
        &mut self,
        now: Instant,
        engine: &mut Engine,
    ) -> Result<Vec<Probe>, RunError> {
        if now < self.renew_at {
            return Ok(Vec::new());
        }
        self.renew_at = now + interval();
        let renewal = self.lease.renew().map_err(|error| failed(&error))?;
        match renewal {
            Renewal::Begun => {
                self.probe_at = now + PROBE_INTERVAL;
                return self.probes();
            }
            Renewal::Held => {}
            Renewal::Expired => {
                report(
                    Level::Error,
                    "the kernel's bridge has forwarded segments, because the relay did not answer \
                     in time: connections with bytes at risk are reset, all others continue \
                     without a proxy",
                );
                engine.forget();
                self.probe_at = now;
            }
        }
        for connection in engine.take_no_longer_at_risk() {
            self.lease.unprotect(&flow(&connection)).map_err(|error| failed(&error))?;
        }
        if self.probe_at <= now {
            self.probe_at = Instant::NEVER;
            return self.probes();
        }
        Ok(Vec::new())
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

    fn probes(&self) -> Result<Vec<Probe>, RunError> {
        self.lease.probes().map_err(|error| failed(&error))
    }
}

/// Time until hosts of abandoned connections are probed again.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

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
