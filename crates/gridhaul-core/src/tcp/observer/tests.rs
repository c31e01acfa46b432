//! Events of two endpoints that exchange segments without a network.

use std::sync::Arc;

use gridhaul_scenario::scenario::{Profile, Stack};

use super::*;
use crate::tcp::StackParams;

/// Two endpoints with observers, and the events of the first.
struct Pair {
    now: Instant,
    ends: [Connection; 2],
    observers: [ConnectionObserver; 2],
    events: Vec<(u64, ConnectionEvent)>,
}

impl Pair {
    fn new(stack: &Stack) -> Self {
        let params = Arc::new(StackParams::resolve(stack));
        let ends = [Connection::connect(Arc::clone(&params), 7), Connection::listen(params, 9)];
        let observers = ends.each_ref().map(ConnectionObserver::new);
        Self { now: Instant::ZERO, ends, observers, events: Vec::new() }
    }

    /// The segments that an end sends now.
    fn poll(&mut self, end: usize) -> Vec<Segment> {
        let (now, at) = (self.now, self.now.as_nanos() / 1_000_000);
        let mut events = Vec::new();
        let mut emit = |event| events.push((at, event));
        let (connection, observer) = (&mut self.ends[end], &mut self.observers[end]);
        observer.on_handled(now, connection, &mut emit);
        let mut segments = Vec::new();
        while let Some(segment) = connection.poll_transmit(now) {
            observer.on_polled(connection, Some(&segment), &mut emit);
            segments.push(segment);
        }
        observer.on_polled(connection, None, &mut emit);
        if end == 0 {
            self.events.extend(events);
        }
        segments
    }

    /// Delivers segments to an end 10 ms later. Returns its answer.
    fn deliver(&mut self, end: usize, segments: &[Segment]) -> Vec<Segment> {
        self.now += Duration::from_millis(10);
        segments
            .iter()
            .flat_map(|segment| {
                self.ends[end].handle_segment(self.now, segment);
                self.poll(end)
            })
            .collect()
    }

    /// The handshake. Returns what the client sends at its end.
    fn open(&mut self) -> Vec<Segment> {
        let syn = self.poll(0);
        let answer = self.deliver(1, &syn);
        self.deliver(0, &answer)
    }

    fn names(&self) -> Vec<String> {
        let name = |(at, event): &(u64, ConnectionEvent)| {
            let value = serde_json::to_value(event).unwrap();
            format!("{at} {}", value["event"].as_str().unwrap())
        };
        self.events.iter().map(name).collect()
    }
}

#[test]
fn a_handshake_is_a_state_and_a_round_trip() {
    let mut pair = Pair::new(&Stack { profile: Profile::Rfc, ..Stack::default() });
    pair.open();
    let expected = [
        "0 parameters_set",
        "0 connection_state_updated",
        "0 congestion_window_updated",
        "20 connection_state_updated",
        "20 rtt_sampled",
    ];
    assert_eq!(pair.names(), expected);
    let (old, new) = ("SYN-SENT", "ESTABLISHED");
    assert_eq!(pair.events[3].1, ConnectionEvent::ConnectionStateUpdated { old, new });
}

#[test]
fn a_timeout_is_logged_with_the_lost_data_and_its_retransmission() {
    for profile in [Profile::Rfc, Profile::Linux, Profile::Ns2] {
        let mut pair = Pair::new(&Stack { profile, ..Stack::default() });
        pair.ends[0].write(3_000);
        pair.open();
        pair.events.clear();
        // The data is lost, and so are probes.
        let due = |event: &ConnectionEvent| {
            matches!(event, ConnectionEvent::TimerExpired { timer: Timer::Retransmission, .. })
        };
        while !pair.events.iter().any(|(_, event)| due(event)) {
            pair.now = pair.ends[0].next_deadline();
            pair.ends[0].handle_timeout(pair.now);
            pair.poll(0);
        }
        let start = pair.events.iter().position(|(_, event)| due(event)).unwrap();
        let cause = Cause::RetransmissionTimeout;
        let mut events = pair.events[start..].iter().map(|(_, event)| *event);
        let lost = events.find(|event| matches!(event, ConnectionEvent::SegmentsLost { .. }));
        let Some(ConnectionEvent::SegmentsLost { first_seq: Some(1), cause: found, .. }) = lost
        else {
            panic!("{profile:?}: {lost:?}")
        };
        assert_eq!(found, cause);
        let (old, new) = (LossRecoveryState::Open, LossRecoveryState::Loss);
        let state = ConnectionEvent::LossRecoveryStateUpdated { old, new, cause };
        assert_eq!(events.next(), Some(state), "{profile:?}");
        let Some(ConnectionEvent::SegmentsRetransmitted { first_seq, segments, .. }) =
            events.next_back()
        else {
            panic!("{profile:?}: {:?}", pair.events)
        };
        assert_eq!((first_seq, segments), (Some(1), 1), "{profile:?}");
    }
}

/// The echo of a mark is in an acknowledgement of new data, or in one that repeats its number.
#[test]
fn a_reduction_for_a_mark_is_logged_as_such() {
    let stack = Stack { profile: Profile::Rfc, ecn: Some(true), ..Stack::default() };
    for is_repeated in [false, true] {
        let mut pair = Pair::new(&stack);
        pair.ends[0].write(100_000);
        let flight = pair.open();
        let ack = pair.deliver(1, &flight)[0];
        let echo = Segment { flags: ack.flags.with(Flags::ECE), ..ack };
        if is_repeated {
            pair.deliver(0, &[ack]);
        }
        pair.events.clear();
        pair.deliver(0, &[echo]);
        let cause = pair.events.iter().find_map(|(_, event)| match event {
            ConnectionEvent::CongestionWindowUpdated { cause, .. } => Some(*cause),
            _ => None,
        });
        assert_eq!(cause, Some(Cause::CongestionMark), "{is_repeated}: {:?}", pair.events);
    }
}
