//! Backend `sim`: a discrete-event packet simulator whose runs are audited.
//!
//! Links, TCP connections, applications and proxies come from `gridhaul-core`. This crate connects
//! them as a scenario specifies, executes events in order of time, computes metrics, and has an
//! independent auditor check every run.

#![forbid(unsafe_code)]

mod addresses;
mod aggregation;
mod alterations;
mod audit;
mod build;
mod capture;
mod connection_carrier;
mod counters;
mod duplicates;
mod end_id;
mod event_log;
mod events;
mod external_messages;
mod flow;
mod fragmentation;
mod handshakes;
mod heap;
mod hybrid_router;
mod layout;
mod limitations;
mod loss_cause;
mod managed_flow;
mod member_counters;
mod metrics;
mod network;
mod outage_ends;
mod packet;
mod path_mtu;
mod proxy;
mod recorder;
mod row_counters;
mod run;
mod session;
mod stacks;
mod subscriptions;
mod timing_wheel;
mod waiting_message;
mod world;

pub use audit::{AggregatorRule, AuditError, LinkRule, Violation};
pub use external_messages::{MessageFate, MessageId, MessageReport};
pub use run::Sim;
pub use session::{LinkChange, Session, SessionError, Snapshot, Step};
