//! The packets of one message, with the connection that carries it.

use gridhaul_core::load::ConnectionRules;
use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::{ConnectionPolicy, Load, TlsResumption};

use super::rounds::Windows;

/// Packets of one direction, in bytes with headers.
type Packets = Vec<f64>;

/// The packets of a message, with a new connection and on an open one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Exchange {
    /// Share of the messages for which a connection opens.
    pub opening: f64,
    /// A message with its connection.
    pub opened: Transmissions,
    /// A message on an open connection.
    pub plain: Transmissions,
    /// Flights before the device can send its message.
    pub flights_to_connect: usize,
    /// Bytes of the TLS handshake and its tickets.
    pub tls_bytes: f64,
    /// Share of the handshakes that resume a session.
    pub resumed: f64,
}

/// The packets of a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Transmissions {
    /// Sequence of the flights up to the message; each waits for the one before.
    pub flights: Vec<Flight>,
    /// All packets to the `to` end, and to the `from` end.
    pub directions: [Packets; 2],
}

/// Packets that one end transmits one after another.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Flight {
    pub is_forward: bool,
    pub packets: Packets,
    /// Packets with data.
    pub segments: usize,
    /// Size of a packet without data.
    pub header: f64,
    /// Window of the sender, in segments.
    pub window: f64,
    /// Whether Nagle's algorithm keeps the last segment back until all others are acknowledged.
    pub last_waits: bool,
}

/// The packets of the two directions under construction.
struct Builder {
    header: f64,
    mss: f64,
    window: f64,
    nagle: bool,
    flights: Vec<Flight>,
    directions: [Packets; 2],
    /// Whether an end has answered data with data: acknowledgements wait for the next answer.
    is_dialogue: bool,
}

impl Exchange {
    /// The packets of a message of this size.
    pub(super) fn new(
        rules: Option<&ConnectionRules>,
        message: f64,
        opening: f64,
        stack: &StackParams,
    ) -> Self {
        // RFC 7323, appendix A: ten bytes, padded to twelve.
        let header = f64::from(stack.header) + if stack.timestamps { 12.0 } else { 0.0 };
        let (mss, windows) = (f64::from(stack.mss), Windows::new(stack));
        let mut builder = Builder::new(header, mss, windows.initial, windows.nagle);
        let mut plain = Builder::new(header, mss, windows.after_silence, windows.nagle);
        let tls = rules.and_then(|rules| rules.tls.as_ref());
        let payload = rules.map_or(message, |rules| rules.stream_bytes(message as u64) as f64);
        let opens = opening > 0.0;
        let resumes = rules.is_some_and(|rules| rules.resumption != TlsResumption::Never);
        // In a steady state, every device has a ticket.
        let resumed = if resumes { 1.0 } else { 0.0 };
        let mut flights: Vec<f64> = Vec::new();
        let mut tickets = 0.0;
        if let Some(tls) = tls.filter(|_| opens) {
            flights.extend(tls.handshake(resumes).iter().map(|bytes| f64::from(*bytes)));
            tickets = f64::from(tls.tickets);
        }
        let tls_bytes = flights.iter().sum::<f64>() + tickets;
        if opens {
            builder.handshake();
        }
        // The message follows the last flight of the client at once.
        let last = if flights.len() % 2 == 1 { flights.pop().unwrap_or(0.0) } else { 0.0 };
        for (number, bytes) in flights.into_iter().enumerate() {
            builder.flight(number % 2 == 0, bytes);
        }
        let flights_to_connect = builder.flights.len();
        let closes = rules.filter(|_| opens);
        let alert = closes.map_or(0.0, |rules| rules.close_bytes() as f64);
        // A device that closes at once writes its alert with the message.
        let closes_at_once =
            closes.is_some_and(|rules| rules.policy == ConnectionPolicy::PerMessage);
        let own_alert = if closes_at_once { alert } else { 0.0 };
        // FIN follows at once, and with it the last segment (RFC 9293, section 3.7.4: SEND with
        // PUSH).
        builder.nagle &= !closes_at_once;
        builder.flight(true, last + payload + own_alert);
        if closes.is_some() {
            let is_answered = stack.policy.adaptive_delayed_ack;
            builder.closing(alert - own_alert, tickets + alert, is_answered);
        }
        plain.flight(true, payload);
        let (opened, plain) = (builder.finish(), plain.finish());
        Self { opening, opened, plain, flights_to_connect, tls_bytes, resumed }
    }

    /// Bytes of a message in a direction, in the mean.
    pub(super) fn bytes(&self, direction: usize) -> f64 {
        let sum = |packets: &Transmissions| packets.directions[direction].iter().sum::<f64>();
        self.opening * sum(&self.opened) + (1.0 - self.opening) * sum(&self.plain)
    }
}

impl Builder {
    fn new(header: f64, mss: f64, window: f64, nagle: bool) -> Self {
        let (flights, directions) = (Vec::new(), [Vec::new(), Vec::new()]);
        Self { header, mss, window, nagle, flights, directions, is_dialogue: false }
    }

    fn finish(self) -> Transmissions {
        Transmissions { flights: self.flights, directions: self.directions }
    }

    fn packet(&mut self, is_forward: bool, payload: f64) {
        self.directions[usize::from(!is_forward)].push(self.header + payload);
    }

    /// SYN, SYN-ACK and the acknowledgement with which the next flight begins (RFC 9293, section
    /// 3.5).
    fn handshake(&mut self) {
        for is_forward in [true, false, true] {
            self.packet(is_forward, 0.0);
        }
        self.push(true, vec![self.header], 0);
        self.push(false, vec![self.header], 0);
    }

