//! The protocols of [`gridhaul_protocols::endpoint`]: both ends are of this program, without a
//! broker.

use std::net::{IpAddr, SocketAddr};

use gridhaul_linux::Clock;
use gridhaul_protocols::settings::{Direct, DirectKind, Pattern};

use super::reconnect::after_text;
use super::stream::{Listener, StreamSettings, Streams, connect};
use super::{Connected, Protocol, ProtocolError, Publisher, ReceivingEnd};
use crate::place::{Site, Sites};
use crate::settings::Settings;

impl Protocol for Direct {
    fn name(&self) -> &'static str {
        match self.kind {
            DirectKind::Iec104(_) => "iec-104",
            DirectKind::ZeroMq(_) => "zeromq",
            DirectKind::Nanomsg => "nanomsg",
            DirectKind::Synchrophasor(_) => "c37.118",
            DirectKind::Dnp3 { .. } => "dnp3",
        }
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.push("nodelay", self.nodelay.to_string());
        settings.extend(match self.kind {
            DirectKind::Iec104(window) => {
                vec![
                    ("type", "M_ME_TF_1".into()),
                    ("k", window.k.to_string()),
                    ("w", window.w.to_string()),
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
        settings.push("reconnect_after", after_text(self.reconnect));
        settings
    }

    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
        connect(stream(self), sites, self.kind.endpoints())
    }
}

/// The end that receives, alone, at this address. It connects to `publisher`, or listens if there
/// is none.
///
/// # Errors
/// The socket cannot be opened, or the publisher does not answer.
pub(crate) fn receiver(
    direct: &Direct,
    address: IpAddr,
    clock: Clock,
    publisher: Option<SocketAddr>,
) -> Result<ReceivingEnd, ProtocolError> {
    let [_, endpoint] = direct.kind.endpoints();
    let streams = Streams { settings: stream(direct), site: Site::at(address), clock };
    streams.receiver(endpoint, publisher)
}

/// The end that sends, alone. It connects to `subscriber`, or listens at `address` if there is
/// none; the result has the address at which it listens.
///
/// # Errors
/// The socket cannot be opened, or the subscriber does not answer.
pub(crate) fn publisher(
    direct: &Direct,
    address: IpAddr,
    clock: Clock,
    subscriber: Option<SocketAddr>,
) -> Result<(Box<dyn Publisher>, SocketAddr), ProtocolError> {
    let [endpoint, _] = direct.kind.endpoints();
    let streams = Streams { settings: stream(direct), site: Site::at(address), clock };
    streams.publisher(endpoint, subscriber)
}

fn stream(direct: &Direct) -> StreamSettings {
    StreamSettings {
        protocol: direct.name(),
        listener: if direct.publisher_listens() {
            Listener::Publisher
        } else {
            Listener::Subscriber
        },
        port: direct.port,
        nodelay: direct.nodelay,
        reconnect: direct.reconnect,
    }
}
