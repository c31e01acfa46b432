//! The two hosts of a case: connections, or a script instead of the server.

use std::sync::Arc;

use gridhaul_core::tcp::{Connection, Flags, Segment, StackParams};
use gridhaul_scenario::scenario::Stack;
use gridhaul_scenario::units::Instant;

use crate::case::{Case, Endpoint, OpenMode, Peer, ScriptedSegment};
use crate::observation::Packet;

/// The connections of a case; `None` for a scripted peer.
pub(super) fn connections(case: &Case) -> [Option<Connection>; 2] {
    let client_stack = Arc::new(exact_timers(&case.stack));
    let server_stack = Arc::new(exact_timers(case.server_stack()));
    let [isn, peer_isn] = case.isn;
    let client = match case.open {
        OpenMode::Client | OpenMode::Both => Connection::connect(Arc::clone(&client_stack), isn),
        OpenMode::Listen => Connection::listen(Arc::clone(&client_stack), isn),
        OpenMode::Established => {
            Connection::established(Arc::clone(&client_stack), isn, &server_stack, peer_isn)
        }
    };
    let server = match case.open {
        _ if case.peer == Peer::Script => None,
        OpenMode::Client => Some(Connection::listen(server_stack, peer_isn)),
        OpenMode::Both | OpenMode::Listen => Some(Connection::connect(server_stack, peer_isn)),
        OpenMode::Established => {
            Some(Connection::established(server_stack, peer_isn, &client_stack, isn))
        }
    };
    [Some(client), server]
}

/// A stack without the timer wheel of the kernel: cases state exact times, and the tolerance of the
/// kernel includes its wheel.
fn exact_timers(stack: &Stack) -> StackParams {
    let mut params = StackParams::resolve(stack);
    params.policy.timer_wheel = false;
    params
}

/// State of the scripted peer: defaults for the fields that a line of the script omits.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScriptedPeer {
    seq: i64,
    ack: i64,
    window: u32,
}

impl ScriptedPeer {
    pub(super) fn new(case: &Case) -> Self {
        let seq = i64::from(case.open == OpenMode::Established);
        let window = match case.open {
            OpenMode::Established => StackParams::resolve(case.server_stack()).receive_window,
            _ => 65_535,
        };
        Self { seq, ack: seq, window }
    }

    /// The segment of a line of the script.
    pub(super) fn segment(&mut self, scripted: &ScriptedSegment, isn: [u32; 2]) -> Segment {
        let [client_isn, server_isn] = isn;
        let seq = scripted.seq.unwrap_or(self.seq);
        self.ack = scripted.ack.unwrap_or(self.ack);
        self.window = scripted.window.unwrap_or(self.window);
        let number = |isn: u32, relative: i64| isn.wrapping_add(relative as u32);
        let mut segment = Segment {
            seq: number(server_isn, seq),
            ack: if scripted.flags.has(Flags::ACK) { number(client_isn, self.ack) } else { 0 },
            len: scripted.len,
            window: self.window,
            timestamps: scripted.timestamps,
            sack_permitted: scripted.sack_permitted,
            flags: scripted.flags,
            header: 40,
            ..Segment::default()
        };
        for &(left, right) in &scripted.sack {
            segment.sack.push(number(client_isn, left), number(client_isn, right));
        }
        self.seq = self.seq.max(seq + i64::from(segment.sequence_len()));
        segment
    }
}

/// A segment as a packet captured at a host.
pub(super) fn packet(
    at: Instant,
    captured_at: Endpoint,
    from: Endpoint,
    segment: &Segment,
    isn: [u32; 2],
) -> Packet {
    let (own, other) = if from == Endpoint::Client { (isn[0], isn[1]) } else { (isn[1], isn[0]) };
    let relative = |number: u32, isn: u32| u64::from(number.wrapping_sub(isn));
    let block = |&(left, right): &(u32, u32)| (relative(left, other), relative(right, other));
    Packet {
        at,
        captured_at,
        from,
        syn: segment.flags.has(Flags::SYN),
        fin: segment.flags.has(Flags::FIN),
        rst: segment.flags.has(Flags::RST),
        seq: relative(segment.seq, own),
        len: u64::from(segment.len),
        retransmitted: false,
        ack: segment.flags.has(Flags::ACK).then(|| relative(segment.ack, other)),
        sack: segment.sack.as_slice().iter().map(block).collect(),
        window: segment.window,
        timestamps: segment.timestamps,
        sack_permitted: segment.sack_permitted,
    }
}
