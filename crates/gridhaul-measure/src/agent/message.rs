//! Messages of the control channel between a controller and an agent.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// Bytes of the longest token, topic, user name or password.
const TEXT_MAX: usize = 256;

/// Most arrivals in a report, so that its frame is shorter than the limit: two numbers of at most 20 digits each.
const ARRIVALS_MAX: usize = 1_000;

/// Longest interval of keep-alive packets: the field of MQTT has 16 bits, in seconds.
const KEEP_ALIVE_MAX_MS: u64 = 65_535_000;

/// What a controller requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Presents the token; the first message.
    Authenticate {
        /// Token.
        token: String,
    },
    /// Starts the receiver of a run.
    Start(ReceiverSpec),
    /// Asks for the time of the agent, and for all arrivals so far. Numbers count from 0.
    Exchange {
        /// Number of the exchange.
        number: u64,
    },
    /// Ends the session.
    End,
}

/// What an agent replies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// The token is right, and the agent is free.
    Ready,
    /// The receiver is ready.
    Started(Started),
    /// The time of the agent.
    Answer {
        /// Number of the exchange.
        number: u64,
        /// Time at which the request arrived, in nanoseconds on the clock of the agent.
        received: i64,
        /// Time at which the answer was sent.
        sent: i64,
    },
    /// What has arrived.
    Report(Report),
    /// The request is refused, or the run has failed. The agent closes the connection.
    Failed {
        /// Reason.
        reason: String,
    },
}

/// The receiver of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverSpec {
    /// Number of the run, by which its messages are recognised.
    pub run: u32,
    /// Address of the agent on the network under test; `None` for the address of the control channel.
    pub address: Option<IpAddr>,
    /// Protocol.
    pub protocol: ReceiverProtocol,
}

/// Protocol of a receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReceiverProtocol {
    /// Datagrams.
    Udp {
        /// Whether the agent sends each message back.
        echo: bool,
    },
    /// A subscription at an MQTT broker.
    Mqtt(MqttSpec),
}

/// A subscription at an MQTT broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MqttSpec {
    /// 3 for MQTT 3.1.1, or 5.
    pub version: u8,
    /// Quality of service, 0 or 1.
    pub qos: u8,
    /// Topic.
    pub topic: String,
    /// Whether the client sets `TCP_NODELAY`.
    pub nodelay: bool,
    /// Interval of keep-alive packets in milliseconds.
    pub keep_alive_ms: u64,
    /// Broker; `None` for one that the agent starts.
    pub broker: Option<BrokerSpec>,
    /// `TCP_NODELAY` of a broker that the agent starts.
    pub broker_nodelay: bool,
}

/// A broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokerSpec {
    /// Address and port.
    pub address: SocketAddr,
    /// User name and password.
    pub credentials: Option<(String, String)>,
}

/// A receiver that is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// Address to which messages are sent: that of the receiver, or of the broker.
    pub address: SocketAddr,
    /// Program of the broker that the agent has started.
    pub broker: Option<String>,
}

/// What has arrived since the last report.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Everything that was read before the request of this exchange arrived is in this report or an earlier one.
    pub number: u64,
    /// Whether further reports follow for the same exchange.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_continued: bool,
    /// Sequence numbers and times of intact messages, in nanoseconds on the clock of the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrivals: Vec<(u64, i64)>,
    /// Sequence numbers of corrupt messages, as far as they are readable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrupt: Vec<Option<u64>>,
    /// Number of messages of other runs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub foreign: u64,
    /// Number of reconnections.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reconnections: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ReceiverSpec {
    /// Checks the fields of an authenticated peer, which name files and processes nowhere.
    ///
    /// # Errors
    /// The first field that is out of range, with what is expected.
    pub fn check(&self) -> Result<(), String> {
        let ReceiverProtocol::Mqtt(mqtt) = &self.protocol else { return Ok(()) };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let credentials = mqtt.broker.iter().flat_map(|broker| &broker.credentials);
        let mut texts = credentials.flat_map(|(user, password)| [user, password]);
        if !matches!(mqtt.version, 3 | 5) {
            Err(format!("version {}: expected 3 or 5", mqtt.version))
        } else if mqtt.qos > 1 {
            Err(format!("qos {}: expected 0 or 1", mqtt.qos))
        } else if mqtt.topic.is_empty()
            || mqtt.topic.len() > TEXT_MAX
            || !mqtt.topic.chars().all(is_plain)
        {
            Err(format!("topic: expected letters, digits and hyphens, at most {TEXT_MAX}"))
        } else if !(1_000..=KEEP_ALIVE_MAX_MS).contains(&mqtt.keep_alive_ms) {
            Err("keep_alive_ms: expected a time between 1 s and 65535 s".into())
        } else if texts.any(|text| text.len() > TEXT_MAX) {
            Err(format!("credentials: expected at most {TEXT_MAX} B each"))
        } else {
            Ok(())
        }
    }
}

