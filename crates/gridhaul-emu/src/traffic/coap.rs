//! One member of a flow with confirmable messages: the sockets of both ends, and the application.

use std::mem::MaybeUninit;

use gridhaul_core::load::{
    Arrival, CoapContent, CoapCounters, CoapDatagram, CoapMember, CoapTransmission, Source,
};
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;
use rustix::net::{RecvFlags, SendFlags, SocketAddrAny, recvfrom, sendto};
use socket2::Socket;

use super::connection::Observer;
use super::datagrams::Datagrams;
use super::socket;
use crate::network::FlowLayout;

/// A device with confirmable messages, and its server.
#[derive(Debug)]
pub(crate) struct CoapSockets {
    pub flow: u16,
    number: u32,
    /// The `from` and the `to` end.
    ends: [Socket; 2],
    /// Source of messages; `None` if a trace provides them.
    source: Option<Source>,
    start: Instant,
    has_begun: bool,
    member: CoapMember,
    /// The address of the device, as the server has seen it.
    device: Option<SocketAddrAny>,
    packet: Vec<u8>,
    /// Payload of the messages that have been delivered.
    pub received: u64,
}

impl CoapSockets {
    /// The sockets and the load of `datagrams`, with confirmable messages.
    pub(crate) fn new(datagrams: Datagrams, member: CoapMember) -> Self {
        let Datagrams { flow, member: number, ends, source, start, .. } = datagrams;
        let (device, packet, received, has_begun) = (None, Vec::new(), 0, false);
        Self { flow, number, ends, source, start, has_begun, member, device, packet, received }
    }

    /// The next deadline of the load and of the timers.
    pub(crate) fn due(&self) -> Instant {
        if !self.has_begun {
            return self.start;
        }
        let source = self.source.as_ref().map_or(Instant::NEVER, Source::next_time);
        source.min(self.member.next_deadline())
    }

    /// Ready times of the messages that have not arrived and are not given up.
    pub(crate) fn undelivered(&self) -> impl Iterator<Item = Instant> {
        self.member.undelivered()
    }

    /// Messages may be ready, or timers expired.
    pub(crate) fn act(
        &mut self,
        now: Instant,
        plan: &FlowLayout,
        (observer, counters): (&mut impl Observer, &mut CoapCounters),
    ) {
        if !std::mem::replace(&mut self.has_begun, true) {
            // Without a path nothing arrives, which the answer shows.
            let _ = socket::connect(&self.ends[0], plan, self.flow, self.number);
        }
        while let Some(message) =
            self.source.as_mut().and_then(|source| source.next_message_by(now))
        {
            self.push(now, message, observer);
        }
        self.advance(now, counters);
    }

    /// A message is ready. [`Self::act`] must follow.
    pub(crate) fn push(&mut self, now: Instant, message: Arrival, observer: &mut impl Observer) {
        observer.on_late(now.since(message.at));
        observer.on_ready(message.at);
        self.member.push(message);
    }

    /// Sends the datagrams that are due.
    fn advance(&mut self, now: Instant, counters: &mut CoapCounters) {
        self.member.advance(now, counters);
        while let Some(transmission) = self.member.poll_transmit() {
            self.send(transmission);
        }
    }

    fn send(&mut self, transmission: CoapTransmission) {
        let CoapTransmission { end, datagram, bytes } = transmission;
        self.packet.clear();
        self.packet.resize(bytes as usize, 0);
        write(datagram, &mut self.packet);
        // A full socket buffer drops datagrams, which the ends retransmit.
        if end == FlowEnd::From {
            let _ = self.ends[0].send(&self.packet);
        } else if let Some(device) = &self.device {
            let _ = sendto(&self.ends[1], &self.packet, SendFlags::empty(), device);
        }
    }

