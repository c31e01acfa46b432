//! Finite proxy buffers: how buffered data reduces the window of the upstream hop.
//!
//! A proxy that terminates connections keeps each byte until the next hop has acknowledged it,
//! because until then the byte may have to be retransmitted from the proxy
//! (`core/src/pep/coupling/`). The proxy advertises its free buffer space as receive window. The
//! buffer of `n` segments is therefore shared by the segments outstanding on the upstream hop (`w`)
//! and those outstanding on the downstream hop (`h`):
//!
//! ```text
//! w(r) + h(r) ≤ n
//! ```
//!
//! `w(r)` and `h(r)` are the windows with which each hop reaches the rate `r` by its own throughput
//! law. Without loss they are `r · RTT` (Little's law), and the equation becomes `r ≤ n / (RTT
//! before + RTT after)`: a byte occupies buffer space for one round trip upstream of the proxy and
//! one downstream of it. With loss, the window of the law at `r` includes loss recovery, during
//! which the space stays occupied. The rate of the chain is the largest `r` for which this holds at
//! every proxy.
//!
//! A reflecting proxy advertises at most the window that it receives from downstream (paper `plc`,
//! section II.D.3). On every hop before a sequence of reflecting proxies, the outstanding data are
//! therefore limited by the free buffer space of the last of them: `w(r)` is that of each of these
//! hops, and `h(r)` that of the last proxy.
//!
//! Window updates cost one segment. Space that becomes free is advertised with the acknowledgement
//! of the next segment that arrives, or when half of the buffer has become free since the last
//! advertisement. Up to one segment of free space is therefore unknown to the sender, and `n - 1`
//! are usable. With a buffer of one or two segments, half of it is at most one segment, so that
//! each is advertised at once.

use super::Connection;
use super::demand::Demand;
use crate::root_finding::{Evaluation, falling_root};

/// Error of a window, relative to the largest.
const PRECISION: f64 = 1e-12;

/// The buffer of a proxy that terminates connections, in segments of the upstream hop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Buffer {
    pub segments: f64,
    /// Whether the proxy reflects the downstream receive window.
    pub reflects: bool,
}

impl Buffer {
    /// Segments that can be outstanding at any time.
    fn usable(self) -> f64 {
        if self.segments > 2.0 { self.segments - 1.0 } else { self.segments }
    }
}

/// A limit that a proxy buffer sets on the rate of a connection chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BufferLimit {
    /// Segments per second that arrive at the destination.
    pub rate: f64,
    /// Index of the connection whose window closes.
    pub split_connection: usize,
    /// Index of the proxy whose buffer is full.
    pub proxy: usize,
}

/// The rate limit of the proxy buffers of a connection chain; `None` if the buffers do not limit
/// the rate. `buffers` are in the order of the connections that end at them.
pub(super) fn limit(split_connections: &[Demand<'_>], buffers: &[Buffer]) -> Option<BufferLimit> {
    let maximum = split_connections.iter().map(Demand::arriving).fold(f64::INFINITY, f64::min);
    let mut full = first_full(split_connections, buffers, maximum)?;
    // The windows grow with the rate, so bisection finds the one rate at which a buffer is just
    // full.
    let (mut low, mut high) = (0.0, maximum);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        match first_full(split_connections, buffers, middle) {
            Some(found) => (high, full) = (middle, found),
            None => low = middle,
        }
    }
    let (split_connection, proxy) = full;
    Some(BufferLimit { rate: low, split_connection, proxy })
}

/// The first hop, and the proxy after it, between which more is outstanding at this rate than the
/// proxy's buffer can hold.
fn first_full(
    split_connections: &[Demand<'_>],
    buffers: &[Buffer],
    rate: f64,
) -> Option<(usize, usize)> {
    let windows: Vec<f64> = split_connections
        .iter()
        .map(|split_connection| window_at(split_connection, rate))
        .collect();
    for (split_connection, window) in windows.iter().enumerate() {
        for (proxy, buffer) in buffers.iter().enumerate().skip(split_connection) {
            if window + windows[proxy + 1] > buffer.usable() {
                return Some((split_connection, proxy));
            }
            if !buffer.reflects {
                break;
            }
        }
    }
    None
}

/// The smallest window in segments with which `rate` segments per second arrive at the end of a
/// connection.
fn window_at(split_connection: &Demand<'_>, rate: f64) -> f64 {
    let arriving = |window: f64| {
        let connection = Connection { window, ..split_connection.connection };
        split_connection.law.rate(&connection) * (1.0 - connection.loss)
    };
    let largest = split_connection.connection.window;
    let missing = |window: f64| rate - arriving(window);
    let high = Evaluation { at: largest, value: missing(largest) };
    if high.value >= 0.0 {
        return largest;
    }
    let low = Evaluation { at: 0.0, value: rate };
    falling_root(missing, low, high, PRECISION * largest).at
}
