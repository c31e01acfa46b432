//! Flows: sender, receiver, transport and load.

use serde::{Deserialize, Serialize};

use super::{
    AcceptLimits, Acknowledgement, Coap, ConnectionPolicy, Dscp, Dtls, IpVersion, KeepAlive, Load,
    Nat, Reconnect, Tls,
};
use crate::units::Duration;

/// A flow of data from one node to another. Between a group and a single node it represents one
/// flow per member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Node that sends the data. It opens the connection.
    pub from: String,
    /// Node that receives the data.
    pub to: String,
    /// Number of equal flows (per member, if a group is involved).
    #[serde(default = "one_flow")]
    pub count: u32,
    /// Transport protocol.
    #[serde(default)]
    pub transport: Transport,
    /// IP version, which determines the size of the headers: 40 B or 60 B with TCP, 28 B or 48 B of
    /// a datagram. The upstream connection of an aggregator uses the version of the aggregator.
    #[serde(default, skip_serializing_if = "IpVersion::is_default")]
    pub ip: IpVersion,
    /// Differentiated services code point of the packets of both ends, such as `"EF"`, by which
    /// schedulers select their classes. The upstream connections of an aggregator have 0.
    #[serde(default, skip_serializing_if = "Dscp::is_default")]
    pub dscp: Dscp,
    /// Name of the TCP stack at both ends. Absent: profile `linux` with CUBIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// Name of the TCP stack at the `to` end, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_stack: Option<String>,
    /// Traffic of the application.
    pub load: Load,
    /// Acknowledgements of messages by the application of the `to` end, and retransmissions by that
    /// of the `from` end. Absent: none; TCP alone decides whether a message arrives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledgement: Option<Acknowledgement>,
    /// When connections open and close: `"persistent"`, `"per_message"`, or
    /// `{ idle_timeout = "30 s" }`.
    #[serde(default, skip_serializing_if = "ConnectionPolicy::is_default")]
    pub connection: ConnectionPolicy,
    /// Whether a device sends data with the SYN of a connection, except the first one, with which
    /// it obtains a cookie (TCP Fast Open, RFC 7413): this saves a round trip for each connection.
    /// Only in the simulator, and without TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fast_open: bool,
    /// TLS on the connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Behaviour of a device whose connection attempt fails. Absent: pauses of 1 s, doubled up to 1
    /// min, where connections are managed (`connection`, `tls`, `accept` or `acknowledgement`);
    /// otherwise the one connection is not opened again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnect: Option<Reconnect>,
    /// Limits of the server on new connections. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<AcceptLimits>,
    /// NAT or firewall before the `to` end, which forgets idle connections. `{}`: after 2 h 4 min.
    /// Not in the analytical model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nat: Option<Nat>,
    /// Keep-alive of TCP at the `from` end. `{}`: that of Linux. Not in the analytical
    /// model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<KeepAlive>,
    /// Longest time for which data of the `from` end may be without an acknowledgement; then its
    /// connection is given up (RFC 5482). With `keep_alive`, this time also takes the place of
    /// `probes`, as on Linux. Absent: with `nat` or `keep_alive` 924.6 s, the time of Linux
    /// (`tcp_retries2`); otherwise no limit. Not in the analytical model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_timeout: Option<Duration>,
    /// Local ports of each `from` host for the connections of this flow. A port is in use until
    /// TIME-WAIT of its connection is over; an attempt without a free port fails and is repeated
    /// (`reconnect`). The flows of a single node share its ports; each member of a group has its
    /// own. Absent: 28,232, as in Linux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_ports: Option<u32>,
    /// Parameters of the messages of `transport = "coap"`. Absent: those of RFC 7252.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coap: Option<Coap>,
    /// DTLS for `transport = "coap"`. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtls: Option<Dtls>,
    /// Largest permitted delay of a message, or completion time of a transfer. The answer contains
    /// a deadline check: met if at least 98 % of the messages arrive, or of the transfers finish,
    /// in time. Absent: the deadline of the application profile, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Duration>,
    /// Start time of the flow.
    #[serde(default)]
    pub start: Duration,
    /// Each of several equal flows opens its connection and starts its load at `start` plus a
    /// random time, uniformly distributed between 0 s and this value; `"0 s"`: all at the same
    /// time.
    ///
    /// Absent: connections open like those of independent devices. `periodic`, `poisson`, `on_off`,
    /// `iec_104`, `application`: the load runs from `start` on, and each connection opens when its
    /// first message is ready (for `on_off` without `rate`: when the first burst begins; the
    /// connection of a burst that is in progress at `start` opens within the first second).
    /// `trace`: with the first row. `burst`: at a random time between `start` and the event, or
    /// with the first report if `at` is 0 s. `bulk`, `transfer`, `request_response`, `exchange`,
    /// `modbus`, `dlms`: each of several equal flows starts at a random time within 1 s
    /// (`request_response`: within the sum of `think` and `pause`, `exchange` and its profiles:
    /// within `every`, or the sum of the times of its steps and `pause`; unless these are 0 s); a
    /// single flow starts at `start`. The delay of the first message includes the handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_spread: Option<Duration>,
    /// Links of the path from `from` to `to`, in order. Absent: the path with the fewest links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Vec<String>>,
    /// Links of the reverse path from `to` to `from`, in order. Absent: the path with the fewest
    /// links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_route: Option<Vec<String>>,
}

impl Flow {
    /// Deadline of the messages: that of the flow, or else that of its application profile.
    #[must_use]
    pub fn effective_deadline(&self) -> Option<Duration> {
        let of_profile = || match &self.load {
            Load::Application(application) => application.profile.deadline(),
            _ => None,
        };
        self.deadline.or_else(of_profile)
    }
}

/// Transport protocol of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// A TCP connection.
    #[default]
    Tcp,
    /// One datagram per message, without retransmissions (UDP). A message has at most 1,472 B,
    /// with IPv6 1,452 B. If links have an `mtu`, larger messages consist of fragments.
    Datagram,
    /// As `datagram`, and the receiver returns each packet (ping); the delay is the round-trip
    /// time.
    Echo,
    /// One confirmable message of CoAP over UDP per message of the load (RFC 7252, section 4.2).
    /// The receiver responds to each; the sender retransmits a message without a response, and
    /// gives it up at last. The keys `coap` and `dtls` have the parameters. The delay is the time
    /// to the first copy that arrives.
    Coap,
}

const fn one_flow() -> u32 {
    1
}
