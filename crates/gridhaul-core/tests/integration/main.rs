//! Tests of the state machines as a whole, compared with other programs, models and pages.

#[path = "../../../gridhaul-scenario/tests/golden/mod.rs"]
mod golden;
mod profiles;
mod proxy_models;
mod wire_tshark;
