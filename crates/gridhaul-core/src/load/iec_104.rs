//! IEC 60870-5-104: the frames of a controlled and of a controlling station after the start of data
//! transfer.

use gridhaul_scenario::scenario::{self, FlowEnd};
use gridhaul_scenario::units::{Bytes, Duration, Instant};

use super::Periodic;
use crate::random::RandomStream;

/// Both stations. The controlled station is the `from` end.
///
/// Call order: at each [`next_deadline`](Self::next_deadline), report the frames that
/// [`poll_ready`](Self::poll_ready) returns, and write those that [`poll_frame`](Self::poll_frame)
/// returns; call [`handle_frame`](Self::handle_frame) when a frame has been delivered completely.
#[derive(Debug, Clone)]
pub struct Iec104 {
    keys: scenario::Iec104,
    /// Times of the values. The second one is a copy, which has not passed the oldest frame that
    /// waits for the window.
    ready: Periodic,
    waiting: Periodic,
    waiting_frames: u64,
    /// Sent I frames without an acknowledgement.
    unacknowledged: u64,
    /// I frames that the controlling station has received since its last acknowledgement, and when
    /// timer t2 ends.
    owed: u64,
    acknowledge_at: Instant,
    /// Acknowledgements of `w` frames each that are to be written.
    full_acknowledgements: u64,
    /// Timer t3 and test frames of both stations.
    tests: [TestProcedure; 2],
    /// When a frame is to be written that does not wait for a timer.
    write_at: Instant,
}

/// Test frames of one station.
#[derive(Debug, Clone, Copy)]
struct TestProcedure {
    last_received: Instant,
    /// A test frame has no confirmation.
    is_unconfirmed: bool,
    /// The peer awaits a confirmation.
    owes_confirmation: bool,
}

/// A frame on the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iec104Frame {
    /// I frame with values that were ready at this time.
    Values(Instant),
    /// S frame that acknowledges this many I frames.
    Acknowledgement(u64),
    /// U frame TESTFR act.
    Test,
    /// U frame TESTFR con.
    TestConfirmation,
}

impl Iec104 {
    /// Stations whose values are ready from `start` on.
    #[must_use]
    pub fn new(keys: &scenario::Iec104, start: Instant, random: RandomStream) -> Self {
        let times = scenario::Periodic {
            size: Bytes::new(keys.frame_size()),
            every: keys.every,
            jitter: Duration::ZERO,
            synchronised: keys.synchronised,
        };
        let ready = Periodic::new(&times, start, random);
        let tests = TestProcedure {
            last_received: ready.next_time(),
            is_unconfirmed: false,
            owes_confirmation: false,
        };
        Self {
            keys: *keys,
            waiting: ready.clone(),
            ready,
            waiting_frames: 0,
            unacknowledged: 0,
            owed: 0,
            acknowledge_at: Instant::NEVER,
            full_acknowledgements: 0,
            tests: [tests; 2],
            write_at: Instant::NEVER,
        }
    }

    /// Size of a frame in bytes.
    #[must_use]
    pub fn size(&self, frame: Iec104Frame) -> u64 {
        match frame {
            Iec104Frame::Values(_) => self.keys.frame_size(),
            _ => scenario::Iec104::CONTROL_FRAME,
        }
    }

    /// When the first values are ready, before any frame.
    #[must_use]
    pub const fn first_ready(&self) -> Instant {
        self.waiting.next_time()
    }

    /// When values are ready, or a frame is to be written.
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        let [from, to] = self.tests.map(|test| test.due(self.keys.t3));
        self.ready.next_time().min(self.write_at).min(self.acknowledge_at).min(from).min(to)
    }

    /// The time of values that are ready by now and have not been returned before.
    pub fn poll_ready(&mut self, now: Instant) -> Option<Instant> {
        let ready = (self.ready.next_time() <= now).then(|| self.ready.next_message().at)?;
        self.waiting_frames += 1;
        Some(ready)
    }

    /// The next frame to write by now, and its sender.
    pub fn poll_frame(&mut self, now: Instant) -> Option<(FlowEnd, Iec104Frame)> {
        let frame = self.poll_test(now).or_else(|| self.poll_values());
        let frame = frame.or_else(|| self.poll_acknowledgement(now));
        if frame.is_none() {
            self.write_at = Instant::NEVER;
        }
        frame
    }

    fn poll_test(&mut self, now: Instant) -> Option<(FlowEnd, Iec104Frame)> {
        for end in [FlowEnd::From, FlowEnd::To] {
            let test = &mut self.tests[end as usize];
            if std::mem::take(&mut test.owes_confirmation) {
                return Some((end, Iec104Frame::TestConfirmation));
            }
            if test.due(self.keys.t3) <= now {
                test.is_unconfirmed = true;
                return Some((end, Iec104Frame::Test));
            }
        }
        None
    }

    fn poll_values(&mut self) -> Option<(FlowEnd, Iec104Frame)> {
        if self.waiting_frames == 0 || self.unacknowledged >= u64::from(self.keys.k) {
            return None;
        }
        self.waiting_frames -= 1;
        self.unacknowledged += 1;
        Some((FlowEnd::From, Iec104Frame::Values(self.waiting.next_message().at)))
    }

    fn poll_acknowledgement(&mut self, now: Instant) -> Option<(FlowEnd, Iec104Frame)> {
        let frames = if self.full_acknowledgements > 0 {
            self.full_acknowledgements -= 1;
            u64::from(self.keys.w)
        } else if self.acknowledge_at <= now {
            self.acknowledge_at = Instant::NEVER;
            std::mem::take(&mut self.owed)
        } else {
            return None;
        };
        Some((FlowEnd::To, Iec104Frame::Acknowledgement(frames)))
    }

    /// A frame has been delivered at an end. Returns the time at which its values were ready.
    pub fn handle_frame(
        &mut self,
        now: Instant,
        end: FlowEnd,
        frame: Iec104Frame,
    ) -> Option<Instant> {
        let test = &mut self.tests[end as usize];
        test.last_received = now;
        match frame {
            Iec104Frame::Values(ready) => {
                self.owed += 1;
                if self.owed == 1 {
                    self.acknowledge_at = now + self.keys.t2;
                }
                // The number of an acknowledgement is that of the frame which caused it, also if
                // further frames arrive in the same segment.
                if self.owed >= u64::from(self.keys.w) {
                    self.owed = 0;
                    self.full_acknowledgements += 1;
                    self.acknowledge_at = Instant::NEVER;
                    self.write_at = now;
                }
                return Some(ready);
            }
            Iec104Frame::Acknowledgement(frames) => {
                self.unacknowledged -= frames.min(self.unacknowledged);
                if self.waiting_frames > 0 {
                    self.write_at = now;
                }
            }
            Iec104Frame::Test => {
                test.owes_confirmation = true;
                self.write_at = now;
            }
            Iec104Frame::TestConfirmation => test.is_unconfirmed = false,
        }
        None
    }

    /// When the values of the frames that wait for the window were ready.
    pub fn waiting(&self) -> impl Iterator<Item = Instant> + use<> {
        let mut waiting = self.waiting.clone();
        (0..self.waiting_frames).map(move |_| waiting.next_message().at)
    }
}

