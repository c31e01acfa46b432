//! Protocols over TCP without a broker, with their ends on two machines.

use std::net::SocketAddr;

use gridhaul_linux::Clock;
use gridhaul_protocols::endpoint::Endpoint;

use super::{End, Source, StreamPublisher, StreamSettings, listen};
use crate::place::Site;
use crate::protocol::{ProtocolError, Publisher, ReceivingEnd};

/// One of two ends, when the other one is on another machine.
#[derive(Debug)]
pub(in crate::protocol) struct Streams<'a> {
    pub(in crate::protocol) settings: StreamSettings,
    pub(in crate::protocol) site: Site<'a>,
    pub(in crate::protocol) clock: Clock,
}

impl Streams<'_> {
    /// The end that receives. It connects to `publisher`, or listens if there is none.
    pub(in crate::protocol) fn receiver(
        &self,
        endpoint: Box<dyn Endpoint>,
        publisher: Option<SocketAddr>,
    ) -> Result<ReceivingEnd, ProtocolError> {
        let (end, address) = self.open(endpoint, publisher)?;
        Ok(ReceivingEnd { subscriber: Box::new(end), address })
    }

    /// The end that sends. It connects to `subscriber`, or listens if there is none; its subscriber
    /// is awaited later.
    pub(in crate::protocol) fn publisher(
        &self,
        endpoint: Box<dyn Endpoint>,
        subscriber: Option<SocketAddr>,
    ) -> Result<(Box<dyn Publisher>, SocketAddr), ProtocolError> {
        let (end, address) = self.open(endpoint, subscriber)?;
        let awaited = subscriber.is_none().then_some((self.settings.protocol, address));
        Ok((Box::new(StreamPublisher { end, awaited }), address))
    }

    /// An end, with the address at which it listens, or of its peer.
    fn open(
        &self,
        endpoint: Box<dyn Endpoint>,
        peer: Option<SocketAddr>,
    ) -> Result<(End, SocketAddr), ProtocolError> {
        let (source, address) = match peer {
            Some(peer) => (Source::Connect(peer), peer),
            None => {
                let (listener, address) = listen(&self.site, self.settings.port)?;
                (Source::Listen(listener), address)
            }
        };
        let end = End::start(self.settings, &self.site, source, self.clock, endpoint)?;
        if peer.is_some() {
            end.await_ready(self.settings.protocol, address)?;
        }
        Ok((end, address))
    }
}
