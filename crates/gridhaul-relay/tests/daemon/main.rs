//! Tests of the daemon as a process: collector and head on loopback, killed at any time.

#![expect(clippy::disallowed_methods, reason = "the daemon runs in real time")]

mod cases;
mod guide;
mod kill;
mod ledger;
mod meters;
mod relays;
