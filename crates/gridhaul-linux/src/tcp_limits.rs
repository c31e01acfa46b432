//! Ranges of TCP parameters that Linux accepts.

use std::ops::RangeInclusive;

use gridhaul_scenario::units::Duration;

/// MSS with options, in bytes: `TCP_MIN_MSS` (`<net/tcp.h>`) to `MAX_TCP_WINDOW`.
pub const TCP_MAX_SEGMENT_RANGE: RangeInclusive<u32> = 88..=32_767;

/// Smallest receive window in bytes: half of the smallest receive buffer (`tcp_set_window_clamp`).
pub const TCP_WINDOW_MIN: u32 = 1_152;

/// Largest retransmission timeout (`TCP_RTO_MAX_MS`).
pub const TCP_RTO_MAX_RANGE: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(120);

/// Smallest retransmission timeout of a connection without further configuration (`TCP_RTO_MIN`,
/// `<net/tcp.h>`), and the largest value of the socket option; a route can raise it.
pub const TCP_RTO_MIN: Duration = Duration::from_millis(200);

/// Delay of acknowledgements up to which Linux adapts (`TCP_DELACK_MAX`, `<net/tcp.h>`).
pub const TCP_DELACK_MAX: Duration = Duration::from_millis(200);

/// Largest `tcp_reordering`: `tcp_max_reordering` of a new namespace.
pub const TCP_REORDERING_MAX: u32 = 300;
