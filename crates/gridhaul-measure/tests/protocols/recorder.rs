//! Bytes of connections, recorded between client and broker, and as a capture for tshark.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

/// Bytes of a connection in one direction, as one `read` returned them.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    /// Number of the connection.
    pub(crate) connection: u16,
    /// Whether the client sent it.
    pub(crate) from_client: bool,
    pub(crate) bytes: Vec<u8>,
}

/// A relay in front of a broker that records what passes.
pub(crate) struct Recorder {
    pub(crate) address: SocketAddr,
    segments: Arc<Mutex<Vec<Segment>>>,
}

impl Recorder {
    /// Relays connections to `target` until the test ends.
    pub(crate) fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let segments = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&segments);
        thread::spawn(move || {
            for (connection, client) in listener.incoming().enumerate() {
                let (client, server) = (client.unwrap(), TcpStream::connect(target).unwrap());
                for (from_client, from, to) in [(true, &client, &server), (false, &server, &client)]
                {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (record, connection) = (Arc::clone(&record), connection as u16);
                    thread::spawn(move || {
                        relay(from, to, |bytes| {
                            let bytes = bytes.to_vec();
                            record.lock().unwrap().push(Segment { connection, from_client, bytes });
                        });
                    });
                }
            }
        });
        Self { address, segments }
    }

    pub(crate) fn segments(&self) -> Vec<Segment> {
        self.segments.lock().unwrap().clone()
    }
}

/// Pieces of the recorded bytes of one direction, cut by the framing of a protocol: a busy machine
/// joins messages in a segment and divides others.
///
/// `first` returns the length of the piece that the rest of a connection's bytes begins with.
pub(crate) fn pieces(
    segments: &[Segment],
    from_client: bool,
    first: impl Fn(&[u8]) -> usize,
) -> Vec<Vec<u8>> {
    let mut streams = BTreeMap::<u16, Vec<u8>>::new();
    for segment in segments.iter().filter(|segment| segment.from_client == from_client) {
        streams.entry(segment.connection).or_default().extend(&segment.bytes);
    }
    let mut pieces = Vec::new();
    for stream in streams.into_values() {
        let mut rest = &stream[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(first(rest).min(rest.len()));
            pieces.push(piece.to_vec());
            rest = after;
        }
    }
    pieces
}

fn relay(mut from: TcpStream, mut to: TcpStream, record: impl Fn(&[u8])) {
    let _ = to.set_nodelay(true);
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        record(&buffer[..length]);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// Asserts that tshark dissects all segments as `protocol` at `port` without a warning, and returns
/// these fields of each packet that has them.
pub(crate) fn dissect(
    folder: &Path,
    port: u16,
    protocol: &str,
    segments: &[Segment],
    fields: &[&str],
) -> Vec<Vec<String>> {
    let path = folder.join(format!("{protocol}.pcap"));
    std::fs::write(&path, pcap(port, segments)).unwrap();
    let decode = format!("tcp.port=={port},{protocol}");
    let tshark = |arguments: &[&str]| {
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&path).args(["-n", "-d", &decode]).args(arguments);
        let output = tshark.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    // Severity 0x600000 is a warning.
    let warnings = tshark(&["-Y", "_ws.malformed || _ws.expert.severity >= 0x600000", "-V"]);
    assert_eq!(warnings, "", "{protocol}");
    if fields.is_empty() {
        return Vec::new();
    }
    let mut arguments = vec!["-T", "fields", "-E", "separator=/t"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    let text = tshark(&arguments);
    let rows = text.lines().map(|line| line.split('\t').map(str::to_owned).collect());
    rows.filter(|row: &Vec<String>| row.iter().all(|cell| !cell.is_empty())).collect()
}

/// A capture (libpcap format, link type 228: IPv4) with one packet for each segment.
fn pcap(port: u16, segments: &[Segment]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 262_144, 228_u32] {
        file.extend(word.to_le_bytes());
    }
    let connections =
        1 + segments.iter().map(|segment| usize::from(segment.connection)).max().unwrap_or(0);
    let mut sent = vec![[1_u32; 2]; connections];
    for (number, segment) in segments.iter().enumerate() {
        let client = 40_000 + segment.connection;
        let sequence = &mut sent[usize::from(segment.connection)];
        let (ends, own) =
            if segment.from_client { ([client, port], 0) } else { ([port, client], 1) };
        for bytes in segment.bytes.chunks(32_000) {
            let length = 40 + bytes.len();
            let mut packet =
                vec![0x45, 0, (length >> 8) as u8, length as u8, 0, 0, 0, 0, 64, 6, 0, 0];
            let addresses = [[10, 0, 0, 1], [10, 0, 0, 2]];
            packet.extend(addresses[own]);
            packet.extend(addresses[1 - own]);
            packet.extend(ends.map(u16::to_be_bytes).concat());
            packet.extend(sequence[own].to_be_bytes());
            packet.extend(sequence[1 - own].to_be_bytes());
            // Header of 20 bytes, ACK and PSH, a window.
            packet.extend([0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
            packet.extend(bytes);
            sequence[own] += bytes.len() as u32;
            for word in
                [number as u32 / 1_000, number as u32 % 1_000 * 1_000, length as u32, length as u32]
            {
                file.extend(word.to_le_bytes());
            }
            file.extend(packet);
        }
    }
    file
}
