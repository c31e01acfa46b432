//! Cross traffic: packets of other applications on the path of the messages, as a Poisson process.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use gridhaul_core::random::RandomStream;
use gridhaul_core::wire::EtherType;
use gridhaul_linux::{Clock, SleepBudget, request_realtime_priority};
use gridhaul_protocols::process_bus::ether_type;
use gridhaul_scenario::units::{BitRate, Duration};

use super::frame_link::{self, FrameReceiver, FrameSender};
use super::sampled_values::SOURCE;
use super::udp::{UdpPublisher, UdpSubscriber, open};
use super::{ProtocolError, RECEIVE_WAIT, Received, Subscriber};
use crate::measurement::CrossTrafficSettings;
use crate::place::{Sites, StopOnDrop};

/// Time without a packet after which none is expected any more.
const SETTLE: Duration = Duration::from_secs(1);

/// Headers of a datagram: UDP (RFC 768), and IPv4 (RFC 791, section 3.1) or IPv6 (RFC 8200, section
/// 3).
const UDP_IPV4: usize = 8 + 20;
const UDP_IPV6: usize = 8 + 40;

/// EtherType of frames: the first local experimental one (IEEE 802, clause 9.2.3).
const EXPERIMENTAL: u16 = 0x88b5;

/// Destination of frames: a locally administered group address.
const DESTINATION: [u8; 6] = [0x03, 0x67, 0x68, 0x00, 0x00, 0x02];

/// Longest sleep, so that the end of the measurement is noticed.
const LONGEST_SLEEP: std::time::Duration = std::time::Duration::from_millis(20);

/// Seed of the process: each run has the same packets.
const SEED: u64 = 1;

/// Direction of cross traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the `from` end to the `to` end.
    Forward,
    /// From the `to` end to the `from` end.
    Reverse,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
        })
    }
}

/// A background load between both ends: datagrams, or Ethernet frames on a network of Ethernet
/// links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrossTraffic {
    /// Direction on the path of the messages.
    pub direction: Direction,
    /// Mean rate, headers of the network layer (or of Ethernet) included.
    pub rate: BitRate,
    /// Bytes of a packet with these headers.
    pub packet: usize,
}

/// Counters of the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrossTrafficCounts {
    /// The load.
    pub load: CrossTraffic,
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Time in which they were sent.
    pub time: Duration,
}

impl CrossTrafficCounts {
    /// Mean rate that was sent, in bit/s. A machine that is too slow sends less than the intended
    /// rate.
    #[must_use]
    pub fn offered(&self) -> f64 {
        if self.time.is_zero() {
            return 0.0;
        }
        (self.sent * 8 * self.load.packet as u64) as f64 / self.time.as_secs_f64()
    }
}

impl CrossTraffic {
    /// The loads in both directions that a measurement requests.
    pub(crate) fn requested(settings: &CrossTrafficSettings) -> Vec<Self> {
        let packet = usize::from(settings.packet_bytes);
        let directions =
            [(Direction::Forward, settings.forward), (Direction::Reverse, settings.reverse)];
        let load = |(direction, rate): (_, Option<BitRate>)| {
            rate.map(|rate| Self { direction, rate, packet })
        };
        directions.into_iter().filter_map(load).collect()
    }

    /// Mean time between two packets.
    pub(crate) fn every(&self) -> Duration {
        Duration::from_secs_f64(8.0 * self.packet as f64 / self.rate.as_bits_per_sec() as f64)
    }

    /// Bytes of a datagram without its headers.
    pub(crate) fn datagram_bytes(&self, is_ipv6: bool) -> usize {
        self.packet.saturating_sub(if is_ipv6 { UDP_IPV6 } else { UDP_IPV4 })
    }

    /// Runs `work` during these loads, and returns its result and what became of the packets.
    ///
    /// # Errors
    /// A socket cannot be opened, or failed.
    pub fn run_during<T>(
        loads: &[Self],
        sites: &Sites<'_>,
        work: impl FnOnce() -> T,
    ) -> Result<(T, Vec<CrossTrafficCounts>), ProtocolError> {
        let open: Result<Vec<_>, _> = loads.iter().map(|load| load.open(sites)).collect();
        let (open, stop, clock) = (open?, AtomicBool::new(false), sites.clock);
        thread::scope(|scope| {
            let run = |(load, (sender, receiver)): (&Self, (Sender, Receiver))| {
                let (load, stop) = (*load, &stop);
                let sending = scope.spawn(move || load.send(&sender, clock, stop));
                let receiving = scope.spawn(move || receiver.count(clock, stop));
                (load, sending, receiving)
            };
            let running: Vec<_> = loads.iter().zip(open).map(run).collect();
            let done = {
                let _stop = StopOnDrop(&stop);
                work()
            };
            let counts = running.into_iter().map(|(load, sending, receiving)| {
                let joined = (sending.join(), receiving.join());
                let ((sent, time), delivered) = match joined {
                    (Ok(sending), Ok(receiving)) => (sending, receiving?),
                    (Err(panic), _) | (_, Err(panic)) => std::panic::resume_unwind(panic),
                };
                Ok(CrossTrafficCounts { load, sent, delivered, time })
            });
            let counts: Result<Vec<_>, ProtocolError> = counts.collect();
            Ok((done, counts?))
        })
    }

