//! Tests of the daemon as a process: collector and head on loopback, killed at any time.

#![expect(clippy::disallowed_methods, reason = "the daemon runs in real time")]

mod admission;
mod alerts;
mod cases;
mod certificates;
mod checks;
mod collector_matrix;
mod damage;
mod derived;
mod durable;
mod ends;
mod faults;
mod guide;
mod kill;
mod ledger;
mod machine;
#[path = "../split/matrix.rs"]
mod matrix;
mod messages;
mod meters;
mod missing;
mod mounts;
mod mqtt;
mod operation;
mod page;
mod peers;
mod relays;
mod replaced;
mod retention;
mod servers;
mod service;
mod sink_file;
mod strangers;
mod tls;
mod upgrade;
