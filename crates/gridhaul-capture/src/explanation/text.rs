//! The explanation as text.

use std::fmt::Write;

use super::{Confidence, ConnectionExplanation, Detail, Explanation};
use crate::Estimate;
use crate::quantity::{bit_rate, bytes, seconds};

impl Explanation {
    /// A sentence for each connection, and notes on the capture.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for connection in &self.connections {
            let _ = writeln!(text, "{}", connection.sentence());
            for note in &connection.notes {
                let _ = writeln!(text, "   note: {note}");
            }
        }
        if self.connections.is_empty() {
            let _ = writeln!(text, "The capture has no TCP connections.");
        }
        for note in self.notes() {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }

    /// Notes on the whole capture.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let cut = (self.cut_packets > 0).then(|| {
            format!(
                "{} packets were captured without their TCP header: capture at least 96 bytes of \
                 each (`tcpdump -s 128`)",
                self.cut_packets
            )
        });
        let untimed = (self.untimed_packets > 0).then(|| {
            format!(
                "{} packets have no time (simple packet blocks) and are left out: capture with \
                 times, as `tcpdump` and `dumpcap` do",
                self.untimed_packets
            )
        });
        cut.into_iter().chain(untimed).collect()
    }
}

impl ConnectionExplanation {
    /// One sentence: the connection, its limit and the evidence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let limit = match self.verdict.limit {
            Some(limit) => {
                let certainty = match self.verdict.confidence {
                    Confidence::High => "",
                    Confidence::Moderate | Confidence::Undecided => "probably ",
                };
                format!("{certainty}limited by {}", limit.noun())
            }
            None => "undecided".to_owned(),
        };
        format!("{}: {limit}: {}.", self.title(), self.verdict.evidence)
    }

    fn title(&self) -> String {
        let (from, to) = if self.is_upload {
            (self.ends.client, self.ends.server)
        } else {
            (self.ends.server, self.ends.client)
        };
        let rate =
            self.goodput_bit_per_s.map_or(String::new(), |rate| format!(", {}", bit_rate(rate)));
        let bytes = bytes(self.counters.payload_byte as f64);
        format!("{}. {from} → {to} ({bytes} in {}{rate})", self.number, seconds(self.duration_s))
    }

    /// All facts about the connection, one a line.
    #[must_use]
    pub fn details(&self) -> String {
        let mut text = format!("{}\n\n", self.sentence());
        let mut previous = "";
        for Detail { name, value } in self.detail_rows() {
            // The shares of the time have their name in the first line.
            let shown = if name == SHARE && name == previous { "" } else { name };
            let _ = writeln!(text, "  {shown:<24}{value}");
            previous = name;
        }
        text
    }

    /// All facts about the connection.
    #[must_use]
    pub fn detail_rows(&self) -> Vec<Detail> {
        let mut rows = vec![Detail::new("captured at", self.position.name().to_owned())];
        let mut line = |name: &'static str, value: String| rows.push(Detail::new(name, value));
        for (limit, share) in &self.shares.limits {
            line(SHARE, format!("{:>5.1} %  {}", 100.0 * share, limit.noun()));
        }
        if self.shares.unexplained > 0.0 {
            let share = 100.0 * self.shares.unexplained;
            line(SHARE, format!("{share:>5.1} %  pacing or the application"));
        }
        let unknown = || "unknown".to_owned();
        line("round trip, smallest", self.round_trip_s.map_or_else(unknown, seconds));
        line("round trip, mean", self.round_trip_mean_s.map_or_else(unknown, seconds));
        line("largest flight", bytes(self.counters.in_flight_max_byte as f64));
        let window = self.counters.window_max_byte;
        line("largest receive window", window.map_or_else(unknown, |window| bytes(window as f64)));
        line("packets with data", self.counters.packets.to_string());
        line("lost packets", self.counters.lost_packets.to_string());
        line("timeouts", self.counters.timeouts.to_string());
        let link = &self.link;
        line("rate of the bottleneck", estimate(link.rate_bit_per_s, bit_rate));
        let has_transmission = link.rate_bit_per_s.is_none() && link.round_trip_s.is_some();
        let with = if has_transmission { ", with transmission times" } else { "" };
        line("propagation, round trip", estimate(link.round_trip_s, seconds) + with);
        line("loss", estimate(link.loss, |loss| format!("{:.3} %", 100.0 * loss)));
        line(
            "mean burst of losses",
            estimate(link.burst_packets, |length| format!("{length:.2} packets")),
        );
        let buffer = match link.buffer_byte {
            Some(_) => estimate(link.buffer_byte, bytes),
            None => format!("unknown, for at least {}", seconds(link.queueing_max_s)),
        };
        line("buffer", buffer);
        for note in &self.notes {
            line("note", note.clone());
        }
        rows
    }
}

/// Name of the shares of the time.
const SHARE: &str = "share of the time";

impl Detail {
    const fn new(name: &'static str, value: String) -> Self {
        Self { name, value }
    }
}

/// An estimate with its interval.
fn estimate(estimate: Option<Estimate>, text: impl Fn(f64) -> String) -> String {
    estimate.map_or_else(
        || "unknown".to_owned(),
        |Estimate { value, interval }| {
            let (low, high) = (text(interval.low), text(interval.high));
            let level = interval
                .level
                .map_or_else(String::new, |level| format!(", {:.0} %", 100.0 * level));
            format!("{} ({low} to {high}{level})", text(value))
        },
    )
}
