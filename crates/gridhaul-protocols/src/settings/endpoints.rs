//! Both ends of each protocol over TCP without a broker.

use super::{DirectKind, Pattern};
use crate::c37_118::{self, Synchrophasor};
use crate::endpoint::Endpoint;
use crate::{dnp3, iec104, nanomsg, zmtp};

impl DirectKind {
    /// The ends that publish and subscribe.
    #[must_use]
    pub fn endpoints(self) -> [Box<dyn Endpoint>; 2] {
        match self {
            Self::Iec104(window) => [iec104::Role::Controlled, iec104::Role::Controlling]
                .map(|role| Box::new(iec104::Station::new(role, window)) as _),
            Self::ZeroMq(pattern) => {
                let ends = match pattern {
                    Pattern::Pipeline => [zmtp::SocketType::Push, zmtp::SocketType::Pull],
                    Pattern::PublishSubscribe => [zmtp::SocketType::Pub, zmtp::SocketType::Sub],
                };
                ends.map(|kind| Box::new(zmtp::Socket::new(kind)) as _)
            }
            Self::Nanomsg => [nanomsg::Role::Push, nanomsg::Role::Pull]
                .map(|role| Box::new(nanomsg::Pipeline::new(role)) as _),
            Self::Synchrophasor(bytes) => {
                [c37_118::Role::MeasurementUnit(bytes), c37_118::Role::Concentrator]
                    .map(|role| Box::new(Synchrophasor::new(role)) as _)
            }
            Self::Dnp3 { poll } => [dnp3::Role::Outstation, dnp3::Role::Master { poll }]
                .map(|role| Box::new(dnp3::Station::new(role)) as _),
        }
    }
}
