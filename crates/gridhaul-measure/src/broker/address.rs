//! The address of a broker, as a user writes it.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// Name and password of a client.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Name of the user.
    pub user: String,
    /// Password.
    pub password: String,
}

/// Passwords are not for logs.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Address of a broker and credentials for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerAddress {
    /// Address and port.
    pub address: SocketAddr,
    /// Credentials; `None` for an anonymous client.
    pub credentials: Option<Credentials>,
}

/// Reads `HOST:PORT`, `USER:PASSWORD@HOST:PORT`, and both after a scheme such as `amqp://`. A name of a host is resolved.
impl FromStr for BrokerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "`{text}`: expected HOST:PORT or SCHEME://USER:PASSWORD@HOST:PORT, such as amqp://guest:guest@127.0.0.1:5672"
            )
        };
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        if scheme.ends_with('s') {
            return Err(format!("`{text}`: TLS is not available; use a scheme without s"));
        }
        let rest = rest.trim_end_matches('/');
        let (credentials, host) = match rest.rsplit_once('@') {
            None => (None, rest),
            Some((credentials, host)) => {
                let (user, password) = credentials.split_once(':').ok_or_else(expected)?;
                let (user, password) = (user.to_owned(), password.to_owned());
                (Some(Credentials { user, password }), host)
            }
        };
        let mut addresses =
            host.to_socket_addrs().map_err(|error| format!("{}: {error}", expected()))?;
        let address = addresses.next().ok_or_else(expected)?;
        Ok(Self { address, credentials })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_credentials() {
        let read = |text: &str| text.parse::<BrokerAddress>();
        let plain = read("127.0.0.1:1883").unwrap();
        assert_eq!(
            plain,
            BrokerAddress { address: ([127, 0, 0, 1], 1883).into(), credentials: None }
        );
        assert_eq!(read("mqtt://127.0.0.1:1883/").unwrap(), plain);
        let full = read("amqp://me:a@b:c@[::1]:5672").unwrap();
        let credentials = full.credentials.unwrap();
        assert_eq!((credentials.user.as_str(), credentials.password.as_str()), ("me", "a@b:c"));
        assert!(full.address.is_ipv6());
        assert!(!format!("{credentials:?}").contains("a@b"), "a password is not printed");
        for (text, expected) in [
            ("", "HOST:PORT"),
            ("127.0.0.1", "HOST:PORT"),
            ("amqps://127.0.0.1:1", "TLS"),
            ("me@127.0.0.1:1", "USER:PASSWORD"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
