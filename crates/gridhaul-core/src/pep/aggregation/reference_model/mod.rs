//! The aggregator compared with a reference model that stores whole streams and queues in vectors.
//!
//! The model has its own admission rules: for every schedule, the aggregator must accept the same
//! bytes, forward the same messages in the same order, and report the same bytes at risk. Messages
//! may have many segments, and may exceed the buffer; connections are spread over several upstream
//! connections.

mod by_segment;

use proptest::prelude::*;

/// Connections of a case.
const CONNECTIONS: usize = 4;

/// The messages of all connections.
#[derive(Debug)]
struct Model {
    /// Sizes of the messages of each connection.
    sizes: Vec<Vec<usize>>,
    /// Number of complete messages of each connection.
    complete: Vec<usize>,
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
    fn new(sizes: Vec<Vec<usize>>, upstream_of: &[usize]) -> Self {
        let upstreams = upstream_of.iter().max().map_or(1, |last| last + 1);
        Self {
            complete: vec![0; sizes.len()],
            sizes,
            upstream_of: upstream_of.to_vec(),
            incomplete: vec![Vec::new(); upstream_of.len()],
            queues: vec![Vec::new(); upstreams],
            departed: vec![0; upstreams],
        }
    }

    const fn upstreams(&self) -> usize {
        self.queues.len()
    }

    /// Bytes of a connection arrive in order. Returns the sizes of the messages that become
    /// complete.
    fn accept(&mut self, connection: usize, bytes: &[u8]) -> Vec<usize> {
        let rest = &mut self.incomplete[connection];
        rest.extend(bytes);
        let mut complete = Vec::new();
        let sizes = self.sizes[connection].iter().skip(self.complete[connection]);
        for &size in sizes {
            if rest.len() < size {
                break;
            }
            let message = rest.drain(..size).collect();
            self.queues[self.upstream_of[connection]].push((connection, message));
            complete.push(size);
        }
        self.complete[connection] += complete.len();
        complete
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
    fn ends(&self, connection: usize) -> Vec<u64> {
        let mut end = 0;
        let add = |size: &usize| {
            end += *size as u64;
            end
        };
        self.sizes[connection].iter().map(add).collect()
    }

    /// All complete messages of a connection.
    fn messages_of(&self, connection: usize) -> Vec<u8> {
        let queue = self.queues[self.upstream_of[connection]].iter();
        let own = queue.filter(|(from, _)| *from == connection);
        own.flat_map(|(_, bytes)| bytes).copied().collect()
    }
}

/// The stream of a connection.
#[derive(Debug, Clone)]
struct Stream {
    bytes: Vec<u8>,
    /// Sizes of its messages. Bytes after the last one are a message that is incomplete for ever.
    sizes: Vec<usize>,
}

/// The streams of the connections, and the upstream connection of each.
#[derive(Debug, Clone)]
struct Case {
    streams: Vec<Stream>,
    upstream_of: Vec<usize>,
}

fn cases() -> impl Strategy<Value = Case> {
    let short = streams(1..=100, 400);
    let one_size = (200..1_500_usize).prop_flat_map(|size| streams(size..=size, 3_000));
    let very_different = streams(2..=1_502, 9_000);
    let streams = prop_oneof![2 => short, 1 => one_size, 1 => very_different];
    (streams, prop::collection::vec(0..3_usize, CONNECTIONS))
        .prop_map(|(streams, upstream_of)| Case { streams, upstream_of })
}

/// Streams of at most `longest` bytes with messages of these sizes.
fn streams(
    sizes: std::ops::RangeInclusive<usize>,
    longest: usize,
) -> impl Strategy<Value = Vec<Stream>> {
    let small = *sizes.start()..=(*sizes.end()).min(sizes.start() + 20);
    let sizes = prop::collection::vec(prop_oneof![small, sizes], 0..40);
    let stream = (sizes, prop::collection::vec(any::<u8>(), 0..longest));
    let stream = stream.prop_map(|(mut sizes, bytes)| {
        let mut end = 0;
        sizes.retain(|size| {
            end += size;
            end <= bytes.len()
        });
        Stream { bytes, sizes }
    });
    prop::collection::vec(stream, CONNECTIONS)
}
