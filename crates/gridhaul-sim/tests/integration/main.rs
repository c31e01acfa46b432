//! Tests of the simulator through its interface.

mod aggregation;
mod attacks;
mod captured_windows;
mod captures;
mod connection_opening;
mod connections;
mod distributions;
mod equal_paths;
mod event_log;
mod fragments;
mod goodput;
mod header_compression;
mod hybrid_routers;
mod limitations;
mod loads;
mod loss_classification;
mod media;
mod packets;
mod proxies;
mod recorded_messages;
mod replications;
mod schedulers;
mod session;
mod support;
