//! Which certificates of a broker are trusted.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Trusts certificates that an authority of the user has signed, and those that the user names
/// themselves: a certificate that a broker has signed itself, or that of an authority that the user
/// does not have.
#[derive(Debug)]
pub(super) struct BrokerVerifier {
    verifier: Arc<WebPkiServerVerifier>,
    known: Vec<CertificateDer<'static>>,
}

impl BrokerVerifier {
    /// # Errors
    /// There is no authority.
    pub(super) fn new(
        authorities: RootCertStore,
        known: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(authorities), provider);
        Ok(Self { verifier: verifier.build()?, known })
    }
}

/// Whether a certificate was refused only because nobody vouches for it. Its time is checked before
/// (webpki checks it first); a test checks that.
fn is_without_authority(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
        // A certificate that has signed itself as an authority: the error is one of webpki, whose
        // type is not part of rustls.
        Error::InvalidCertificate(CertificateError::Other(other)) => {
            other.to_string() == "CaUsedAsEndEntity"
        }
        _ => false,
    }
}

impl ServerCertVerifier for BrokerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = self.verifier.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match found {
            Err(error) if is_without_authority(&error) && self.known.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            found => found,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{
        BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd,
    };
    use rustls::crypto::ring;

    use super::*;

    /// Times in 2026 and 2036.
    const NOW: u64 = 1_780_000_000;
    const LATER: u64 = 2_095_000_000;

    fn parameters(subject: &str) -> CertificateParams {
        let mut parameters = CertificateParams::new(vec!["broker.example".to_owned()]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, subject);
        parameters.not_before = date_time_ymd(2020, 1, 1);
        parameters.not_after = date_time_ymd(2030, 1, 1);
        parameters
    }

    /// A certificate for `broker.example` that has signed itself as an authority, and one that
    /// another authority has signed.
    fn certificates() -> [CertificateDer<'static>; 2] {
        let mut authority = parameters("authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let own = authority.self_signed(&key).unwrap().der().clone();
        let issuer = Issuer::new(authority, key);
        let key = KeyPair::generate().unwrap();
        let signed = parameters("broker").signed_by(&key, &issuer).unwrap();
        [own, signed.der().clone()]
    }

    /// The verdict on a certificate of a broker, with another one in the file of the user.
    fn verdict(
        trusted: &CertificateDer<'static>,
        shown: &CertificateDer<'static>,
        name: &'static str,
        now: u64,
    ) -> Result<(), Error> {
        let mut authorities = RootCertStore::empty();
        authorities.add(trusted.clone()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let verifier = BrokerVerifier::new(authorities, vec![trusted.clone()], provider).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
        let name = ServerName::try_from(name).unwrap();
        verifier.verify_server_cert(shown, &[], &name, &[], now).map(|_| ())
    }

    #[test]
    fn a_broker_with_the_certificate_in_the_file_is_trusted() {
        let [own, signed] = certificates();
        for certificate in [&own, &signed] {
            assert_eq!(verdict(certificate, certificate, "broker.example", NOW), Ok(()));
        }
        assert_eq!(verdict(&own, &signed, "broker.example", NOW), Ok(()), "by its authority");
    }

    #[test]
    fn another_certificate_name_or_time_is_refused() {
        let [own, signed] = certificates();
        let [other_own, other_signed] = certificates();
        for (trusted, shown) in [(&own, &other_own), (&signed, &other_signed), (&signed, &own)] {
            assert!(verdict(trusted, shown, "broker.example", NOW).is_err());
        }
        for certificate in [&own, &signed] {
            let name = verdict(certificate, certificate, "other.example", NOW).unwrap_err();
            assert!(name.to_string().contains("not valid for name"), "{name}");
            let time = verdict(certificate, certificate, "broker.example", LATER).unwrap_err();
            assert!(time.to_string().contains("expired"), "{time}");
        }
    }
}
