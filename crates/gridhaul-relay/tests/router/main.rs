//! Tests of the hybrid router as two processes, with two links between two network namespaces.

#![expect(clippy::disallowed_methods, reason = "the router runs in real time")]

mod classes;
mod failover;
mod guide;
mod network;
mod removal;
mod shaper;
