//! Certificates and keys of TLS 1.3 (RFC 8446), from PEM files (RFC 7468).

pub(crate) mod certificate;
pub(crate) mod validity;

use std::path::Path;
use std::sync::Arc;

use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::{
    CollectorConfig, Deliver, HeadConfig, HeadTls, ManagementTls, MeterTls,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use thiserror::Error;

use super::credentials;

/// A file of TLS cannot be used.
#[derive(Debug, Error)]
#[error("{key}: {file}: {reason}\n  help: {remedy}")]
pub struct TlsError {
    key: String,
    file: String,
    reason: String,
    remedy: &'static str,
}

/// How this relay connects to a server with TLS.
#[derive(Debug, Clone)]
pub(crate) struct TlsClient {
    pub config: Arc<ClientConfig>,
    pub name: ServerName<'static>,
}

/// How a server proves its identity.
#[derive(Debug, Clone, Copy)]
struct ServerAuthentication<'a> {
    address: &'a str,
    /// Name in its certificate; `None`: the host of the address.
    name: Option<&'a str>,
    /// File with the authorities that sign its certificate.
    authorities: &'a str,
}

/// Files of one table of the configuration.
struct Files<'a> {
    key: &'a str,
    folder: &'a Path,
}

/// TLS with meters. `key` is the table of the configuration.
pub(crate) fn meters(
    key: &str,
    tls: &MeterTls,
    folder: &Path,
) -> Result<Arc<ServerConfig>, TlsError> {
    let files = Files { key, folder };
    let authorities = tls.client_authorities.as_deref();
    let clients = authorities.map(|file| files.authorities("client_authorities", file));
    let is_optional = tls.client_certificate_optional;
    files.server(&tls.certificate, &tls.key, clients.transpose()?, is_optional)
}

/// TLS of a head with its collectors, which must have certificates.
pub(crate) fn head(tls: &HeadTls, folder: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let files = Files { key: "head.tls", folder };
    let authorities = files.authorities("authorities", &tls.authorities)?;
    files.server(&tls.certificate, &tls.key, Some(authorities), false)
}

/// TLS of the status page with clients on other machines, which must have certificates.
pub(crate) fn management(
    tls: &ManagementTls,
    folder: &Path,
) -> Result<Arc<ServerConfig>, TlsError> {
    let files = Files { key: "management.tls", folder };
    let authorities = files.authorities("client_authorities", &tls.client_authorities)?;
    files.server(&tls.certificate, &tls.key, Some(authorities), false)
}

/// TLS of a collector with its head, if the configuration has it.
pub(crate) fn upstream(
    collector: &CollectorConfig,
    folder: &Path,
) -> Result<Option<TlsClient>, TlsError> {
    let Some(tls) = &collector.tls else { return Ok(None) };
    let files = Files { key: "collector.tls", folder };
    let own = Some((&*tls.certificate, &*tls.key));
    let server = ServerAuthentication {
        address: &collector.upstream,
        name: tls.server_name.as_deref(),
        authorities: &tls.authorities,
    };
    files.client(server, own).map(Some)
}

/// TLS of a head with an MQTT broker, if the configuration has it.
pub(crate) fn broker(head: &HeadConfig, folder: &Path) -> Result<Option<TlsClient>, TlsError> {
    let Deliver::Mqtt(mqtt) = &head.deliver else { return Ok(None) };
    let Some(tls) = &mqtt.tls else { return Ok(None) };
    let files = Files { key: "head.deliver.mqtt.tls", folder };
    let own = tls.certificate.as_deref().zip(tls.key.as_deref());
    let server = ServerAuthentication {
        address: &mqtt.broker,
        name: tls.server_name.as_deref(),
        authorities: &tls.authorities,
    };
    files.client(server, own).map(Some)
}

