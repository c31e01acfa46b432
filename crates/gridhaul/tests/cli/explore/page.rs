//! A page that the program serves during a test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::support::Desk;

/// A running `gridhaul explore`, which ends with this value.
pub(super) struct Page {
    process: Child,
    url: String,
}

impl Page {
    /// Starts the program with these arguments.
    pub(super) fn open(desk: &Desk, arguments: &str) -> Self {
        let mut command = desk.command(&format!("explore --no-browser {arguments}"));
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("http://127.0.0.1:"), "{arguments}: {url:?}");
        Self { process, url: url.trim().to_owned() }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Address and port.
    pub(super) fn host(&self) -> &str {
        self.url.trim_start_matches("http://").split('/').next().unwrap()
    }

    pub(super) fn token(&self) -> &str {
        self.url.trim_end_matches('/').rsplit('/').next().unwrap()
    }

    /// Status and content of a file of the page.
    pub(super) fn get(&self, path: &str) -> (u16, String) {
        let (token, host) = (self.token(), self.host());
        self.request(&format!("GET /{token}/{path} HTTP/1.1\r\nHost: {host}\r\n"), "")
    }

    /// Status and content of the answer to a JSON text.
    pub(super) fn post(&self, path: &str, body: &str) -> (u16, String) {
        let (status, body) = self.post_bytes(path, body);
        (status, String::from_utf8(body).unwrap())
    }

    pub(super) fn post_bytes(&self, path: &str, body: &str) -> (u16, Vec<u8>) {
        let (token, host, length) = (self.token(), self.host(), body.len());
        let head = format!(
            "POST /{token}/{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n"
        );
        self.request_bytes(&head, body)
    }

    /// Status and content of the answer to a request, whose head lacks only the empty line.
    pub(super) fn request(&self, head: &str, body: &str) -> (u16, String) {
        let (status, body) = self.request_bytes(head, body);
        (status, String::from_utf8(body).unwrap())
    }

    fn request_bytes(&self, head: &str, body: &str) -> (u16, Vec<u8>) {
        let mut socket = TcpStream::connect(self.host()).unwrap();
        socket.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let body = bytes.split_off(end + 4);
        let head = String::from_utf8(bytes).unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
