//! TCP and UDP ports of the ends of flows.

/// Port at which the `to` end of the first flow listens.
const FIRST_PORT: u16 = 5_000;

/// Port at which the first aggregator of a flow listens.
const FIRST_AGGREGATOR_PORT: u16 = 20_000;

/// Port at which an aggregator accepts the connections of a flow's members.
pub(crate) const fn aggregator_port(index: u32) -> u16 {
    FIRST_AGGREGATOR_PORT + index as u16
}

/// Port at which the server of a flow accepts connections.
pub(crate) const fn server_port(flow: usize) -> u16 {
    FIRST_PORT + flow as u16
}
