//! The fingerprint of an agent, by which its controller knows it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Bytes of a fingerprint: SHA-256.
pub(crate) const BYTES: usize = 32;

/// Name of the hash before a fingerprint.
const PREFIX: &str = "sha256:";

/// SHA-256 of the public key of an agent (`SubjectPublicKeyInfo` in DER, RFC 7250).
/// In files: its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct Fingerprint([u8; BYTES]);

impl Fingerprint {
    /// The fingerprint with this hash.
    pub(crate) const fn new(hash: [u8; BYTES]) -> Self {
        Self(hash)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "expected {PREFIX} and {} hexadecimal digits, as the agent prints at its start",
                2 * BYTES
            )
        };
        let digits = text.trim().strip_prefix(PREFIX).ok_or_else(expected)?;
        if digits.len() != 2 * BYTES || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(expected());
        }
        let mut bytes = [0; BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| expected())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| expected())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_it_is_printed() {
        let fingerprint = Fingerprint::new([0x2c; BYTES]);
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        let text = fingerprint.to_string();
        for wrong in ["", "sha256:", &text[..70], &text[7..], &text.replace("2c", "2+")] {
            assert!(wrong.parse::<Fingerprint>().is_err(), "{wrong}");
        }
    }
}
