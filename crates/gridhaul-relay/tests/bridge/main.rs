//! Tests of the bridge as a process: TCP of the kernel between two hosts, each in a network
//! namespace, with the bridge in a third one. They require root.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "the bridge runs in real time")]

mod cases;
mod check;
mod ends;
mod fail_open;
mod fail_open_modes;
mod guide;
#[path = "../split/matrix.rs"]
mod matrix;
mod network;
mod reload;
mod second;
mod transfer;
mod upgrade;
