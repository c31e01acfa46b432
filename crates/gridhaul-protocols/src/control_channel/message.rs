//! Messages of the control channel between a controller and an agent.

use std::net::{IpAddr, SocketAddr};

use gridhaul_scenario::units::Duration;
use serde::{Deserialize, Serialize};

use crate::dnp3::POLL_MIN;
use crate::settings::{
    BrokerAddress, BrokerProtocol, BrokerSettings, ClientSettings, Direct, DirectKind, FrameStream,
    Modbus, ReconnectPolicy,
};

/// Bytes of the longest token, name, user name or password.
const TEXT_MAX: usize = 256;

/// Most arrivals in a report, so that its frame is shorter than the limit: two numbers of at most
/// 20 digits each.
const ARRIVALS_MAX: usize = 1_000;

/// Bytes of the longest certificates, so that they fit into a frame.
const AUTHORITIES_MAX: usize = 32 << 10;

/// Longest message of a measurement: a datagram of UDP.
const MESSAGE_MAX: usize = 65_507;

/// Shortest interval of keep-alive packets.
const KEEP_ALIVE_MIN: Duration = Duration::from_secs(1);

/// Longest interval of keep-alive packets: the field of MQTT has 16 bits, in seconds.
const KEEP_ALIVE_MAX: Duration = Duration::from_secs(65_535);

/// Shortest time between two attempts to connect, so that a client does not take a whole processor.
const RECONNECT_MIN: Duration = Duration::from_millis(1);

/// Longest time for which an end waits for a silent other end.
const SILENCE_MAX: Duration = Duration::from_secs(3_600);

/// Requests of a controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Presents the token; the first message.
    Authenticate {
        /// Token.
        token: String,
    },
    /// Starts the receiver of a run. It takes the place of the receiver of an earlier run.
    Start(Box<ReceiverSpec>),
    /// Asks for the time of the agent, and for all arrivals so far. Numbers count from 0.
    Exchange {
        /// Number of the exchange.
        number: u64,
    },
    /// Ends the session.
    End,
}

/// Replies of an agent.
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
    /// Messages that have arrived.
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
    /// Address of the agent on the network under test; `None` for the address of the control
    /// channel.
    pub address: Option<IpAddr>,
    /// Protocol.
    pub protocol: ReceiverProtocol,
    /// Time without a message after which the other end of the control channel is gone. The agent
    /// waits longer if this is short, because the controller is silent while it connects its ends.
    pub silence: Duration,
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
    /// Frames that arrive at the interface with which the agent was started.
    Frames(FrameStream),
    /// A server of Modbus/TCP.
    Modbus(Modbus),
    /// The receiving end of a protocol between two ends.
    Direct {
        /// The protocol.
        settings: Direct,
        /// Address at which the publisher listens; `None` if the receiver listens.
        publisher: Option<SocketAddr>,
    },
    /// A subscriber of a broker.
    Broker {
        /// The clients.
        clients: ClientSettings,
        /// The broker.
        broker: BrokerChoice,
    },
}

/// The broker of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum BrokerChoice {
    /// A broker that both machines reach.
    Given(BrokerAddress),
    /// One that the agent starts.
    Started(BrokerSettings),
}

/// A receiver that is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// Address to which messages are sent: that of the receiver, or of the broker.
    pub address: SocketAddr,
    /// The broker that the agent has started.
    pub broker: Option<StartedBroker>,
}

/// A broker that an agent has started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartedBroker {
    /// Name of the program.
    pub program: String,
    /// Address, credentials and certificate for clients.
    pub address: BrokerAddress,
}

/// Arrivals since the last report.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Everything that was read before the request of this exchange arrived is in this report or an
    /// earlier one.
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
        if self.silence > SILENCE_MAX {
            return Err(format!("silence: expected at most {SILENCE_MAX}"));
        }
        match &self.protocol {
            ReceiverProtocol::Udp { .. } | ReceiverProtocol::Modbus(_) => Ok(()),
            ReceiverProtocol::Frames(stream) => stream.check(),
            ReceiverProtocol::Direct { settings, .. } => check_direct(settings),
            ReceiverProtocol::Broker { clients, broker } => {
                check_clients(clients)?;
                match broker {
                    BrokerChoice::Given(address) => check_broker(address),
                    BrokerChoice::Started(_) => Ok(()),
                }
            }
        }
    }
}

fn check_direct(settings: &Direct) -> Result<(), String> {
    match settings.kind {
        DirectKind::Iec104(window) => {
            window.check().and_then(|()| check_reconnect(settings.reconnect))
        }
        DirectKind::Synchrophasor(bytes) if bytes > MESSAGE_MAX => {
            Err(format!("synchrophasor {bytes}: expected at most {MESSAGE_MAX} B in a message"))
        }
        DirectKind::Dnp3 { poll: Some(poll) } if poll < POLL_MIN => {
            Err("poll: expected an interval of at least 20 ms".into())
        }
        _ => check_reconnect(settings.reconnect),
    }
}

fn check_reconnect(policy: ReconnectPolicy) -> Result<(), String> {
    let is_possible =
        policy.after.is_none_or(|after| (RECONNECT_MIN..=KEEP_ALIVE_MAX).contains(&after));
    is_possible.then_some(()).ok_or_else(|| "reconnect: expected at least 1 ms".into())
}

