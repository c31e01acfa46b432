//! Settings of the machine of a hybrid router.

use gridhaul_scenario::units::Duration;

/// Settings of a [`Machine`](super::Machine).
#[derive(Debug, Clone)]
pub struct Settings {
    /// Random number of this run, not 0.
    pub session: u32,
    /// Silence after which a link has failed, without the allowance for its round-trip times.
    pub detection_time: Duration,
    /// Time for which a link must answer before it is used again.
    pub hold_time: Duration,
    /// The links.
    pub links: Vec<LinkSettings>,
    /// All links of each class in the order of preference.
    pub classes: Vec<Vec<usize>>,
}

/// Settings of a link.
#[derive(Debug, Clone)]
pub struct LinkSettings {
    /// Name of the link, which the peer uses as well.
    pub name: String,
    /// Interval of probes.
    pub probe_interval: Duration,
    /// Length of the datagrams of large probes, in bytes; `None` if only small ones are sent.
    pub large_probe: Option<usize>,
    /// Whether the device has carrier at the start.
    pub has_carrier: bool,
}

/// Time limits of all links.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub detection_time: Duration,
    pub hold_time: Duration,
}
