//! The packets of one direction of a connection over time, for time-sequence diagrams.

mod builder;
mod table;

use std::net::SocketAddr;

use gridhaul_scenario::units::Instant;
use serde::Serialize;

use crate::{
    CaptureError, CaptureFile, CapturedSegment, Connection, ConnectionExplanation, SegmentReader,
};

pub use builder::{SequenceBuilder, StreamRange};
pub use table::sequence_csv;

/// Ranges of the stream over time: each has a time, a first position and an end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranges {
    /// Times in s.
    pub time_s: Vec<f64>,
    /// First positions.
    pub start: Vec<f64>,
    /// Positions after the last byte.
    pub end: Vec<f64>,
}

/// Packets that the sender sends and receives. Positions are relative: SYN is 0, data begins at 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sequence {
    /// Segments that are sent for the first time.
    pub first_transmissions: Ranges,
    /// Segments that were sent before.
    pub retransmissions: Ranges,
    /// From the acknowledged position to the end of the offered window.
    pub acknowledgements: Ranges,
    /// Selectively acknowledged ranges.
    pub sack: Ranges,
    /// Losses, timeouts and closed windows.
    pub marks: Vec<SequenceMark>,
    /// Whether the scale of the offered window is known: both SYNs were captured.
    pub has_window_scale: bool,
}

/// An event of the sender that its packets show.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SequenceMark {
    /// Time in s.
    pub time_s: f64,
    /// The event.
    pub event: MarkedEvent,
    /// First position of the retransmitted segment.
    pub start: Option<f64>,
    /// Its end.
    pub end: Option<f64>,
}

/// Events of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkedEvent {
    /// A retransmission that acknowledgements caused.
    FastRetransmission,
    /// A retransmission of a timer or of a probe, which packets do not distinguish.
    Timeout,
    /// The receiver offers no window.
    ZeroWindow,
}

/// Reads the packets of one direction of an explained connection from the captures in which it was
/// found. Times are those since `origin`.
///
/// # Errors
/// A file that is no capture, or is damaged.
pub fn read_sequence(
    files: Vec<CaptureFile>,
    explained: &ConnectionExplanation,
    is_upload: bool,
    origin: Instant,
) -> Result<Sequence, CaptureError> {
    let mut reader = SegmentReader::open(files)?;
    let ends = explained.ends;
    let sender = if is_upload { ends.client } else { ends.server };
    let mut builder = SequenceBuilder::new(origin);
    let mut connection: Option<Connection> = None;
    while let Some(segment) = reader.next_segment()? {
        let has_ends = |source: SocketAddr, destination: SocketAddr| {
            (segment.source, segment.destination) == (source, destination)
        };
        let is_within = connection.as_ref().map_or(segment.at == explained.first_at, |own| {
            segment.at + own.set_back() <= explained.last_at
        });
        let is_own = segment.point == explained.point_number
            && is_within
            && (has_ends(ends.client, ends.server) || has_ends(ends.server, ends.client));
        if !is_own {
            continue;
        }
        let connection = connection.get_or_insert_with(|| Connection::new(&segment));
        let counted = connection.segments();
        let direction = usize::from(!is_upload);
        let before = *connection.directions()[direction].traffic();
        connection.handle_segment(&segment);
        if connection.segments() == counted {
            // The copy of a packet after a router.
            continue;
        }
        // The clock of the capture may have been set back.
        let segment = CapturedSegment { at: connection.times()[1], ..segment };
        let range = builder.handle_segment(&segment, segment.source == sender);
        let after = connection.directions()[direction].traffic();
        let event = if after.timeouts > before.timeouts {
            Some(MarkedEvent::Timeout)
        } else if after.retransmissions > before.retransmissions {
            Some(MarkedEvent::FastRetransmission)
        } else if after.zero_windows > before.zero_windows {
            Some(MarkedEvent::ZeroWindow)
        } else {
            None
        };
        if let Some(event) = event {
            builder.mark(segment.at, event, range);
        }
    }
    Ok(builder.finish())
}

impl Ranges {
    fn push(&mut self, time_s: f64, start: f64, end: f64) {
        self.time_s.push(time_s);
        self.start.push(start);
        self.end.push(end);
    }
}
