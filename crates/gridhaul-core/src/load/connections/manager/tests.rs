//! A member over a path without loss on which each write arrives after a fixed time.

use gridhaul_scenario::scenario::{Reconnect, Tls, TlsVersion};

use super::*;
use crate::load::connections::tls::TlsFlights;
use crate::load::connections::tls::tests::keys;
use crate::load::{Carrier, Message};

/// One-way delay of the path in milliseconds.
const DELAY: u64 = 10;

/// A path on which writes, FIN and the handshake take [`DELAY`] in each direction.
#[derive(Default)]
struct Path {
    opened: u64,
    opened_at: Vec<u64>,
    /// Time of arrival of the bytes and the FIN of each end.
    writes: [Vec<(u64, u64)>; 2],
    finished: [Option<u64>; 2],
    aborted: bool,
    /// Attempts for which no port is free, and which the server does not answer.
    without_port: usize,
    unanswered: usize,
}

impl Path {
    fn millis(now: Instant) -> u64 {
        now.as_nanos() / 1_000_000
    }
}

impl ConnectionTransport for Path {
    fn open(&mut self, now: Instant) -> Result<(), NoLocalPort> {
        if self.without_port > 0 {
            self.without_port -= 1;
            return Err(NoLocalPort);
        }
        self.opened = Self::millis(now);
        self.opened_at.push(self.opened);
        self.writes = Default::default();
        self.finished = [None; 2];
        self.aborted = false;
        Ok(())
    }

    fn state(&self, now: Instant, end: FlowEnd) -> EndState {
        let now = Self::millis(now);
        let round_trips = if end == FlowEnd::From { 2 } else { 3 };
        if self.aborted {
            return EndState::Failed;
        }
        if self.unanswered >= self.opened_at.len() || now < self.opened + round_trips * DELAY {
            return EndState::Opening;
        }
        match self.finished[end.peer() as usize] {
            Some(at) if at <= now => EndState::PeerClosed,
            _ => EndState::Open,
        }
    }

    fn delivered(&self, _end: FlowEnd) -> u64 {
        unreachable!("the tests use a view with a clock")
    }

    fn write(&mut self, _end: FlowEnd, _bytes: u64) {
        unreachable!("the tests use a view with a clock")
    }

    fn close(&mut self, _end: FlowEnd) {
        unreachable!("the tests use a view with a clock")
    }

    fn abort(&mut self, _now: Instant, _end: FlowEnd) {
        self.aborted = true;
    }
}

/// The path at a time.
struct At<'a>(&'a mut Path, Instant);

impl ConnectionTransport for At<'_> {
    fn open(&mut self, now: Instant) -> Result<(), NoLocalPort> {
        self.0.open(now)
    }
    fn state(&self, now: Instant, end: FlowEnd) -> EndState {
        self.0.state(now, end)
    }
    fn delivered(&self, end: FlowEnd) -> u64 {
        let now = Path::millis(self.1);
        let arrived = self.0.writes[end.peer() as usize].iter().filter(|(at, _)| *at <= now);
        arrived.map(|(_, bytes)| bytes).sum()
    }
    fn write(&mut self, end: FlowEnd, bytes: u64) {
        self.0.writes[end as usize].push((Path::millis(self.1) + DELAY, bytes));
    }
    fn close(&mut self, end: FlowEnd) {
        self.0.finished[end as usize] = Some(Path::millis(self.1) + DELAY);
    }
    fn abort(&mut self, now: Instant, end: FlowEnd) {
        self.0.abort(now, end);
    }
}

struct Member {
    manager: ConnectionManager,
    counters: ConnectionCounters,
    path: Path,
    /// When messages arrived at the `to` end, in milliseconds.
    arrived: Vec<u64>,
}

impl Member {
    fn new(policy: ConnectionPolicy, tls: Option<&Tls>, reconnect: Reconnect) -> Self {
        let rules = ConnectionRules {
            policy,
            resumption: tls.map_or(TlsResumption::Never, |tls| tls.resumption),
            tls: tls.map(TlsFlights::of),
            reconnect,
            fast_open: false,
            is_dialogue: false,
            has_session: false,
        };
        let random = RandomStream::named(1, 0, "f", 0, "reconnect");
        Self {
            manager: ConnectionManager::new(Arc::new(rules), random),
            counters: ConnectionCounters::with_tls(tls.is_some()),
            path: Path::default(),
            arrived: Vec::new(),
        }
    }

    /// Runs until a time, with messages of 100 B ready at the given times.
    fn run(&mut self, until: u64, messages: &[u64]) {
        for millis in 0..=until {
            let now = Instant::ZERO + Duration::from_millis(millis);
            for at in messages.iter().filter(|at| **at == millis) {
                let at = Instant::ZERO + Duration::from_millis(*at);
                let (manager, on_ready) = (&mut self.manager, |_| {});
                let mut carrier = ManagedCarrier { manager, on_ready, on_event: |_, _| {} };
                let id = carrier.written(FlowEnd::From) + 100;
                let message = Message { id, class: (), at, bytes: 100, payload: None };
                carrier.write(FlowEnd::From, message);
            }
            let before = self.manager.delivered(FlowEnd::To);
            self.manager.poll(now, &mut At(&mut self.path, now), &mut self.counters);
            let arrived = (self.manager.delivered(FlowEnd::To) - before) / 100;
            self.arrived.extend((0..arrived).map(|_| millis));
        }
    }
}