    /// Reads the datagrams that have reached an end, and answers them.
    pub(crate) fn read(
        &mut self,
        end: FlowEnd,
        scratch: &mut [MaybeUninit<u8>],
        clock: impl Fn() -> Instant,
        (observer, counters): (&mut impl Observer, &mut CoapCounters),
    ) {
        while let Ok(((read, _), _, sender)) =
            recvfrom(&self.ends[end as usize], &mut *scratch, RecvFlags::empty())
        {
            let now = clock();
            if end == FlowEnd::To {
                self.device = sender;
            }
            let Some(datagram) = parse(read, self.member.has_dtls()) else { continue };
            if let Some(message) = self.member.handle_datagram(now, end, datagram, counters) {
                self.received += message.bytes;
                observer.on_delivered(self.number, message.ready, now.since(message.ready));
            }
            self.advance(now, counters);
        }
    }
}

/// Confirmable message and acknowledgement without a token, and their codes PUT and 2.04 (RFC 7252,
/// section 3).
const REQUEST: [u8; 2] = [0x40, 0x03];
const RESPONSE: [u8; 2] = [0x60, 0x44];

/// Content types of records (RFC 6347, section 4.1).
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

/// Writes a datagram into the first bytes of a packet: the header of CoAP, or, with DTLS, the
/// content type of a record, the number of the session, and then the number of the flight or the
/// header of CoAP, of which nothing is encrypted. The scenario's check has refused smaller sizes.
fn write(datagram: CoapDatagram, packet: &mut [u8]) {
    let CoapDatagram { session, content } = datagram;
    let message = |[kind, code]: [u8; 2], id: u16| {
        let [high, low] = id.to_be_bytes();
        [kind, code, high, low]
    };
    let (kind, bytes) = match content {
        CoapContent::Flight(number) => (HANDSHAKE, [number, 0, 0, 0]),
        CoapContent::Request(id) => (APPLICATION_DATA, message(REQUEST, id)),
        CoapContent::Response(id) => (APPLICATION_DATA, message(RESPONSE, id)),
    };
    let [high, low] = session.to_be_bytes();
    let record = [kind, high, low];
    let record = if session == 0 { &[][..] } else { &record };
    let (head, rest) = packet.split_at_mut(record.len());
    head.copy_from_slice(record);
    rest[..bytes.len()].copy_from_slice(&bytes);
}

/// Reads what [`write`] has written; `None` for a datagram of another program.
fn parse(packet: &[u8], has_dtls: bool) -> Option<CoapDatagram> {
    let (session, rest) = match packet {
        [HANDSHAKE | APPLICATION_DATA, high, low, rest @ ..] if has_dtls => {
            (u16::from_be_bytes([*high, *low]), rest)
        }
        _ if has_dtls => return None,
        rest => (0, rest),
    };
    let content = match *rest {
        [number, ..] if packet[0] == HANDSHAKE && has_dtls => CoapContent::Flight(number),
        [kind, code, high, low, ..] => {
            let id = u16::from_be_bytes([high, low]);
            match [kind, code] {
                REQUEST => CoapContent::Request(id),
                RESPONSE => CoapContent::Response(id),
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(CoapDatagram { session, content })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_read_as_they_were_written() {
        let contents =
            [CoapContent::Flight(5), CoapContent::Request(0xfffe), CoapContent::Response(7)];
        for session in [0, 1, 0xffff] {
            let with_dtls = session != 0;
            for content in contents {
                if !with_dtls && matches!(content, CoapContent::Flight(_)) {
                    continue;
                }
                let datagram = CoapDatagram { session, content };
                let mut packet = [0; 13];
                write(datagram, &mut packet);
                assert_eq!(parse(&packet, with_dtls), Some(datagram));
            }
        }
        for foreign in [&[][..], &[0x40], &[22, 0], &[1, 2, 3, 4, 5]] {
            assert_eq!(parse(foreign, false), None, "{foreign:?}");
            assert_eq!(parse(foreign, true), None, "{foreign:?}");
        }
    }
}
