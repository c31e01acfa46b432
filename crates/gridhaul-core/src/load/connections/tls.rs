//! Flights of TLS handshakes, in bytes on the TCP connection.
//!
//! The sizes are those of an ECDSA certificate of curve P-256, a key exchange with X25519, and
//! AES-128-GCM with SHA-256. Every handshake message has a record of its own, as OpenSSL writes
//! them; a stack that combines encrypted messages saves 22 B for each (RFC 8446, section 5.1).

use gridhaul_scenario::scenario::{Tls, TlsResumption, TlsVersion};
use gridhaul_scenario::units::Bytes;

/// Flights of the handshakes of a flow. The first is sent by the client, the next by the server,
/// and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFlights {
    /// Bytes of each flight of a full handshake.
    pub full: Vec<u32>,
    /// Bytes of each flight of a resumption.
    pub resumed: Vec<u32>,
    /// Bytes of the session tickets that the server sends after a handshake.
    pub tickets: u32,
    /// Bytes of the alert with which an end announces its close (RFC 8446, section 6.1).
    pub close_notify: u32,
    /// Whether messages may follow the ClientHello of a resumption.
    pub early_data: bool,
    /// Bytes that a record adds to its content.
    record: u32,
}

/// Largest early data of a connection that servers accept: the default of OpenSSL
/// (`SSL_set_recv_max_early_data`). Only data before encryption count (RFC 8446, section 4.2.10).
pub(super) const EARLY_DATA_MAX: u64 = 16_384;

impl TlsFlights {
    /// The flights of a handshake with these keys.
    #[must_use]
    pub fn of(keys: &Tls) -> Self {
        let mut flights = match keys.version {
            TlsVersion::V1_2 => version_1_2(keys),
            TlsVersion::V1_3 => version_1_3(keys),
        };
        if let Some(given) = &keys.flights {
            flights.full = given.iter().copied().map(size).collect();
        }
        flights
    }

    /// The flights of a full handshake or of a resumption.
    #[must_use]
    pub fn handshake(&self, resumed: bool) -> &[u32] {
        if resumed { &self.resumed } else { &self.full }
    }

    /// Bytes of the records that carry a message of this size.
    #[must_use]
    pub const fn protected(&self, message: u64) -> u64 {
        message + self.record as u64 * message.div_ceil(RECORD_MAX)
    }
}

/// Header of a record (RFC 8446, section 5.1).
const RECORD: u32 = 5;
/// Largest content of a record (RFC 8446, section 5.1).
const RECORD_MAX: u64 = 1 << 14;
/// Header of a handshake message (RFC 8446, section 4).
const MESSAGE: u32 = 4;
/// Content type and tag of an encrypted record of TLS 1.3 (RFC 8446, section 5.2).
const PROTECTION_1_3: u32 = 1 + 16;
/// Explicit nonce and tag of an encrypted record of TLS 1.2 (RFC 5288, section 3).
const PROTECTION_1_2: u32 = 8 + 16;
/// change_cipher_spec (RFC 5246, section 7.1); TLS 1.3 sends it for old middleboxes (RFC 8446,
/// section D.4).
const CHANGE_CIPHER_SPEC: u32 = RECORD + 1;
/// Algorithm, length and value of a signature: at most 72 B in DER, often 1 B or 2 B less.
const SIGNATURE: u32 = 2 + 2 + 72;
/// ServerHello without extensions: version, random, session identifier, cipher suite, compression
/// method and the length of the extensions (RFC 8446, section 4.1.3).
const SERVER_HELLO: u32 = 2 + 32 + 33 + 2 + 1 + 2;
/// Public key of X25519.
const PUBLIC_KEY: u32 = 32;
/// Length and two values of signature_algorithms, as they are in a certificate request.
const SIGNATURE_ALGORITHMS: u32 = 2 + 2 * 2;
/// Hash of SHA-256, which is the content of Finished (RFC 8446, section 4.4.4) and a PSK binder.
const HASH: u32 = 32;
/// Tickets that a server of TLS 1.3 sends after a handshake: OpenSSL and rustls send two.
const TICKETS_1_3: u32 = 2;

const fn plain(body: u32) -> u32 {
    RECORD + MESSAGE + body
}

fn size(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(u32::MAX)
}