impl TestProcedure {
    /// When the station sends a test frame.
    fn due(&self, t3: Duration) -> Instant {
        if self.is_unconfirmed { Instant::NEVER } else { self.last_received + t3 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn stations(every: u64, [k, w]: [u16; 2]) -> Iec104 {
        let keys = scenario::Iec104 {
            values: 4,
            every: Duration::from_millis(every),
            synchronised: true,
            k,
            w,
            t2: Duration::from_secs(10),
            t3: Duration::from_secs(20),
        };
        Iec104::new(&keys, at(0), RandomStream::named(1, 0, "station", 0, "load"))
    }

    fn frames(stations: &mut Iec104, now: u64) -> Vec<(FlowEnd, Iec104Frame)> {
        while stations.poll_ready(at(now)).is_some() {}
        std::iter::from_fn(|| stations.poll_frame(at(now))).collect()
    }

    fn values(millis: u64) -> (FlowEnd, Iec104Frame) {
        (FlowEnd::From, Iec104Frame::Values(at(millis)))
    }

    #[test]
    fn k_frames_are_in_transit_until_w_are_acknowledged() {
        let mut stations = stations(100, [3, 2]);
        assert_eq!(frames(&mut stations, 400), [values(0), values(100), values(200)]);
        assert_eq!(stations.waiting().collect::<Vec<_>>(), [at(300), at(400)]);
        for (millis, frame) in [(500, values(0).1), (510, values(100).1)] {
            assert_eq!(stations.next_deadline(), at(500));
            assert!(stations.handle_frame(at(millis), FlowEnd::To, frame).is_some());
        }
        let acknowledgement = Iec104Frame::Acknowledgement(2);
        assert_eq!(
            std::iter::from_fn(|| stations.poll_frame(at(510))).collect::<Vec<_>>(),
            [(FlowEnd::To, acknowledgement)]
        );
        assert_eq!(stations.handle_frame(at(520), FlowEnd::From, acknowledgement), None);
        assert_eq!(stations.next_deadline(), at(500), "values are ready");
        assert_eq!(frames(&mut stations, 520), [values(300), values(400)]);
        assert_eq!(stations.size(values(0).1), 6 + 6 + 4 * 15);
    }

    #[test]
    fn timers_acknowledge_single_frames_and_test_idle_connections() {
        let mut stations = stations(60_000, [12, 8]);
        assert_eq!(frames(&mut stations, 0), [values(0)]);
        stations.handle_frame(at(200), FlowEnd::To, values(0).1);
        assert_eq!(stations.next_deadline(), at(10_200));
        let acknowledgement = Iec104Frame::Acknowledgement(1);
        assert_eq!(frames(&mut stations, 10_200), [(FlowEnd::To, acknowledgement)]);
        stations.handle_frame(at(10_400), FlowEnd::From, acknowledgement);
        // The controlling station has received nothing since 200 ms.
        assert_eq!(stations.next_deadline(), at(20_200));
        assert_eq!(frames(&mut stations, 20_200), [(FlowEnd::To, Iec104Frame::Test)]);
        assert_eq!(stations.next_deadline(), at(30_400), "the test has no confirmation");
        stations.handle_frame(at(20_400), FlowEnd::From, Iec104Frame::Test);
        let confirmation = (FlowEnd::From, Iec104Frame::TestConfirmation);
        assert_eq!(stations.next_deadline(), at(20_400));
        assert_eq!(frames(&mut stations, 20_400), [confirmation]);
        stations.handle_frame(at(20_600), FlowEnd::To, confirmation.1);
        assert_eq!(stations.next_deadline(), at(40_400));
    }
}