/// One round trip of the handshake and half of one for the message: 30 ms.
#[test]
fn each_message_has_its_connection() {
    let mut member = Member::new(ConnectionPolicy::PerMessage, None, Reconnect::default());
    // The third message is ready before the server has closed the second connection.
    member.run(500, &[0, 200, 205]);
    // FIN of the device arrives at 230 ms, that of the server at 240 ms.
    assert_eq!(member.path.opened_at, [0, 200, 240]);
    assert_eq!(member.arrived, [30, 230, 270]);
}

/// TLS 1.3 adds one round trip of 20 ms before the message, and TLS 1.2 two.
#[test]
fn tls_adds_its_round_trips() {
    for (version, millis) in [(TlsVersion::V1_3, 50), (TlsVersion::V1_2, 70)] {
        let tls = keys(version);
        let mut member =
            Member::new(ConnectionPolicy::PerMessage, Some(&tls), Reconnect::default());
        member.run(300, &[0]);
        assert_eq!(member.arrived, [millis], "{version:?}");
        let flights = TlsFlights::of(&tls);
        let [device, server]: [u64; 2] =
            [0, 1].map(|end: usize| member.path.writes[end].iter().map(|(_, bytes)| bytes).sum());
        let flights_from = |parity| -> u64 {
            flights.full.iter().skip(parity).step_by(2).map(|bytes| u64::from(*bytes)).sum()
        };
        let alert = u64::from(flights.close_notify);
        assert_eq!(device, flights_from(0) + flights.protected(100) + alert, "{version:?}");
        assert_eq!(server, flights_from(1) + alert, "{version:?}");
    }
}

#[test]
fn a_device_resumes_its_session_after_the_first_handshake() {
    let tls = Tls { resumption: TlsResumption::AfterFirst, ..keys(TlsVersion::V1_2) };
    let mut member = Member::new(ConnectionPolicy::PerMessage, Some(&tls), Reconnect::default());
    member.run(1_000, &[0, 500]);
    // A resumption of TLS 1.2 takes one round trip less.
    assert_eq!(member.arrived, [70, 550]);
}

/// A message of a resumption arrives with the ClientHello, one round trip of 20 ms earlier.
#[test]
fn early_data_saves_the_round_trip_of_a_resumption() {
    let resumption = TlsResumption::AfterFirst;
    for (early_data, second) in [(false, 550), (true, 530)] {
        let tls = Tls { resumption, early_data, ..keys(TlsVersion::V1_3) };
        let mut member =
            Member::new(ConnectionPolicy::PerMessage, Some(&tls), Reconnect::default());
        member.run(1_000, &[0, 500]);
        assert_eq!(member.arrived, [50, second]);
        // Two handshakes, of which the second one is resumed, a message and an alert.
        let flights = TlsFlights::of(&tls);
        let device: u64 = member.path.writes[0].iter().map(|(_, bytes)| bytes).sum();
        let expected = u64::from(flights.resumed[0] + flights.resumed[2] + flights.close_notify);
        assert_eq!(device, expected + flights.protected(100));
    }
}

#[test]
fn early_data_has_a_largest_size() {
    let resumption = TlsResumption::Always;
    let tls = Tls { resumption, early_data: true, ..keys(TlsVersion::V1_3) };
    let policy = ConnectionPolicy::IdleTimeout(Duration::from_secs(1));
    let mut member = Member::new(policy, Some(&tls), Reconnect::default());
    // 163 messages of 100 B are 16,300 B; one more is too many. Their records of 22 B do not count.
    member.run(200, &[0; 164]);
    assert_eq!(member.arrived[..163], [30; 163]);
    assert_eq!(member.arrived[163..], [50]);
}

#[test]
fn an_idle_connection_closes_and_the_next_message_opens_another() {
    let policy = ConnectionPolicy::IdleTimeout(Duration::from_millis(100));
    let mut member = Member::new(policy, None, Reconnect::default());
    member.run(500, &[0, 90, 250]);
    // The second message uses the open connection; it arrives at 100 ms, so the connection closes
    // at 200 ms, and at 220 ms the FIN of the server has arrived.
    assert_eq!(member.path.opened_at, [0, 250]);
    assert_eq!(member.arrived, [30, 100, 280]);
}

#[test]
fn a_persistent_connection_opens_without_a_message_and_stays_open() {
    let mut member = Member::new(ConnectionPolicy::Persistent, None, Reconnect::default());
    member.manager.start();
    member.run(500, &[100, 400]);
    assert_eq!(member.path.opened_at, [0]);
    assert_eq!(member.arrived, [110, 410]);
}

#[test]
fn a_device_pauses_after_attempts_that_fail() {
    let reconnect = Reconnect {
        timeout: Some(Duration::from_millis(50)),
        pause: Duration::from_millis(100),
        ..Reconnect::default()
    };
    let mut member = Member::new(ConnectionPolicy::PerMessage, None, reconnect);
    member.path.without_port = 1;
    member.path.unanswered = 2;
    member.run(2_000, &[0]);
    // No port at 0; unanswered at 100 and, 50 ms and a pause of 200 ms later, at 350; 50 ms and
    // 400 ms later, the server answers.
    assert_eq!(member.path.opened_at, [100, 350, 800]);
    assert_eq!(member.arrived, [830]);
    let mut metrics = Vec::new();
    member.counters.metrics(&mut metrics);
    let value = |wanted| metrics.iter().find(|(metric, _)| *metric == wanted).unwrap().1;
    use gridhaul_scenario::answer::Metric;
    assert_eq!(value(Metric::ConnectionsFailed), 3.0);
    assert_eq!(value(Metric::PortsExhausted), 1.0);
    assert_eq!(value(Metric::ConnectionsOpened), 1.0);
}
