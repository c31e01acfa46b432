//! The packets of a connection as a table in CSV (RFC 4180).

use std::fmt::Write;

use super::{MarkedEvent, Ranges, Sequence};

/// The packets of a direction as CSV, with a line of names. A window is absent if its scale is
/// unknown.
#[must_use]
pub fn sequence_csv(sequence: &Sequence) -> String {
    let mut text = "kind,time_s,start_byte,end_byte\r\n".to_owned();
    let mut add = |kind: &str, ranges: &Ranges, has_end: bool| {
        for ((time, start), end) in ranges.time_s.iter().zip(&ranges.start).zip(&ranges.end) {
            let end = if has_end { end.to_string() } else { String::new() };
            let _ = write!(text, "{kind},{time},{start},{end}\r\n");
        }
    };
    let Sequence { first_transmissions, retransmissions, acknowledgements, sack, .. } = sequence;
    add("segment", first_transmissions, true);
    add("retransmission", retransmissions, true);
    add("acknowledgement_and_window", acknowledgements, sequence.has_window_scale);
    add("sack", sack, true);
    for mark in &sequence.marks {
        let number = |position: Option<f64>| position.map_or(String::new(), |n| n.to_string());
        let (start, end) = (number(mark.start), number(mark.end));
        let _ = write!(text, "{},{},{start},{end}\r\n", mark.event.name(), mark.time_s);
    }
    text
}

impl MarkedEvent {
    /// The name, as in JSON and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FastRetransmission => "fast_retransmission",
            Self::Timeout => "timeout",
            Self::ZeroWindow => "zero_window",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence::SequenceMark;

    #[test]
    fn an_unknown_window_is_an_empty_cell() {
        let range = |start: f64, end: f64| {
            let mut ranges = Ranges::default();
            ranges.push(0.5, start, end);
            ranges
        };
        let mark =
            SequenceMark { time_s: 0.75, event: MarkedEvent::ZeroWindow, start: None, end: None };
        let sequence = Sequence {
            first_transmissions: range(1.0, 101.0),
            acknowledgements: range(1.0, 65536.0),
            marks: vec![mark],
            ..Sequence::default()
        };
        let expected = "kind,time_s,start_byte,end_byte\r\nsegment,0.5,1,101\r\n\
                        acknowledgement_and_window,0.5,1,\r\nzero_window,0.75,,\r\n";
        assert_eq!(sequence_csv(&sequence), expected);
    }
}
