//! Any segments, from either side and at any time, into a proxy: it never panics, keeps no more than
//! it may, sends no more than what it keeps or was given, and its deadlines move on.

#![no_main]

use std::sync::Arc;

use gridhaul_core::pep::{AckFilter, PassThrough, Proxy, Reflect, Side, Snoop, Split};
use gridhaul_core::tcp::{Flags, SackBlocks, Segment, StackParams};
use gridhaul_scenario::scenario::Stack;
use gridhaul_scenario::units::{Bytes, Duration, Instant};
use libfuzzer_sys::fuzz_target;

/// Payload that a proxy may keep of each direction.
const BUFFER: u64 = 8_192;
/// Segments that may leave for one that comes: all that is kept, byte by byte, and a few.
const OUTGOING_MAX: usize = BUFFER as usize + 8;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let Some(kind) = input.byte() else { return };
    let toward = if kind & 1 == 0 { Side::Client } else { Side::Server };
    let (buffer, hold) = (Bytes::new(BUFFER), Duration::from_millis(50));
    let params = || Arc::new(StackParams::resolve(&Stack::default()));
    let isns = [0, 0];
    match kind >> 1 & 7 {
        0 => check(input, PassThrough::default()),
        1 => check(input, Snoop::new(toward, buffer)),
        2 => check(input, AckFilter::new(toward, hold)),
        3 => check(input, Snoop::new(toward, Bytes::new(200))),
        4 => check(input, Split::new(params(), buffer, isns)),
        5 => check(input, Split::established(params(), buffer, isns, [&params(), &params()])),
        6 => check(input, Reflect::new(params(), buffer)),
        _ => check(input, Reflect::engaged(params(), buffer, isns, [&params(), &params()])),
    }
});

fn check(mut input: Input<'_>, mut proxy: impl Proxy) {
    let mut now = Instant::ZERO;
    while let Some((wait, from, segment)) = input.step() {
        let at = now + wait;
        // A few of the deadlines on the way; the others are skipped, as on a host that is late.
        for _ in 0..3 {
            if proxy.next_deadline() <= at {
                now = now.max(proxy.next_deadline());
                proxy.handle_timeout(now);
                drain(&mut proxy, now);
                assert!(proxy.next_deadline() > now, "a deadline that does not move on");
            }
        }
        now = at;
        proxy.handle_segment(now, from, &segment);
        drain(&mut proxy, now);
    }
}

fn drain(proxy: &mut impl Proxy, now: Instant) {
    let sent = std::iter::from_fn(|| proxy.poll_transmit(now)).take(OUTGOING_MAX + 1).count();
    assert!(sent <= OUTGOING_MAX, "{sent} segments for one");
    for from in Side::BOTH {
        let held = proxy.buffer_status(from);
        assert!(held.bytes <= BUFFER, "{held:?}");
        assert!(held.bytes_at_risk <= held.bytes, "{held:?}");
    }
}

/// Bytes that are read as segments.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn short(&mut self) -> Option<u32> {
        Some(u32::from(u16::from_le_bytes([self.byte()?, self.byte()?])))
    }

    /// A number: often near 0, on both sides of it, so that most pass the first checks.
    fn number(&mut self, anywhere: bool) -> Option<u32> {
        let low = self.short()?;
        if anywhere { Some(low | self.short()? << 16) } else { Some(low.wrapping_sub(1 << 15)) }
    }

    fn step(&mut self) -> Option<(Duration, Side, Segment)> {
        let shape = self.byte()?;
        let anywhere = shape & 0b111 == 0b111;
        let from = if shape & 0b1000 == 0 { Side::Client } else { Side::Server };
        let unit = [10_000, 1_000_000, 100_000_000, 10_000_000_000][usize::from(shape >> 4 & 3)];
        let wait = Duration::from_nanos(u64::from(self.byte()?) * unit);
        let bits = self.byte()?;
        let mut segment = Segment {
            seq: self.number(anywhere)?,
            ack: self.number(anywhere)?,
            window: if anywhere { self.number(true)? } else { self.short()? },
            len: if shape & 0x40 == 0 { 0 } else { self.short()? },
            sack_permitted: bits & 0x20 != 0,
            header: self.byte()?,
            ..Segment::default()
        };
        for flag in [Flags::FIN, Flags::SYN, Flags::RST, Flags::ACK] {
            if bits & flag.bits() != 0 {
                segment.flags = segment.flags.with(flag);
            }
        }
        if shape & 0x80 != 0 {
            segment.timestamps = Some((self.short()?, self.short()?));
        }
        let mut sack = SackBlocks::default();
        for _ in 0..usize::from(bits >> 6).min(SackBlocks::MAX) {
            sack.push(self.number(anywhere)?, self.number(anywhere)?);
        }
        Some((wait, from, Segment { sack, ..segment }))
    }
}
