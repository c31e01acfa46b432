//! A server of short documents by HTTP/1.0 (RFC 1945), with or without TLS: a thread for each
//! request, and a limited number of them at the same time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use gridhaul_linux::Clock;
use gridhaul_scenario::units::{Duration as Span, Instant};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Requests that are answered at the same time. Others are closed.
const REQUESTS_MAX: usize = 16;

/// Largest head of a request.
const HEAD_MAX: usize = 8 * 1024;

/// Longest time for the handshake and the head of a request, and for the whole exchange.
const HEAD_LIMIT: Span = Span::from_secs(5);
const EXCHANGE_LIMIT: Span = Span::from_secs(30);

/// Pause after an error of the listener, which means that files are exhausted.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// A document.
#[derive(Debug)]
pub(crate) struct Document {
    /// Code and reason, such as `"200 OK"`.
    pub status: &'static str,
    pub kind: &'static str,
    pub text: String,
}

impl Document {
    /// An explanation without a document.
    pub(crate) fn explanation(status: &'static str, text: &str) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", text: text.to_owned() }
    }
}

/// Certificates of a server, which a reload replaces.
#[derive(Debug, Clone)]
pub(crate) struct Certificates(Arc<Mutex<Arc<ServerConfig>>>);

impl Certificates {
    pub(crate) fn new(config: Arc<ServerConfig>) -> Self {
        Self(Arc::new(Mutex::new(config)))
    }

    /// Later connections use these certificates.
    pub(crate) fn replace(&self, config: Arc<ServerConfig>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = config;
    }

    fn present(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Answers requests for paths in threads, until the process ends.
pub(crate) fn serve(
    listener: TcpListener,
    tls: Option<Certificates>,
    answer: impl Fn(&str) -> Document + Clone + Send + 'static,
) {
    let open = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        loop {
            let Ok((socket, _)) = listener.accept() else {
                pause();
                continue;
            };
            if open.fetch_add(1, Ordering::AcqRel) >= REQUESTS_MAX {
                open.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            let (open, answer) = (Arc::clone(&open), answer.clone());
            let tls = tls.as_ref().map(Certificates::present);
            thread::spawn(move || {
                // The client may have closed the connection, or have no certificate.
                let _ = respond(socket, tls, &answer);
                open.fetch_sub(1, Ordering::AcqRel);
            });
        }
    });
}

/// A connection whose reads and writes end at fixed times. A limit for each of them would let a
/// client that sends a byte now and then occupy a place for ever.
struct Limited {
    socket: TcpStream,
    clock: Clock,
    read_until: Instant,
    write_until: Instant,
}

impl Limited {
    fn new(socket: TcpStream, read: Span, write: Span) -> Self {
        let clock = Clock::starts_in(Span::ZERO);
        let now = clock.now();
        Self { socket, clock, read_until: now + read, write_until: now + write }
    }

