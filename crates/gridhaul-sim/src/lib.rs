//! Backend sim: packets on a virtual clock, every run audited.
//!
//! The parts come from `gridhaul-core`; this crate wires them from a scenario, wakes them in the
//! order of time, measures, and has every run re-checked by an auditor.

#![forbid(unsafe_code)]

mod account;
mod addresses;
mod app;
mod audit;
mod build;
mod capture;
mod collect;
mod copies;
mod events;
mod flow;
mod heap;
mod layout;
mod ledger;
mod limits;
mod measure;
mod network;
mod opening;
mod packet;
mod parcel;
mod proxy;
mod record;
mod run;
mod stacks;
mod truth;
mod world;

pub use audit::{AuditError, CollectorRule, LinkRule, Violation};
pub use run::Sim;
