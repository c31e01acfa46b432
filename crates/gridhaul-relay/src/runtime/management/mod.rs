//! Status page, JSON and metrics, in threads of their own. The thread of the connections answers
//! requests between two turns, so that the numbers are consistent.

mod http;
mod metrics;
mod page;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use gridhaul_linux::Error;
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::ManagementTls;
use rustls::ServerConfig;
use serde_json::Value;
use socket2::Socket;
use thiserror::Error as ThisError;

use self::http::{Certificates, Document};
use self::metrics::metrics;
use self::page::page;
use super::listening_sockets::ListeningSockets;
use super::poll::Waker;
use super::tls::TlsError;
use super::{RunError, tls};

/// Keys of the addresses.
pub(crate) const LISTENER: &str = "management.address";
pub(crate) const TLS_LISTENER: &str = "management.tls.address";

/// Longest time for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// StatusRequests of clients.
#[derive(Debug)]
pub(crate) struct StatusRequests {
    requests: Receiver<StatusRequest>,
    listeners: Vec<Socket>,
    certificates: Option<Certificates>,
}

/// A request of a client.
#[derive(Debug)]
pub(crate) struct StatusRequest {
    path: String,
    answer: Sender<Value>,
}

impl StatusRequest {
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn respond(self, value: Value) {
        // The client may have given up.
        let _ = self.answer.send(value);
    }
}

impl StatusRequests {
    /// Serves the addresses of a configuration, if it has any.
    pub(crate) fn serve(
        config: &RelayConfig,
        folder: &Path,
        sockets: &mut ListeningSockets,
        waker: &Arc<Waker>,
    ) -> Result<Self, RunError> {
        let (sender, requests) = channel();
        let mut listeners = Vec::new();
        let certificates = Self::certificates(config, folder)?.map(Certificates::new);
        for (key, tls) in [(LISTENER, None), (TLS_LISTENER, certificates.clone())] {
            let Some(listener) = sockets.take(key) else { continue };
            let failed = || Error::call("serving the status page");
            // Requests are accepted in a thread of their own.
            listener.set_nonblocking(false).map_err(failed())?;
            let copy = listener.try_clone().map_err(failed())?;
            let (sender, waker) = (sender.clone(), Arc::clone(waker));
            http::serve(copy.into(), tls, move |path| document(path, &sender, &waker));
            listeners.push(listener);
        }
        Ok(Self { requests, listeners, certificates })
    }

    /// Reads the certificates of a configuration, if it has `management.tls`.
    pub(crate) fn certificates(
        config: &RelayConfig,
        folder: &Path,
    ) -> Result<Option<Arc<ServerConfig>>, TlsError> {
        let tls = config.management.as_ref().and_then(|management| management.tls.as_ref());
        tls.map(|tls| tls::management(tls, folder)).transpose()
    }

    /// Later connections use these certificates.
    pub(crate) fn replace_certificates(&self, new: Option<Arc<ServerConfig>>) {
        if let (Some(present), Some(new)) = (&self.certificates, new) {
            present.replace(new);
        }
    }

    /// Replaces the values of keys that a reload applies by those of another configuration.
    pub(crate) fn copy_reloaded(from: &RelayConfig, to: &mut RelayConfig) {
        let tls =
            |config: &RelayConfig| config.management.clone().and_then(|management| management.tls);
        if let (Some(from), Some(to)) =
            (tls(from), to.management.as_mut().and_then(|management| management.tls.as_mut()))
        {
            *to = ManagementTls { address: to.address.clone(), ..from };
        }
    }

    pub(crate) fn next(&self) -> Option<StatusRequest> {
        self.requests.try_recv().ok()
    }

    /// The listening sockets, for another version of the program.
    pub(crate) fn into_listeners(self) -> Vec<Socket> {
        self.listeners
    }
}

/// The document of a path, from the thread of the connections.
fn document(path: &str, sender: &Sender<StatusRequest>, waker: &Waker) -> Document {
    if !["/", "/status", "/details", "/metrics"].contains(&path) {
        let text = "there are /, /status, /details and /metrics";
        return Document::explanation("404 Not Found", text);
    }
    let (answer, answers) = channel();
    let sent = sender.send(StatusRequest { path: path.to_owned(), answer });
    waker.wake();
    let Some(value) = sent.ok().and_then(|()| answers.recv_timeout(TIMEOUT).ok()) else {
        return Document::explanation("503 Service Unavailable", "the relay does not answer");
    };
    let (text, kind) = match path {
        "/" => (page(&value), "text/html; charset=utf-8"),
        "/metrics" => (metrics(&value), "text/plain; version=0.0.4"),
        _ => (value.to_string(), "application/json"),
    };
    Document { status: "200 OK", kind, text }
}

/// The status of a daemon cannot be read.
#[derive(Debug, ThisError)]
#[error(
    "cannot read the status of the relay at {address}: {reason}\n  help: is the relay running, \
     with this `management.address`?"
)]
pub struct StatusError {
    /// The management address.
    pub address: String,
    /// Event, in words.
    pub reason: String,
}

/// Reads a document of a running relay: `/status`, `/details` or `/metrics`.
///
/// # Errors
/// The relay does not answer.
pub fn query(address: &str, path: &str) -> Result<String, StatusError> {
    let failed = |reason: String| StatusError { address: address.to_owned(), reason };
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    let text = ask().map_err(|error| failed(error.to_string()))?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    if head.split(' ').nth(1) == Some("200") {
        return Ok(body.to_owned());
    }
    Err(failed(head.lines().next().unwrap_or("no answer").to_owned()))
}
