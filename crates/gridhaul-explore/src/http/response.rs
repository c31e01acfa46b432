//! Responses.

use serde::Serialize;

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Code and reason, such as `"200 OK"`.
    pub status: &'static str,
    /// Media type.
    pub kind: &'static str,
    /// Content.
    pub body: Vec<u8>,
}

/// Headers of every response. The page may load its own files only, may not be shown in a frame of
/// another page, and does not reveal its address, which contains the token, to links.
const HEADERS: &str = "\
Cache-Control: no-store\r\n\
Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' \
data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
Cross-Origin-Opener-Policy: same-origin\r\n\
Cross-Origin-Resource-Policy: same-origin\r\n\
Referrer-Policy: no-referrer\r\n\
X-Content-Type-Options: nosniff\r\n\
Connection: close\r\n";

impl Response {
    /// A file of the page.
    #[must_use]
    pub(crate) fn file(kind: &'static str, contents: &str) -> Self {
        Self { status: "200 OK", kind, body: contents.as_bytes().to_vec() }
    }

    /// A text, such as an explanation of a refusal.
    #[must_use]
    pub fn text(status: &'static str, text: &str) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: format!("{text}\n").into_bytes() }
    }

    /// A value as JSON.
    #[must_use]
    pub(crate) fn json(status: &'static str, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => Self { status, kind: "application/json", body },
            Err(error) => Self::text("500 Internal Server Error", &error.to_string()),
        }
    }

    /// Numbers.
    #[must_use]
    pub(crate) const fn bytes(body: Vec<u8>) -> Self {
        Self { status: "200 OK", kind: "application/octet-stream", body }
    }

    /// The bytes on a connection.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { status, kind, body } = self;
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
             {HEADERS}\r\n"
        );
        [head.into_bytes(), body.clone()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_states_its_length_and_forbids_other_sources() {
        let text = String::from_utf8(Response::text("200 OK", "é").encode()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "é\n");
        for line in ["HTTP/1.1 200 OK", "Content-Length: 3", "Connection: close"] {
            assert!(head.lines().any(|own| own == line), "{line}: {head}");
        }
        let policy = head.lines().find(|line| line.starts_with("Content-Security-Policy:"));
        let policy = policy.unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(head.is_ascii());
    }
}
