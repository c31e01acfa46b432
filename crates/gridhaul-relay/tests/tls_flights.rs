//! Flights of real TLS 1.3 handshakes over loopback, compared with the flights of the key `tls` of
//! scenarios. The expectations are exact: rustls puts several messages into a record, and the
//! length of each signature is observed.

use std::fs::read;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use gridhaul_core::load::TlsFlights;
use gridhaul_scenario::scenario::{Tls, TlsResumption, TlsVersion};
use gridhaul_scenario::units::Bytes;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, Signer, SigningKey, SingleCertAndKey};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, HandshakeKind, RootCertStore, ServerConfig,
    ServerConnection, SignatureAlgorithm, SignatureScheme, StreamOwned,
};
use tempfile::TempDir;

use crate::certificates::Authority;

#[path = "daemon/certificates.rs"]
mod certificates;

/// Bytes that a message saves by sharing the record of the previous one: header, content type and
/// tag (RFC 8446, section 5.2).
const SHARED_RECORD: u32 = 5 + 1 + 16;

/// Largest ECDSA signature of curve P-256 in DER: a sequence of two integers of 33 B.
const SIGNATURE_MAX: u32 = 2 + 2 * (2 + 33);

/// Identity of a session that the server stores, in place of a ticket with the session itself.
const SESSION_ID: u32 = 32;

/// Bytes by which the nonce of a ticket of rustls, 32 B, is longer than that of OpenSSL.
const TICKET_NONCE: u32 = 32 - 8;

/// Extension server_name, by which a server confirms that it has used the name of the client.
const SERVER_NAME: u32 = 4;

const READING: usize = 200;

/// Subject of an exchange.
#[derive(Clone, Copy)]
struct Case {
    has_client_certificate: bool,
    resumes: bool,
    suite: CipherSuite,
    /// Bytes of the hash of the suite.
    hash: u32,
}

const CASE: Case = Case {
    has_client_certificate: false,
    resumes: false,
    suite: CipherSuite::TLS13_AES_128_GCM_SHA256,
    hash: 32,
};

/// A key that stores the length of its latest signature.
#[derive(Debug)]
struct ObservedKey {
    key: Arc<dyn SigningKey>,
    signature: Arc<AtomicU32>,
}

#[derive(Debug)]
struct ObservedSigner {
    signer: Box<dyn Signer>,
    signature: Arc<AtomicU32>,
}

impl SigningKey for ObservedKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = self.key.choose_scheme(offered)?;
        Some(Box::new(ObservedSigner { signer, signature: Arc::clone(&self.signature) }))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}

impl Signer for ObservedSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        let signature = self.signer.sign(message)?;
        self.signature.store(signature.len() as u32, Ordering::SeqCst);
        Ok(signature)
    }

    fn scheme(&self) -> SignatureScheme {
        self.signer.scheme()
    }
}

/// A certificate with its observed key.
struct Identity {
    certificate: u32,
    signature: Arc<AtomicU32>,
    resolver: Arc<SingleCertAndKey>,
}

impl Identity {
    fn load(folder: &Path, name: &str, provider: &CryptoProvider) -> Self {
        let path = |extension: &str| folder.join(name).with_extension(extension);
        let certificate = CertificateDer::from_pem_file(path("pem")).unwrap();
        let private = PrivateKeyDer::from_pem_file(path("key")).unwrap();
        let key = provider.key_provider.load_private_key(private).unwrap();
        let signature = Arc::default();
        let length = certificate.len() as u32;
        let observed = ObservedKey { key, signature: Arc::clone(&signature) };
        let certified = CertifiedKey::new(vec![certificate], Arc::new(observed));
        Self { certificate: length, signature, resolver: Arc::new(certified.into()) }
    }

    /// Bytes by which the latest signature is shorter than the largest.
    fn saved(&self) -> u32 {
        SIGNATURE_MAX - self.signature.load(Ordering::SeqCst)
    }
}

