//! Two hosts, and a machine between them with a device toward each: three network namespaces.
//! Offloads are on, as veth devices have them.

#![expect(clippy::disallowed_methods, reason = "waits for the kernel in real time")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use gridhaul_linux::{
    FrameBatch, Namespace, OutgoingFrame, PacketSocket, ReceivedFrame, SendRejection, run_batch,
};
use gridhaul_testing::close;

use crate::packet_socket::wait_until_up;

/// Time in which a transfer must end, which a busy machine meets as well.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// Addresses of the hosts. Their devices are `c0` and `s0`, those of the machine between them
/// `left` and `right`.
const CLIENT: [&str; 2] = ["10.88.0.1/24", "fd88::1/64"];
const SERVER: [&str; 2] = ["10.88.0.2/24", "fd88::2/64"];
pub(crate) const IPV4_SERVER: &str = "10.88.0.2:7000";
pub(crate) const IPV6_SERVER: &str = "[fd88::2]:7000";

pub(crate) struct BridgedHosts {
    pub(crate) client: Namespace,
    pub(crate) middle: Namespace,
    pub(crate) server: Namespace,
}

impl BridgedHosts {
    /// Connects the devices; `bridge` makes the kernel forward between them.
    pub(crate) fn new(bridge: bool) -> Self {
        let make = || Namespace::new().expect("the kernel tests run as root");
        let hosts = Self { client: make(), middle: make(), server: make() };
        let end = |host: &Namespace, device: &str, port: &str| {
            format!(
                "link add {port} type veth peer name {device} netns {}\n",
                host.path().display()
            )
        };
        let mut lines = end(&hosts.client, "c0", "left") + &end(&hosts.server, "s0", "right");
        if bridge {
            lines += "link add br0 type bridge\nlink set left master br0\n\
                      link set right master br0\nlink set br0 up\n";
        }
        lines += "link set left up\nlink set right up\n";
        hosts.middle.enter(|| run_batch("ip", &lines, "middle").unwrap()).unwrap();
        for (host, device, [ipv4, ipv6]) in
            [(&hosts.client, "c0", CLIENT), (&hosts.server, "s0", SERVER)]
        {
            let lines = format!(
                "link set {device} up\naddress add {ipv4} dev {device}\n\
                 address add {ipv6} dev {device} nodad\n"
            );
            let set_up = || {
                run_batch("ip", &lines, device).unwrap();
                wait_until_up(&[device]);
            };
            host.enter(set_up).unwrap();
        }
        hosts.middle.enter(|| wait_until_up(&["left", "right"])).unwrap();
        hosts
    }

    /// A connection from the client to the server: both ends.
    pub(crate) fn connect(&self, server: &str) -> [TcpStream; 2] {
        let address: SocketAddr = server.parse().unwrap();
        let listener = self.server.enter(|| TcpListener::bind(address).unwrap()).unwrap();
        let client = self.client.enter(|| TcpStream::connect_timeout(&address, LIMIT).unwrap());
        let ends = [client.unwrap(), listener.accept().unwrap().0];
        close(listener);
        for end in &ends {
            end.set_read_timeout(Some(LIMIT)).unwrap();
            end.set_nodelay(true).unwrap();
        }
        ends
    }
}

/// Sends bytes over a connection and verifies that they arrive.
pub(crate) fn transfer([from, to]: &mut [TcpStream; 2], bytes: usize) {
    let data: Vec<u8> =
        (0..bytes as u32).map(|index| (index.wrapping_mul(0x9e37) >> 8) as u8).collect();
    let mut received = vec![0; bytes];
    std::thread::scope(|scope| {
        scope.spawn(|| from.write_all(&data).unwrap());
        to.read_exact(&mut received).unwrap();
    });
    assert!(received == data, "the data have changed");
}

/// The packet sockets of both devices of the machine in the middle, whose namespace this is.
pub(crate) fn sockets() -> [PacketSocket; 2] {
    ["left", "right"].map(|device| {
        let socket = PacketSocket::open_with_metadata(device, PacketSocket::ALL_PROTOCOLS).unwrap();
        socket.set_promiscuous(device).unwrap();
        socket.set_receive_buffer(16 << 20).unwrap();
        socket
    })
}

/// Forwards frames between the devices until `stop` returns true. Returns why frames were dropped.
pub(crate) fn forward(
    sockets: &[PacketSocket; 2],
    mut stop: impl FnMut() -> bool,
    mut observe: impl FnMut(usize, &ReceivedFrame<'_>),
) -> Vec<SendRejection> {
    let mut batch = FrameBatch::new(32, 65_536 + 64);
    let mut rejected = Vec::new();
    let begun = Instant::now();
    while !stop() {
        assert!(begun.elapsed() < 3 * LIMIT, "the test has not ended");
        let mut idle = true;
        for side in 0..2 {
            idle &= sockets[side].receive(&mut batch).unwrap() == 0;
            for frame in batch.frames() {
                assert!(!frame.truncated, "{} bytes", frame.bytes.len());
                observe(side, &frame);
                let frame = [OutgoingFrame::from(frame)];
                let mut result = sockets[1 - side].send_frames(&frame).unwrap();
                // The send buffer of the socket is full.
                while result.sent == 0 && result.rejected.is_none() {
                    std::thread::sleep(Duration::from_micros(50));
                    result = sockets[1 - side].send_frames(&frame).unwrap();
                }
                rejected.extend(result.rejected);
            }
        }
        if idle {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    rejected
}
