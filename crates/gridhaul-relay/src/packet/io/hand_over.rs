//! State of a bridge for the next version of the program: the lease, and the connections that it
//! continues.

use std::io;
use std::os::fd::RawFd;

use gridhaul_linux::LeaseHandOver;
use gridhaul_scenario::units::Instant;

use super::fail_open::FailOpen;
use crate::packet::Engine;
use crate::protocol::{DecodeError, Decoder};
use crate::runtime::{Level, report};

/// State that the previous version of the program has left.
#[derive(Debug, Default)]
pub(super) struct HandedOver {
    pub(super) lease: Option<LeaseHandOver>,
    /// Empty, or the state of [`Engine::adopt`].
    connections: Vec<u8>,
}

/// The state of these connections. The lease continues as well, because the kernel's bridge must
/// not forward their segments, whose sequence numbers are to be translated.
pub(super) fn write(fail_open: Option<FailOpen>, connections: &[u8]) -> io::Result<Vec<u8>> {
    let (mut owner, mut links) = (0, Vec::new());
    if let Some(fail_open) = fail_open {
        let lease = fail_open.hand_over();
        let lease = lease.ok_or_else(|| io::Error::other("the lease has expired"))?;
        (owner, links) = (lease.owner(), lease.leave_open()?);
    }
    let mut bytes = owner.to_le_bytes().to_vec();
    bytes.push(links.len() as u8);
    for link in links {
        bytes.extend_from_slice(&link.to_le_bytes());
    }
    bytes.extend_from_slice(connections);
    Ok(bytes)
}

impl HandedOver {
    /// Reads what [`write`] has written; nothing without such state.
    pub(super) fn read(state: &[u8]) -> Self {
        if state.is_empty() {
            return Self::default();
        }
        Self::decode(state).unwrap_or_else(|error| {
            refuse(&error.to_string());
            Self::default()
        })
    }

    fn decode(state: &[u8]) -> io::Result<Self> {
        let mut decoder = Decoder::new(state, "state of a bridge");
        let (owner, numbers) = read_lease(&mut decoder).map_err(io::Error::other)?;
        let is_leased = !numbers.is_empty();
        let lease = is_leased.then(|| LeaseHandOver::inherited(owner, &numbers)).transpose()?;
        Ok(Self { lease, connections: decoder.rest().to_vec() })
    }

    /// Continues the connections.
    pub(super) fn adopt(&self, now: Instant, engine: &mut Engine) {
        if self.connections.is_empty() {
            return;
        }
        match engine.adopt(now, &self.connections) {
            Ok(count) => {
                report(Level::Notice, &format!("connections of `split` continue: {count}"));
            }
            Err(error) => refuse(&error.to_string()),
        }
    }
}

fn read_lease(decoder: &mut Decoder<'_>) -> Result<(u64, Vec<RawFd>), DecodeError> {
    let (owner, count) = (decoder.u64()?, decoder.u8()?);
    let numbers = (0..count).map(|_| Ok(decoder.u32()?.cast_signed()));
    Ok((owner, numbers.collect::<Result<_, _>>()?))
}

fn refuse(error: &str) {
    let text = format!("connections of `split` cannot continue: {error}; they are reset");
    report(Level::Error, &text);
}
