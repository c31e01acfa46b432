//! Modbus/TCP with tokio-modbus: a client that writes registers of a server.

use std::future::{Ready, ready};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time;

use gridhaul_linux::{Clock, request_realtime_priority};
use gridhaul_protocols::modbus::{MESSAGE_MAX, message, registers};
use gridhaul_protocols::settings::Modbus;
use gridhaul_scenario::units::Instant;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_modbus::client::{Writer, tcp};
use tokio_modbus::server::Service;
use tokio_modbus::server::tcp::Server;
use tokio_modbus::{ExceptionCode, Request, Response};

use super::client::{ClientStart, ClientSubscriber, Library, Ports};
use super::reconnect::reconnect_settings;
use super::{
    Connected, Protocol, ProtocolError, Publisher, RECEIVE_WAIT, Received, ReceivingEnd, Subscriber,
};
use crate::place::{Site, Sites};
use crate::settings::Settings;

/// Name of the protocol.
const NAME: &str = "modbus-tcp";

/// Requests that have arrived and not been read.
const QUEUE: usize = 100_000;

impl Protocol for Modbus {
    fn name(&self) -> &'static str {
        NAME
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.push("nodelay", self.nodelay.to_string());
        settings.push("function", "16 (write multiple registers)");
        settings.push("outstanding_requests", "1");
        settings.extend(reconnect_settings(self.reconnect));
        settings
    }

    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
        let server = ModbusServer::start(self, &sites.to, sites.clock)?;
        let client = client(self, &sites.from, server.address, sites.clock)?;
        let publisher = client.publisher(self.reconnect.queue, MESSAGE_MAX);
        let subscriber = ModbusSubscriber { client: Some(client), server };
        Ok(Connected { publisher: Box::new(publisher), subscriber: Box::new(subscriber) })
    }
}

/// The server alone, at this address.
///
/// # Errors
/// The socket cannot be opened.
pub(crate) fn receiver(
    modbus: &Modbus,
    address: IpAddr,
    clock: Clock,
) -> Result<ReceivingEnd, ProtocolError> {
    let server = ModbusServer::start(modbus, &Site::at(address), clock)?;
    let address = server.address;
    let subscriber = Box::new(ModbusSubscriber { client: None, server });
    Ok(ReceivingEnd { subscriber, address })
}

/// The client alone, of a server on another machine.
///
/// # Errors
/// The server does not answer.
pub(crate) fn publisher(
    modbus: &Modbus,
    server: SocketAddr,
    clock: Clock,
) -> Result<Box<dyn Publisher>, ProtocolError> {
    let client = client(modbus, &Sites::loopback().from, server, clock)?;
    Ok(Box::new(client.publisher(modbus.reconnect.queue, MESSAGE_MAX)))
}

fn client(
    modbus: &Modbus,
    site: &Site<'_>,
    address: SocketAddr,
    clock: Clock,
) -> Result<ClientSubscriber, ProtocolError> {
    let client = Client { address, nodelay: modbus.nodelay };
    let reconnect_after = modbus.reconnect.after;
    ClientStart { site, address, clock, reconnect_after }.start(client)
}

/// The client, which has one outstanding request, as the protocol's implementation guide recommends
/// for small devices.
struct Client {
    address: SocketAddr,
    nodelay: bool,
}

impl Library for Client {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn session(&self, ports: &mut Ports) -> Result<(), String> {
        let stream = TcpStream::connect(self.address).await.map_err(text)?;
        stream.set_nodelay(self.nodelay).map_err(text)?;
        let mut client = tcp::attach(stream);
        let (messages, report) = ports.split();
        report.established();
        while let Some(message) = messages.recv().await {
            let written = client.write_multiple_registers(0, &registers(&message)).await;
            written.map_err(text)?.map_err(text)?;
        }
        Ok(())
    }
}

