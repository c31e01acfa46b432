//! Waits of a message at its device: for an earlier connection, or for an acknowledgement.

use super::queues::{FlowLoad, Network};
use crate::nagle;

impl Network {
    /// Time from the SYN of a connection for one message until the device has read the FIN of the
    /// server and may open the next one.
    pub(super) fn occupied_s(&self, flow: &FlowLoad) -> f64 {
        let flights = &flow.exchange.opened.flights;
        let header = flights.first().map_or(0.0, |flight| flight.header);
        let message_s: f64 = flights.iter().map(|flight| self.flight_s(flow, flight)).sum();
        message_s + self.slowest_s(flow, true, header) + self.crossing_s(flow, false, &[header])
    }

    /// Share of the time for which a device with a connection for each message has one.
    pub(super) fn occupation(&self, flow: &FlowLoad) -> f64 {
        if !flow.has_own_connections {
            return 0.0;
        }
        flow.messages_per_s * self.occupied_s(flow)
    }

    /// Mean time for which a message waits until the connections of earlier ones have closed: the
    /// queue M/D/1 (Pollaczek and Khinchine). Infinite if they take longer than the messages.
    pub(super) fn wait_at_device_s(&self, flow: &FlowLoad) -> f64 {
        let used = self.occupation(flow);
        if used >= 1.0 {
            f64::INFINITY
        } else if flow.is_random && used > 0.0 {
            self.occupied_s(flow) * used / (2.0 * (1.0 - used))
        } else {
            0.0
        }
    }

    /// Share of the messages on open connections whose last segment Nagle's algorithm delays.
    pub(super) fn delayed_by_nagle(&self, flow: &FlowLoad) -> f64 {
        let [flight] = &flow.exchange.plain.flights[..] else { return 0.0 };
        let Some(last) = flight.packets.last() else { return 0.0 };
        let is_short = flow.windows.is_short(*last - flight.header);
        if flow.has_own_connections || !flow.nagle || !is_short {
            return 0.0;
        }
        let outstanding_s = self.crossing_s(flow, true, &[*last])
            + self.crossing_s(flow, false, &[flight.header])
            + flow.windows.acknowledgement_delay_s();
        nagle::delayed_share(flow.messages_per_s, outstanding_s, flow.is_random)
    }
}
