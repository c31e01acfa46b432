//! Arbitrary segments from both sides, at any time: a proxy never panics, respects its buffer
//! limit, sends a bounded number of segments, and its deadlines advance.

#![no_main]

use std::sync::Arc;

use gridhaul_core::pep::{
    AckFilter, MssLimit, PassThrough, Proxy, Reflect, Side, Snoop, Split, Spoof,
};
use gridhaul_core::tcp::{Flags, SackBlocks, Segment, StackParams};
use gridhaul_scenario::scenario::Stack;
use gridhaul_scenario::units::{Bytes, Duration, Instant};
use libfuzzer_sys::fuzz_target;

/// Maximum payload that a proxy may buffer per direction.
const BUFFER: u64 = 8_192;
/// Maximum number of outgoing segments per event: the whole buffer in one-byte segments, plus
/// control segments.
const OUTGOING_MAX: usize = BUFFER as usize + 8;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let Some(kind) = input.byte() else { return };
    let toward = if kind & 1 == 0 { Side::Client } else { Side::Server };
    let (buffer, max_ack_delay) = (Bytes::new(BUFFER), Duration::from_millis(50));
    let params = || Arc::new(StackParams::resolve(&Stack::default()));
    let isns = [0, 0];
    let (hosts, next) = (MssLimit::of_hosts([params().mss; 2]), [params(), params()]);
    let next = [&*next[0], &*next[1]];
    match (kind >> 1) % 10 {
        0 => check(input, PassThrough::default()),
        1 => check(input, Snoop::new(toward, buffer)),
        2 => check(input, AckFilter::new(toward, max_ack_delay)),
        3 => check(input, Snoop::new(toward, Bytes::new(200))),
        4 => check(input, Split::new(params(), buffer, isns)),
        5 => check(input, Split::established(params(), buffer, isns, next)),
        6 => check(input, Reflect::new(params(), hosts, buffer)),
        7 => check(input, Reflect::engaged(params(), hosts, buffer, isns, next)),
        8 => check(input, Spoof::new(params(), hosts, buffer)),
        _ => check(input, Spoof::engaged(params(), hosts, buffer, isns, next)),
    }
});

fn check(mut input: Input<'_>, mut proxy: impl Proxy) {
    let mut now = Instant::ZERO;
    while let Some((wait, from, segment)) = input.step() {
        let at = now + wait;
        // Up to three deadlines are handled; the others are skipped, as on an overloaded host.
        for _ in 0..3 {
            if proxy.next_deadline() <= at {
                now = now.max(proxy.next_deadline());
                proxy.handle_timeout(now);
                drain(&mut proxy, now);
                assert!(proxy.next_deadline() > now, "the deadline does not advance");
            }
        }
        now = at;
        proxy.handle_segment(now, from, &segment);
        drain(&mut proxy, now);
    }
}

fn drain(proxy: &mut impl Proxy, now: Instant) {
    let sent = std::iter::from_fn(|| proxy.poll_transmit(now)).take(OUTGOING_MAX + 1).count();
    assert!(sent <= OUTGOING_MAX, "{sent} outgoing segments for one event");
    for from in Side::BOTH {
        let status = proxy.buffer_status(from);
        assert!(status.bytes <= BUFFER, "{status:?}");
        assert!(status.bytes_at_risk <= status.bytes, "{status:?}");
    }
}

/// Bytes that are interpreted as segments.
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

    /// A sequence number, often close to 0 on both sides, so that most segments pass the first
    /// checks.
    fn number(&mut self, anywhere: bool) -> Option<u32> {
        let low = self.short()?;
        if anywhere { Some(low | self.short()? << 16) } else { Some(low.wrapping_sub(1 << 15)) }
    }

    fn step(&mut self) -> Option<(Duration, Side, Segment)> {
        let shape = self.byte()?;
        let anywhere = shape & 0b111 == 0b111;
        let from = if shape & 0b1000 == 0 { Side::Client } else { Side::Server };
        let resolution =
            [10_000, 1_000_000, 100_000_000, 10_000_000_000][usize::from(shape >> 4 & 3)];
        let wait = Duration::from_nanos(u64::from(self.byte()?) * resolution);
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
