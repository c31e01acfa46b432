//! The events of the sender that a diagram of packets marks: of an event log, or of a capture.

use std::io;

use gridhaul_capture::{MarkedEvent, SequenceMark};
use gridhaul_scenario::answer::RecordedBytes;
use serde::{Deserialize, Serialize};

/// An event of the sender.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Event {
    time_s: f64,
    event: String,
    /// Positions of the segments that are lost or retransmitted, if they are known.
    #[serde(default)]
    first_seq: Option<f64>,
    #[serde(default)]
    end_seq: Option<f64>,
    #[serde(default)]
    cause: Option<String>,
    /// The timer that has expired.
    #[serde(default)]
    timer: Option<String>,
    /// The state of loss recovery that begins.
    #[serde(default)]
    new: Option<String>,
}

/// Events that are marked.
const MARKED: [&str; 5] = [
    "segments_lost",
    "timer_expired",
    "loss_recovery_state_updated",
    "send_window_closed",
    "send_window_opened",
];

/// Largest number of marks: more cannot be read.
const EVENTS_MAX: usize = 100_000;

impl Event {
    /// The marked events of the sender in an event log.
    pub(crate) fn of_log(jsonl: &RecordedBytes) -> io::Result<Vec<Self>> {
        let mut bytes = Vec::new();
        jsonl.copy_to(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let marked = MARKED.map(|event| format!("\"end\":\"from\",\"event\":\"{event}\""));
        // Most lines of a log are others: only the marked ones are parsed.
        let lines = text.lines().filter(|line| marked.iter().any(|mark| line.contains(mark)));
        let events = lines.take(EVENTS_MAX).map(serde_json::from_str);
        events.collect::<Result<_, _>>().map_err(io::Error::other)
    }

    /// The events that the packets of a capture show.
    pub(crate) fn of_marks(marks: &[SequenceMark]) -> Vec<Self> {
        marks.iter().take(EVENTS_MAX).map(Self::of_mark).collect()
    }

    fn of_mark(mark: &SequenceMark) -> Self {
        let SequenceMark { time_s, event, start, end } = *mark;
        let (event, cause, timer) = match event {
            MarkedEvent::FastRetransmission => ("segments_lost", Some("acknowledgements"), None),
            MarkedEvent::Timeout => ("timer_expired", None, Some("retransmission_or_probe")),
            MarkedEvent::ZeroWindow => ("send_window_closed", None, None),
        };
        Self {
            time_s,
            event: event.to_owned(),
            first_seq: start,
            end_seq: end,
            cause: cause.map(str::to_owned),
            timer: timer.map(str::to_owned),
            new: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_and_timeouts_of_the_sender_are_marked() {
        let log = "{\"time_s\":1.5,\"end\":\"from\",\"event\":\"segments_lost\",\"first_seq\":1,\
                   \"end_seq\":1461,\"segments\":1,\"cause\":\"fast_retransmit\"}\n\
                   {\"time_s\":1.6,\"end\":\"from\",\"event\":\"rtt_sampled\",\"rtt_s\":0.1}\n\
                   {\"time_s\":1.7,\"end\":\"to\",\"event\":\"timer_expired\",\
                   \"timer\":\"persist\"}\n\
                   {\"time_s\":1.8,\"end\":\"from\",\"event\":\"timer_expired\",\
                   \"timer\":\"retransmission\",\"rto_s\":0.5}\n";
        let events = Event::of_log(&RecordedBytes::from(log.as_bytes().to_vec())).unwrap();
        assert_eq!(events.len(), 2);
        assert_eq!((events[0].first_seq, events[0].end_seq), (Some(1.0), Some(1461.0)));
        assert_eq!(events[1].timer.as_deref(), Some("retransmission"));
    }
}
