//! The aggregator compared with a reference model that stores whole streams and queues in vectors.
//!
//! The model has its own admission rules: for every schedule, the aggregator must accept the same bytes,
//! forward the same messages in the same order, and report the same bytes at risk. Messages may have
//! many segments, and may exceed the buffer; connections are spread over several upstream connections.

mod by_segment;

use proptest::prelude::*;

use super::framer::tests::{Kind, kinds, streams};
use super::{ByteOrder, LengthWidth};

/// Connections of a case.
const CONNECTIONS: usize = 4;

/// The messages of all connections.
#[derive(Debug)]
struct Model {
    kind: Kind,
    /// The upstream connection of each connection.
    upstream_of: Vec<usize>,
    /// Bytes of each connection that have arrived in order and are not in a complete message.
    incomplete: Vec<Vec<u8>>,
    /// Complete messages of each upstream connection in order: connection and payload.
    queues: Vec<Vec<(usize, Vec<u8>)>>,
    /// Number of messages that have left, from the beginning of each queue.
    departed: Vec<usize>,
}

impl Model {
    fn new(kind: Kind, upstream_of: &[usize]) -> Self {
        let upstreams = upstream_of.iter().max().map_or(1, |last| last + 1);
        Self {
            kind,
            upstream_of: upstream_of.to_vec(),
            incomplete: vec![Vec::new(); upstream_of.len()],
            queues: vec![Vec::new(); upstreams],
            departed: vec![0; upstreams],
        }
    }

    const fn upstreams(&self) -> usize {
        self.queues.len()
    }

    /// Bytes of a connection arrive in order. Returns the sizes of the messages that become complete.
    fn accept(&mut self, connection: usize, bytes: &[u8]) -> Vec<usize> {
        let rest = &mut self.incomplete[connection];
        rest.extend(bytes);
        let (sizes, _) = self.kind.divide(rest);
        for &size in &sizes {
            let message = rest.drain(..size).collect();
            self.queues[self.upstream_of[connection]].push((connection, message));
        }
        sizes
    }

    fn incomplete_bytes(&self, connection: usize) -> u64 {
        self.incomplete[connection].len() as u64
    }

    /// Bytes of the first messages of an upstream connection.
    fn bytes_of_first(&self, upstream: usize, messages: usize) -> u64 {
        self.queues[upstream][..messages].iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// Bytes of all complete messages of an upstream connection.
    fn written(&self, upstream: usize) -> u64 {
        self.bytes_of_first(upstream, self.queues[upstream].len())
    }

    /// Bytes of incomplete messages for an upstream connection.
    fn incomplete_of_upstream(&self, upstream: usize) -> u64 {
        let own = (0..self.upstream_of.len())
            .filter(|&connection| self.upstream_of[connection] == upstream);
        own.map(|connection| self.incomplete_bytes(connection)).sum()
    }

    /// End of each message in the whole stream of a connection.
    fn ends(&self, stream: &[u8]) -> Vec<u64> {
        let (sizes, _) = self.kind.divide(stream);
        let mut end = 0;
        sizes
            .iter()
            .map(|&size| {
                end += size as u64;
                end
            })
            .collect()
    }

    /// All complete messages of a connection.
    fn messages_of(&self, connection: usize) -> Vec<u8> {
        let queue = self.queues[self.upstream_of[connection]].iter();
        let own = queue.filter(|(from, _)| *from == connection);
        own.flat_map(|(_, bytes)| bytes).copied().collect()
    }
}

/// A framing, the streams of the connections, and the upstream connection of each.
#[derive(Debug, Clone)]
struct Case {
    kind: Kind,
    streams: Vec<Vec<u8>>,
    upstream_of: Vec<usize>,
}

fn cases() -> impl Strategy<Value = Case> {
    let short =
        kinds().prop_filter("small messages", |kind| kind.framer().largest_message() <= 100);
    let short = (short, prop::collection::vec(streams(400), CONNECTIONS));
    let fixed = (200..1_500_u32, prop::collection::vec(streams(3_000), CONNECTIONS));
    let fixed = fixed.prop_map(|(size, streams)| (Kind::Fixed(size), streams));
    let prefixed = prop::collection::vec(prefixed_stream(), CONNECTIONS).prop_map(|streams| {
        (Kind::Prefixed(LengthWidth::TwoBytes, ByteOrder::BigEndian, LONGEST), streams)
    });
    let streams = prop_oneof![2 => short, 1 => fixed, 1 => prefixed];
    (streams, prop::collection::vec(0..3_usize, CONNECTIONS))
        .prop_map(|((kind, streams), upstream_of)| Case { kind, streams, upstream_of })
}

/// Length of the longest message with a length field.
const LONGEST: u32 = 1_500;

/// Messages of very different lengths with a length field of two bytes; the last one may be truncated.
fn prefixed_stream() -> impl Strategy<Value = Vec<u8>> {
    let lengths = prop::collection::vec(prop_oneof![0..20_u16, 0..LONGEST as u16], 0..6);
    (lengths, 0..40_usize).prop_map(|(lengths, missing)| {
        let mut stream = Vec::new();
        for (length, filler) in lengths.into_iter().zip(1..) {
            stream.extend(length.to_be_bytes());
            stream.extend(std::iter::repeat_n(filler, length.into()));
        }
        stream.truncate(stream.len().saturating_sub(missing));
        stream
    })
}
