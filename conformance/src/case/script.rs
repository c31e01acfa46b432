//! The input of a case: actions of the applications, and segments of a scripted peer.
//!
//! ```text
//! 0    write 10 segments        the client's application, if no host is given
//! 20   server read 1000
//! 100  close
//! 30   < 1:1001 ack 1 win 5000  a segment from a scripted peer; numbers are relative to SYN
//! ```

use gridhaul_core::tcp::Flags;
use gridhaul_scenario::units::Instant;

use super::Endpoint;

/// An action and its time.
#[derive(Debug, Clone)]
pub struct InputEvent {
    /// Time of the action.
    pub at: Instant,
    /// Host of the action.
    pub end: Endpoint,
    /// The action.
    pub action: Action,
}

/// An action of an application or of a scripted peer.
#[derive(Debug, Clone)]
pub enum Action {
    /// Writes this number of bytes; [`u64::MAX`] is an unlimited amount.
    Write(u64),
    /// Closes the connection after all written data.
    Close,
    /// From now on, reads only with [`Self::Read`].
    ReadOnDemand,
    /// Reads this number of bytes.
    Read(u64),
    /// A segment arrives from the scripted peer.
    Receive(ScriptedSegment),
}

/// A segment of the script, with relative sequence numbers.
#[derive(Debug, Clone, Default)]
pub struct ScriptedSegment {
    /// Control bits.
    pub flags: Flags,
    /// Sequence number; by default, the next one after all segments of the script so far.
    pub seq: Option<i64>,
    /// Bytes of payload.
    pub len: u32,
    /// Acknowledgement number; by default, that of the previous segment.
    pub ack: Option<i64>,
    /// Receive window; by default, that of the previous segment.
    pub window: Option<u32>,
    /// Selectively acknowledged ranges.
    pub sack: Vec<(i64, i64)>,
    /// Timestamp value and echo reply (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    /// Whether SACK-permitted is set (RFC 2018).
    pub sack_permitted: bool,
}

/// Parses the input of a case; returns the actions in order of time.
pub(super) fn parse(text: &str, mss: u64) -> Result<Vec<InputEvent>, String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let lines = lines.filter(|line| !line.is_empty());
    let mut steps = lines
        .map(|line| {
            step(line, mss).ok_or_else(|| {
                format!(
                    "cannot parse the input `{line}`; expected for example `20 server read 1000`"
                )
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    steps.sort_by_key(|step| step.at);
    Ok(steps)
}

fn step(line: &str, mss: u64) -> Option<InputEvent> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let at = Instant::from_secs_f64(words.remove(0).parse::<f64>().ok()? / 1e3);
    let end = match *words.first()? {
        "server" => Endpoint::Server,
        _ => Endpoint::Client,
    };
    if matches!(words[0], "client" | "server") {
        words.remove(0);
    }
    let action = match words.as_slice() {
        ["write", "forever"] => Action::Write(u64::MAX),
        ["write", count, "segments"] => Action::Write(count.parse::<u64>().ok()? * mss),
        ["write", bytes] => Action::Write(bytes.parse().ok()?),
        ["close"] => Action::Close,
        ["read", "on", "demand"] => Action::ReadOnDemand,
        ["read", bytes] => Action::Read(bytes.parse().ok()?),
        ["<", rest @ ..] => Action::Receive(crafted(rest)?),
        _ => return None,
    };
    Some(InputEvent { at, end, action })
}

fn crafted(words: &[&str]) -> Option<ScriptedSegment> {
    let mut made = ScriptedSegment { flags: Flags::ACK, ..ScriptedSegment::default() };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "SYN" => made.flags = made.flags.with(Flags::SYN),
            "FIN" => made.flags = made.flags.with(Flags::FIN),
            "RST" => made.flags = made.flags.with(Flags::RST),
            "seq" => made.seq = Some(words.next()?.parse().ok()?),
            "ack" => made.ack = Some(words.next()?.parse().ok()?),
            "win" => made.window = Some(words.next()?.parse().ok()?),
            "sack" => made.sack.push(range(words.next()?)?),
            "sackok" => made.sack_permitted = true,
            "ts" => {
                let (value, echo) = range(words.next()?)?;
                made.timestamps = Some((u32::try_from(value).ok()?, u32::try_from(echo).ok()?));
            }
            _ => {
                let (start, end) = range(word)?;
                (made.seq, made.len) = (Some(start), u32::try_from(end - start).ok()?);
            }
        }
    }
    if made.flags.has(Flags::SYN) && made.ack.is_none() {
        made.flags = Flags::SYN;
    }
    Some(made)
}

fn range(text: &str) -> Option<(i64, i64)> {
    let (left, right) = text.split_once(':')?;
    Some((left.parse().ok()?, right.parse().ok()?))
}