fn version_1_3(keys: &Tls) -> TlsFlights {
    let protected = |body: u32| plain(body) + PROTECTION_1_3;
    // Context, length of the list, length and extensions of an entry (RFC 8446, section 4.4.2).
    let certificate = |bytes: Bytes| protected(1 + 3 + 3 + size(bytes) + 2);
    let finished = protected(HASH);
    // Extensions supported_versions and key_share (RFC 8446, section 4.1.3).
    let server_hello = plain(SERVER_HELLO + (4 + 2) + (4 + 2 + 2 + PUBLIC_KEY));
    // EncryptedExtensions without an extension (RFC 8446, section 4.3.1).
    let encrypted_extensions = protected(2);
    // Context and extensions (RFC 8446, section 4.3.2).
    let request = protected(1 + 2 + 4 + SIGNATURE_ALGORITHMS);
    let own = certificate(keys.certificate) + protected(SIGNATURE);
    let requested = keys.client_certificate.map(|bytes| certificate(bytes) + protected(SIGNATURE));
    let begin = server_hello + CHANGE_CIPHER_SPEC + encrypted_extensions;
    let end = CHANGE_CIPHER_SPEC + finished;
    // Lifetime, age_add, nonce of 8 B, ticket and extensions (RFC 8446, section 4.6.1).
    let ticket = protected(4 + 4 + 1 + 8 + 2 + size(keys.ticket) + 2);
    // An identity with its age, and a binder (RFC 8446, section 4.2.11).
    let offer = 4 + 2 + (2 + size(keys.ticket) + 4) + 2 + (1 + HASH);
    let hello = size(keys.client_hello);
    let resumed = match keys.early_data {
        // The server selects the identity (RFC 8446, section 4.2.11).
        false => vec![hello + offer, begin + (4 + 2) + finished, end],
        // The extension early_data of both ends (section 4.2.10), change_cipher_spec before the
        // early data (section D.4), and EndOfEarlyData after it (section 4.5).
        true => vec![
            hello + offer + 4 + CHANGE_CIPHER_SPEC,
            begin + (4 + 2) + 4 + finished,
            protected(0) + finished,
        ],
    };
    TlsFlights {
        full: vec![
            hello,
            begin + requested.map_or(0, |_| request) + own + finished,
            end + requested.unwrap_or(0),
        ],
        resumed,
        tickets: if issues_tickets(keys) { TICKETS_1_3 * ticket } else { 0 },
        close_notify: RECORD + 2 + PROTECTION_1_3,
        early_data: keys.early_data,
        record: RECORD + PROTECTION_1_3,
    }
}

fn version_1_2(keys: &Tls) -> TlsFlights {
    let finished = RECORD + MESSAGE + 12 + PROTECTION_1_2;
    let end = CHANGE_CIPHER_SPEC + finished;
    // Lengths of the list and of an entry (RFC 5246, section 7.4.2).
    let certificate = |bytes: Bytes| plain(3 + 3 + size(bytes));
    // Extensions renegotiation_info, extended_master_secret and ec_point_formats.
    let server_hello = plain(SERVER_HELLO + (4 + 1) + 4 + (4 + 2));
    // Curve, public key and signature (RFC 8422, section 5.4).
    let server_key_exchange = plain(1 + 2 + 1 + PUBLIC_KEY + SIGNATURE);
    // Certificate types, algorithms and authorities (RFC 5246, section 7.4.4).
    let request = plain((1 + 1) + SIGNATURE_ALGORITHMS + 2);
    let done = plain(0);
    let client_key_exchange = plain(1 + PUBLIC_KEY);
    let requested = keys.client_certificate.map(|bytes| certificate(bytes) + plain(SIGNATURE));
    // Lifetime and ticket (RFC 5077, section 3.3).
    let ticket = if issues_tickets(keys) { plain(4 + 2 + size(keys.ticket)) } else { 0 };
    let hello = size(keys.client_hello);
    let certificates = certificate(keys.certificate) + server_key_exchange;
    TlsFlights {
        full: vec![
            hello,
            server_hello + certificates + requested.map_or(0, |_| request) + done,
            client_key_exchange + end + requested.unwrap_or(0),
            ticket + end,
        ],
        resumed: vec![hello + size(keys.ticket), server_hello + end, end],
        tickets: 0,
        close_notify: RECORD + 2 + PROTECTION_1_2,
        early_data: false,
        record: RECORD + PROTECTION_1_2,
    }
}

