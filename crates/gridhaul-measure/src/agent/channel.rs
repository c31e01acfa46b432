//! The control channel: TLS 1.3 (RFC 8446) with the raw public key of the agent (RFC 7250), which
//! the controller knows by its fingerprint. There are no names, authorities and dates.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct, Error,
    ServerConfig, ServerConnection, SignatureScheme,
};

use super::secret::{AgentKey, SecretError, fingerprint};
use crate::measurement::Fingerprint;
use crate::protocol::has_nothing_arrived;

/// Longest time for which a write waits for a peer that does not read.
const WRITE_WITHIN: time::Duration = time::Duration::from_secs(10);

/// An encrypted connection.
#[derive(Debug)]
pub(super) struct Channel {
    tls: Connection,
    socket: TcpStream,
}

/// The key of an agent that its controller expects, and the key that was presented.
#[derive(Debug)]
pub(super) struct PinnedKey {
    expected: Fingerprint,
    presented: Mutex<Option<Fingerprint>>,
    provider: Arc<CryptoProvider>,
}

/// TLS of an agent, and the fingerprint of its key.
pub(super) fn server_config(
    key: &AgentKey,
) -> Result<(Arc<ServerConfig>, Fingerprint), SecretError> {
    let unusable = |error: Error| SecretError::Key(error.to_string());
    let provider = provider();
    let signing = provider.key_provider.load_private_key(key.0.clone_key()).map_err(unusable)?;
    let no_public = || SecretError::Key("the private key has no public key".into());
    let public = signing.public_key().ok_or_else(no_public)?.to_vec();
    let fingerprint = fingerprint(&public);
    let certified = CertifiedKey::new(vec![CertificateDer::from(public)], signing);
    let resolver = AlwaysResolvesServerRawPublicKeys::new(Arc::new(certified));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unusable)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    // Sessions are not resumed: each connection presents the key.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok((Arc::new(config), fingerprint))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

impl PinnedKey {
    pub(super) fn new(expected: Fingerprint) -> Arc<Self> {
        Arc::new(Self { expected, presented: Mutex::default(), provider: provider() })
    }

    /// The fingerprint of the agent, if it is not the expected one.
    pub(super) fn unexpected(&self) -> Option<Fingerprint> {
        let presented = self.presented.lock().unwrap_or_else(PoisonError::into_inner);
        presented.filter(|presented| *presented != self.expected)
    }
}

impl ServerCertVerifier for PinnedKey {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let presented = fingerprint(key);
        *self.presented.lock().unwrap_or_else(PoisonError::into_inner) = Some(presented);
        if presented == self.expected {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not offered".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl Channel {
    /// The end of the agent.
    pub(super) fn server(socket: TcpStream, config: &Arc<ServerConfig>) -> io::Result<Self> {
        let tls = ServerConnection::new(Arc::clone(config)).map_err(invalid)?;
        Self::new(tls.into(), socket)
    }

    /// The end of the controller.
    pub(super) fn client(socket: TcpStream, key: Arc<PinnedKey>) -> io::Result<Self> {
        let name = ServerName::from(socket.peer_addr()?.ip());
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(invalid)?
            .dangerous()
            .with_custom_certificate_verifier(key)
            .with_no_client_auth();
        let tls = ClientConnection::new(Arc::new(config), name).map_err(invalid)?;
        let mut channel = Self::new(tls.into(), socket)?;
        channel.flush()?;
        Ok(channel)
    }

    fn new(tls: Connection, socket: TcpStream) -> io::Result<Self> {
        // Exchanges must not wait for acknowledgements of earlier reports.
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(WRITE_WITHIN))?;
        Ok(Self { tls, socket })
    }

    /// Reads once from the socket, and waits at most `wait`, which is not zero. `None` if no bytes
    /// of the peer are complete: a record of TLS may arrive in parts, between which the caller
    /// checks its deadlines.
    ///
    /// # Errors
    /// The connection has ended or failed.
    pub(super) fn read(
        &mut self,
        wait: time::Duration,
        buffer: &mut [u8],
    ) -> io::Result<Option<usize>> {
        if let Some(length) = self.decrypted(buffer)? {
            return Ok(Some(length));
        }
        self.socket.set_read_timeout(Some(wait))?;
        match self.tls.read_tls(&mut self.socket) {
            Ok(0) => return Err(ended()),
            Ok(_) => {}
            Err(error) if has_nothing_arrived(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        let processed = self.tls.process_new_packets().map(drop);
        // The TLS alert carries the reason for the end of the connection.
        let flushed = self.flush();
        processed.map_err(invalid)?;
        flushed?;
        self.decrypted(buffer)
    }

    /// Bytes of complete records; `None` without any.
    fn decrypted(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.tls.reader().read(buffer) {
            Ok(0) => Err(ended()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            other => other.map(Some),
        }
    }

    /// Writes all bytes. During the handshake they wait inside TLS.
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let accepted = self.tls.writer().write(bytes)?;
            if accepted == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
            bytes = &bytes[accepted..];
            self.flush()?;
        }
        Ok(())
    }

    /// Ends the connection in an orderly way, as far as the peer permits.
    pub(super) fn close(&mut self) {
        self.tls.send_close_notify();
        let _ = self.flush();
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

fn ended() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the other end has closed the connection")
}

fn invalid(error: impl fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error.to_string())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    /// The deadlines of a session are checked after each read.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a peer sends bytes in real time")]
    fn a_read_ends_although_bytes_of_an_incomplete_record_keep_arriving() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let key = AgentKey::generate().unwrap();
        let (config, _) = server_config(&key).unwrap();
        let mut channel = Channel::server(listener.accept().unwrap().0, &config).unwrap();
        let has_read = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                // A handshake record of 16,384 B, one byte every 20 ms.
                let record = [0x16, 3, 1, 0x40, 0].into_iter().chain([0].into_iter().cycle());
                for byte in record.take(1_000) {
                    if has_read.load(Ordering::Relaxed) || peer.write_all(&[byte]).is_err() {
                        break;
                    }
                    thread::sleep(time::Duration::from_millis(20));
                }
            });
            let begin = time::Instant::now();
            for _ in 0..5 {
                let read = channel.read(time::Duration::from_millis(100), &mut [0; 100]);
                assert_eq!(read.unwrap(), None);
            }
            has_read.store(true, Ordering::Relaxed);
            assert!(begin.elapsed() < time::Duration::from_secs(10), "{:?}", begin.elapsed());
        });
    }
}