/// Two ends of TLS.
struct Ends {
    _folder: TempDir,
    server: Identity,
    client: Identity,
    server_config: Arc<ServerConfig>,
    client_config: Arc<ClientConfig>,
    /// Signature algorithms in a certificate request.
    algorithms: u32,
}

impl Ends {
    fn new(case: Case) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path(), "authority");
        authority.issue("server", "server");
        authority.issue("client", "meter-7");
        let mut provider = rustls::crypto::ring::default_provider();
        provider.cipher_suites.sort_by_key(|suite| suite.suite() != case.suite);
        let server = Identity::load(folder.path(), "server", &provider);
        let client = Identity::load(folder.path(), "client", &provider);
        let provider = Arc::new(provider);
        let mut roots = RootCertStore::empty();
        let pem = read(folder.path().join("authority.pem")).unwrap();
        roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
        // The names of authorities are an option of servers and of any length.
        let verifier = WebPkiClientVerifier::builder_with_provider(
            Arc::new(roots.clone()),
            Arc::clone(&provider),
        )
        .clear_root_hint_subjects()
        .build()
        .unwrap();
        let algorithms = verifier.supported_verify_schemes().len() as u32;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap();
        let builder = if case.has_client_certificate {
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let mut server_config = builder.with_cert_resolver(server.resolver.clone());
        if case.resumes {
            server_config.session_storage = ServerSessionMemoryCache::new(16);
        } else {
            server_config.session_storage = Arc::new(NoServerSessionStorage {});
            server_config.send_tls13_tickets = 0;
        }
        let client_config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_client_cert_resolver(client.resolver.clone());
        let (server_config, client_config) = (Arc::new(server_config), Arc::new(client_config));
        Self { _folder: folder, server, client, server_config, client_config, algorithms }
    }

    /// The flights that scenarios with these certificates have.
    fn computed(&self, case: Case, client_hello: u32) -> TlsFlights {
        let bytes = |bytes: u32| Bytes::new(bytes.into());
        TlsFlights::of(&Tls {
            version: TlsVersion::V1_3,
            client_hello: bytes(client_hello),
            certificate: bytes(self.server.certificate),
            client_certificate: case.has_client_certificate.then(|| bytes(self.client.certificate)),
            resumption: if case.resumes { TlsResumption::AfterFirst } else { TlsResumption::Never },
            ticket: bytes(SESSION_ID),
            early_data: false,
            flights: None,
        })
    }
}

/// Bytes of an exchange at the client.
struct Exchange {
    kind: HandshakeKind,
    /// Flights until the client may send a message: the first is its own.
    handshake: Vec<u32>,
    /// Bytes of a reading with `close_notify`.
    reading: u32,
    /// Bytes of the server after the handshake.
    answer: u32,
}

/// A socket that records the flights that pass it.
struct Recorded {
    socket: TcpStream,
    flights: Vec<u32>,
}

impl Recorded {
    /// Counts bytes of the client (`parity` 0) or of the server (1): those that follow bytes of the
    /// same end belong to their flight.
    fn count(&mut self, parity: usize, bytes: usize) {
        if bytes > 0 && self.flights.len() % 2 == parity {
            self.flights.push(0);
        }
        if let Some(last) = self.flights.last_mut() {
            *last += bytes as u32;
        }
    }
}

impl Write for Recorded {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        let written = self.socket.write(data)?;
        self.count(0, written);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.socket.flush()
    }
}

impl Read for Recorded {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.socket.read(buffer)?;
        self.count(1, length);
        Ok(length)
    }
}

