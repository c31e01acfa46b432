//! Certificates that are made for a test.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};

/// An authority, and the folder to which it writes.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Authority {
    /// Creates an authority and writes its certificate to `<name>.pem`.
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, name);
        let issuer =
            CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
        fs::write(folder.join(format!("{name}.pem")), issuer.pem()).unwrap();
        Self { issuer, folder: folder.to_owned() }
    }

    /// Issues a certificate for a common name, 127.0.0.1 and relay.test: `<file>.pem` and
    /// `<file>.key`.
    pub(crate) fn issue(&self, file: &str, common_name: &str) {
        self.issue_until(file, common_name, 4_000);
    }

    /// The same, valid until the start of a year.
    pub(crate) fn issue_until(&self, file: &str, common_name: &str, year: i32) {
        let mut parameters =
            CertificateParams::new(vec!["127.0.0.1".to_owned(), "relay.test".to_owned()]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, common_name);
        parameters.not_before = date_time_ymd(2_000, 1, 1);
        parameters.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.folder.join(format!("{file}.pem")), certificate.pem()).unwrap();
        fs::write(self.folder.join(format!("{file}.key")), key.serialize_pem()).unwrap();
    }
}
