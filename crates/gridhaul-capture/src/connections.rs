//! The connections of a capture.

use std::net::SocketAddr;

use gridhaul_core::tcp::Flags;
use gridhaul_scenario::units::{Duration, Instant};
use indexmap::IndexMap;

use crate::explanation::Context;
use crate::limit::Leg;
use crate::{
    CaptureError, CaptureFile, CapturedSegment, Connection, ConnectionExplanation, Explanation,
    Limit, SegmentReader,
};

/// Progress of reading.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Bytes read of all files.
    pub bytes: u64,
    /// TCP segments.
    pub segments: u64,
}

/// Explains the captures, which are parts of one: its points, or the directions of its links.
/// `progress` is called regularly, and ends the reading with `false`.
///
/// # Errors
/// A file that is no capture, or is damaged.
pub fn explain(
    files: Vec<CaptureFile>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Explanation, CaptureError> {
    let mut reader = SegmentReader::open(files)?;
    let mut table = Table::default();
    let mut is_interrupted = false;
    while let Some(segment) = reader.next_segment()? {
        table.handle_segment(&segment, &reader);
        if table.segments.is_multiple_of(SEGMENTS_A_STEP) {
            table.finish_closed(segment.at, &reader);
            let done = Progress { bytes: reader.bytes_read(), segments: table.segments };
            if !progress(done) {
                is_interrupted = true;
                break;
            }
        }
    }
    Ok(table.into_explanation(&reader, is_interrupted))
}

/// Segments between two calls of `progress`.
const SEGMENTS_A_STEP: u64 = 16_384;

/// A closed connection is explained, and its state is dropped, after this time.
const CLOSED: Duration = Duration::from_secs(10);

/// Point, and both ends in ascending order.
type Key = (u32, SocketAddr, SocketAddr);

/// The connections of a capture, by point and ends.
#[derive(Debug, Default)]
struct Table {
    /// Index of the latest connection.
    latest: IndexMap<Key, usize>,
    connections: Vec<Slot>,
    /// Indexes of connections that are still followed.
    open: Vec<usize>,
    segments: u64,
    first: Option<Instant>,
    last: Instant,
}

#[derive(Debug)]
enum Slot {
    Open(Box<Connection>),
    Explained(Box<ConnectionExplanation>),
}

impl Table {
    fn handle_segment(&mut self, segment: &CapturedSegment, reader: &SegmentReader) {
        self.segments += 1;
        self.first.get_or_insert(segment.at);
        self.last = self.last.max(segment.at);
        let (source, destination) = (segment.source, segment.destination);
        let ends = if source < destination { (source, destination) } else { (destination, source) };
        let key = (segment.point, ends.0, ends.1);
        if let Some(&index) = self.latest.get(&key) {
            let is_open = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
            match &mut self.connections[index] {
                Slot::Open(connection) if !connection.is_replaced_by(segment) => {
                    connection.handle_segment(segment);
                    return;
                }
                // Late segments of a closed connection.
                Slot::Explained(_) if !is_open => return,
                _ => self.finish(index, reader),
            }
        }
        let index = self.connections.len();
        let mut connection = Connection::new(segment);
        connection.handle_segment(segment);
        self.connections.push(Slot::Open(Box::new(connection)));
        self.open.push(index);
        self.latest.insert(key, index);
    }

    fn finish(&mut self, index: usize, reader: &SegmentReader) {
        if let Slot::Open(connection) = &self.connections[index] {
            let context = Context {
                number: index + 1,
                start: self.first.unwrap_or_default(),
                point: reader.point(connection.point()),
            };
            let explanation = ConnectionExplanation::new(connection, context);
            self.connections[index] = Slot::Explained(Box::new(explanation));
        }
    }

    /// Explains connections that have been closed for some time, so that memory does not grow with
    /// the number of connections.
    fn finish_closed(&mut self, now: Instant, reader: &SegmentReader) {
        let open = std::mem::take(&mut self.open);
        for index in open {
            match &self.connections[index] {
                Slot::Open(connection)
                    if connection.is_closed() && now.since(connection.times()[1]) > CLOSED =>
                {
                    self.finish(index, reader);
                }
                Slot::Open(_) => self.open.push(index),
                Slot::Explained(_) => {}
            }
        }
    }

    fn into_explanation(mut self, reader: &SegmentReader, is_interrupted: bool) -> Explanation {
        for index in 0..self.connections.len() {
            self.finish(index, reader);
        }
        let explained = self.connections.into_iter().filter_map(|slot| match slot {
            Slot::Explained(explanation) => Some(*explanation),
            Slot::Open(_) => None,
        });
        let mut connections: Vec<_> = explained.collect();
        find_proxies(&mut connections);
        let skipped = reader.skipped();
        Explanation {
            connections,
            duration_s: self.last.since(self.first.unwrap_or(self.last)).as_secs_f64(),
            segments: self.segments,
            other_packets: skipped.other,
            cut_packets: skipped.cut,
            is_interrupted,
        }
    }
}

/// Finds connections of the same ends at two points that a proxy between the points divides: their
/// sequence numbers differ, or the SYN is answered at the point near the sender before it could
/// come back from the other one. If the receive window limits the one next to the sender, the
/// proxy's buffer is full, and the other one is the cause.
fn find_proxies(connections: &mut [ConnectionExplanation]) {
    for index in 0..connections.len() {
        let near = &connections[index];
        if near.verdict.limit != Some(Limit::ReceiveWindow) {
            continue;
        }
        let leg = connections.iter().find(|far| {
            let same_ends = far.ends == near.ends && far.point != near.point;
            let sides = near.receiver_side_s.zip(far.receiver_side_s);
            let is_answered_between = sides.is_some_and(|(near, far)| near + 0.001 < far);
            let divided = is_answered_between
                || (0..2).any(|end| {
                    let numbers = [near.initial_numbers[end], far.initial_numbers[end]];
                    matches!(numbers, [Some(near), Some(far)] if near != far)
                });
            same_ends && divided
        });
        let Some(leg) = leg else { continue };
        let leg = Leg { number: leg.number, point: leg.point.clone(), limit: leg.verdict.limit };
        connections[index].set_proxy(leg);
    }
}
