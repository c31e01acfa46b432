//! Captures in the namespaces of a measurement: packet sockets whose packets go to the taps of
//! [`gridhaul_protocols::capture`].

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time;

use gridhaul_linux::{FrameBatch, PacketSocket, SystemTime, wait_for_receive_times};
use gridhaul_protocols::capture::{
    CapturedPacket, MessageScanner, Route, Sighting, Tap, TapCounters,
};
use gridhaul_scenario::units::Duration;

use crate::place::Sites;
use crate::protocol::ProtocolError;

/// Kernel memory for the packets of a namespace that are waiting, some 80,000 small ones.
const BUFFER: u32 = 64 << 20;

/// Packets that are read with one call.
const BATCH: usize = 32;

/// Longest packet: the largest IP packet, which the loopback device carries in one piece.
const PACKET_MAX: usize = 65_600;

/// Time between two readings. The kernel records the times of the packets, so that the thread need
/// not run for each one, which would delay what is measured.
const INTERVAL: time::Duration = time::Duration::from_millis(10);

/// Captures in all namespaces of a measurement.
#[derive(Debug)]
pub struct Recording {
    taps: Vec<(PacketSocket, Tap)>,
    times: SystemTime,
    batch: FrameBatch,
    report: CaptureReport,
}

/// How complete the captures of a run are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CaptureReport {
    /// Packets that did not fit into the buffers of the kernel.
    pub dropped_packets: u64,
    /// Packets without a time of the kernel, or longer than the space for them.
    pub unusable_packets: u64,
    /// Counters of the taps.
    pub counters: TapCounters,
    /// Largest step of the system's clock during the run; the times of the captures around it are
    /// invalid.
    pub clock_step: Duration,
    /// Why the captures ended early.
    pub fault: Option<String>,
}

impl Recording {
    /// Opens the captures. They see the packets from now on.
    ///
    /// # Errors
    /// The caller lacks `CAP_NET_RAW`.
    pub fn open(
        sites: &Sites<'_>,
        route: Route,
        scanner: &MessageScanner,
    ) -> Result<Self, ProtocolError> {
        let mut taps = Vec::new();
        for site in sites.namespaces() {
            let opened = site.enter(|| PacketSocket::capture(BUFFER))?;
            let failed = |error| ProtocolError::socket("--capture")(io::Error::other(error));
            taps.push((opened.map_err(failed)?, Tap::new(route, scanner.clone())));
        }
        wait_for_receive_times();
        Ok(Self {
            taps,
            times: SystemTime::new(sites.clock),
            batch: FrameBatch::new(BATCH, PACKET_MAX),
            report: CaptureReport::default(),
        })
    }

    /// Reads packets until `is_over`, and those that are waiting then. Calls `found` for each
    /// message.
    #[expect(clippy::disallowed_methods, reason = "reads packets in real time")]
    pub fn run(mut self, is_over: &AtomicBool, mut found: impl FnMut(Sighting)) -> CaptureReport {
        loop {
            let is_last = is_over.load(Ordering::Relaxed);
            if let Err(error) = self.read(&mut found) {
                self.report.fault = Some(format!("capturing packets: {error}"));
                break;
            }
            let step = self.times.update();
            self.report.clock_step = self.report.clock_step.max(step);
            if is_last {
                break;
            }
            thread::sleep(INTERVAL);
        }
        for (socket, tap) in &self.taps {
            self.report.dropped_packets += u64::from(socket.dropped().unwrap_or(0));
            let counters = tap.counters();
            self.report.counters.retransmissions += counters.retransmissions;
            self.report.counters.missed_bytes += counters.missed_bytes;
        }
        self.report
    }

    /// Reads the packets that are waiting.
    fn read(&mut self, found: &mut impl FnMut(Sighting)) -> io::Result<()> {
        let Self { taps, times, batch, report } = self;
        for (socket, tap) in taps {
            while socket.receive(batch)? > 0 {
                for frame in batch.frames() {
                    let Some(received_at) = frame.received_at.filter(|_| !frame.truncated) else {
                        report.unusable_packets += 1;
                        continue;
                    };
                    let packet = CapturedPacket {
                        at: times.instant(received_at),
                        outgoing: frame.outgoing,
                        ether_type: frame.ether_type,
                        bytes: frame.bytes,
                    };
                    tap.handle_packet(&packet, found);
                }
            }
        }
        Ok(())
    }
}
