//! Names in a certificate (RFC 5280).

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// `id-at-commonName` (2.5.4.3) in DER, with its tag and length.
const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];

/// String types of DER that contain ASCII or UTF-8: `UTF8String`, `PrintableString`, `IA5String`.
const STRINGS: [u8; 3] = [0x0c, 0x13, 0x16];

/// The names of a verified certificate: the common name of its subject, then its DNS names.
pub(crate) fn names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(certificate) = EndEntityCert::try_from(certificate) else { return Vec::new() };
    let common = common_name(certificate.subject());
    common.into_iter().chain(certificate.valid_dns_names().map(str::to_owned)).collect()
}

fn common_name(subject: &[u8]) -> Option<String> {
    let at = subject.windows(COMMON_NAME.len()).position(|window| window == COMMON_NAME)?;
    let [kind, length, rest @ ..] = &subject[at + COMMON_NAME.len()..] else { return None };
    // Lengths of 128 bytes and more have another form; a common name has at most 64 characters.
    if !STRINGS.contains(kind) || *length >= 0x80 {
        return None;
    }
    let name = std::str::from_utf8(rest.get(..usize::from(*length))?).ok()?;
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_name_is_found_in_its_subject() {
        let mut subject = vec![0x31, 0x0b, 0x30, 0x09, 0x06, 0x03, 0x55, 0x04, 0x06, 0x13, 2];
        subject.extend(b"DE\x31\x0f\x30\x0d\x06\x03\x55\x04\x03\x0c\x06meter7");
        assert_eq!(common_name(&subject).as_deref(), Some("meter7"));
        assert_eq!(common_name(&subject[..subject.len() - 1]), None, "truncated");
        assert_eq!(common_name(b""), None);
    }

    #[test]
    fn names_of_a_certificate() {
        let mut parameters = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, "substation-12");
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        assert_eq!(names(certificate.der()), ["substation-12", "a.example"]);
    }
}
