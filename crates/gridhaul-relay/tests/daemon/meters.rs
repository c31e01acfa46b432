//! Meters that send numbered messages, and note what they have learned.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

/// Length of a message.
const MESSAGE: usize = 200;

/// Segments of the loopback device exceed small receive windows, so that the sender would wait for
/// its persist timer.
const ETHERNET_MSS: u32 = 1_448;

/// A connection that sends segments of the size of Ethernet.
pub(crate) fn connect_with_ethernet_mss(address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_tcp_mss(ETHERNET_MSS).unwrap();
    socket.connect(&address.into()).unwrap();
    TcpStream::from(socket)
}

/// Positions that the meters have recorded.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Open connections by the number of their stream.
    pub open: Mutex<BTreeMap<u64, Connection>>,
    /// Length of each stream whose FIN was answered with FIN.
    pub confirmed: Mutex<BTreeMap<u64, u64>>,
}

/// An open connection of a meter.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Local address of the meter.
    pub address: SocketAddr,
    /// Bytes written to the socket, with their times.
    pub sent: Vec<(Instant, u64)>,
}

impl Connection {
    /// Bytes that were sent before a time.
    pub(crate) fn sent_before(&self, time: Instant) -> u64 {
        self.sent.iter().rev().find(|(at, _)| *at < time).map_or(0, |(_, bytes)| *bytes)
    }
}

/// Threads that play meters, until they are stopped.
pub(crate) struct Meters {
    pub notes: Arc<Notes>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// The message of a stream with this number.
pub(crate) fn message(stream: u64, number: u64) -> String {
    format!("{:width$}\n", format!("{stream} {number}"), width = MESSAGE - 1)
}

impl Meters {
    pub(crate) fn start(address: SocketAddr, count: u64) -> Self {
        let (notes, stop) = (Arc::new(Notes::default()), Arc::new(AtomicBool::new(false)));
        let streams = Arc::new(AtomicU64::new(0));
        let threads = (0..count)
            .map(|index| {
                let (notes, stop) = (Arc::clone(&notes), Arc::clone(&stop));
                let streams = Arc::clone(&streams);
                thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let stream = streams.fetch_add(1, Ordering::Relaxed);
                        // Every third stream is short and ends with FIN.
                        let length = if stream.is_multiple_of(3) { 20 + index } else { u64::MAX };
                        play(address, stream, length, &notes, &stop);
                        notes.open.lock().unwrap().remove(&stream);
                        thread::sleep(Duration::from_millis(5));
                    }
                })
            })
            .collect();
        Self { notes, stop, threads }
    }

    pub(crate) fn stop(self) -> Arc<Notes> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        self.notes
    }
}

/// One connection, until it fails or is complete.
fn play(address: SocketAddr, stream: u64, length: u64, notes: &Notes, stop: &AtomicBool) {
    let Ok(mut socket) = TcpStream::connect(address) else { return };
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let local = socket.local_addr().unwrap();
    let connection = Connection { address: local, sent: Vec::new() };
    notes.open.lock().unwrap().insert(stream, connection);
    let mut sent = 0;
    for number in 0..length {
        if socket.write_all(message(stream, number).as_bytes()).is_err() {
            return;
        }
        sent += MESSAGE as u64;
        if let Some(connection) = notes.open.lock().unwrap().get_mut(&stream) {
            connection.sent.push((Instant::now(), sent));
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        thread::sleep(Duration::from_millis(2));
    }
    if socket.shutdown(Shutdown::Write).is_err() {
        return;
    }
    // A FIN states that everything is stored; a RST states nothing.
    if matches!(socket.read(&mut [0; 1]), Ok(0)) {
        notes.confirmed.lock().unwrap().insert(stream, sent);
    }
}
