//! The packets of a series of messages, counted in a capture at the end of the publisher.

mod counter;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time;

use gridhaul_linux::{
    FrameBatch, PacketSocket, SleepBudget, SystemTime, request_realtime_priority,
    wait_for_receive_times,
};
use gridhaul_protocols::capture::CapturedPacket;
use gridhaul_scenario::units::{Duration, Instant};

use crate::method::sleep_until;
use crate::place::{Sites, StopOnDrop};
use crate::protocol::{Connected, Protocol, ProtocolError, Publisher, Received, Subscriber};

use self::counter::Counter;

pub use counter::{Phases, Selection, Traffic};

/// Kernel memory for the packets that are waiting.
const BUFFER: u32 = 64 << 20;

/// Packets that are read with one call.
const BATCH: usize = 32;

/// Longest packet.
const PACKET_MAX: usize = 65_600;

/// Time between two readings of the capture. The kernel records the times of the packets.
const INTERVAL: time::Duration = time::Duration::from_millis(10);

/// Time between the connection and the first message, in which the threads of the run start.
const LEAD: Duration = Duration::from_millis(200);

/// Time after the last arrival for acknowledgements that are delayed, at most 200 ms in Linux, and
/// for what is still under way.
const SETTLE: Duration = Duration::from_millis(500);

/// Longest wait for the arrival of messages after the last was sent.
const ARRIVE_WITHIN: Duration = Duration::from_secs(5);

/// Time in which the connections are closed.
const CLOSE_WITHIN: Duration = Duration::from_millis(200);

/// A series of messages.
#[derive(Debug, Clone, Copy)]
pub struct Series<'a> {
    /// The messages in the order in which they are sent.
    pub messages: &'a [Vec<u8>],
    /// Messages per second.
    pub rate: f64,
    /// The packets that carry them.
    pub selection: Selection,
}

/// Traffic of a series.
#[derive(Debug, Clone, Default)]
pub struct SeriesTraffic {
    /// Messages that the protocol accepted.
    pub sent: u64,
    /// Messages that arrived intact and in order.
    pub delivered: u64,
    /// The packets.
    pub phases: Phases,
    /// Packets that the capture has missed: the counts are then too small.
    pub missed: u64,
    /// Why the series ended early.
    pub fault: Option<String>,
}

/// Sends a series of messages, and counts the packets at the `from` end.
///
/// # Errors
/// The protocol cannot connect, or packets cannot be captured.
pub fn measure_traffic(
    series: &Series<'_>,
    protocol: &dyn Protocol,
    sites: &Sites<'_>,
    stop: &AtomicBool,
) -> Result<SeriesTraffic, ProtocolError> {
    let socket = sites.from.enter(|| PacketSocket::capture(BUFFER))?;
    let failed = |error| ProtocolError::socket("capturing packets")(io::Error::other(error));
    let capture = Capture::new(socket.map_err(failed)?, series.selection, sites);
    wait_for_receive_times();
    let Connected { mut publisher, mut subscriber } = protocol.connect(sites)?;
    let first = sites.clock.now() + LEAD;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let is_over = &is_over;
        let reader = scope.spawn(move || capture.read_until(is_over));
        // The reader ends also if this thread panics.
        let ends_reader = StopOnDrop(is_over);
        let mut found = thread::scope(|scope| {
            let sender = scope.spawn(|| send(series, &mut *publisher, first, sites, stop));
            let (delivered, fault) = receive(series, &mut *subscriber, first, sites, stop);
            let sent = sender.join().unwrap_or(0);
            SeriesTraffic { sent, delivered, fault, ..SeriesTraffic::default() }
        });
        rest(sites, SETTLE);
        let last = sites.clock.now();
        drop((publisher, subscriber));
        rest(sites, CLOSE_WITHIN);
        drop(ends_reader);
        let capture = match reader.join() {
            Ok(capture) => capture.map_err(ProtocolError::socket("capturing packets"))?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        (found.phases, found.missed) = (capture.phases([first, last]), capture.missed());
        if stop.load(Ordering::Relaxed) {
            found.fault.get_or_insert_with(|| "interrupted".into());
        }
        Ok(found)
    })
}