/// The server, in a thread of its own.
#[derive(Debug)]
struct ModbusServer {
    address: SocketAddr,
    arrivals: Receiver<(Instant, Vec<u8>)>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ModbusServer {
    fn start(modbus: &Modbus, site: &Site<'_>, clock: Clock) -> Result<Self, ProtocolError> {
        let &Modbus { port, nodelay, .. } = modbus;
        let wanted = SocketAddr::new(site.address, port);
        let failed = |source| ProtocolError::Listen { address: wanted, source };
        let listener = site.enter(|| TcpListener::bind(wanted))?.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let (messages, arrivals) = sync_channel(QUEUE);
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            request_realtime_priority();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            // Without a runtime the client reports that the server does not answer.
            if let Ok(runtime) = runtime {
                runtime.block_on(serve(listener, nodelay, &Registers { messages, clock }, stopped));
            }
        });
        Ok(Self { address, arrivals, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for ModbusServer {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Serves clients until `stopped`.
async fn serve(
    listener: TcpListener,
    nodelay: bool,
    registers: &Registers,
    stopped: oneshot::Receiver<()>,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let accept = async |stream: TcpStream, _| {
        stream.set_nodelay(nodelay)?;
        Ok(Some((registers.clone(), stream)))
    };
    let server = Server::new(listener);
    tokio::select! {
        _ = server.serve(&accept, |_| {}) => {}
        _ = stopped => {}
    }
}

/// The registers of the server: each request is a message, and nothing is kept.
#[derive(Debug, Clone)]
struct Registers {
    messages: SyncSender<(Instant, Vec<u8>)>,
    clock: Clock,
}

impl Service for Registers {
    type Request = Request<'static>;
    type Response = Response;
    type Exception = ExceptionCode;
    type Future = Ready<Result<Response, ExceptionCode>>;

    fn call(&self, request: Self::Request) -> Self::Future {
        let at = self.clock.now();
        let Request::WriteMultipleRegisters(address, registers) = request else {
            return ready(Err(ExceptionCode::IllegalFunction));
        };
        let Some(message) = message(&registers) else {
            return ready(Err(ExceptionCode::IllegalDataValue));
        };
        // A full queue or the end of the measurement: the client learns that the request was not
        // executed.
        let queued = self.messages.try_send((at, message));
        ready(match queued {
            Ok(()) => Ok(Response::WriteMultipleRegisters(address, registers.len() as u16)),
            Err(_) => Err(ExceptionCode::ServerDeviceBusy),
        })
    }
}

/// The server, and the client for its reconnections if that is on the same machine.
#[derive(Debug)]
struct ModbusSubscriber {
    client: Option<ClientSubscriber>,
    server: ModbusServer,
}

impl Subscriber for ModbusSubscriber {
    fn receive(&mut self, message: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        if let Some(at) = self.client.as_ref().and_then(ClientSubscriber::reconnected) {
            return Ok(Received::Reconnected(at));
        }
        let wait = time::Duration::from_nanos(RECEIVE_WAIT.as_nanos());
        match self.server.arrivals.recv_timeout(wait) {
            Ok((at, arrived)) => {
                *message = arrived;
                Ok(Received::Message(at.into()))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Received::Nothing),
            Err(RecvTimeoutError::Disconnected) => Err(ProtocolError::Closed),
        }
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use gridhaul_protocols::overhead::direct;
    use gridhaul_protocols::settings::ReconnectPolicy;

    use super::*;

    /// A request as the library sends it has the bytes of the formula.
    #[test]
    fn the_formula_is_the_length_of_a_request() {
        let sites = crate::place::Sites::loopback();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let library = Client { address, nodelay: true };
        let after = ReconnectPolicy::default().after;
        let (site, clock, reconnect_after) = (&sites.from, sites.clock, after);
        let client = ClientStart { site, address, clock, reconnect_after };
        let client = client.start(library).unwrap();
        let mut publisher = client.publisher(false, MESSAGE_MAX);
        let (mut socket, _) = listener.accept().unwrap();
        for payload in [0, 1, 16, 132, 243, 244] {
            crate::protocol::Publisher::publish(&mut publisher, &vec![7; payload]).unwrap();
            let mut request = vec![0; payload + direct::modbus(payload as u64) as usize];
            socket.read_exact(&mut request).unwrap();
            // The length in the header counts what follows it.
            let length = usize::from(u16::from_be_bytes([request[4], request[5]]));
            assert_eq!((length, request[7]), (request.len() - 6, 16), "{payload} bytes");
            let answer = [&request[..4], &[0, 6], &request[6..12]].concat();
            socket.write_all(&answer).unwrap();
        }
    }
}
