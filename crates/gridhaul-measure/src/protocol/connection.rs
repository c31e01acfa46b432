//! Connections to brokers, with or without TLS.

use std::fmt;
use std::sync::Arc;

use gridhaul_protocols::settings::{BrokerAddress, Tls};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::ProtocolError;
use super::broker_certificate::BrokerVerifier;

/// A stream of bytes in both directions.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + fmt::Debug + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + fmt::Debug + Send + Unpin> ByteStream for T {}

/// An open connection to a broker.
pub(super) type BrokerStream = Box<dyn ByteStream>;

/// How clients connect to a broker.
#[derive(Clone)]
pub(super) struct Connector {
    broker: BrokerAddress,
    nodelay: bool,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Connector {
    /// Prepares connections, `nodelay` with `TCP_NODELAY`.
    ///
    /// # Errors
    /// The authorities or the name of TLS are invalid.
    pub(super) fn new(
        protocol: &'static str,
        broker: &BrokerAddress,
        nodelay: bool,
    ) -> Result<Self, ProtocolError> {
        let address = broker.address;
        let refused = |reason| ProtocolError::Connect { protocol, address, reason };
        let tls = broker.tls.as_ref().map(tls).transpose().map_err(refused)?;
        Ok(Self { broker: broker.clone(), nodelay, tls })
    }

    /// The broker.
    pub(super) const fn broker(&self) -> &BrokerAddress {
        &self.broker
    }

    /// Connects, and completes the handshake of TLS.
    pub(super) async fn open(&self) -> std::io::Result<BrokerStream> {
        let socket = TcpStream::connect(self.broker.address).await?;
        socket.set_nodelay(self.nodelay)?;
        Ok(match &self.tls {
            None => Box::new(socket),
            Some((connector, name)) => Box::new(connector.connect(name.clone(), socket).await?),
        })
    }
}

/// TLS 1.3 (RFC 8446), with the authorities that the user trusts.
fn tls(tls: &Tls) -> Result<(TlsConnector, ServerName<'static>), String> {
    let invalid = |what: &str, error: &dyn fmt::Display| format!("TLS, {what}: {error}");
    let mut authorities = RootCertStore::empty();
    let mut known = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(tls.authorities.as_bytes()) {
        let certificate = certificate.map_err(|error| invalid("certificates in PEM", &error))?;
        // A bundle of a system may have certificates that this library does not support.
        if authorities.add(certificate.clone()).is_ok() {
            known.push(certificate);
        }
    }
    if authorities.is_empty() {
        return Err("TLS: expected at least one certificate of an authority, in PEM".into());
    }
    let name = ServerName::try_from(tls.name.clone())
        .map_err(|error| invalid(&format!("name `{}` of the broker", tls.name), &error))?;
    let provider = Arc::new(ring::default_provider());
    let verifier = BrokerVerifier::new(authorities, known, Arc::clone(&provider))
        .map_err(|error| invalid("certificates", &error))?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| invalid("configuration", &error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok((TlsConnector::from(Arc::new(config)), name))
}