fn issues_tickets(keys: &Tls) -> bool {
    keys.resumption != TlsResumption::Never
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Round trips of a handshake before the client can send a message.
    fn round_trips(flights: &[u32]) -> usize {
        flights.len() / 2
    }

    /// A certificate of 1,000 B, and no resumption.
    pub(in crate::load::connections) fn keys(version: TlsVersion) -> Tls {
        Tls {
            version,
            client_hello: Bytes::new(220),
            certificate: Bytes::new(1_000),
            client_certificate: None,
            resumption: TlsResumption::Never,
            ticket: Bytes::new(200),
            early_data: false,
            flights: None,
        }
    }

    /// ServerHello 127 B, change_cipher_spec 6 B, EncryptedExtensions 28 B, Certificate 1,035 B,
    /// CertificateVerify 102 B, Finished 58 B.
    #[test]
    fn a_full_handshake_of_version_1_3_takes_one_round_trip() {
        let flights = TlsFlights::of(&keys(TlsVersion::V1_3));
        assert_eq!(flights.full, [220, 127 + 6 + 28 + 1_035 + 102 + 58, 6 + 58]);
        assert_eq!((round_trips(&flights.full), flights.tickets), (1, 0));
        assert_eq!((flights.protected(200), flights.protected(20_000)), (222, 20_044));
    }

    /// ServerHello 96 B, Certificate 1,015 B, ServerKeyExchange 121 B, ServerHelloDone 9 B;
    /// ClientKeyExchange 42 B; change_cipher_spec 6 B and Finished 45 B of each side.
    #[test]
    fn a_full_handshake_of_version_1_2_takes_two_round_trips() {
        let flights = TlsFlights::of(&keys(TlsVersion::V1_2));
        assert_eq!(flights.full, [220, 96 + 1_015 + 121 + 9, 42 + 6 + 45, 6 + 45]);
        assert_eq!((round_trips(&flights.full), round_trips(&flights.resumed)), (2, 1));
        assert_eq!(flights.protected(200), 229);
    }

    #[test]
    fn a_resumption_replaces_certificates_by_a_ticket() {
        for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
            let resumption = TlsResumption::AfterFirst;
            let flights = TlsFlights::of(&Tls { resumption, ..keys(version) });
            let sum = |resumed| flights.handshake(resumed).iter().sum::<u32>();
            assert!(sum(true) < sum(false) - 600, "{flights:?}");
            assert_eq!(round_trips(&flights.resumed), 1);
        }
        // With 1.3 two tickets follow each handshake: 247 B each. The client offers a ticket of 200
        // B in an extension of 247 B, and the server selects it in 6 B.
        let resumption = TlsResumption::AfterFirst;
        let flights = TlsFlights::of(&Tls { resumption, ..keys(TlsVersion::V1_3) });
        assert_eq!(flights.tickets, 2 * 247);
        assert_eq!(flights.resumed, [220 + 247, 127 + 6 + 6 + 28 + 58, 6 + 58]);
        // With 1.2 the ticket is the content of an extension that is empty otherwise.
        let flights = TlsFlights::of(&Tls { resumption, ..keys(TlsVersion::V1_2) });
        assert_eq!(flights.resumed, [220 + 200, 96 + 6 + 45, 6 + 45]);
    }

    /// The extension of 4 B at both ends, and EndOfEarlyData of 26 B.
    #[test]
    fn early_data_adds_an_extension_and_its_end() {
        let resumption = TlsResumption::AfterFirst;
        let keys = Tls { resumption, ..keys(TlsVersion::V1_3) };
        let without = TlsFlights::of(&keys).resumed;
        let with = TlsFlights::of(&Tls { early_data: true, ..keys }).resumed;
        assert_eq!(with, [without[0] + 4 + 6, without[1] + 4, without[2] - 6 + 26]);
    }

    #[test]
    fn a_client_certificate_adds_messages_to_both_sides_and_no_round_trip() {
        for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
            let without = TlsFlights::of(&keys(version));
            let client_certificate = Some(Bytes::new(900));
            let with = TlsFlights::of(&Tls { client_certificate, ..keys(version) });
            assert!(with.full[1] > without.full[1]);
            assert!((900 + 76..900 + 150).contains(&(with.full[2] - without.full[2])));
            assert_eq!(round_trips(&with.full), round_trips(&without.full));
        }
    }

    #[test]
    fn given_flights_replace_those_of_a_full_handshake() {
        let flights = [300, 4_000, 90, 60].map(Bytes::new).to_vec();
        let given = TlsFlights::of(&Tls { flights: Some(flights), ..keys(TlsVersion::V1_3) });
        assert_eq!(given.full, [300, 4_000, 90, 60]);
        assert_eq!(round_trips(&given.full), 2);
    }
}
