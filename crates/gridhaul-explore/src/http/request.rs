//! Requests.

use std::io::{self, ErrorKind, Read};

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Method, such as `GET`.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// Query without its question mark; empty without one.
    pub query: String,
    /// Names in lower case, and values.
    headers: Vec<(String, String)>,
    /// Content.
    pub body: Vec<u8>,
}

/// Largest head and content of a request: settings of a scenario are short.
const HEAD_MAX: usize = 16 * 1024;
const BODY_MAX: usize = 256 * 1024;

impl Request {
    /// Reads a request from a connection.
    ///
    /// # Errors
    /// The connection fails or ends early; a head that is not HTTP; a size beyond the limits.
    pub fn read(stream: &mut impl Read) -> io::Result<Self> {
        let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
        let head_end = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            if bytes.len() > HEAD_MAX {
                return Err(invalid("the head of the request is too large"));
            }
            bytes.extend_from_slice(more(stream, &mut buffer)?);
        };
        let body = bytes.split_off(head_end + 4);
        let head = std::str::from_utf8(&bytes).map_err(|_| invalid("the head is not UTF-8"))?;
        let mut request = Self::of_head(head).ok_or_else(|| invalid("the head is not HTTP"))?;
        let length = request.content_length()?;
        request.body = body;
        while request.body.len() < length {
            request.body.extend_from_slice(more(stream, &mut buffer)?);
        }
        request.body.truncate(length);
        Ok(request)
    }

    /// Values of a header, by its name in lower case.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &str> {
        let own = self.headers.iter().filter(move |(own, _)| own == name);
        own.map(|(_, value)| value.as_str())
    }

    /// The value of a name in the query.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<String> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        let mut own = pairs.filter(|(own, _)| *own == name);
        own.next().and_then(|(_, value)| decoded(value))
    }

    fn of_head(head: &str) -> Option<Self> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let fields = lines.take_while(|line| !line.is_empty()).map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        });
        Some(Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: fields.collect::<Option<_>>()?,
            body: Vec::new(),
        })
    }

    /// Size of the content. Other transfer encodings are refused, since browsers do not use them.
    fn content_length(&self) -> io::Result<usize> {
        if self.headers("transfer-encoding").next().is_some() {
            return Err(invalid("Transfer-Encoding is not supported"));
        }
        let mut lengths = self.headers("content-length");
        match (lengths.next(), lengths.next()) {
            (None, _) => Ok(0),
            (Some(text), None) => match text.parse() {
                Ok(length) if length <= BODY_MAX => Ok(length),
                _ => Err(invalid("Content-Length is not a number up to 256 kB")),
            },
            _ => Err(invalid("two values of Content-Length")),
        }
    }
}

/// The next bytes of a connection, at least one.
fn more<'b>(stream: &mut impl Read, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    loop {
        match stream.read(buffer) {
            // A read with a timeout is interrupted when a stopped process continues (signal(7)).
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => return Ok(&buffer[..length]),
            Err(error) => return Err(error),
        }
    }
}

/// A value of a query (percent-encoding of RFC 3986).
fn decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut out = Vec::new();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(out).ok()
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> io::Result<Request> {
        Request::read(&mut text.as_bytes())
    }

    #[test]
    fn a_request_has_path_query_headers_and_content() {
        let text = "POST /a/b?x=1%20s&y=2+3 HTTP/1.1\r\nHOST:  here \r\nContent-Length: 4\r\n\r\n\
                    {\"a\" and bytes beyond";
        let request = read(text).unwrap();
        assert_eq!((&*request.method, &*request.path), ("POST", "/a/b"));
        assert_eq!(request.headers("host").collect::<Vec<_>>(), ["here"]);
        assert_eq!(request.parameter("x").as_deref(), Some("1 s"));
        assert_eq!(request.parameter("y").as_deref(), Some("2 3"));
        assert_eq!(request.parameter("z"), None);
        assert_eq!(request.body, b"{\"a\"");
    }

    #[test]
    fn a_request_that_ends_early_or_is_too_large_is_refused() {
        let large = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", BODY_MAX + 1);
        for text in [
            "",
            "GET / HTTP/1.1\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nabc",
            "POST / HTTP/1.1\r\nContent-Length: four\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "GET /\r\n\r\n",
            "GET / HTTP/1.1 more\r\n\r\n",
            "GET / HTTP/1.1\r\nno field\r\n\r\n",
            &large,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(Request::read(&mut io::repeat(b'x')).is_err());
    }
}
