//! The ends of a run on two machines on the machine of the controller.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use gridhaul_linux::Clock;
use gridhaul_protocols::control_channel::{BrokerChoice, ReceiverProtocol, ReceiverSpec, Started};
use gridhaul_protocols::settings::ReconnectPolicy;

use crate::protocol::{
    Protocol, ProtocolError, Publisher, SendingEnd, ThroughBroker, Udp, direct, frame_stream,
    modbus,
};
use crate::settings::Settings;

/// The ends of a run on this machine.
#[derive(Debug)]
pub struct Ends {
    /// The end that sends, and the one that receives what comes back.
    pub sending: SendingEnd,
    /// Name of the protocol.
    pub protocol: &'static str,
    /// Every setting of the protocol that influences the result.
    pub settings: Settings,
}

/// A publisher that is opened before the agent starts its receiver; by default there is none.
#[derive(Debug, Default)]
pub struct ListeningPublisher(Option<Box<dyn Publisher>>);

impl ListeningPublisher {
    /// Opens the publisher of a protocol whose subscriber connects, and adds its address to the
    /// request; or one that sends frames through `device` of this machine. `agent` is an address of
    /// the agent on the network under test. Publishers of other protocols are opened by
    /// [`connect_ends`].
    ///
    /// # Errors
    /// There is no route to the agent, or the socket cannot be opened.
    pub fn open(
        spec: &mut ReceiverSpec,
        agent: IpAddr,
        device: Option<&str>,
        clock: Clock,
    ) -> Result<Self, ProtocolError> {
        if let (ReceiverProtocol::Frames(stream), Some(device)) = (&spec.protocol, device) {
            return Ok(Self(Some(frame_stream::publisher(stream, device, clock)?)));
        }
        let ReceiverProtocol::Direct { settings, publisher } = &mut spec.protocol else {
            return Ok(Self(None));
        };
        if !settings.publisher_listens() {
            return Ok(Self(None));
        }
        let (end, address) = direct::publisher(settings, local_address(agent)?, clock, None)?;
        *publisher = Some(address);
        Ok(Self(Some(end)))
    }
}

/// Connects the ends of this machine to a receiver that an agent has started. `is_returned` if
/// messages are to come back, where the protocol permits; `reconnect` is the behaviour of this
/// machine without a connection.
///
/// # Errors
/// A socket cannot be opened, or the other end refuses a client or does not connect.
pub fn connect_ends(
    spec: &ReceiverSpec,
    started: &Started,
    listening: ListeningPublisher,
    clock: Clock,
    is_returned: bool,
    reconnect: ReconnectPolicy,
) -> Result<Ends, ProtocolError> {
    let alone = |publisher| SendingEnd { publisher, returns: None };
    let (mut sending, protocol): (_, Box<dyn Protocol>) = match &spec.protocol {
        ReceiverProtocol::Udp { .. } => {
            (Udp.sender(started.address, clock, is_returned)?, Box::new(Udp))
        }
        ReceiverProtocol::Frames(stream) => {
            (alone(listening.0.ok_or(ProtocolError::Closed)?), frame_stream::protocol(stream))
        }
        ReceiverProtocol::Modbus(modbus) => {
            (alone(modbus::publisher(modbus, started.address, clock)?), Box::new(*modbus))
        }
        ReceiverProtocol::Direct { settings, .. } => {
            let publisher = match listening.0 {
                Some(publisher) => publisher,
                None => {
                    let local = unspecified(started.address.ip());
                    direct::publisher(settings, local, clock, Some(started.address))?.0
                }
            };
            (alone(publisher), Box::new(*settings))
        }
        ReceiverProtocol::Broker { clients, broker } => {
            let broker = match (broker, &started.broker) {
                (_, Some(started)) => started.address.clone(),
                (BrokerChoice::Given(broker), None) => broker.clone(),
                (BrokerChoice::Started(_), None) => return Err(ProtocolError::Closed),
            };
            let mut clients = clients.clone();
            clients.reconnect = reconnect;
            let protocol = ThroughBroker { clients, broker };
            (protocol.sender(clock, is_returned)?, Box::new(protocol))
        }
    };
    sending.publisher.await_subscriber()?;
    Ok(Ends { sending, protocol: protocol.name(), settings: protocol.settings() })
}

/// The address of this machine on the route to another one.
fn local_address(other: IpAddr) -> Result<IpAddr, ProtocolError> {
    let find = || -> std::io::Result<IpAddr> {
        let socket = UdpSocket::bind(SocketAddr::new(unspecified(other), 0))?;
        // A socket of UDP sends nothing to connect; the kernel looks up the route.
        socket.connect(SocketAddr::new(other, 9))?;
        Ok(socket.local_addr()?.ip())
    };
    find().map_err(ProtocolError::socket(format!("finding the route to {other}")))
}

const fn unspecified(family: IpAddr) -> IpAddr {
    match family {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}
