//! A client of a broker whose protocol is a machine without input or output.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use gridhaul_protocols::endpoint::{Endpoint, NotSent};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::client::{Library, Ports, Report};
use super::connection::Connector;

/// Output that the socket has not accepted: with more, messages stay in the queue of the client.
const OUTPUT_MAX: usize = 1 << 20;

/// Longest time between two checks of the timers.
const TICK: std::time::Duration = std::time::Duration::from_millis(100);

/// Bytes of one read.
const READ: usize = 1 << 14;

/// A client with a machine of its own for each connection.
pub(super) struct EndpointClient<F> {
    /// Name of the protocol in errors.
    pub(super) name: &'static str,
    pub(super) connector: Connector,
    /// Whether messages of the measurement are sent.
    pub(super) publishes: bool,
    /// A machine that is not connected.
    pub(super) endpoint: F,
}

impl<E: Endpoint, F: Fn() -> E + Send + 'static> Library for EndpointClient<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn session(&self, ports: &mut Ports) -> Result<(), String> {
        let stream = self.connector.open().await.map_err(text)?;
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut line = Line { endpoint: (self.endpoint)(), output: Vec::new(), blocked: None };
        let (messages, report) = ports.split();
        line.endpoint.open(report.now());
        let mut tick = tokio::time::interval(TICK);
        let mut buffer = vec![0; READ];
        let mut is_established = false;
        loop {
            line.endpoint.poll_output(&mut line.output);
            let is_ready = line.endpoint.is_ready();
            if is_ready && !is_established {
                is_established = true;
                report.established();
            }
            let accepts = is_ready && line.blocked.is_none() && line.output.len() < OUTPUT_MAX;
            let has_output = !line.output.is_empty();
            tokio::select! {
                // Each message is written before the next one is taken, so that it is a segment of
                // its own where the window permits.
                biased;
                _ = tick.tick() => line.endpoint.handle_time(report.now()).map_err(text)?,
                sent = send(&mut writer, &mut line.output), if has_output => sent.map_err(text)?,
                read = reader.read(&mut buffer) => match read.map_err(text)? {
                    0 => return Err("the server has closed the connection".into()),
                    length => line.handle_input(&buffer[..length], report)?,
                },
                message = messages.recv(), if accepts => match message {
                    Some(message) if self.publishes => line.publish(message, report)?,
                    Some(_) => {}
                    None => break,
                },
            }
        }
        line.endpoint.close();
        line.endpoint.poll_output(&mut line.output);
        send(&mut writer, &mut line.output).await.map_err(text)?;
        writer.shutdown().await.map_err(text)
    }
}

/// A machine, and what lies between it and the socket.
struct Line<E> {
    endpoint: E,
    /// Bytes that the socket has not accepted yet.
    output: Vec<u8>,
    /// A message for which the window of the machine has no space yet.
    blocked: Option<Vec<u8>>,
}

impl<E: Endpoint> Line<E> {
    fn handle_input(&mut self, bytes: &[u8], report: &Report) -> Result<(), String> {
        let at = report.now();
        self.endpoint.handle_input(bytes, at).map_err(text)?;
        while let Some(message) = self.endpoint.poll_message() {
            report.arrived(at, message);
        }
        match self.blocked.take() {
            Some(message) => self.publish(message, report),
            None => Ok(()),
        }
    }

    fn publish(&mut self, message: Vec<u8>, report: &Report) -> Result<(), String> {
        match self.endpoint.publish(&message, report.now()) {
            Ok(()) => Ok(()),
            Err(NotSent::WindowFull) => {
                self.blocked = Some(message);
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Hands all output to the socket. What is accepted is removed at once, so that the call may be
/// abandoned.
async fn send(writer: &mut (impl AsyncWrite + Unpin), output: &mut Vec<u8>) -> io::Result<()> {
    poll_fn(|context| poll_send(Pin::new(&mut *writer), output, context)).await
}

fn poll_send(
    mut writer: Pin<&mut (impl AsyncWrite + Unpin)>,
    output: &mut Vec<u8>,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while !output.is_empty() {
        let accepted = ready!(writer.as_mut().poll_write(context, output))?;
        if accepted == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        output.drain(..accepted);
    }
    // TLS keeps records that the socket has not accepted.
    writer.poll_flush(context)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
