//! What an arm has seen.

use gridhaul_scenario::units::{Duration, Instant};
use indexmap::IndexMap;

use crate::case::{End, Expect};

/// A packet, seen at one end as it left or arrived. Numbers are relative: SYN is 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// When.
    pub at: Instant,
    /// The end at which it was seen.
    pub seen_at: End,
    /// The end that sent it.
    pub from: End,
    /// Control bits.
    pub syn: bool,
    /// No more data.
    pub fin: bool,
    /// Reset.
    pub rst: bool,
    /// First number.
    pub seq: u64,
    /// Bytes of payload.
    pub len: u64,
    /// Part of it was sent before.
    pub again: bool,
    /// Acknowledgement, if it carries one.
    pub ack: Option<u64>,
    /// Selectively acknowledged ranges.
    pub sack: Vec<(u64, u64)>,
    /// Offered window in bytes.
    pub window: u32,
    /// Timestamp and echo.
    pub timestamps: Option<(u32, u32)>,
    /// Whether it offers selective acknowledgements.
    pub sack_permitted: bool,
}

/// State of one end after something happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// Congestion window in bytes.
    pub cwnd: u32,
    /// Slow-start threshold in bytes.
    pub ssthresh: u32,
    /// Bytes sent and not acknowledged.
    pub flight: u64,
}

/// A change of the state of an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// When.
    pub at: Instant,
    /// Which end.
    pub end: End,
    /// The new state.
    pub state: String,
}

/// A quantity of a whole run.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
}

/// What an arm has seen.
#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// Packets, in order of time.
    pub packets: Vec<Packet>,
    /// States of the client's window, in order of time.
    pub samples: Vec<Sample>,
    /// Changes of state.
    pub changes: Vec<Change>,
    /// Whether the server was a script, whose segments are shown only when asked for.
    pub scripted: bool,
    /// Full segment in bytes.
    pub mss: u32,
    /// Quantities of the whole run.
    pub totals: IndexMap<String, Value>,
    /// What may never happen and did.
    pub violations: Vec<String>,
    /// By how much the arm itself was late at most: zero on a virtual clock.
    pub late: Duration,
}

impl Packet {
    /// Whether it only acknowledges.
    #[must_use]
    pub const fn is_pure_ack(&self) -> bool {
        self.len == 0 && !self.syn && !self.fin && !self.rst
    }

    /// The packet in words, such as `> 1:1001 again`, `< ack 1001 sack 2001:3001`, `> FIN 1001`.
    #[must_use]
    pub fn row(&self, expect: &Expect) -> String {
        let mut words = vec![(if self.from == End::Client { ">" } else { "<" }).to_owned()];
        let flags = [(self.syn, "SYN"), (self.rst, "RST")];
        words.extend(flags.iter().filter(|flag| flag.0).map(|flag| flag.1.to_owned()));
        if self.len > 0 {
            words.push(format!("{}:{}", self.seq, self.seq + self.len));
        }
        if self.fin {
            words.push(format!("FIN {}", self.seq + self.len));
        }
        if self.again {
            words.push("again".to_owned());
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

    fn is_shown(&self, expect: &Expect, scripted: bool) -> bool {
        let (sent, received) = (expect.shows("sent"), expect.shows("received"));
        let (data, acks) = (expect.shows("data"), expect.shows("acks"));
        let direction = if sent == received {
            sent || !scripted || self.from == End::Client
        } else {
            (self.from == End::Client) == sent
        };
        let kind = data == acks || self.is_pure_ack() == acks;
        let kind = kind && (self.again || !expect.shows("again"));
        if expect.shows("states") && ![sent, received, data, acks].contains(&true) {
            return false;
        }
        self.seen_at == expect.seen_from && direction && kind
    }

    /// Whether `next` only continues this one.
    fn goes_on_in(&self, next: &Self, last: Instant, end: u64) -> bool {
        let plain = |packet: &Self| packet.len > 0 && !packet.fin && !packet.syn;
        plain(self)
            && plain(next)
            && (self.from, self.again) == (next.from, next.again)
            && self.sack.is_empty()
            && next.sack.is_empty()
            && next.seq == end
            && next.at.since(last) <= Duration::from_micros(50)
    }
}

impl Observation {
    /// Times in milliseconds and packets in words, as an expectation wants them shown. Data that
    /// leaves without a pause is one row: `> 1:5001 in 5`.
    #[must_use]
    pub fn rows(&self, expect: &Expect) -> Vec<(f64, String)> {
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
                && first.goes_on_in(next, last, merged.seq + merged.len)
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
                let end = if change.end == End::Client { "client" } else { "server" };
                (ms(change.at), format!("{end} {}", change.state))
            }));
            rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        if let Some([from, to]) = expect.between {
            rows.retain(|row| (from..=to).contains(&row.0));
        }
        rows
    }

    /// The samples that hold during a stretch of time, the one before it included.
    pub fn samples_in(&self, from: Instant, to: Instant) -> impl Iterator<Item = &Sample> {
        let before = self.samples.partition_point(|sample| sample.at <= from);
        let until = self.samples.partition_point(|sample| sample.at <= to);
        self.samples[before.saturating_sub(1)..until].iter()
    }

    /// Payload that the client sent during a stretch of time, in kbit/s.
    #[must_use]
    pub fn rate_in(&self, from: Instant, to: Instant) -> f64 {
        let sent = |packet: &&Packet| {
            packet.from == End::Client
                && packet.seen_at == End::Client
                && packet.at > from
                && packet.at <= to
        };
        let bytes: u64 = self.packets.iter().filter(sent).map(|packet| packet.len).sum();
        bytes as f64 * 8.0 / 1e3 / to.since(from).as_secs_f64()
    }
}