/// Sends the messages on schedule. Returns how many the protocol accepted.
fn send(
    series: &Series<'_>,
    publisher: &mut dyn Publisher,
    first: Instant,
    sites: &Sites<'_>,
    stop: &AtomicBool,
) -> u64 {
    request_realtime_priority();
    let mut budget = SleepBudget::default();
    let mut sent = 0;
    for (number, message) in series.messages.iter().enumerate() {
        let at = first + Duration::from_secs_f64(number as f64 / series.rate);
        sleep_until(at, sites.clock, &mut budget, || stop.load(Ordering::Relaxed));
        if stop.load(Ordering::Relaxed) {
            break;
        }
        sent += u64::from(publisher.publish(message).is_ok());
    }
    sent
}

/// Receives the messages. Returns how many arrived intact and in order, and a failure of the
/// connection.
fn receive(
    series: &Series<'_>,
    subscriber: &mut dyn Subscriber,
    first: Instant,
    sites: &Sites<'_>,
    stop: &AtomicBool,
) -> (u64, Option<String>) {
    let time = Duration::from_secs_f64(series.messages.len() as f64 / series.rate);
    let until = first + time + ARRIVE_WITHIN;
    let mut expected = series.messages.iter();
    let (mut delivered, mut message) = (0, Vec::new());
    while (delivered as usize) < series.messages.len()
        && sites.clock.now() < until
        && !stop.load(Ordering::Relaxed)
    {
        match subscriber.receive(&mut message) {
            // A message that was lost or changed is skipped.
            Ok(Received::Message(_)) => {
                delivered += u64::from(expected.any(|sent| *sent == message));
            }
            Ok(Received::Reconnected(_) | Received::Nothing) => {}
            Err(error) => return (delivered, Some(error.to_string())),
        }
    }
    (delivered, None)
}

#[expect(clippy::disallowed_methods, reason = "waits in real time for packets")]
fn rest(sites: &Sites<'_>, length: Duration) {
    let until = sites.clock.now() + length;
    while sites.clock.now() < until {
        thread::sleep(INTERVAL);
    }
}

/// The packets at the end of the publisher.
struct Capture {
    socket: PacketSocket,
    counter: Counter,
    times: SystemTime,
    batch: FrameBatch,
    /// Packets of the selection, with their times.
    packets: Vec<(Instant, Traffic)>,
    unusable: u64,
}

impl Capture {
    fn new(socket: PacketSocket, selection: Selection, sites: &Sites<'_>) -> Self {
        Self {
            socket,
            counter: Counter::new(selection),
            times: SystemTime::new(sites.clock),
            batch: FrameBatch::new(BATCH, PACKET_MAX),
            packets: Vec::new(),
            unusable: 0,
        }
    }

    /// Reads packets until `is_over`, and those that are waiting then.
    #[expect(clippy::disallowed_methods, reason = "reads packets in real time")]
    fn read_until(mut self, is_over: &AtomicBool) -> io::Result<Self> {
        loop {
            let is_last = is_over.load(Ordering::Relaxed);
            self.read()?;
            if is_last {
                return Ok(self);
            }
            self.times.update();
            thread::sleep(INTERVAL);
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let Self { socket, counter, times, batch, packets, unusable } = self;
        while socket.receive(batch)? > 0 {
            for frame in batch.frames() {
                let Some(received_at) = frame.received_at.filter(|_| !frame.truncated) else {
                    *unusable += 1;
                    continue;
                };
                let at = times.instant(received_at);
                let (outgoing, ether_type) = (frame.outgoing, frame.ether_type);
                let packet = CapturedPacket { at, outgoing, ether_type, bytes: frame.bytes };
                let counted = counter.count(&packet, frame.vlan.is_some());
                packets.extend(counted.map(|counted| (at, counted)));
            }
        }
        Ok(())
    }

    /// The packets by phase; messages pass from the first to the second time.
    fn phases(&self, times: [Instant; 2]) -> Phases {
        let mut phases = Phases::default();
        self.packets.iter().for_each(|(at, packet)| phases.add(*at, times, *packet));
        phases
    }

    fn missed(&self) -> u64 {
        self.unusable + u64::from(self.socket.dropped().unwrap_or(0))
    }
}
