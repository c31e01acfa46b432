//! Connections between the hosts, whose bytes are compared.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use gridhaul_linux::Namespace;
use gridhaul_testing::close;

/// Longest time for each step of a transfer.
const LIMIT: Duration = Duration::from_secs(60);

/// Which host opens a connection.
pub(crate) struct Ends<'a> {
    pub(crate) client: &'a Namespace,
    pub(crate) server: &'a Namespace,
    pub(crate) address: SocketAddr,
}

impl Ends<'_> {
    /// An open connection: the stream of the client and that of the server.
    pub(crate) fn connect(&self) -> (TcpStream, TcpStream) {
        let bind = || TcpListener::bind(self.address).unwrap();
        let listener = self.server.enter(bind).unwrap();
        let connect = || TcpStream::connect_timeout(&self.address, LIMIT).unwrap();
        let client = self.client.enter(connect).unwrap();
        let (server, peer) = listener.accept().unwrap();
        assert_eq!(peer, client.local_addr().unwrap(), "the server sees the client");
        close(listener);
        for stream in [&client, &server] {
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            stream.set_write_timeout(Some(LIMIT)).unwrap();
        }
        (client, server)
    }

    /// The client sends bytes and closes its direction; the server answers with others.
    pub(crate) fn transfer(&self, sizes: [usize; 2]) {
        let (client, server) = self.connect();
        let [request, reply] = [pattern(sizes[0], 3), pattern(sizes[1], 5)];
        let (sent, expected) = (request.clone(), reply.clone());
        let writer = thread::spawn(move || {
            let mut stream = &client;
            stream.write_all(&sent).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            assert!(received == expected, "{} of {} bytes", received.len(), expected.len());
        });
        let mut stream = &server;
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        assert!(received == request, "{} of {} bytes", received.len(), request.len());
        // Half-closed: the client has sent FIN and still receives.
        stream.write_all(&reply).unwrap();
        drop(server);
        writer.join().unwrap();
    }
}

/// Bytes that do not repeat within a segment.
pub(crate) fn pattern(length: usize, factor: usize) -> Vec<u8> {
    (0..length).map(|at| ((at * factor) ^ (at >> 7)) as u8).collect()
}
