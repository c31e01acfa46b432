//! Rules of access to the server: only its own page, opened with its token, may use it.
//!
//! A page of another site cannot use it, for four reasons, each of which suffices for most attacks:
//! the path of every request contains the token; the header `Host` must be an address of this
//! server, so that a name of an attacker that resolves to a loopback address is refused (DNS
//! rebinding); the headers `Origin` and `Sec-Fetch-Site`, which a browser sets and a script cannot
//! change, must not name another site; and a request that runs something must have the content type
//! of JSON, which a form cannot send.

use std::fs::File;
use std::io::{self, Read};

use crate::http::{Request, Response};

/// The rules for a server at a port of the loopback interface.
#[derive(Debug, Clone)]
pub struct Access {
    token: String,
    port: u16,
}

/// Random bytes of a token: too many to guess.
const TOKEN_BYTES: usize = 16;

/// A random token, in hexadecimal.
///
/// # Errors
/// The system has no source of random numbers.
pub fn token() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Access {
    /// The rules for this token and port.
    #[must_use]
    pub const fn new(token: String, port: u16) -> Self {
        Self { token, port }
    }

    /// The address of the page.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// A permitted request with the path after the token.
    ///
    /// # Errors
    /// The answer to a request that is refused.
    pub(crate) fn admit(&self, mut request: Request) -> Result<Request, Response> {
        request.path = self.path(&request)?.to_owned();
        Ok(request)
    }

    fn path<'r>(&self, request: &'r Request) -> Result<&'r str, Response> {
        let mut hosts = request.headers("host");
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) if self.is_own_host(host) => host,
            _ => {
                let text = format!("the host of this server is 127.0.0.1:{}", self.port);
                return Err(Response::text("421 Misdirected Request", &text));
            }
        };
        let refused = |text: &str| Err(Response::text("403 Forbidden", text));
        let own_origin = format!("http://{host}");
        if request.headers("origin").any(|origin| !origin.eq_ignore_ascii_case(&own_origin)) {
            return refused("requests of other sites are refused");
        }
        let is_own_site = |site: &str| matches!(site, "same-origin" | "none");
        if !request.headers("sec-fetch-site").all(is_own_site) {
            return refused("requests of other sites are refused");
        }
        let path = request.path.strip_prefix('/').unwrap_or(&request.path);
        let (token, rest) = path.split_once('/').unwrap_or((path, ""));
        if !is_equal(token, &self.token) {
            return refused("the address has no valid token; use the one that gridhaul printed");
        }
        let is_json = |kind: &str| kind.split(';').next() == Some("application/json");
        if request.method == "POST" && !request.headers("content-type").any(is_json) {
            return Err(Response::text("415 Unsupported Media Type", "expected application/json"));
        }
        Ok(rest)
    }

    fn is_own_host(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            // The port of HTTP is omitted.
            _ => (host, Some(80)),
        };
        port == Some(self.port) && (name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost"))
    }
}

/// Whether two texts are equal, in a time that does not depend on the place of the difference.
fn is_equal(a: &str, b: &str) -> bool {
    let pairs = a.bytes().zip(b.bytes());
    a.len() == b.len() && pairs.fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn path(head: &str) -> Result<String, &'static str> {
        let text = format!("{head}\r\n\r\n");
        let request = Request::read(&mut text.as_bytes()).unwrap();
        let access = Access::new(TOKEN.to_owned(), 8123);
        access.path(&request).map(str::to_owned).map_err(|response| response.status)
    }

    #[test]
    fn a_request_of_the_own_page_is_permitted() {
        for host in ["127.0.0.1:8123", "localhost:8123", "LOCALHOST:8123"] {
            let head = format!("GET /{TOKEN}/main.js HTTP/1.1\r\nHost: {host}");
            assert_eq!(path(&head).as_deref(), Ok("main.js"), "{host}");
            let origin = format!("{head}\r\nOrigin: http://{host}\r\nSec-Fetch-Site: same-origin");
            assert!(path(&origin).is_ok(), "{host}");
        }
        assert_eq!(path(&format!("GET /{TOKEN} HTTP/1.1\r\nHost: 127.0.0.1:8123")), Ok("".into()));
    }

    #[test]
    fn a_request_without_the_token_is_refused() {
        for target in ["/", "/main.js", "/0123456789abcdee/", "/0123456789abcdef0/", "//api/run"] {
            let head = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:8123");
            assert_eq!(path(&head), Err("403 Forbidden"), "{target}");
        }
    }

    #[test]
    fn a_host_that_is_not_this_server_is_refused() {
        for host in [
            "attacker.example:8123",
            "127.0.0.1.attacker.example:8123",
            "127.0.0.1:8124",
            "127.0.0.1",
            "10.0.0.7:8123",
            "[::1]:8123",
            "",
        ] {
            let head = format!("GET /{TOKEN}/ HTTP/1.1\r\nHost: {host}");
            assert_eq!(path(&head), Err("421 Misdirected Request"), "{host}");
        }
        let without = format!("GET /{TOKEN}/ HTTP/1.0");
        assert_eq!(path(&without), Err("421 Misdirected Request"));
        let two = format!("GET /{TOKEN}/ HTTP/1.1\r\nHost: 127.0.0.1:8123\r\nHost: a.example");
        assert_eq!(path(&two), Err("421 Misdirected Request"));
    }

    #[test]
    fn a_page_of_another_site_is_refused_even_with_the_token() {
        let head = format!("POST /{TOKEN}/api/run HTTP/1.1\r\nHost: 127.0.0.1:8123\r\n");
        let kind = "Content-Type: application/json";
        assert!(path(&format!("{head}{kind}")).is_ok());
        for field in [
            "Origin: http://attacker.example",
            "Origin: http://127.0.0.1:9000",
            "Origin: https://127.0.0.1:8123",
            "Origin: null",
            "Sec-Fetch-Site: cross-site",
            "Sec-Fetch-Site: same-site",
        ] {
            assert_eq!(path(&format!("{head}{kind}\r\n{field}")), Err("403 Forbidden"), "{field}");
        }
    }

    #[test]
    fn a_form_cannot_start_a_run() {
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
            let head = format!(
                "POST /{TOKEN}/api/run HTTP/1.1\r\nHost: 127.0.0.1:8123\r\nContent-Type: {kind}"
            );
            assert_eq!(path(&head), Err("415 Unsupported Media Type"), "{kind}");
        }
    }

    #[test]
    fn tokens_are_long_and_differ() {
        let (first, second) = (token().unwrap(), token().unwrap());
        assert_eq!((first.len(), second.len()), (32, 32));
        assert_ne!(first, second);
    }
}