    fn open(&self, sites: &Sites<'_>) -> Result<(Sender, Receiver), ProtocolError> {
        let [from, to] = match self.direction {
            Direction::Forward => [sites.from, sites.to],
            Direction::Reverse => [sites.to, sites.from],
        };
        let sites = &Sites { from, to, kernel_times: false, ..*sites };
        if sites.from.device.is_some() {
            let receiver = frame_link::receiver(frame_link::receiver_place(sites))?;
            let sender = frame_link::sender(&sites.from)?;
            return Ok((Sender::Frames(sender), Receiver::Frames(Box::new(receiver))));
        }
        let receiver = UdpSubscriber::new(open(&sites.to)?, sites.clock, false)?;
        let address = receiver.socket().local_addr();
        let address = address.map_err(ProtocolError::socket("reading an address"))?;
        let sender = UdpPublisher::new(open(&sites.from)?, address)?;
        Ok((Sender::Datagrams(sender), Receiver::Datagrams(receiver)))
    }

    /// Sends packets until `stop`; returns their number and the time that this took.
    #[expect(clippy::disallowed_methods, reason = "a load in real time")]
    fn send(&self, sender: &Sender, clock: Clock, stop: &AtomicBool) -> (u64, Duration) {
        let packet = self.contents(sender);
        let mean = self.every();
        let purpose = self.direction.to_string();
        let mut random = RandomStream::named(SEED, 0, "cross_traffic", 0, &purpose);
        // A thread that wakes late would send packets in clumps.
        request_realtime_priority();
        let mut budget = SleepBudget::default();
        let start = clock.now();
        let (mut next, mut sent) = (start, 0);
        while !stop.load(Ordering::Relaxed) {
            // With more packets than the machine can send, other threads still run.
            if let Some(time) = budget.must_yield() {
                thread::sleep(time);
            }
            // The times do not depend on lateness: packets that are late are sent at once.
            let wait = clock.until(next);
            if !wait.is_zero() {
                thread::sleep(wait.min(LONGEST_SLEEP));
                continue;
            }
            sent += u64::from(sender.send(&packet));
            next += random.exponential(mean);
        }
        (sent, clock.now().since(start))
    }

    /// A packet without the headers that the kernel adds.
    fn contents(&self, sender: &Sender) -> Vec<u8> {
        match sender {
            Sender::Datagrams(sender) => vec![0x55; self.datagram_bytes(sender.is_ipv6())],
            Sender::Frames(_) => {
                let mut frame = [DESTINATION, SOURCE].concat();
                frame.extend(EXPERIMENTAL.to_be_bytes());
                frame.resize(self.packet, 0x55);
                frame
            }
        }
    }
}

enum Sender {
    Datagrams(UdpPublisher),
    Frames(FrameSender),
}

impl Sender {
    /// Whether the kernel has accepted the packet.
    fn send(&self, packet: &[u8]) -> bool {
        match self {
            Self::Datagrams(sender) => sender.send(packet).is_ok(),
            Self::Frames(sender) => sender.send(packet).is_ok(),
        }
    }
}

enum Receiver {
    Datagrams(UdpSubscriber),
    Frames(Box<FrameReceiver>),
}

impl Receiver {
    /// Counts packets until `stop`, and then those that are still on their way.
    fn count(mut self, clock: Clock, stop: &AtomicBool) -> Result<u64, ProtocolError> {
        let (mut count, mut message) = (0, Vec::new());
        let mut last = clock.now();
        while !stop.load(Ordering::Relaxed) || clock.now() < last + SETTLE {
            let arrived = match &mut self {
                Self::Datagrams(receiver) => receiver.receive(&mut message)? != Received::Nothing,
                Self::Frames(receiver) => {
                    let frame = receiver.receive(clock.now() + RECEIVE_WAIT)?;
                    frame.is_some_and(|received| {
                        ether_type(received.bytes) == Some(EtherType(EXPERIMENTAL))
                    })
                }
            };
            if arrived {
                count += 1;
                last = clock.now();
            }
        }
        Ok(count)
    }
}
