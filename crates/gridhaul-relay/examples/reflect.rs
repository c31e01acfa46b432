//! One TCP connection between two kernels through a reflecting proxy, whose second hop drops
//! packets: run `cargo run -p gridhaul-relay --example reflect` as root.
//! ```text
//!  client  eth0 ─────── left  proxy  right ─────── eth0  server
//!          10.77.0.1     no IP addresses      10.77.0.2
//! ```
//! The client sends random bytes and closes its direction; the server answers with other bytes and
//! closes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use anyhow::{Result, ensure};
use gridhaul_core::pep::{Reflect, Statistics};
use gridhaul_core::tcp::StackParams;
use gridhaul_linux::{
    Clock, FrameBatch, Namespace, PacketSocket, become_root, disable_offloads, run_batch,
};
use gridhaul_relay::packet::{Bridge, Counters, Interface, PacketProxy};
use gridhaul_scenario::scenario::{Profile, Stack};
use gridhaul_scenario::units::{Bytes, Duration, Instant};

const SERVER: &str = "10.77.0.2:7000";
/// The second hop drops one of this many frames with data.
const LOSS_PERIOD: u32 = 50;
/// Buffer of the proxy for each direction.
const BUFFER: usize = 256 << 10;
const TIME_LIMIT: Instant = Instant::from_nanos(30_000_000_000);

/// Result of a transfer.
pub(crate) struct Transfer {
    pub(crate) bytes: [Vec<u8>; 2],
    pub(crate) received: [Vec<u8>; 2],
    pub(crate) seconds: f64,
    pub(crate) lost: u32,
    pub(crate) counters: Counters,
    pub(crate) statistics: Statistics,
}

fn main() -> Result<()> {
    become_root()?;
    let done = transfer(1 << 20)?;
    ensure!(done.bytes == done.received, "the received bytes differ from those sent");
    println!("{} bytes each way in {:.3} s, without errors", done.bytes[0].len(), done.seconds);
    println!("[to the client, to the server]: {:?}", done.counters);
    println!("retransmissions {:?}, lost {}", done.statistics.retransmissions, done.lost);
    Ok(())
}

/// Transfers `length` random bytes in each direction.
pub(crate) fn transfer(length: u64) -> Result<Transfer> {
    let bytes = [random(length)?, random(length)?];
    let [upload, download] = bytes.clone();
    let (client, proxy, server) =
        (Arc::new(Namespace::new()?), Namespace::new()?, Namespace::new()?);
    client.enter(|| connect("10.77.0.1/24", &proxy, "left"))??;
    server.enter(|| connect("10.77.0.2/24", &proxy, "right"))??;
    let (left, right) = proxy.enter(|| (open("left"), open("right")))?;
    let frames = Arc::new(AtomicU32::new(0));
    let right = LossyHop { socket: right?, frames: Arc::clone(&frames) };
    let stack = Stack { profile: Profile::Linux, timestamps: Some(false), ..Stack::default() };
    let reflect = Reflect::new(Arc::new(StackParams::resolve(&stack)), Bytes::new(BUFFER as u64));
    let interfaces: [Box<dyn Interface>; 2] = [Box::new(left?), Box::new(right)];
    let mut bridge = Bridge::new(interfaces, PacketProxy::new(reflect, BUFFER))?;

    let listener = server.enter(|| TcpListener::bind(SERVER))??;
    let clock = Clock::starts_in(Duration::ZERO);
    let serve = thread::spawn(move || -> Result<Vec<u8>> {
        let mut stream = listener.accept()?.0;
        let received = read_to_end(&stream)?;
        stream.write_all(&download)?;
        Ok(received)
    });
    let inside = Arc::clone(&client);
    let request = thread::spawn(move || -> Result<Vec<u8>> {
        let mut stream = inside.enter(|| TcpStream::connect(SERVER))??;
        stream.write_all(&upload)?;
        stream.shutdown(Shutdown::Write)?;
        read_to_end(stream)
    });
    let are_done = || serve.is_finished() && request.is_finished();
    let is_over = |proxy: &PacketProxy<_>| are_done() && proxy.statistics().at_risk == 0;
    bridge.run(&clock, |proxy| is_over(proxy) || clock.now() > TIME_LIMIT)?;
    let (seconds, proxy) = (clock.now().as_secs_f64(), bridge.proxy());
    let (counters, statistics) = (*proxy.counters(), proxy.statistics());
    ensure!(are_done(), "not finished after {seconds} s: {counters:?}, {statistics:?}");
    let received = [serve.join().unwrap()?, request.join().unwrap()?];
    let lost = frames.load(Ordering::Relaxed) / LOSS_PERIOD;
    Ok(Transfer { bytes, received, seconds, lost, counters, statistics })
}

/// Creates the link between a host and a device of the proxy; called in the host's namespace.
fn connect(address: &str, proxy: &Namespace, device: &str) -> Result<()> {
    let proxy = proxy.path().display().to_string();
    let lines = format!(
        "link add eth0 type veth peer name {device} netns {proxy}\n\
         address add {address} dev eth0\nlink set eth0 up\n"
    );
    run_batch("ip", &lines, device)?;
    Ok(disable_offloads("eth0")?)
}

/// Opens a device of the proxy. It has no IP address, so the proxy's kernel answers no packet.
fn open(device: &str) -> Result<PacketSocket> {
    run_batch("ip", &format!("link set {device} up\n"), "proxy")?;
    disable_offloads(device)?;
    let socket = PacketSocket::open(device, PacketSocket::ALL_PROTOCOLS)?;
    socket.set_promiscuous(device)?;
    Ok(socket)
}

/// An interface that drops one of [`LOSS_PERIOD`] frames with data.
#[derive(Debug)]
struct LossyHop {
    socket: PacketSocket,
    frames: Arc<AtomicU32>,
}

impl Interface for LossyHop {
    fn receive(&self, batch: &mut FrameBatch) -> io::Result<usize> {
        self.socket.receive(batch)
    }

    fn send(&self, frame: &[u8]) -> io::Result<()> {
        let has_data = frame.len() > 1_000;
        let before = self.frames.fetch_add(u32::from(has_data), Ordering::Relaxed);
        let is_lost = has_data && before % LOSS_PERIOD == LOSS_PERIOD - 1;
        if is_lost { Ok(()) } else { Interface::send(&self.socket, frame) }
    }
}

impl AsFd for LossyHop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn random(length: u64) -> Result<Vec<u8>> {
    read_to_end(File::open("/dev/urandom")?.take(length))
}

fn read_to_end(mut source: impl Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes)?;
    Ok(bytes)
}
