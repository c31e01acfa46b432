//! A connection of `split` whose hosts continue with translated sequence numbers, in this program
//! or in its next version.

use gridhaul_core::pep::Side;
use gridhaul_scenario::scenario::ProxyMode;
use gridhaul_scenario::units::Instant;

use super::super::direction::Direction;
use super::super::handshake::{Handshake, Syn};
use super::super::key::{BridgePort, ConnectionKey};
use super::super::renumbering::Renumbering;
use super::{Close, Connection, Opening};
use crate::protocol::{DecodeError, Decoder};

/// All that is needed to translate the segments of a connection.
#[derive(Debug, Clone)]
pub(in crate::packet) struct RenumberedConnection {
    key: ConnectionKey,
    client: BridgePort,
    /// Window scale of the proxy.
    scale: u8,
    /// By side.
    hosts: [RenumberedHost; 2],
}

/// Numbers of one host.
#[derive(Debug, Clone, Copy)]
struct RenumberedHost {
    syn: Syn,
    /// See [`Direction::renumbering`] and [`Direction::path_mtu`] of its data.
    renumbering: u32,
    path_mtu: u32,
    /// Sequence number after FIN, and whether FIN was acknowledged.
    end: Option<u32>,
    is_acknowledged: bool,
}

impl Connection {
    /// Replaces the proxy by a translation of sequence numbers, if the hosts can continue with it.
    /// Returns whether the proxy was replaced.
    pub(in crate::packet) fn renumber(&mut self) -> bool {
        let is_possible = self.is_terminated() && !self.is_renumbered;
        if !is_possible || !self.proxy.is_end_to_end() {
            return false;
        }
        self.start_renumbering();
        true
    }

    fn start_renumbering(&mut self) {
        let distances = self.directions.each_ref().map(|direction| direction.renumbering);
        self.proxy = Box::new(Renumbering::new(distances));
        self.is_renumbered = true;
        self.directions.iter_mut().for_each(Direction::clear);
    }

    /// Whether only the sequence numbers are translated.
    pub(in crate::packet) const fn is_renumbered(&self) -> bool {
        self.is_renumbered
    }

    /// The connection for the next version of the program, if it can continue there.
    pub(in crate::packet) fn to_renumbered(&self) -> Option<RenumberedConnection> {
        let scale = self.handshake.own_scale()?;
        let host = |side: Side| {
            let Direction { renumbering, path_mtu, .. } = self.directions[side.index()];
            let (end, is_acknowledged) =
                (self.close.ends[side.index()], self.close.acknowledged[side.index()]);
            let syn = *self.handshake.syn(side)?;
            Some(RenumberedHost { syn, renumbering, path_mtu, end, is_acknowledged })
        };
        let hosts = [host(Side::Client)?, host(Side::Server)?];
        // A closed connection continues as well, because FIN may be retransmitted.
        let continues = self.is_renumbered && !self.close.is_reset();
        continues.then_some(RenumberedConnection {
            key: self.key,
            client: self.client,
            scale,
            hosts,
        })
    }
}

impl RenumberedConnection {
    /// The connection in this program. `rule` is the number of its rule.
    pub(in crate::packet) fn into_connection(self, now: Instant, rule: usize) -> Connection {
        let Self { key, client, scale, hosts } = self;
        // Replaced with the numbers of the hosts.
        let proxy = Box::new(Renumbering::new([0; 2]));
        let mode = ProxyMode::Split;
        let opening = Opening { key, rule, mode, client, proxy, buffer: 0, own: None };
        let mut connection = Connection::new(now, opening);
        let mut handshake = Handshake::new(Some(scale));
        let mut close = Close::default();
        for (side, host) in Side::BOTH.into_iter().zip(hosts) {
            handshake.note(side, host.syn);
            close.ends[side.index()] = host.end;
            close.acknowledged[side.index()] = host.is_acknowledged;
            let direction = &mut connection.directions[side.index()];
            (direction.renumbering, direction.path_mtu) = (host.renumbering, host.path_mtu);
        }
        (connection.handshake, connection.close, connection.is_open) = (handshake, close, true);
        connection.start_renumbering();
        connection
    }

    /// Appends the state.
    pub(in crate::packet) fn write(&self, bytes: &mut Vec<u8>) {
        self.key.write(bytes);
        bytes.push(self.client.index() as u8);
        bytes.push(self.scale);
        for RenumberedHost { syn, renumbering, path_mtu, end, is_acknowledged } in self.hosts {
            for number in [syn.first, syn.mss, renumbering, path_mtu, end.unwrap_or(0)] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            bytes.push(syn.window_scale.unwrap_or(NO_SCALE));
            bytes.push(u8::from(end.is_some()) | u8::from(is_acknowledged) << 1);
        }
    }

    /// Reads what [`Self::write`] has written.
    pub(in crate::packet) fn read(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let key = ConnectionKey::read(decoder)?;
        let undefined = DecodeError::Undefined("interface of a connection");
        let client = *BridgePort::BOTH.get(usize::from(decoder.u8()?)).ok_or(undefined)?;
        let scale = decoder.u8()?;
        let hosts = [RenumberedHost::read(decoder)?, RenumberedHost::read(decoder)?];
        Ok(Self { key, client, scale, hosts })
    }
}

impl RenumberedHost {
    fn read(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (first, mss) = (decoder.u32()?, decoder.u32()?);
        let (renumbering, path_mtu, end) = (decoder.u32()?, decoder.u32()?, decoder.u32()?);
        let window_scale = Some(decoder.u8()?).filter(|&scale| scale != NO_SCALE);
        let flags = decoder.u8()?;
        Ok(Self {
            syn: Syn { first, mss, window_scale },
            renumbering,
            path_mtu,
            end: (flags & 1 != 0).then_some(end),
            is_acknowledged: flags & 2 != 0,
        })
    }
}

/// SYN had no window scale option.
const NO_SCALE: u8 = 0xff;
