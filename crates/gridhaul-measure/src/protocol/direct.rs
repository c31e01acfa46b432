//! The protocols of [`crate::endpoint`]: both ends are of this program, without a broker.

use gridhaul_scenario::units::Duration;

use super::stream::{Listener, StreamSettings, connect};
use super::{Connected, Protocol, ProtocolError, ReconnectPolicy};
use crate::endpoint::{Endpoint, dnp3, iec104, scalability, synchrophasor, zmtp};
use crate::network::Sites;

/// Pattern of ZeroMQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// PUSH and PULL.
    Pipeline,
    /// PUB and SUB, with a subscription of all messages.
    PublishSubscribe,
}

/// A protocol between two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectKind {
    /// IEC 60870-5-104: the controlled station listens at the `from` end.
    Iec104,
    /// ZeroMQ: the receiver listens at the `to` end.
    ZeroMq(Pattern),
    /// Scalability Protocols of nanomsg, PUSH and PULL: the receiver listens at the `to` end.
    Nanomsg,
    /// Synchrophasors, in data frames for messages of this length: the measurement unit listens at the `from` end.
    Synchrophasor(usize),
    /// DNP3: the outstation listens at the `from` end.
    Dnp3 {
        /// Interval in which the master polls for events; `None` for unsolicited responses.
        poll: Option<Duration>,
    },
}

/// A protocol between two ends with its settings.
#[derive(Debug, Clone, Copy)]
pub struct Direct {
    /// The protocol.
    pub kind: DirectKind,
    /// Port of the end that listens; 0 for a free one.
    pub port: u16,
    /// Whether both ends set `TCP_NODELAY`, which turns Nagle's algorithm (RFC 896) off.
    pub nodelay: bool,
    /// Behaviour of the end that connects without a connection; messages are refused.
    pub reconnect: ReconnectPolicy,
}

impl Protocol for Direct {
    fn name(&self) -> &'static str {
        match self.kind {
            DirectKind::Iec104 => "iec-104",
            DirectKind::ZeroMq(_) => "zeromq",
            DirectKind::Nanomsg => "nanomsg",
            DirectKind::Synchrophasor(_) => "c37.118",
            DirectKind::Dnp3 { .. } => "dnp3",
        }
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![("nodelay", self.nodelay.to_string())];
        settings.extend(match self.kind {
            DirectKind::Iec104 => {
                vec![
                    ("type", "M_ME_TF_1".into()),
                    ("k", iec104::K.to_string()),
                    ("w", iec104::W.to_string()),
                ]
            }
            DirectKind::ZeroMq(Pattern::Pipeline) => vec![("pattern", "push-pull".into())],
            DirectKind::ZeroMq(Pattern::PublishSubscribe) => vec![("pattern", "pub-sub".into())],
            DirectKind::Nanomsg => vec![("pattern", "push-pull".into())],
            DirectKind::Synchrophasor(bytes) => vec![("phasors", bytes.div_ceil(4).to_string())],
            DirectKind::Dnp3 { poll: None } => vec![("responses", "unsolicited".into())],
            DirectKind::Dnp3 { poll: Some(interval) } => {
                vec![("responses", format!("polled every {} s", interval.as_secs_f64()))]
            }
        });
        settings.push(("reconnect_after", format!("{} s", self.reconnect.after.as_secs_f64())));
        settings
    }

    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
        let listener = match self.kind {
            DirectKind::Iec104 | DirectKind::Synchrophasor(_) | DirectKind::Dnp3 { .. } => {
                Listener::Publisher
            }
            DirectKind::ZeroMq(_) | DirectKind::Nanomsg => Listener::Subscriber,
        };
        let settings = StreamSettings {
            protocol: self.name(),
            listener,
            port: self.port,
            nodelay: self.nodelay,
            reconnect: self.reconnect,
        };
        connect(settings, sites, self.kind.endpoints())
    }
}

impl DirectKind {
    /// The ends that publish and subscribe.
    #[must_use]
    pub fn endpoints(self) -> [Box<dyn Endpoint>; 2] {
        match self {
            Self::Iec104 => [iec104::Role::Controlled, iec104::Role::Controlling]
                .map(|role| Box::new(iec104::Station::new(role)) as _),
            Self::ZeroMq(pattern) => {
                let ends = match pattern {
                    Pattern::Pipeline => [zmtp::SocketType::Push, zmtp::SocketType::Pull],
                    Pattern::PublishSubscribe => [zmtp::SocketType::Pub, zmtp::SocketType::Sub],
                };
                ends.map(|kind| Box::new(zmtp::Socket::new(kind)) as _)
            }
            Self::Nanomsg => [scalability::Role::Push, scalability::Role::Pull]
                .map(|role| Box::new(scalability::Pipeline::new(role)) as _),
            Self::Synchrophasor(bytes) => {
                use synchrophasor::Role;
                [Role::MeasurementUnit(bytes), Role::Concentrator]
                    .map(|role| Box::new(synchrophasor::Synchrophasor::new(role)) as _)
            }
            Self::Dnp3 { poll } => [dnp3::Role::Outstation, dnp3::Role::Master { poll }]
                .map(|role| Box::new(dnp3::Station::new(role)) as _),
        }
    }
}
