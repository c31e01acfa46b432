//! Ends of connections through a proxy: which data, and which end, each side sees.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;

/// One of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}

/// A case of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// One end sends data and FIN; the other reads to the end, and replies.
    CloseFirst(End, usize),
    /// The same, with a reader that begins late and has a small receive buffer.
    SlowReader(End),
    /// One end resets the connection while data of it has not been read.
    Reset(End, usize),
    /// One end sends FIN, which the other reads, and then resets the connection.
    ResetAfterFin(End),
    /// Both ends send data and FIN at the same time.
    BothFin,
    /// The server does not exist.
    UpstreamDown,
}

/// All cases.
pub(crate) const CASES: [Case; 16] = [
    Case::CloseFirst(End::Client, 0),
    Case::CloseFirst(End::Client, 80_000),
    Case::CloseFirst(End::Client, 1_000_000),
    Case::CloseFirst(End::Server, 0),
    Case::CloseFirst(End::Server, 80_000),
    Case::CloseFirst(End::Server, 1_000_000),
    Case::SlowReader(End::Client),
    Case::SlowReader(End::Server),
    Case::Reset(End::Client, 10),
    Case::Reset(End::Client, 1_000_000),
    Case::Reset(End::Server, 10),
    Case::Reset(End::Server, 1_000_000),
    Case::ResetAfterFin(End::Client),
    Case::ResetAfterFin(End::Server),
    Case::BothFin,
    Case::UpstreamDown,
];

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |end: End| if end == End::Client { "client" } else { "server" };
        match *self {
            Self::CloseFirst(end, size) => {
                write!(f, "{} closes first, {} kB pending", name(end), size / 1_000)
            }
            Self::SlowReader(end) => {
                write!(f, "{} closes first, 1000 kB pending, slow reader", name(end))
            }
            Self::Reset(end, size) if size < 1_000 => write!(f, "{} resets", name(end)),
            Self::Reset(end, size) => {
                write!(f, "{} resets, {} kB unread", name(end), size / 1_000)
            }
            Self::ResetAfterFin(end) => write!(f, "{} resets after its FIN", name(end)),
            Self::BothFin => f.write_str("both close at once, 80 kB each"),
            Self::UpstreamDown => f.write_str("client closes, server is down"),
        }
    }
}

/// Time after which an end that waits has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time for which a slow reader does not read: longer than the half-close timer of socat.
const LATE: Duration = Duration::from_millis(800);

const REPLY: usize = 1_000;

/// Runs a case on a proxy that listens at `clients` and connects to `server`.
///
/// # Errors
/// Deviation of the events at one end from the actions of the other end.
pub(crate) fn run(
    case: Case,
    clients: SocketAddr,
    server: Option<TcpListener>,
) -> Result<(), String> {
    if case == Case::UpstreamDown {
        server.into_iter().for_each(gridhaul_testing::close);
        return upstream_down(clients);
    }
    let server = server.expect("the case has a server");
    if matches!(case, Case::SlowReader(_)) {
        SockRef::from(&server).set_recv_buffer_size(65_536).unwrap();
    }
    let (client, server) = connect(clients, &server, case == Case::SlowReader(End::Server))?;
    match case {
        Case::CloseFirst(End::Client, size) => close_first(client, server, size, false),
        Case::CloseFirst(End::Server, size) => close_first(server, client, size, false),
        Case::SlowReader(End::Client) => close_first(client, server, 1_000_000, true),
        Case::SlowReader(End::Server) => close_first(server, client, 1_000_000, true),
        Case::Reset(End::Client, size) => reset(client, server, size),
        Case::Reset(End::Server, size) => reset(server, client, size),
        Case::ResetAfterFin(End::Client) => reset_after_fin(client, server),
        Case::ResetAfterFin(End::Server) => reset_after_fin(server, client),
        Case::BothFin => both_fin(client, server),
        Case::UpstreamDown => Ok(()),
    }
}

/// Both ends of a connection, after one byte in each direction.
fn connect(
    clients: SocketAddr,
    server: &TcpListener,
    is_client_slow: bool,
) -> Result<(TcpStream, TcpStream), String> {
    let mut client = TcpStream::connect(clients).map_err(|error| format!("connect: {error}"))?;
    if is_client_slow {
        SockRef::from(&client).set_recv_buffer_size(65_536).unwrap();
    }
    client.write_all(b"?").map_err(|error| error.to_string())?;
    let (mut accepted, _) = server.accept().unwrap();
    for end in [&client, &accepted] {
        end.set_read_timeout(Some(PATIENCE)).unwrap();
        end.set_write_timeout(Some(PATIENCE)).unwrap();
    }
    let greet = |end: &mut TcpStream| end.read_exact(&mut [0]).map_err(|error| error.to_string());
    greet(&mut accepted)?;
    accepted.write_all(b"!").map_err(|error| error.to_string())?;
    greet(&mut client)?;
    Ok((client, accepted))
}

