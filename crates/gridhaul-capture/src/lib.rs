//! Analysis of packet captures: for each TCP connection the limit of its throughput with the
//! evidence, and an estimate of the link.
//!
//! [`Connection`] is a state machine without I/O: it receives the segments of a connection in the
//! order of the capture and divides the time of a transfer into waits of the sender. The rules in
//! `limit/`, one file for each cause, claim parts of these waits. The causes are those of T-RAT
//! (Zhang, Breslau, Paxson and Shenker, "On the characteristics and origins of internet flow
//! rates", SIGCOMM 2002, section 4) and of Siekkinen, Urvoy-Keller, Biersack and En-Najjary ("Root
//! cause analysis for long-lived TCP connections", CoNEXT 2005), with time shares in the place of
//! their scores.
//!
//! ```
//! use gridhaul_capture::{CaptureFile, Explanation, explain};
//!
//! # let bytes = include_bytes!("../tests/short.pcapng").to_vec();
//! let file = CaptureFile::new("short.pcapng", std::io::Cursor::new(bytes));
//! let explanation: Explanation = explain(vec![file], &mut |_progress| true)?;
//! for connection in &explanation.connections {
//!     println!("{}", connection.sentence());
//! }
//! # let limit = explanation.connections[0].verdict.limit;
//! # assert_eq!(limit, Some(gridhaul_capture::Limit::ReceiveWindow));
//! # Ok::<(), gridhaul_capture::CaptureError>(())
//! ```

#![forbid(unsafe_code)]

mod comparison;
mod connection;
mod connections;
mod csv;
mod error;
mod estimate;
mod explanation;
mod file;
mod limit;
mod quantity;
mod segment;
mod sequence;

pub use comparison::{
    Comparison, ConnectionComparison, Curve, Parting, Side, SimulatedFlow, compare,
};
pub use connection::{Connection, Ends, Message};
pub use connections::{Progress, explain, explain_with_history};
pub use error::CaptureError;
pub use estimate::{Estimate, Interval, LinkEstimate};
pub use explanation::{
    Confidence, ConnectionExplanation, Detail, Explanation, Position, Verdict, connections_csv,
};
pub use file::{CaptureFile, SegmentReader};
pub use limit::{Counters, Leg, Limit, Shares};
pub use segment::CapturedSegment;
pub use sequence::{
    MarkedEvent, Ranges, Sequence, SequenceBuilder, SequenceMark, StreamRange, read_sequence,
    sequence_csv,
};
