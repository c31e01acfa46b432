//! A certificate for one broker and one run.

use rcgen::{CertificateParams, KeyPair};

use super::BrokerError;

/// A certificate that is signed with its own key, and the key, as PEM. Clients that trust this
/// certificate alone notice any other one.
pub(super) struct RunCertificate {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl RunCertificate {
    /// Makes a certificate for a name or an IP address (RFC 5280, subject alternative name).
    pub(super) fn new(name: &str) -> Result<Self, BrokerError> {
        let failed = |error: rcgen::Error| BrokerError::Certificate(error.to_string());
        let key = KeyPair::generate().map_err(failed)?;
        let parameters = CertificateParams::new(vec![name.to_owned()]).map_err(failed)?;
        let certificate = parameters.self_signed(&key).map_err(failed)?;
        Ok(Self { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}
