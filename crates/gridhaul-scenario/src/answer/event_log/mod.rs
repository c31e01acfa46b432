//! Event log of a connection: one JSON line for each change of its state, in the manner of qlog
//! (draft-ietf-quic-qlog-main-schema), with TCP's terms for QUIC's.

mod event;
mod reference;

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use serde::Serialize;

use super::{RecordedBytes, RecordedBytesWriter, RecordingFile};
use crate::scenario::FlowEnd;
use crate::units::Instant;

pub use event::{
    Cause, ConnectionEvent, LossRecoveryState, NodeCause, NodeEvent, NodeState, Timer,
};
pub use reference::{EventInfo, NAMES, NameInfo};

/// The event log of one connection, as JSON lines.
#[derive(Debug, Clone, PartialEq)]
pub struct EventLog {
    /// File name without its extension.
    pub name: String,
    /// The lines.
    pub jsonl: RecordedBytes,
}

/// Writes the events of one connection.
#[derive(Debug)]
pub struct EventLogWriter {
    name: String,
    out: RecordedBytesWriter,
    /// Buffer of a line, which keeps its capacity.
    line: String,
}

/// A line without its time, which is written as an exact decimal number.
#[derive(Serialize)]
struct EndLine<'a> {
    end: &'static str,
    #[serde(flatten)]
    event: &'a ConnectionEvent,
}

/// The same for a node on the path.
#[derive(Serialize)]
struct NodeLine<'a> {
    node: &'a str,
    #[serde(flatten)]
    event: &'a NodeEvent,
}

impl EventLogWriter {
    /// The log of the flow `name`, in a file or, without one, in memory.
    #[must_use]
    pub fn new(name: &str, file: Option<Arc<RecordingFile>>) -> Self {
        let out = RecordedBytesWriter::new(file);
        Self { name: name.to_owned(), out, line: String::new() }
    }

    /// Appends an event of an end of the connection.
    pub fn push(&mut self, time: Instant, end: FlowEnd, event: &ConnectionEvent) {
        let end = match end {
            FlowEnd::From => "from",
            FlowEnd::To => "to",
        };
        self.write(time, &EndLine { end, event });
    }

    /// Appends an event of a node on the path of the connection.
    pub fn push_node(&mut self, time: Instant, node: &str, event: &NodeEvent) {
        self.write(time, &NodeLine { node, event });
    }

    fn write(&mut self, time: Instant, line: &impl Serialize) {
        let nanos = time.as_nanos();
        let (seconds, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        // An event consists of numbers and names, so it always has a JSON form.
        let rest = serde_json::to_string(line).unwrap_or_default();
        self.line.clear();
        let rest = rest.trim_start_matches('{');
        let _ = writeln!(self.line, "{{\"time_s\":{seconds}.{fraction:09},{rest}");
        self.out.append(self.line.as_bytes());
    }

    /// The log.
    ///
    /// # Errors
    /// The file could not be written, such as on a full disk.
    pub fn into_log(self) -> io::Result<EventLog> {
        Ok(EventLog { name: self.name, jsonl: self.out.finish()? })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn a_line_is_json_with_the_time_in_nanoseconds() {
        let mut writer = EventLogWriter::new("up", None);
        let event = ConnectionEvent::TimerExpired { timer: Timer::Persist, rto_s: Some(0.5) };
        writer.push(Instant::from_nanos(12_000_000_005), FlowEnd::To, &event);
        let event = NodeEvent::NodeTimerExpired { timeouts: 1 };
        writer.push_node(Instant::from_nanos(12_000_000_006), "relay \"1\"", &event);
        let mut line = Vec::new();
        writer.into_log().unwrap().jsonl.copy_to(&mut line).unwrap();
        let expected = "{\"time_s\":12.000000005,\"end\":\"to\",\"event\":\"timer_expired\",\
                        \"timer\":\"persist\",\"rto_s\":0.5}\n\
                        {\"time_s\":12.000000006,\"node\":\"relay \\\"1\\\"\",\
                        \"event\":\"node_timer_expired\",\"timeouts\":1}\n";
        assert_eq!(String::from_utf8(line).unwrap(), expected);
    }

    /// The reference is written by hand, since an event is no part of a schema.
    #[test]
    fn the_reference_lists_the_fields_of_every_event() {
        let of_ends = ConnectionEvent::examples().into_iter().map(serde_json::to_value);
        let of_ends: Vec<Value> = of_ends.map(Result::unwrap).collect();
        let of_nodes = NodeEvent::examples().into_iter().map(serde_json::to_value);
        let of_nodes: Vec<Value> = of_nodes.map(Result::unwrap).collect();
        assert_eq!(
            (of_ends.len(), of_nodes.len()),
            (EventInfo::ALL.len(), EventInfo::OF_NODES.len())
        );
        let examples = of_ends.into_iter().chain(of_nodes);
        for (example, info) in examples.zip(EventInfo::ALL.iter().chain(EventInfo::OF_NODES)) {
            let Value::Object(fields) = example else { panic!("{example:?} is no object") };
            assert_eq!(fields["event"], info.name);
            let written: BTreeSet<_> = fields.keys().map(String::as_str).collect();
            let listed = info.fields.iter().map(|field| field.name);
            assert_eq!(written, listed.chain(["event"]).collect(), "{}", info.name);
        }
    }
}
