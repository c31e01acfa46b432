//! The observation of a run: captured packets, samples of the window, and totals.

use gridhaul_scenario::units::{Duration, Instant};
use indexmap::IndexMap;

use crate::case::{Endpoint, Expectation};

/// A packet, captured at one host as it left or arrived. Sequence numbers are relative: SYN is 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Time of the capture.
    pub at: Instant,
    /// The host at which the packet was captured.
    pub captured_at: Endpoint,
    /// The host that sent the packet.
    pub from: Endpoint,
    /// SYN flag.
    pub syn: bool,
    /// FIN flag.
    pub fin: bool,
    /// RST flag.
    pub rst: bool,
    /// Sequence number.
    pub seq: u64,
    /// Bytes of payload.
    pub len: u64,
    /// Whether a part of the segment was sent before.
    pub retransmitted: bool,
    /// Acknowledgement number, if ACK is set.
    pub ack: Option<u64>,
    /// Selectively acknowledged ranges.
    pub sack: Vec<(u64, u64)>,
    /// Receive window in bytes.
    pub window: u32,
    /// Timestamp value and echo reply (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    /// Whether SACK-permitted is set (RFC 2018).
    pub sack_permitted: bool,
}

/// State of a sender after an event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Time of the sample.
    pub at: Instant,
    /// Congestion window in bytes.
    pub cwnd: u32,
    /// Slow-start threshold in bytes.
    pub ssthresh: u32,
    /// Bytes sent and not acknowledged.
    pub flight: u64,
}

/// A change of the connection state of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Time of the change.
    pub at: Instant,
    /// The host.
    pub end: Endpoint,
    /// The new state, with its name in RFC 9293 without hyphens.
    pub state: String,
}

/// A total of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
}

/// The observation of a run.
#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// Packets, in order of time.
    pub packets: Vec<Packet>,
    /// States of the client's window, in order of time.
    pub samples: Vec<Sample>,
    /// Changes of state.
    pub changes: Vec<Change>,
    /// Whether the server was a script, whose segments are shown only on request.
    pub scripted: bool,
    /// Size of a full segment in bytes.
    pub mss: u32,
    /// Totals of the run, by name.
    pub totals: IndexMap<String, Value>,
    /// Violations of invariants.
    pub violations: Vec<String>,
    /// Largest lateness of the backend itself: zero on a virtual clock.
    pub late: Duration,
}

impl Packet {
    /// Whether the packet is a pure acknowledgement.
    #[must_use]
    pub const fn is_pure_ack(&self) -> bool {
        self.len == 0 && !self.syn && !self.fin && !self.rst
    }

    /// The packet as text, such as `> 1:1001 retransmitted`, `< ack 1001 sack 2001:3001`, `> FIN
    /// 1001`.
    #[must_use]
    pub fn row(&self, expect: &Expectation) -> String {
        let mut words = vec![(if self.from == Endpoint::Client { ">" } else { "<" }).to_owned()];
        let flags = [(self.syn, "SYN"), (self.rst, "RST")];
        words.extend(flags.iter().filter(|flag| flag.0).map(|flag| flag.1.to_owned()));
        if self.len > 0 {
            words.push(format!("{}:{}", self.seq, self.seq + self.len));
        }
        if self.fin {
            words.push(format!("FIN {}", self.seq + self.len));
        }
        if self.retransmitted {
            words.push("retransmitted".to_owned());
        }
        if let Some(ack) = self.ack
            && (self.len == 0 && !self.fin && !self.rst || expect.shows("ack"))
        {
            words.push(format!("ack {ack}"));
        }
        words.extend(self.sack.iter().map(|(left, right)| format!("sack {left}:{right}")));
        if expect.shows("win") {
            words.push(format!("win {}", self.window));
        }
        if let Some((_, echo)) = self.timestamps {
            if expect.shows("echo") {
                words.push(format!("echo {echo}"));
            } else if expect.shows("options") {
                words.push("timestamps".to_owned());
            }
        }
        if self.sack_permitted && expect.shows("options") {
            words.push("sackok".to_owned());
        }
        words.join(" ")
    }

    fn is_shown(&self, expect: &Expectation, scripted: bool) -> bool {
        let (sent, received) = (expect.shows("sent"), expect.shows("received"));
        let (data, acks) = (expect.shows("data"), expect.shows("acks"));
        let direction = if sent == received {
            sent || !scripted || self.from == Endpoint::Client
        } else {
            (self.from == Endpoint::Client) == sent
        };
        let kind = data == acks || self.is_pure_ack() == acks;
        let kind = kind && (self.retransmitted || !expect.shows("retransmissions"));
        if expect.shows("states") && ![sent, received, data, acks].contains(&true) {
            return false;
        }
        self.captured_at == expect.captured_at && direction && kind
    }

    /// Whether `next` continues this packet in the same burst.
    fn continues_in(&self, next: &Self, last: Instant, end: u64) -> bool {
        let plain = |packet: &Self| packet.len > 0 && !packet.fin && !packet.syn;
        plain(self)
            && plain(next)
            && (self.from, self.retransmitted) == (next.from, next.retransmitted)
            && self.sack.is_empty()
            && next.sack.is_empty()
            && next.seq == end
            && next.at.since(last) <= Duration::from_micros(50)
    }
}

impl Observation {
    /// Times in milliseconds and packets as text, in the form that an expectation selects. A burst
    /// of segments is one row: `> 1:5001 in 5`.
    #[must_use]
    pub fn rows(&self, expect: &Expectation) -> Vec<(f64, String)> {
        let ms = |at: Instant| at.as_secs_f64() * 1e3;
        let mut rows: Vec<(f64, String)> = Vec::new();
        let shown: Vec<_> =
            self.packets.iter().filter(|packet| packet.is_shown(expect, self.scripted)).collect();
        let mut index = 0;
        while index < shown.len() {
            let first = shown[index];
            let (mut merged, mut last, mut count) = (first.clone(), first.at, 1);
            while let Some(next) = shown.get(index + count)
                && !expect.shows("each")
                && first.continues_in(next, last, merged.seq + merged.len)
            {
                merged.len += next.len;
                last = next.at;
                count += 1;
            }
            let suffix = if count > 1 { format!(" in {count}") } else { String::new() };
            rows.push((ms(first.at), merged.row(expect) + &suffix));
            index += count;
        }
        if expect.shows("states") {
            rows.extend(self.changes.iter().map(|change| {
                let end = if change.end == Endpoint::Client { "client" } else { "server" };
                (ms(change.at), format!("{end} {}", change.state))
            }));
            rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        if let Some([from, to]) = expect.interval_ms {
            rows.retain(|row| (from..=to).contains(&row.0));
        }
        rows
    }

    /// The samples of an interval, including the last one before it.
    pub fn samples_in(&self, from: Instant, to: Instant) -> impl Iterator<Item = &Sample> {
        let before = self.samples.partition_point(|sample| sample.at <= from);
        let until = self.samples.partition_point(|sample| sample.at <= to);
        self.samples[before.saturating_sub(1)..until].iter()
    }

    /// Rate at which the client sent payload during an interval, in kbit/s.
    #[must_use]
    pub fn rate_in(&self, from: Instant, to: Instant) -> f64 {
        let sent = |packet: &&Packet| {
            packet.from == Endpoint::Client
                && packet.captured_at == Endpoint::Client
                && packet.at > from
                && packet.at <= to
        };
        let bytes: u64 = self.packets.iter().filter(sent).map(|packet| packet.len).sum();
        bytes as f64 * 8.0 / 1e3 / to.since(from).as_secs_f64()
    }
}
