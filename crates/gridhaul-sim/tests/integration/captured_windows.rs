//! Receive windows in captures: the field of the packets times the window scale of SYN.

use std::collections::BTreeMap;

use gridhaul_scenario::answer::Answer;

use crate::support::{CapturedPacket, captured, run};

/// A TCP packet of a capture.
struct Packet {
    at_ns: u64,
    ports: [u16; 2],
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
    payload: u32,
    scale: Option<u8>,
}

const SYN: u8 = 2;
const ACK: u8 = 16;

/// The packets of both directions of the link `line`, in the order of their times.
fn packets(answer: &Answer) -> Vec<Packet> {
    let mut packets: Vec<_> = captured(answer).iter().map(packet).collect();
    packets.sort_by_key(|packet| packet.at_ns);
    packets
}

fn packet(captured: &CapturedPacket) -> Packet {
    let CapturedPacket { at_ns, ref headers, length } = *captured;
    let tcp = &headers[20..];
    let half = |at: usize| u16::from_be_bytes(tcp[at..at + 2].try_into().unwrap());
    let word = |at: usize| u32::from_be_bytes(tcp[at..at + 4].try_into().unwrap());
    let header = usize::from(tcp[12] >> 4) * 4;
    let mut options = &tcp[20..header];
    let mut scale = None;
    while let [kind, rest @ ..] = options {
        match kind {
            0 => break,
            1 => options = rest,
            3 => {
                scale = Some(options[2]);
                options = &options[3..];
            }
            _ => options = &options[usize::from(rest[0])..],
        }
    }
    Packet {
        at_ns,
        ports: [half(0), half(2)],
        seq: word(4),
        ack: word(8),
        flags: tcp[13],
        window: half(14),
        payload: length - 20 - header as u32,
        scale,
    }
}

/// Number of segments with data, and of those that end beyond every window offered so far.
fn beyond_window(packets: &[Packet]) -> (usize, usize) {
    let mut scales = BTreeMap::new();
    let mut edges: BTreeMap<[u16; 2], u32> = BTreeMap::new();
    let (mut segments, mut beyond) = (0, 0);
    for packet in packets {
        if let Some(scale) = packet.scale {
            scales.insert(packet.ports, scale);
        }
        if packet.payload > 0 {
            segments += 1;
            let end = packet.seq.wrapping_add(packet.payload);
            let edge = edges[&[packet.ports[1], packet.ports[0]]];
            beyond += usize::from(end.wrapping_sub(edge).cast_signed() > 0);
        }
        if packet.flags & ACK != 0 {
            let scale = if packet.flags & SYN != 0 { 0 } else { scales[&packet.ports] };
            let edge = packet.ack.wrapping_add(u32::from(packet.window) << scale);
            let last = edges.entry(packet.ports).or_insert(edge);
            if edge.wrapping_sub(*last).cast_signed() > 0 {
                *last = edge;
            }
        }
    }
    (segments, beyond)
}

fn network(window: &str, keys: &str, loss: &str, node: &str) -> String {
    format!(
        r#"
        title = "windows"
        duration = "12 s"
        record.pcap = ["line"]
        [node]
        a = {{}}
        p = {{ {node} }}
        b = {{}}
        [link]
        line = {{ from = "a", to = "p", both = {{ rate = "20 Mbit/s", delay = "20 ms", {loss} }} }}
        far = {{ from = "p", to = "b", both = {{ rate = "5 Mbit/s", delay = "10 ms" }} }}
        [stack.s]
        {keys}
        receive_window = "{window}"
        [flow]
        bulk = {{ from = "a", to = "b", stack = "s", load = "bulk" }}
        readings = {{ from = "a", to = "b", stack = "s", load.periodic = {{ size = "3 kB", every = "1 s" }} }}
        "#
    )
}

#[test]
fn no_segment_ends_beyond_the_windows_of_a_capture() {
    let proxy = |mode: &str| format!("proxy = {{ mode = \"{mode}\", buffer = \"150001 B\" }}");
    for keys in ["profile = \"rfc\"", "profile = \"linux\"", "profile = \"ns2\""] {
        for window in ["10000 B", "65535 B", "100001 B", "1000003 B", "6000001 B"] {
            for loss in ["", "loss = { bernoulli = \"0.5 %\" }"] {
                for node in [String::new(), proxy("split"), proxy("reflect"), proxy("spoof")] {
                    let keys = format!("{keys}\ntimestamps = false");
                    let answer = run(&network(window, &keys, loss, &node));
                    let (segments, beyond) = beyond_window(&packets(&answer));
                    let case = format!("{keys} {window} {loss} {node}");
                    assert!(segments > 300, "{case}: {segments} segments");
                    assert_eq!(beyond, 0, "{case}: of {segments} segments");
                }
            }
        }
    }
}