fn check_clients(clients: &ClientSettings) -> Result<(), String> {
    // The name becomes a part of topics, queues and resources, in which other characters such as
    // `#` and `/` have a meaning.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let node = match &clients.protocol {
        BrokerProtocol::Amqp10(amqp) => amqp.node.as_deref().unwrap_or_default(),
        _ => "",
    };
    let name = clients.name.as_str();
    if name.is_empty() || name.len() > TEXT_MAX || !name.chars().all(is_plain) {
        Err(format!("name: expected letters, digits and hyphens, at most {TEXT_MAX}"))
    } else if !(KEEP_ALIVE_MIN..=KEEP_ALIVE_MAX).contains(&clients.keep_alive) {
        Err("keep_alive: expected a time between 1 s and 65535 s".into())
    } else if node.len() > TEXT_MAX {
        Err(format!("node: expected at most {TEXT_MAX} B"))
    } else {
        check_reconnect(clients.reconnect)
    }
}

fn check_broker(broker: &BrokerAddress) -> Result<(), String> {
    let credentials = broker.credentials.iter();
    let names = broker.tls.iter().map(|tls| &tls.name);
    let mut texts = credentials.flat_map(|login| [&login.user, &login.password]).chain(names);
    if texts.any(|text| text.len() > TEXT_MAX) {
        return Err(format!("broker: expected at most {TEXT_MAX} B in user, password and name"));
    }
    if broker.tls.as_ref().is_some_and(|tls| tls.authorities.len() > AUTHORITIES_MAX) {
        return Err(format!(
            "broker: the certificates of authorities have more than {AUTHORITIES_MAX} B; name a \
             file with the authority of the broker only"
        ));
    }
    Ok(())
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
    use crate::control_channel::framing::{FRAME_MAX, write_message};
    use crate::iec104;
    use crate::settings::{Credentials, Tls};

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
        assert_eq!(
            parts.iter().map(|part| part.is_continued).collect::<Vec<_>>(),
            [true, true, false]
        );
        assert_eq!(parts.iter().map(|part| part.arrivals.len()).sum::<usize>(), 2_500);
        assert_eq!(parts.iter().map(|part| part.corrupt.len()).sum::<usize>(), 1_200);
        assert_eq!(parts.iter().map(|part| part.foreign).max(), Some(u64::MAX));
        for part in parts {
            let mut bytes = Vec::new();
            write_message(&Reply::Report(part), &mut bytes);
            assert!(bytes.len() <= FRAME_MAX, "{} B", bytes.len());
        }
        assert_eq!(Report::default().split(), [Report::default()]);
    }

    fn check(protocol: ReceiverProtocol) -> Result<(), String> {
        with_silence(protocol, Duration::ZERO)
    }

    fn with_silence(protocol: ReceiverProtocol, silence: Duration) -> Result<(), String> {
        ReceiverSpec { run: 1, address: None, protocol, silence }.check()
    }

    #[test]
    fn a_silent_controller_does_not_keep_the_agent_for_long() {
        let with = |silence| with_silence(ReceiverProtocol::Udp { echo: false }, silence);
        assert_eq!(with(SILENCE_MAX), Ok(()));
        assert!(with(SILENCE_MAX + Duration::from_nanos(1)).unwrap_err().contains("silence"));
    }

    #[test]
    fn fields_of_clients_and_brokers_are_checked() {
        let clients = ClientSettings::new(BrokerProtocol::Xmpp, "gridhaul-7");
        let address = ([127, 0, 0, 1], 1883).into();
        let plain = BrokerAddress { address, credentials: None, tls: None };
        let given = |broker: &BrokerAddress| BrokerChoice::Given(broker.clone());
        let with = |clients: &ClientSettings, broker: &BrokerAddress| {
            let (clients, broker) = (clients.clone(), given(broker));
            check(ReceiverProtocol::Broker { clients, broker })
        };
        assert_eq!(with(&clients, &plain), Ok(()));
        let zero = ReconnectPolicy { after: Some(Duration::ZERO), queue: false };
        for (changed, expected) in [
            (ClientSettings { name: "a/#".into(), ..clients.clone() }, "name"),
            (ClientSettings { keep_alive: Duration::ZERO, ..clients.clone() }, "keep_alive"),
            (ClientSettings { reconnect: zero, ..clients.clone() }, "reconnect"),
        ] {
            let error = with(&changed, &plain).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let credentials = Some(Credentials { user: "me".into(), password: "x".repeat(257) });
        let tls = Some(Tls { name: "localhost".into(), authorities: "x".repeat(40_000) });
        for (broker, expected) in [
            (BrokerAddress { credentials, ..plain.clone() }, "password"),
            (BrokerAddress { tls, ..plain }, "certificates"),
        ] {
            let error = with(&clients, &broker).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn fields_of_protocols_without_a_broker_are_checked() {
        let reconnect = ReconnectPolicy::default();
        let direct = |kind| {
            let settings = Direct { kind, port: 0, nodelay: true, reconnect };
            check(ReceiverProtocol::Direct { settings, publisher: None })
        };
        let window = |k, w| direct(DirectKind::Iec104(iec104::Window { k, w }));
        assert_eq!((window(12, 8), window(1, 1)), (Ok(()), Ok(())));
        assert!(window(12, 13).is_err() && window(40_000, 1).is_err() && window(1, 0).is_err());
        assert!(direct(DirectKind::Synchrophasor(usize::MAX)).is_err());
        assert!(direct(DirectKind::Dnp3 { poll: Some(Duration::ZERO) }).is_err());
    }
}
