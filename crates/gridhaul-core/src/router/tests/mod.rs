//! Two routers with links that lose, delay and swallow packets, in virtual time.

mod black_holes;
mod false_alarms;
mod large_packets;
mod returns;
mod sessions;
mod world;
