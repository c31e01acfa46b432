//! Tests of the state machines as a whole, compared with other programs, models and pages.

mod profiles;
mod proxy_models;
mod wire_tshark;
