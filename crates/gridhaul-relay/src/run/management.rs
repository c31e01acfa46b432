//! Status page, JSON and metrics, in a thread of their own. The thread of the connections answers questions between
//! two turns, so that the numbers are consistent.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use gridhaul_linux::Error;
use serde_json::Value;
use socket2::Socket;
use thiserror::Error as ThisError;
use tiny_http::{Header, Response, Server};

use super::RunError;
use super::poll::Waker;
use super::sockets::Sockets;
use crate::status_page::{metrics, page};

/// Key of the address.
pub(super) const LISTENER: &str = "management.address";

/// Longest time for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Questions of clients.
#[derive(Debug)]
pub(super) struct Questions(Option<Served>);

#[derive(Debug)]
struct Served {
    questions: Receiver<Question>,
    listener: Socket,
}

/// A question of a client.
#[derive(Debug)]
pub(super) struct Question {
    path: String,
    answer: Sender<Value>,
}

impl Question {
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn answer(self, value: Value) {
        // The client may have given up.
        let _ = self.answer.send(value);
    }
}

impl Questions {
    /// Serves the address of a configuration, if it has one.
    pub(super) fn serve(sockets: &mut Sockets, waker: &Arc<Waker>) -> Result<Self, RunError> {
        let Some(listener) = sockets.take(LISTENER) else { return Ok(Self(None)) };
        let failed = || Error::call("serving the status page");
        // The server accepts in a thread of its own.
        listener.set_nonblocking(false).map_err(failed())?;
        let copy: TcpListener = listener.try_clone().map_err(failed())?.into();
        let server = Server::from_listener(copy, None)
            .map_err(|error| failed()(std::io::Error::other(error.to_string())))?;
        let (sender, questions) = channel();
        let waker = Arc::clone(waker);
        thread::spawn(move || {
            for request in server.incoming_requests() {
                let path = request.url().split('?').next().unwrap_or("/").to_owned();
                let (answer, answers) = channel();
                let asked = sender.send(Question { path: path.clone(), answer });
                waker.wake();
                let value = asked.ok().and_then(|()| answers.recv_timeout(TIMEOUT).ok());
                // The client may have closed the connection.
                let _ = request.respond(response(&path, value.as_ref()));
            }
        });
        Ok(Self(Some(Served { questions, listener })))
    }

    pub(super) fn next(&self) -> Option<Question> {
        self.0.as_ref()?.questions.try_recv().ok()
    }

    /// The listening socket, for another version of the program.
    pub(super) fn into_listener(self) -> Option<Socket> {
        self.0.map(|served| served.listener)
    }
}

fn response(path: &str, value: Option<&Value>) -> Response<std::io::Cursor<Vec<u8>>> {
    let Some(value) = value else {
        return Response::from_string("the relay does not answer").with_status_code(503);
    };
    let (text, kind) = match path {
        "/" => (page(value), "text/html; charset=utf-8"),
        "/metrics" => (metrics(value), "text/plain; version=0.0.4"),
        "/status" | "/meters" => (value.to_string(), "application/json"),
        _ => {
            let text = "there are /, /status, /meters and /metrics";
            return Response::from_string(text).with_status_code(404);
        }
    };
    let header = Header::from_bytes("Content-Type", kind).expect("the header is valid");
    Response::from_string(text).with_header(header)
}

/// The daemon cannot be asked for its status.
#[derive(Debug, ThisError)]
#[error(
    "cannot read the status of the relay at {address}: {reason}\n  help: is the relay running, with this `management.address`?"
)]
pub struct StatusError {
    /// The management address.
    pub address: String,
    /// What happened.
    pub reason: String,
}

/// Reads a document of a running relay: `/status`, `/meters` or `/metrics`.
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