impl Report {
    /// Divides a report of any length into reports that fit into frames.
    #[must_use]
    pub fn split(self) -> Vec<Self> {
        let count = self.arrivals.len().max(self.corrupt.len()).div_ceil(ARRIVALS_MAX).max(1);
        let (mut arrivals, mut corrupt) = (self.arrivals.into_iter(), self.corrupt.into_iter());
        let part = |number: usize| Self {
            number: self.number,
            is_continued: number + 1 < count,
            arrivals: arrivals.by_ref().take(ARRIVALS_MAX).collect(),
            corrupt: corrupt.by_ref().take(ARRIVALS_MAX).collect(),
            foreign: if number == 0 { self.foreign } else { 0 },
            reconnections: if number == 0 { self.reconnections } else { 0 },
        };
        (0..count).map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::framing::{FRAME_MAX, write_message};

    #[test]
    fn the_longest_report_fits_into_a_frame() {
        let report = Report {
            number: u64::MAX,
            arrivals: vec![(u64::MAX, i64::MIN); 2_500],
            corrupt: vec![Some(u64::MAX); 1_200],
            foreign: u64::MAX,
            reconnections: u64::MAX,
            is_continued: false,
        };
        let parts = report.clone().split();
        assert_eq!(parts.iter().map(|it| it.is_continued).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(parts.iter().map(|it| it.arrivals.len()).sum::<usize>(), 2_500);
        assert_eq!(parts.iter().map(|it| it.corrupt.len()).sum::<usize>(), 1_200);
        assert_eq!(parts.iter().map(|it| it.foreign).max(), Some(u64::MAX));
        for part in parts {
            let mut bytes = Vec::new();
            write_message(&Reply::Report(part), &mut bytes);
            assert!(bytes.len() <= FRAME_MAX, "{} B", bytes.len());
        }
        assert_eq!(Report::default().split(), [Report::default()]);
    }

    #[test]
    fn fields_of_a_receiver_are_checked() {
        let mqtt = MqttSpec {
            version: 3,
            qos: 0,
            topic: "gridhaul-7".into(),
            nodelay: true,
            keep_alive_ms: 60_000,
            broker: None,
            broker_nodelay: true,
        };
        let check = |mqtt: MqttSpec| {
            ReceiverSpec { run: 1, address: None, protocol: ReceiverProtocol::Mqtt(mqtt) }.check()
        };
        assert_eq!(check(mqtt.clone()), Ok(()));
        let credentials = Some(("me".into(), "x".repeat(257)));
        let broker = Some(BrokerSpec { address: ([127, 0, 0, 1], 1883).into(), credentials });
        for (spec, expected) in [
            (MqttSpec { version: 4, ..mqtt.clone() }, "version 4"),
            (MqttSpec { qos: 2, ..mqtt.clone() }, "qos 2"),
            (MqttSpec { topic: "a/#".into(), ..mqtt.clone() }, "topic"),
            (MqttSpec { keep_alive_ms: 0, ..mqtt.clone() }, "keep_alive"),
            (MqttSpec { broker, ..mqtt }, "credentials"),
        ] {
            let error = check(spec).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
