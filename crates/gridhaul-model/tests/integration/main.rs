//! Tests of the analytical model through its interface.

mod aggregators;
mod connections;
mod meters;
mod proxies;
mod shared_transfers;
mod short_queues;
mod slow_acknowledgements;
mod steady;
mod wide_windows;
mod windows;