/// Checks all files of a configuration. Returns the reasons for which peers will refuse this relay,
/// although it can start.
pub(crate) fn check(config: &RelayConfig, folder: &Path) -> Result<Vec<String>, TlsError> {
    let mut used = Vec::new();
    if let Some(collector) = &config.collector {
        upstream(collector, folder)?;
        if let Some(tls) = &collector.tls {
            used.push(("collector.tls.certificate".to_owned(), &tls.certificate));
            used.push(("collector.tls.authorities".to_owned(), &tls.authorities));
        }
        for (name, listener) in &collector.listener {
            let key = format!("collector.listener.{name}.tls");
            let Some(tls) = &listener.tls else { continue };
            meters(&key, tls, folder)?;
            used.push((format!("{key}.certificate"), &tls.certificate));
            let authorities = tls.client_authorities.iter();
            used.extend(authorities.map(|file| (format!("{key}.client_authorities"), file)));
        }
    }
    if let Some(end) = &config.head {
        broker(end, folder)?;
        if let Some(tls) = &end.tls {
            head(tls, folder)?;
            used.push(("head.tls.certificate".to_owned(), &tls.certificate));
            used.push(("head.tls.authorities".to_owned(), &tls.authorities));
        }
        if let Deliver::Mqtt(mqtt) = &end.deliver
            && let Some(tls) = &mqtt.tls
        {
            let own = tls.certificate.iter().map(|file| ("certificate", file));
            let files = own.chain([("authorities", &tls.authorities)]);
            used.extend(files.map(|(key, file)| (format!("head.deliver.mqtt.tls.{key}"), file)));
        }
    }
    if let Some(tls) = config.management.as_ref().and_then(|management| management.tls.as_ref()) {
        management(tls, folder)?;
        used.push(("management.tls.certificate".to_owned(), &tls.certificate));
        used.push(("management.tls.client_authorities".to_owned(), &tls.client_authorities));
    }
    // An expired certificate is no reason not to start: the relay stores data until a new one is
    // issued.
    let mut faults = Vec::new();
    for (key, file) in used {
        let files = Files { key: "", folder };
        let found = files.certificates("", file)?;
        let reason =
            found.iter().find_map(|certificate| validity::fault(certificate, validity::now()));
        faults.extend(
            reason
                .map(|reason| format!("{key}: {file}: {reason}\n  help: issue a new certificate")),
        );
        // A head accepts a collector only under a name in its certificate.
        let names = found.first().map(certificate::names).unwrap_or_default();
        if key == "collector.tls.certificate" && !names.contains(&config.name) {
            faults.push(format!(
                "{key}: {file}: the head will refuse this collector: the certificate has the \
                 names {names:?}, not {:?}\n  \
                 help: issue a certificate whose common name or DNS name is the `name` of this \
                 relay",
                config.name
            ));
        }
    }
    Ok(faults)
}

const UNREADABLE: &str =
    "the file must exist, and the user of the relay must be permitted to read it";
const INVALID: &str = "write a PEM file, such as openssl makes";
const MISMATCH: &str = "certificate and key must belong to each other";

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

impl Files<'_> {
    fn error(
        &self,
        key: &str,
        file: &str,
        reason: impl std::fmt::Display,
        remedy: &'static str,
    ) -> TlsError {
        let (key, reason) = (format!("{}.{key}", self.key), reason.to_string());
        TlsError { key, file: file.to_owned(), reason, remedy }
    }

    fn read(&self, key: &str, file: &str) -> Result<Vec<u8>, TlsError> {
        let read = credentials::path_of(self.folder, file).and_then(std::fs::read);
        read.map_err(|error| self.error(key, file, error, UNREADABLE))
    }

    fn certificates(
        &self,
        key: &str,
        file: &str,
    ) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let text = self.read(key, file)?;
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        match found {
            Ok(found) if found.is_empty() => {
                Err(self.error(key, file, "the file has no certificate", INVALID))
            }
            other => other.map_err(|error| self.error(key, file, error, INVALID)),
        }
    }

    fn own(
        &self,
        certificate: &str,
        key: &str,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let chain = self.certificates("certificate", certificate)?;
        let private = PrivateKeyDer::from_pem_slice(&self.read("key", key)?)
            .map_err(|error| self.error("key", key, error, INVALID))?;
        Ok((chain, private))
    }

    fn authorities(&self, key: &str, file: &str) -> Result<RootCertStore, TlsError> {
        let mut store = RootCertStore::empty();
        for certificate in self.certificates(key, file)? {
            store.add(certificate).map_err(|error| self.error(key, file, error, INVALID))?;
        }
        Ok(store)
    }

    /// TLS with a server. `own` are the certificate and key of this relay.
    fn client(
        &self,
        server: ServerAuthentication<'_>,
        own: Option<(&str, &str)>,
    ) -> Result<TlsClient, TlsError> {
        let ServerAuthentication { address, name, authorities } = server;
        let host = address.rsplit_once(':').map_or("", |(host, _)| host);
        let name = name.unwrap_or(host.trim_start_matches('[').trim_end_matches(']'));
        let name = ServerName::try_from(name.to_owned()).map_err(|error| {
            self.error(
                "server_name",
                name,
                error,
                "write the name in the certificate of the server",
            )
        })?;
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| self.error("authorities", authorities, error, INVALID))?
            .with_root_certificates(self.authorities("authorities", authorities)?);
        let config = match own {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let (chain, private) = self.own(certificate, key)?;
                builder
                    .with_client_auth_cert(chain, private)
                    .map_err(|error| self.error("key", key, error, MISMATCH))?
            }
        };
        Ok(TlsClient { config: Arc::new(config), name })
    }

    fn server(
        &self,
        certificate: &str,
        key: &str,
        clients: Option<RootCertStore>,
        is_optional: bool,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let (chain, private) = self.own(certificate, key)?;
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| self.error("key", key, error, INVALID))?;
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(store) => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider());
                let verifier =
                    if is_optional { verifier.allow_unauthenticated() } else { verifier };
                let verifier = verifier
                    .build()
                    .map_err(|error| self.error("authorities", certificate, error, INVALID))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(chain, private)
            .map_err(|error| self.error("key", key, error, MISMATCH))?;
        // Sessions are not resumed: their state would grow with the number of meters.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}
