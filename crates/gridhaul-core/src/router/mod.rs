//! A hybrid router (paper `hybrid`, section 3.3) as a state machine, for the daemon and the
//! simulator.
//!
//! Two routers with several links between them exchange [`Probe`]s over all links. Each router
//! counts the probes that arrive over a link, and reports them to its peer over all links. A router
//! thus learns which links carry its packets to the peer, even if a link works in one direction
//! only. [`Machine`] decides from carrier and reports which link each class of packets uses.
//!
//! A wrong switch costs little, because no state belongs to a link. A link on which several probes
//! in a row are missing is therefore left early, while another link answers; a longer silence is
//! needed to call it failed.

mod damping;
mod direction;
mod large_probes;
mod link_state;
mod machine;
mod probe;
mod probe_stream;
mod reception;
mod round_trip;
mod sent_probes;
mod settings;

pub use link_state::{Failure, LinkState};
pub use machine::{Counters, Event, Machine};
pub use probe::{LastProbe, Probe, Report, link_number};
pub use settings::{LinkSettings, Settings};

#[cfg(test)]
mod tests;
