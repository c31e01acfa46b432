//! The address of a broker as a user writes it.

use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use gridhaul_protocols::settings::{BrokerAddress, Credentials, Tls};
use serde::{Deserialize, Serialize};

/// A broker as a user names it. In files: the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct BrokerUrl {
    text: String,
    /// Scheme as it is written; empty without one.
    scheme: String,
    address: SocketAddr,
    credentials: Option<Credentials>,
    /// Name in the certificate; `None` for a scheme without TLS.
    tls_name: Option<String>,
}

impl BrokerUrl {
    /// The scheme, such as `mqtts`; `None` without one.
    #[must_use]
    pub fn scheme(&self) -> Option<&str> {
        Some(self.scheme.as_str()).filter(|scheme| !scheme.is_empty())
    }

    /// Whether the scheme requests TLS.
    #[must_use]
    pub const fn requests_tls(&self) -> bool {
        self.tls_name.is_some()
    }

    /// The address for clients. `authorities` are used if the scheme requests TLS.
    #[must_use]
    pub fn address(&self, authorities: &str) -> BrokerAddress {
        let tls = |name: &String| Tls { name: name.clone(), authorities: authorities.into() };
        BrokerAddress {
            address: self.address,
            credentials: self.credentials.clone(),
            tls: self.tls_name.as_ref().map(tls),
        }
    }
}

/// Reads `HOST:PORT`, `USER:PASSWORD@HOST:PORT`, and both after a scheme such as `amqp://`. A
/// scheme that ends with `s`, such as `mqtts://`, requests TLS. A name of a host is resolved.
impl FromStr for BrokerUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "`{text}`: expected HOST:PORT or SCHEME://USER:PASSWORD@HOST:PORT, such as \
                 amqp://guest:guest@127.0.0.1:5672"
            )
        };
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
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
        let (name, _port) = host.rsplit_once(':').ok_or_else(expected)?;
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let tls_name = scheme.ends_with('s').then(|| name.to_owned());
        let (text, scheme) = (text.to_owned(), scheme.to_owned());
        Ok(Self { text, scheme, address, credentials, tls_name })
    }
}

impl TryFrom<String> for BrokerUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<BrokerUrl> for String {
    fn from(url: BrokerUrl) -> Self {
        url.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_credentials() {
        let read = |text: &str| text.parse::<BrokerUrl>();
        let plain = read("127.0.0.1:1883").unwrap();
        let expected =
            BrokerAddress { address: ([127, 0, 0, 1], 1883).into(), credentials: None, tls: None };
        assert_eq!(plain.address("unused"), expected);
        assert_eq!(plain.scheme(), None);
        let with_scheme = read("mqtt://127.0.0.1:1883/").unwrap();
        assert_eq!((with_scheme.address("unused"), with_scheme.scheme()), (expected, Some("mqtt")));
        let full = read("amqp://me:a@b:c@[::1]:5672").unwrap();
        let credentials = full.credentials.unwrap();
        assert_eq!((credentials.user.as_str(), credentials.password.as_str()), ("me", "a@b:c"));
        assert!(full.address.is_ipv6());
        assert!(!format!("{credentials:?}").contains("a@b"), "a password is not printed");
        for (text, expected) in
            [("", "HOST:PORT"), ("127.0.0.1", "HOST:PORT"), ("me@127.0.0.1:1", "USER:PASSWORD")]
        {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_scheme_with_s_requests_tls_for_the_host_as_it_is_written() {
        for (text, name) in [
            ("mqtts://localhost:8883", "localhost"),
            ("amqps://me:secret@127.0.0.1:5671", "127.0.0.1"),
            ("xmpps://[::1]:5223/", "::1"),
        ] {
            let url = text.parse::<BrokerUrl>().unwrap();
            assert!(url.requests_tls(), "{text}");
            let tls = url.address("PEM").tls.unwrap();
            assert_eq!((tls.name.as_str(), tls.authorities.as_str()), (name, "PEM"), "{text}");
        }
    }
}