/// Connects, sends a reading, and closes.
fn exchange(ends: &Ends) -> Exchange {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let config = Arc::clone(&ends.server_config);
    let server = thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        let connection = ServerConnection::new(config).unwrap();
        let mut stream = StreamOwned::new(connection, socket);
        let mut reading = Vec::new();
        stream.read_to_end(&mut reading).unwrap();
        stream.conn.send_close_notify();
        stream.flush().unwrap();
        assert_eq!(reading.len(), READING);
    });
    let name = "relay.test".try_into().unwrap();
    let mut tls = ClientConnection::new(Arc::clone(&ends.client_config), name).unwrap();
    let mut stream = Recorded { socket: TcpStream::connect(address).unwrap(), flights: Vec::new() };
    while tls.is_handshaking() || tls.wants_write() {
        if tls.wants_write() {
            tls.write_tls(&mut stream).unwrap();
        } else {
            tls.read_tls(&mut stream).unwrap();
            tls.process_new_packets().unwrap();
        }
    }
    let handshake = std::mem::take(&mut stream.flights);
    let kind = tls.handshake_kind().unwrap();
    tls.writer().write_all(&[b'x'; READING]).unwrap();
    tls.send_close_notify();
    while tls.wants_write() {
        tls.write_tls(&mut stream).unwrap();
    }
    while tls.read_tls(&mut stream).unwrap() > 0 {
        tls.process_new_packets().unwrap();
    }
    server.join().unwrap();
    let [reading, answer] = stream.flights.try_into().unwrap();
    Exchange { kind, handshake, reading, answer }
}

/// Compares exchanges of a case with full handshakes.
fn compare_full(case: Case) {
    let ends = Ends::new(case);
    // Signatures differ in length from handshake to handshake.
    for _ in 0..8 {
        let found = exchange(&ends);
        assert_eq!(found.kind, HandshakeKind::Full);
        let computed = ends.computed(case, found.handshake[0]);
        let mut expected = computed.full.clone();
        // EncryptedExtensions, Certificate, CertificateVerify and Finished are one record.
        expected[1] += SERVER_NAME + (case.hash - 32);
        expected[1] -= 3 * SHARED_RECORD + ends.server.saved();
        expected[2] += case.hash - 32;
        if case.has_client_certificate {
            // The request, which is part of the same record, has two algorithms in scenarios.
            expected[1] += 2 * (ends.algorithms - 2);
            expected[1] -= SHARED_RECORD;
            expected[2] -= 2 * SHARED_RECORD + ends.client.saved();
        }
        assert_eq!(found.handshake, expected, "certificate of {} B", ends.server.certificate);
        let alert = u64::from(computed.close_notify);
        assert_eq!(u64::from(found.reading), computed.protected(READING as u64) + alert);
        assert_eq!(found.answer, computed.close_notify + computed.tickets);
    }
}

#[test]
fn a_full_handshake_has_the_computed_flights() {
    compare_full(CASE);
}

#[test]
fn a_handshake_with_a_client_certificate_has_the_computed_flights() {
    compare_full(Case { has_client_certificate: true, ..CASE });
}

/// The suite that both ends prefer if they are not configured.
#[test]
fn a_longer_hash_lengthens_each_finished() {
    let suite = CipherSuite::TLS13_AES_256_GCM_SHA384;
    compare_full(Case { suite, hash: 48, ..CASE });
}

/// The default of `client_hello` is that of this client within the size of a server name.
#[test]
fn a_client_hello_has_about_the_default_size() {
    let hello = exchange(&Ends::new(CASE)).handshake[0];
    assert!((200..=240).contains(&hello), "{hello} B");
}

#[test]
fn a_resumption_has_the_computed_flights() {
    let case = Case { resumes: true, ..CASE };
    let ends = Ends::new(case);
    let first = exchange(&ends);
    assert_eq!(first.kind, HandshakeKind::Full);
    let computed = ends.computed(case, first.handshake[0]);
    // Two tickets are one record.
    let tickets = computed.tickets + 2 * TICKET_NONCE - SHARED_RECORD;
    assert_eq!(first.answer, computed.close_notify + tickets);
    for _ in 0..3 {
        let resumed = exchange(&ends);
        assert_eq!(resumed.kind, HandshakeKind::Resumed);
        let mut expected = computed.resumed.clone();
        // EncryptedExtensions and Finished are one record.
        expected[1] -= SHARED_RECORD;
        assert_eq!(resumed.handshake, expected);
        assert_eq!(resumed.answer, computed.close_notify + tickets);
    }
}
