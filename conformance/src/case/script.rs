//! The input of a case: what applications and a scripted peer do.
//!
//! ```text
//! 0    write 10 segments        the client's application, where no end is named
//! 20   server read 1000
//! 100  close
//! 30   < 1:1001 ack 1 win 5000  a segment from a scripted peer: relative numbers, SYN is 0
//! ```

use gridhaul_core::tcp::Flags;
use gridhaul_scenario::units::Instant;

use super::End;

/// Something that happens at a time.
#[derive(Debug, Clone)]
pub struct Step {
    /// When.
    pub at: Instant,
    /// At which end.
    pub end: End,
    /// What.
    pub action: Action,
}

/// What an application or a scripted peer does.
#[derive(Debug, Clone)]
pub enum Action {
    /// Writes bytes; [`u64::MAX`] for ever.
    Write(u64),
    /// Will write no more.
    Close,
    /// From now on takes data only when told to.
    ReadOnDemand,
    /// Takes bytes.
    Read(u64),
    /// A segment arrives from the scripted peer.
    Receive(Crafted),
}

/// A segment made by hand, in relative numbers.
#[derive(Debug, Clone, Default)]
pub struct Crafted {
    /// Control bits.
    pub flags: Flags,
    /// First number; behind everything received so far, where it says nothing.
    pub seq: Option<i64>,
    /// Bytes of payload.
    pub len: u32,
    /// Acknowledgement; as last time, where it says nothing.
    pub ack: Option<i64>,
    /// Offered window; as last time, where it says nothing.
    pub window: Option<u32>,
    /// Selectively acknowledged ranges.
    pub sack: Vec<(i64, i64)>,
    /// Timestamp and echo.
    pub timestamps: Option<(u32, u32)>,
    /// Selective acknowledgements are offered.
    pub sack_permitted: bool,
}

/// Reads an input.
pub(super) fn parse(text: &str, mss: u64) -> Result<Vec<Step>, String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let lines = lines.filter(|line| !line.is_empty());
    let mut steps = lines
        .map(|line| step(line, mss).ok_or_else(|| format!("cannot read the input `{line}`")))
        .collect::<Result<Vec<_>, _>>()?;
    steps.sort_by_key(|step| step.at);
    Ok(steps)
}

fn step(line: &str, mss: u64) -> Option<Step> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let at = Instant::from_secs_f64(words.remove(0).parse::<f64>().ok()? / 1e3);
    let end = match *words.first()? {
        "server" => End::Server,
        _ => End::Client,
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
    Some(Step { at, end, action })
}

fn crafted(words: &[&str]) -> Option<Crafted> {
    let mut made = Crafted { flags: Flags::ACK, ..Crafted::default() };
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
