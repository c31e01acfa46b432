//! The two ends of a case: connections, or a script in place of the server.

use std::sync::Arc;

use gridhaul_core::tcp::{Connection, Flags, Segment, StackParams};
use gridhaul_scenario::units::Instant;

use crate::case::{Case, Crafted, End, Open, Peer};
use crate::observe::Packet;

/// The connections of a case; `None` where a script stands in.
pub(super) fn connections(case: &Case) -> [Option<Connection>; 2] {
    let near = Arc::new(StackParams::resolve(&case.stack));
    let far = Arc::new(StackParams::resolve(case.server_stack()));
    let [isn, peer_isn] = case.isn;
    let client = match case.open {
        Open::Client | Open::Both => Connection::connect(Arc::clone(&near), isn),
        Open::Listen => Connection::listen(Arc::clone(&near), isn),
        Open::Established => Connection::established(Arc::clone(&near), isn, &far, peer_isn),
    };
    let server = match case.open {
        _ if case.peer == Peer::Script => None,
        Open::Client => Some(Connection::listen(far, peer_isn)),
        Open::Both | Open::Listen => Some(Connection::connect(far, peer_isn)),
        Open::Established => Some(Connection::established(far, peer_isn, &near, isn)),
    };
    [Some(client), server]
}

/// What the scripted peer has said so far, for what the script leaves out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scripted {
    seq: i64,
    ack: i64,
    window: u32,
}

impl Scripted {
    pub(super) fn new(case: &Case) -> Self {
        let seq = i64::from(case.open == Open::Established);
        let window = match case.open {
            Open::Established => StackParams::resolve(case.server_stack()).receive_window,
            _ => 65_535,
        };
        Self { seq, ack: seq, window }
    }

    /// The segment that a line of the script stands for.
    pub(super) fn segment(&mut self, made: &Crafted, isn: [u32; 2]) -> Segment {
        let [near, far] = isn;
        let seq = made.seq.unwrap_or(self.seq);
        self.ack = made.ack.unwrap_or(self.ack);
        self.window = made.window.unwrap_or(self.window);
        let number = |isn: u32, relative: i64| isn.wrapping_add(relative as u32);
        let mut segment = Segment {
            seq: number(far, seq),
            ack: if made.flags.has(Flags::ACK) { number(near, self.ack) } else { 0 },
            len: made.len,
            window: self.window,
            timestamps: made.timestamps,
            sack_permitted: made.sack_permitted,
            flags: made.flags,
            header: 40,
            ..Segment::default()
        };
        for &(left, right) in &made.sack {
            segment.sack.push(number(near, left), number(near, right));
        }
        self.seq = self.seq.max(seq + i64::from(segment.sequence_len()));
        segment
    }
}

/// A segment as a packet seen at an end.
pub(super) fn packet(
    at: Instant,
    seen_at: End,
    from: End,
    segment: &Segment,
    isn: [u32; 2],
) -> Packet {
    let (own, other) = if from == End::Client { (isn[0], isn[1]) } else { (isn[1], isn[0]) };
    let relative = |number: u32, isn: u32| u64::from(number.wrapping_sub(isn));
    let block = |&(left, right): &(u32, u32)| (relative(left, other), relative(right, other));
    Packet {
        at,
        seen_at,
        from,
        syn: segment.flags.has(Flags::SYN),
        fin: segment.flags.has(Flags::FIN),
        rst: segment.flags.has(Flags::RST),
        seq: relative(segment.seq, own),
        len: u64::from(segment.len),
        again: false,
        ack: segment.flags.has(Flags::ACK).then(|| relative(segment.ack, other)),
        sack: segment.sack.as_slice().iter().map(block).collect(),
        window: segment.window,
        timestamps: segment.timestamps,
        sack_permitted: segment.sack_permitted,
    }
}
