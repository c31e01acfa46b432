//! Token and key of an agent.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::Ed25519KeyPair;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use thiserror::Error;

use crate::measurement::{FINGERPRINT_BYTES, Fingerprint};

/// Environment variable with the token, where no file is named.
pub const TOKEN_VARIABLE: &str = "GRIDHAUL_AGENT_TOKEN";

/// Bytes of a token. The shortest one has 64 bits in hexadecimal digits.
const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 16..=256;

/// Why a token, key or fingerprint cannot be used.
#[derive(Debug, Error)]
pub enum SecretError {
    /// Neither file nor variable.
    #[error(
        "no token: neither --token-file nor {TOKEN_VARIABLE} is given\n  help: make one with \
         `openssl rand -hex 16` and give it to both \
         machines"
    )]
    NoToken,
    /// The token is too short or too long.
    #[error(
        "{origin}: the token has {length} B; expected {} to {} B on one line\n  help: make one \
         with `openssl rand -hex 16`",
        TOKEN_BYTES.start(), TOKEN_BYTES.end()
    )]
    TokenLength {
        /// File or variable.
        origin: String,
        /// Bytes of the token.
        length: usize,
    },
    /// Other users can read the file.
    #[error("{path}: other users can read this file\n  help: chmod 600 {path}")]
    Readable {
        /// File.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("{path}: {reason}\n  help: {help}")]
    File {
        /// File.
        path: PathBuf,
        /// Cause.
        reason: String,
        /// Remedy.
        help: &'static str,
    },
    /// The machine has no random numbers, or the key is not usable.
    #[error("cannot make a key: {0}")]
    Key(String),
}

/// A secret that both machines have.
#[derive(Clone)]
pub struct Token(String);

/// Tokens are not for logs.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").finish_non_exhaustive()
    }
}

/// The private key of an agent.
#[derive(Debug)]
pub struct AgentKey(pub(super) PrivateKeyDer<'static>);

impl Token {
    /// The token of a file, or of the environment variable [`TOKEN_VARIABLE`]. Spaces and line
    /// breaks around it are removed.
    ///
    /// # Errors
    /// There is no token, it is too short or too long, or other users can read the file.
    pub fn read(file: Option<&Path>) -> Result<Self, SecretError> {
        let Some(path) = file else {
            let text = std::env::var(TOKEN_VARIABLE).map_err(|_| SecretError::NoToken)?;
            return Self::new(&text, TOKEN_VARIABLE.into());
        };
        let text = read_private(path, "the file must contain the token on one line")?;
        Self::new(&text, path.display().to_string())
    }

    /// A token from a text; `origin` names its file or variable in errors.
    ///
    /// # Errors
    /// The token is too short or too long.
    pub fn new(text: &str, origin: String) -> Result<Self, SecretError> {
        let text = text.trim();
        if !TOKEN_BYTES.contains(&text.len()) || text.contains(char::is_whitespace) {
            return Err(SecretError::TokenLength { origin, length: text.len() });
        }
        Ok(Self(text.to_owned()))
    }

    /// Whether a token that was presented is this one, in a time that does not depend on where they
    /// differ.
    pub(super) fn is_equal(&self, presented: &str) -> bool {
        // Codes under a random key: only their verification has to take constant time.
        let Ok(key) = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()) else {
            return false;
        };
        let expected = hmac::sign(&key, self.0.as_bytes());
        hmac::verify(&key, presented.as_bytes(), expected.as_ref()).is_ok()
    }

    /// The text, for the encrypted channel.
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

impl AgentKey {
    /// The key of a PEM file, such as `openssl genpkey -algorithm ed25519` writes.
    ///
    /// # Errors
    /// The file cannot be read, has no private key, or other users can read it.
    pub fn read(path: &Path) -> Result<Self, SecretError> {
        let help = "write a key with `openssl genpkey -algorithm ed25519 -out FILE`";
        let text = read_private(path, help)?;
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes());
        key.map(Self).map_err(|error| SecretError::File {
            path: path.to_owned(),
            reason: error.to_string(),
            help,
        })
    }

    /// A new key, which ends with the program.
    ///
    /// # Errors
    /// The machine has no random numbers.
    pub fn generate() -> Result<Self, SecretError> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .map_err(|error| SecretError::Key(error.to_string()))?;
        Ok(Self(PrivatePkcs8KeyDer::from(document.as_ref().to_vec()).into()))
    }
}

/// The fingerprint of a public key in DER.
pub(super) fn fingerprint(public_key: &[u8]) -> Fingerprint {
    let mut bytes = [0; FINGERPRINT_BYTES];
    bytes.copy_from_slice(digest(&SHA256, public_key).as_ref());
    Fingerprint::new(bytes)
}

/// A random number of a run.
///
/// # Errors
/// The machine has no random numbers.
pub fn random_run() -> Result<u32, SecretError> {
    let mut bytes = [0; 4];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|error| SecretError::Key(error.to_string()))?;
    Ok(u32::from_be_bytes(bytes))
}

/// A file that only its owner can read.
fn read_private(path: &Path, help: &'static str) -> Result<String, SecretError> {
    let file = |error: std::io::Error| SecretError::File {
        path: path.to_owned(),
        reason: error.to_string(),
        help,
    };
    if fs::metadata(path).map_err(file)?.mode() & 0o077 != 0 {
        return Err(SecretError::Readable { path: path.to_owned() });
    }
    fs::read_to_string(path).map_err(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn tokens_are_compared_as_a_whole() {
        let token = Token::new(" 0123456789abcdef\n", "test".into()).unwrap();
        assert!(token.is_equal("0123456789abcdef"));
        for wrong in ["", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeF"] {
            assert!(!token.is_equal(wrong), "{wrong}");
        }
        assert!(!format!("{token:?}").contains("0123"), "a token is not printed");
        let error = Token::new("short", "FILE".into()).unwrap_err().to_string();
        assert!(error.contains("FILE") && error.contains("16 to 256 B"), "{error}");
    }

    #[test]
    fn files_that_others_can_read_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "0123456789abcdef\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = Token::read(Some(&path)).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(Token::read(Some(&path)).unwrap().is_equal("0123456789abcdef"));
        let error = AgentKey::read(&path).unwrap_err().to_string();
        assert!(error.contains("openssl genpkey"), "{error}");
    }
}