    fn rest(&self, until: Instant) -> io::Result<Option<Duration>> {
        let rest = self.clock.until(until);
        if rest.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(rest)) }
    }
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.socket.set_read_timeout(self.rest(self.read_until)?)?;
            match self.socket.read(buffer) {
                // A read with a timeout is interrupted when a stopped process continues
                // (signal(7)).
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Write for Limited {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        loop {
            self.socket.set_write_timeout(self.rest(self.write_until)?)?;
            match self.socket.write(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

fn respond(
    socket: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    answer: &impl Fn(&str) -> Document,
) -> io::Result<()> {
    let mut socket = Limited::new(socket, HEAD_LIMIT, EXCHANGE_LIMIT);
    let Some(config) = tls else { return exchange(&mut socket, is_own_host, answer) };
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, socket);
    // A browser has no certificate of a client for a page of another origin.
    exchange(&mut stream, |_| true, answer)?;
    stream.conn.send_close_notify();
    stream.flush()
}

fn exchange(
    stream: &mut (impl Read + Write),
    is_host: impl Fn(&str) -> bool,
    answer: &impl Fn(&str) -> Document,
) -> io::Result<()> {
    let head = read_head(stream)?;
    let document = match path_of(&head) {
        _ if !hosts_of(&head).all(is_host) => {
            let text = "the host of the address must be localhost or an IP address";
            Document::explanation("421 Misdirected Request", text)
        }
        Some(path) => answer(path),
        None => Document::explanation("405 Method Not Allowed", "the only method is GET"),
    };
    let Document { status, kind, text } = document;
    let length = text.len();
    let response = format!(
        "HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: \
         close\r\n\r\n{text}"
    );
    stream.write_all(response.as_bytes())?;
    stream.flush()
}

/// Reads until the empty line after the head of a request.
fn read_head(stream: &mut impl Read) -> io::Result<String> {
    let (mut head, mut buffer) = (Vec::new(), [0; 1_024]);
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        if head.len() > HEAD_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        match stream.read(&mut buffer)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            length => head.extend_from_slice(&buffer[..length]),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// The path of a GET request, without its query.
fn path_of(head: &str) -> Option<&str> {
    let mut words = head.lines().next()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    (method == "GET").then(|| target.split('?').next().unwrap_or("/"))
}

/// Values of the header `Host`.
fn hosts_of(head: &str) -> impl Iterator<Item = &str> {
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    fields.filter(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, value)| value.trim())
}

/// Whether a host is an IP address or `localhost`. A page of another origin reaches this address
/// only under a name of its own, which its name server resolves to a loopback address (DNS
/// rebinding).
fn is_own_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

#[expect(clippy::disallowed_methods, reason = "the daemon runs in real time")]
fn pause() {
    thread::sleep(EXHAUSTED);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_get_requests_are_answered() {
        assert_eq!(path_of("GET /status?x=1 HTTP/1.1\r\n\r\n"), Some("/status"));
        assert_eq!(path_of("POST /status HTTP/1.1\r\n\r\n"), None);
        assert_eq!(path_of("GET\r\n\r\n"), None);
        assert_eq!(path_of(""), None);
    }

    #[test]
    fn a_name_that_is_not_of_this_machine_is_no_host() {
        for host in [
            "localhost",
            "LOCALHOST:9180",
            "127.0.0.1",
            "127.0.0.1:9180",
            "[::1]:9180",
            "10.0.0.7:80",
        ] {
            assert!(is_own_host(host), "{host}");
        }
        for host in [
            "attacker.example",
            "attacker.example:9180",
            "localhost.attacker.example",
            "127.0.0.1.example",
            "",
        ] {
            assert!(!is_own_host(host), "{host}");
        }
        let head = "GET / HTTP/1.1\r\nAccept: */*\r\nhost: a.example:1\r\nHost: localhost\r\n\r\n";
        assert_eq!(hosts_of(head).collect::<Vec<_>>(), ["a.example:1", "localhost"]);
        assert_eq!(hosts_of("GET / HTTP/1.0\r\n\r\n").count(), 0);
    }

    #[test]
    fn a_client_that_sends_a_byte_now_and_then_is_disconnected() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let limit = Span::from_millis(300);
        let mut served = Limited::new(listener.accept().unwrap().0, limit, limit);
        let sender = thread::spawn(move || {
            while client.write_all(b"G").is_ok() {
                pause();
            }
        });
        let clock = Clock::starts_in(Span::ZERO);
        assert!(read_head(&mut served).is_err());
        assert!(clock.now() < Instant::ZERO + Span::from_secs(20));
        // A client that does not read.
        assert!(served.write_all(&vec![0; 50_000_000]).is_err());
        drop(served);
        sender.join().unwrap();
    }

    /// The kernel interrupts a read with a timeout when a stopped process continues, whatever the
    /// handlers of its signals request.
    #[test]
    fn a_request_survives_a_stop_of_the_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let limit = Span::from_secs(60);
        let mut served = Limited::new(listener.accept().unwrap().0, limit, limit);
        let reader = thread::spawn(move || read_head(&mut served).map_err(|error| error.kind()));
        // The shell stops this process while the thread waits for the head.
        let stop =
            "for n in 1 2 3; do sleep 0.05; kill -STOP $PPID; sleep 0.01; kill -CONT $PPID; done";
        assert!(std::process::Command::new("sh").args(["-c", stop]).status().unwrap().success());
        client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        assert_eq!(reader.join().unwrap().as_deref(), Ok("GET / HTTP/1.0\r\n\r\n"));
    }

    #[test]
    fn a_head_without_end_is_refused() {
        assert!(read_head(&mut io::repeat(b'x')).is_err());
        assert!(read_head(&mut &b"GET / HTTP/1.0\r\n"[..]).is_err());
        assert!(read_head(&mut &b"GET / HTTP/1.0\r\n\r\n"[..]).is_ok());
    }
}
