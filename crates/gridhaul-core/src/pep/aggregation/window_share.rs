//! How much of a buffer one member may be promised.

use gridhaul_scenario::units::BufferLimit;

/// The receive window in bytes that a collector offers to each of `members`, whose messages have
/// from `smallest` to `largest` bytes, so that they wait instead of being dropped.
///
/// An offered window is a promise that must not be taken back (RFC 9293, section 3.8.6: a receiver
/// should not shrink the window). So the buffer is dealt out evenly and in advance, and a member's
/// share opens again only when a message of its own has left the buffer: what waits and what is
/// offered never exceed the limit together, and nothing is ever dropped.
///
/// With more members than the buffer has messages this cannot be: with no window at all a member
/// could not even say that it has something to send. Each is then offered one message all the same,
/// and what does not fit when many come at once is dropped.
#[must_use]
pub fn window_share(limit: BufferLimit, members: u64, (smallest, largest): (u64, u64)) -> u64 {
    let members = members.max(1);
    let share = match limit {
        BufferLimit::Messages(limit) => (u64::from(limit) / members).saturating_mul(smallest),
        // The last message that a window lets begin has room as a whole: it may reach beyond.
        BufferLimit::Bytes(limit) => match limit.get() / members {
            share if smallest == largest => share - share % largest.max(1),
            share => (share + 1).saturating_sub(largest),
        },
    };
    share.max(largest)
}