/// Bytes that identify their position.
fn data(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index / 251 + index) as u8).collect()
}

/// Reads to the end, which must be FIN, and compares.
fn read_all(end: &mut TcpStream, name: &str, expected: &[u8]) -> Result<(), String> {
    let mut found = Vec::new();
    let done = end.read_to_end(&mut found);
    if let Err(error) = done {
        return Err(format!("{name} got {} of {} B, then {error}", found.len(), expected.len()));
    }
    if found != expected {
        return Err(format!("{name} got {} of {} B, then FIN", found.len(), expected.len()));
    }
    Ok(())
}

fn close_first(
    mut first: TcpStream,
    mut second: TcpStream,
    size: usize,
    is_slow: bool,
) -> Result<(), String> {
    let reader = thread::spawn(move || {
        if is_slow {
            thread::sleep(LATE);
        }
        read_all(&mut second, "the reader", &data(size))?;
        second.write_all(&data(REPLY)).map_err(|error| format!("reply: {error}"))?;
        second.shutdown(Shutdown::Write).map_err(|error| format!("close: {error}"))?;
        Ok::<_, String>(second)
    });
    let sent = first.write_all(&data(size));
    let closed = first.shutdown(Shutdown::Write);
    // Open until the reply was read: closing it would reset what is still on its way.
    let _second: TcpStream = reader.join().unwrap()?;
    sent.and(closed).map_err(|error| format!("sender: {error}"))?;
    read_all(&mut first, "the sender", &data(REPLY))
}

fn reset(mut first: TcpStream, mut second: TcpStream, size: usize) -> Result<(), String> {
    first.set_nonblocking(true).unwrap();
    let bytes = data(size);
    let mut sent = 0;
    while let Ok(length) = first.write(&bytes[sent..]) {
        sent += length;
        if sent == size {
            break;
        }
    }
    thread::sleep(Duration::from_millis(50));
    SockRef::from(&first).set_linger(Some(Duration::ZERO)).unwrap();
    drop(first);
    let mut buffer = [0; 65_536];
    loop {
        match second.read(&mut buffer) {
            Ok(0) => return Err("the other end got FIN".to_owned()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(format!("the other end got no reset: {error}")),
        }
    }
}

fn reset_after_fin(first: TcpStream, mut second: TcpStream) -> Result<(), String> {
    first.shutdown(Shutdown::Write).map_err(|error| error.to_string())?;
    read_all(&mut second, "the other end", b"")?;
    SockRef::from(&first).set_linger(Some(Duration::ZERO)).unwrap();
    drop(first);
    let begun = Instant::now();
    // The kernel reports a reset after FIN without a further byte.
    while second.take_error().map_err(|error| error.to_string())?.is_none() {
        if begun.elapsed() > PATIENCE {
            return Err("the other end got no reset".to_owned());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn both_fin(client: TcpStream, server: TcpStream) -> Result<(), String> {
    let size = 80_000;
    let ends = [(client, "the client"), (server, "the server")].map(|(mut end, name)| {
        thread::spawn(move || {
            end.write_all(&data(size)).map_err(|error| format!("{name}: {error}"))?;
            end.shutdown(Shutdown::Write).map_err(|error| format!("{name}: {error}"))?;
            read_all(&mut end, name, &data(size))
        })
    });
    let mut result = Ok(());
    for end in ends {
        result = result.and(end.join().unwrap());
    }
    result
}

fn upstream_down(clients: SocketAddr) -> Result<(), String> {
    let Ok(mut client) = TcpStream::connect(clients) else { return Ok(()) };
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    // The reset may arrive before the data has been written, and is reported once. After a FIN the
    // error would be a broken pipe.
    match client.write_all(&data(80_000)) {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
        _ => {}
    }
    let _ = client.shutdown(Shutdown::Write);
    match client.read(&mut [0]) {
        Ok(0) => Err("the client got FIN for data that nobody has".to_owned()),
        Ok(_) => Err("the client got data".to_owned()),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
        Err(error) => Err(format!("the client got no reset: {error}")),
    }
}