    /// Data in one direction, and its acknowledgements: one for each segment at the start of a
    /// connection of Linux; later one for each two (RFC 5681, section 4.2), of which the last one
    /// is part of the answer.
    fn flight(&mut self, is_forward: bool, bytes: f64) {
        // The first flight, and the answer to it, follow an acknowledgement from the same end.
        let follows = !self.flights.is_empty() && !self.is_dialogue;
        let mut packets = if follows { vec![self.header] } else { Vec::new() };
        let segments = self.data(is_forward, bytes);
        let is_answered = self.is_dialogue || !is_forward;
        let acknowledgements = if is_answered { segments.len() / 2 } else { segments.len() };
        for _ in 0..acknowledgements {
            self.packet(!is_forward, 0.0);
        }
        let count = segments.len();
        packets.extend(segments);
        self.is_dialogue |= !is_forward;
        self.push(is_forward, packets, count);
    }

    fn push(&mut self, is_forward: bool, packets: Packets, segments: usize) {
        let Self { header, window, .. } = *self;
        let is_short = packets.last().is_some_and(|bytes| *bytes < header + self.mss);
        let last_waits = self.nagle && segments > 1 && is_short;
        self.flights.push(Flight { is_forward, packets, segments, header, window, last_waits });
    }

    fn data(&mut self, is_forward: bool, bytes: f64) -> Packets {
        let mut packets = Vec::new();
        let mut left = bytes;
        while left > 0.0 {
            let payload = left.min(self.mss);
            self.packet(is_forward, payload);
            packets.push(self.header + payload);
            left -= payload;
        }
        packets
    }

    /// Alerts, tickets and FIN of both ends, each acknowledged. If FIN of the client `is_answered`,
    /// as with Linux, what the server sends next has its acknowledgement.
    fn closing(&mut self, of_client: f64, of_server: f64, is_answered: bool) {
        for (is_forward, bytes) in [(true, of_client), (false, of_server)] {
            for _ in self.data(is_forward, bytes) {
                self.packet(!is_forward, 0.0);
            }
            self.packet(is_forward, 0.0);
            if !(is_forward && is_answered) {
                self.packet(!is_forward, 0.0);
            }
        }
    }
}

/// Share of the messages of a load for which a connection opens; `None` for a load that the
/// equations do not support.
pub(super) fn opening_share(policy: ConnectionPolicy, load: &Load) -> Option<f64> {
    let (gap, is_random) = match load {
        Load::Periodic(load) => (load.every.as_secs_f64(), false),
        Load::Poisson(load) => (load.every.as_secs_f64(), true),
        _ => return None,
    };
    Some(match policy {
        ConnectionPolicy::Persistent => 0.0,
        ConnectionPolicy::PerMessage => 1.0,
        ConnectionPolicy::IdleTimeout(timeout) if is_random => (-timeout.as_secs_f64() / gap).exp(),
        ConnectionPolicy::IdleTimeout(timeout) => f64::from(u8::from(timeout.as_secs_f64() < gap)),
    })
}

#[cfg(test)]
mod tests {
    use gridhaul_core::load::TlsFlights;
    use gridhaul_scenario::scenario::{Reconnect, Stack, Tls, TlsVersion};
    use gridhaul_scenario::units::Bytes;

    use super::*;

    fn exchange(tls: Option<&Tls>) -> Exchange {
        let rules = ConnectionRules {
            policy: ConnectionPolicy::PerMessage,
            tls: tls.map(TlsFlights::of),
            resumption: TlsResumption::Never,
            reconnect: Reconnect::default(),
            fast_open: false,
            is_dialogue: false,
            has_session: false,
        };
        Exchange::new(Some(&rules), 200.0, 1.0, &StackParams::resolve(&Stack::default()))
    }

    /// Headers of 52 B. To the server: SYN, ACK, message, FIN, ACK of FIN; from it: SYN-ACK, ACK of
    /// the message, FIN with the acknowledgement of FIN.
    #[test]
    fn packets_of_a_connection_for_one_message() {
        let exchange = exchange(None);
        let [forward, reverse] = &exchange.opened.directions;
        assert_eq!(*forward, [52.0, 52.0, 252.0, 52.0, 52.0]);
        assert_eq!(*reverse, [52.0; 3]);
        // Three one-way delays until the message arrives.
        assert_eq!((exchange.opened.flights.len(), exchange.flights_to_connect), (3, 2));
        assert_eq!((exchange.bytes(0), exchange.bytes(1)), (460.0, 156.0));
    }

    /// The flights of the test of TLS 1.3: 220 B, 1,356 B and 64 B; the message with a record of 22
    /// B and the alert of 24 B follow the last flight.
    #[test]
    fn packets_of_a_connection_with_tls() {
        let keys = Tls {
            version: TlsVersion::V1_3,
            client_hello: Bytes::new(220),
            certificate: Bytes::new(1_000),
            client_certificate: None,
            resumption: TlsResumption::Never,
            ticket: Bytes::new(200),
            early_data: false,
            flights: None,
        };
        let exchange = exchange(Some(&keys));
        let data = 52.0 + 64.0 + 222.0 + 24.0;
        let [forward, reverse] = &exchange.opened.directions;
        assert_eq!(*forward, [52.0, 52.0, 272.0, data, 52.0, 52.0, 52.0]);
        assert_eq!(*reverse, [52.0, 52.0, 1_408.0, 76.0, 52.0]);
        assert_eq!((exchange.opened.flights.len(), exchange.flights_to_connect), (5, 4));
    }
}
