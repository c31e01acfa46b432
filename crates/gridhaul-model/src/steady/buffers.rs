//! Finite buffers of proxies: what the data that waits in a proxy leaves of the window before it.
//!
//! A proxy that ends connections keeps each byte until the next hop has acknowledged it, because
//! until then the byte may have to be retransmitted from the proxy (`core/src/pep/coupling/`).
//! The window that the proxy offers is what its buffer has free, so its buffer of `n` segments is
//! shared by those that are on their way to the proxy (outstanding on the hop before it, `w`) and
//! those that it holds (outstanding on the hop after it, `h`):
//!
//! ```text
//! w(r) + h(r) ≤ n
//! ```
//!
//! `w(r)` and `h(r)` are the windows with which each hop reaches the rate `r` by its own law. Without
//! loss they are `r · RTT` (Little's law), and the equation becomes `r ≤ n / (RTT before + RTT
//! after)`: a byte occupies its place for a round trip to the proxy and a second one behind it. With
//! loss the law's window at `r` contains the recovery of losses, during which places stay occupied.
//! The rate of the chain is the largest `r` for which this holds at every proxy.
//!
//! A proxy that reflects offers no more than it was offered itself (paper `plc`, section II.D.3).
//! Hence on every hop before a row of reflecting proxies no more may be outstanding than the last
//! of them has free: `w(r)` is then that of each of these hops, and `h(r)` that of the last proxy.
//!
//! One place is lost to reporting. A place that becomes free is reported by the acknowledgement of
//! the next segment that arrives, or when half of the buffer has become free since the last report.
//! So up to one segment of free space is unknown to the sender, and `n - 1` are shared. With a
//! buffer of one or two segments, half of it is at most one segment: each is reported at once.

use super::Connection;
use super::demand::Demand;

/// The buffer of a proxy that ends connections, in segments of the hop before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Buffer {
    pub segments: f64,
    /// Whether the proxy offers no more than it was offered.
    pub reflects: bool,
}

impl Buffer {
    /// Places that data can use at any time.
    fn usable(self) -> f64 {
        if self.segments > 2.0 { self.segments - 1.0 } else { self.segments }
    }
}

/// Where a buffer limits the rate of a chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BufferLimit {
    /// Segments a second that arrive at the far end.
    pub rate: f64,
    /// The hop whose window closes.
    pub piece: usize,
    /// The proxy whose buffer is full.
    pub proxy: usize,
}

/// What the buffers between the pieces of a chain allow; `None` where they allow as much as the
/// pieces on their own. `buffers` are in the order of the pieces that end at them.
pub(super) fn limit(pieces: &[Demand<'_>], buffers: &[Buffer]) -> Option<BufferLimit> {
    let most = pieces.iter().map(Demand::arriving).fold(f64::INFINITY, f64::min);
    let mut full = first_full(pieces, buffers, most)?;
    // The windows grow with the rate, so that there is one rate at which a buffer is just full.
    let (mut low, mut high) = (0.0, most);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        match first_full(pieces, buffers, middle) {
            Some(place) => (high, full) = (middle, place),
            None => low = middle,
        }
    }
    let (piece, proxy) = full;
    Some(BufferLimit { rate: low, piece, proxy })
}

/// The first hop, and the proxy after it, between which more is outstanding at this rate than the
/// proxy's buffer can hold.
fn first_full(pieces: &[Demand<'_>], buffers: &[Buffer], rate: f64) -> Option<(usize, usize)> {
    let windows: Vec<f64> = pieces.iter().map(|piece| window_at(piece, rate)).collect();
    for (piece, window) in windows.iter().enumerate() {
        for (proxy, buffer) in buffers.iter().enumerate().skip(piece) {
            if window + windows[proxy + 1] > buffer.usable() {
                return Some((piece, proxy));
            }
            if !buffer.reflects {
                break;
            }
        }
    }
    None
}

/// The least window in segments with which `rate` segments a second arrive at the end of a piece.
fn window_at(piece: &Demand<'_>, rate: f64) -> f64 {
    let arriving = |window: f64| {
        let connection = Connection { window, ..piece.connection };
        piece.law.rate(&connection) * (1.0 - connection.loss)
    };
    let (mut low, mut high) = (0.0, piece.connection.window);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if arriving(middle) < rate { low = middle } else { high = middle }
    }
    high
}
