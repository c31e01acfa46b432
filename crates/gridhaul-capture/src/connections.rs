//! The connections of a capture.

use std::net::SocketAddr;

use gridhaul_core::tcp::Flags;
use gridhaul_scenario::units::{Duration, Instant};
use indexmap::IndexMap;

use crate::explanation::Context;
use crate::limit::Leg;
use crate::{
    CaptureError, CaptureFile, CapturedSegment, Connection, ConnectionExplanation, Ends,
    Explanation, Limit, SegmentReader,
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
    explain_in(Table::default(), files, progress)
}

/// Explains captures as [`explain`] does, and records the progress of each connection over time,
/// which [`compare`](crate::compare) needs: up to 100 kB for each direction of a connection.
///
/// # Errors
/// A file that is no capture, or is damaged.
pub fn explain_with_history(
    files: Vec<CaptureFile>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Explanation, CaptureError> {
    explain_in(Table { has_history: true, ..Table::default() }, files, progress)
}

fn explain_in(
    mut table: Table,
    files: Vec<CaptureFile>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Explanation, CaptureError> {
    let mut reader = SegmentReader::open(files)?;
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

/// Time after which a closed connection is explained and its state dropped: late segments and
/// retransmissions of FIN arrive before.
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
    has_history: bool,
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
            match &mut self.connections[index] {
                Slot::Open(connection) if !connection.is_replaced_by(segment) => {
                    connection.handle_segment(segment);
                    return;
                }
                // Late segments of a closed connection.
                Slot::Explained(_) if !segment.flags.has(Flags::SYN) => return,
                _ => self.finish(index, reader),
            }
        }
        let index = self.connections.len();
        let mut connection = Connection::new(segment);
        if self.has_history {
            connection.record_history();
        }
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
                point_number: connection.point(),
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
            first_at: self.first.unwrap_or_default(),
            duration_s: self.last.since(self.first.unwrap_or(self.last)).as_secs_f64(),
            segments: self.segments,
            other_packets: skipped.other,
            cut_packets: skipped.cut,
            untimed_packets: skipped.untimed,
            is_interrupted,
        }
    }
}

/// Finds connections of the same ends at two points that a proxy between the points divides. If the
/// receive window limits the one next to the sender, the proxy's buffer is full, and the other one
/// is the cause.
fn find_proxies(connections: &mut [ConnectionExplanation]) {
    let mut by_ends: IndexMap<Ends, Vec<usize>> = IndexMap::new();
    for (index, connection) in connections.iter().enumerate() {
        by_ends.entry(connection.ends).or_default().push(index);
    }
    for index in 0..connections.len() {
        let near = &connections[index];
        if near.verdict.limit != Some(Limit::ReceiveWindow) {
            continue;
        }
        let same_ends = by_ends.get(&near.ends).into_iter().flatten();
        let leg = same_ends.map(|other| &connections[*other]).find(|far| are_divided(near, far));
        let Some(leg) = leg else { continue };
        let leg = Leg { number: leg.number, point: leg.point.clone(), limit: leg.verdict.limit };
        connections[index].set_proxy(leg);
    }
}

/// Whether a proxy divides connections of the same ends: at two points and at the same time, they
/// have different sequence numbers, or the SYN is answered between the points.
fn are_divided(near: &ConnectionExplanation, far: &ConnectionExplanation) -> bool {
    let [near_end, far_end] = [near, far].map(ConnectionExplanation::last_at);
    // Hosts use their ports again.
    let is_concurrent = near.first_at <= far_end && far.first_at <= near_end;
    let differ = (0..2).any(|end| {
        let numbers = [near.initial_numbers[end], far.initial_numbers[end]];
        matches!(numbers, [Some(near), Some(far)] if near != far)
    });
    near.point_number != far.point_number
        && is_concurrent
        && (differ || is_answered_between(near, far))
}

/// Whether the answer to SYN arrives at the first point before it could come back from the second
/// one. The first one is not farther from the sender: at a point next to the receiver, the answer
/// always arrives sooner.
fn is_answered_between(near: &ConnectionExplanation, far: &ConnectionExplanation) -> bool {
    const TOLERANCE: Duration = Duration::from_millis(1);
    near.sides.zip(far.sides).is_some_and(|(near, far)| {
        let [near_sender, near_receiver] = near;
        let [far_sender, far_receiver] = far;
        near_receiver + TOLERANCE < far_receiver && near_sender <= far_sender + TOLERANCE
    })
}
