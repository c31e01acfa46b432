//! Both ends over a network that loses chosen datagrams.

use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::scenario::{Coap, Dtls, DtlsVersion, Flow};
use gridhaul_scenario::units::Duration;

use super::*;

const DELAY: Duration = Duration::from_millis(100);

/// A member whose datagrams arrive after [`DELAY`], unless their number, from 0, is to be lost.
struct Network {
    member: CoapMember,
    counters: CoapCounters,
    lost: Vec<usize>,
    in_flight: Vec<(Instant, CoapTransmission)>,
    /// All datagrams with the times at which they were sent, in milliseconds.
    sent: Vec<(u64, CoapTransmission)>,
    /// Arrival times of messages in milliseconds.
    delivered: Vec<u64>,
}

fn flow(keys: &str) -> Flow {
    let text = format!(
        "from = 'a'\nto = 'b'\ntransport = 'coap'\n\
         load.periodic = {{ size = '50 B', every = '1 s' }}\n\
         coap.ack_random_factor = 1.0\n{keys}"
    );
    toml::from_str(&text).unwrap()
}

impl Network {
    fn new(keys: &str, lost: &[usize]) -> Self {
        let rules = Arc::new(CoapRules::of(&flow(keys)).unwrap());
        let random = RandomStream::named(1, 0, "f", 0, "coap");
        let measured = Instant::ZERO..Instant::NEVER;
        Self {
            counters: CoapCounters::new(measured, rules.has_dtls()),
            member: CoapMember::new(rules, random),
            lost: lost.to_vec(),
            in_flight: Vec::new(),
            sent: Vec::new(),
            delivered: Vec::new(),
        }
    }

    /// Runs with messages that are ready at these seconds.
    fn run(mut self, messages: &[u64], until: u64) -> Self {
        let mut ready = messages.iter().map(|secs| Instant::ZERO + Duration::from_secs(*secs));
        let mut next = ready.next();
        loop {
            let arrival = self.in_flight.iter().map(|(at, _)| *at).min().unwrap_or(Instant::NEVER);
            let now = self.member.next_deadline().min(arrival).min(next.unwrap_or(Instant::NEVER));
            if now > Instant::ZERO + Duration::from_secs(until) {
                return self;
            }
            if let Some(at) = next.take_if(|at| *at <= now) {
                self.member.push(Arrival { at, bytes: 50 });
                next = ready.next();
            }
            let due = |entry: &mut (Instant, CoapTransmission)| entry.0 <= now;
            for (_, CoapTransmission { end, datagram, .. }) in
                self.in_flight.extract_if(.., due).collect::<Vec<_>>()
            {
                let to = if end == FlowEnd::From { FlowEnd::To } else { FlowEnd::From };
                let counters = &mut self.counters;
                let message = self.member.handle_datagram(now, to, datagram, counters);
                if message.is_some() {
                    self.delivered.push(millis(now));
                }
            }
            self.member.advance(now, &mut self.counters);
            while let Some(transmission) = self.member.poll_transmit() {
                if !self.lost.contains(&self.sent.len()) {
                    self.in_flight.push((now + DELAY, transmission));
                }
                self.sent.push((millis(now), transmission));
            }
        }
    }

    fn value(&self, wanted: Metric) -> f64 {
        let mut metrics = Metrics::new();
        self.counters.metrics(&mut metrics);
        let found = metrics.iter().find(|(metric, _)| *metric == wanted);
        found.map_or(f64::NAN, |(_, value)| *value)
    }

    fn times(&self, of: impl Fn(CoapContent) -> bool) -> Vec<u64> {
        let sent = self.sent.iter().filter(|(_, sent)| of(sent.datagram.content));
        sent.map(|(at, _)| *at).collect()
    }

    fn requests(&self) -> Vec<u64> {
        self.times(|content| matches!(content, CoapContent::Request(_)))
    }
}

fn millis(at: Instant) -> u64 {
    at.as_nanos() / 1_000_000
}

#[test]
fn a_response_ends_the_exchange_and_begins_the_next() {
    let network = Network::new("", &[]).run(&[0, 0, 10], 100);
    // NSTART = 1: the second message waits for the response to the first.
    assert_eq!(network.requests(), [0, 200, 10_000]);
    assert_eq!(network.delivered, [100, 300, 10_100]);
    assert_eq!(network.value(Metric::Acknowledged), 3.0);
    assert_eq!(network.value(Metric::ResponseTimeMean), 0.2);
    let bytes: Vec<_> = network.sent.iter().map(|(_, sent)| sent.bytes).collect();
    assert_eq!(bytes, [65, 6, 65, 6, 65, 6]);
}

/// RFC 7252, section 4.2: the timeout doubles, and the message is given up after the last one.
#[test]
fn a_message_without_response_is_retransmitted_four_times() {
    let network = Network::new("", &[0, 1, 2, 3, 4]).run(&[0, 1], 100);
    assert_eq!(network.requests(), [0, 2_000, 6_000, 14_000, 30_000, 62_000]);
    assert_eq!(network.delivered, [62_100]);
    assert_eq!(network.value(Metric::GivenUp), 1.0);
    assert_eq!(network.value(Metric::AcknowledgedRatio), 0.5);
    assert_eq!(network.value(Metric::MessageLoss), 0.5);
    assert_eq!(network.value(Metric::MessageRetransmissions), 4.0);
}

#[test]
fn the_first_timeout_is_random() {
    let first = |member: u64| {
        let rules = CoapRules { coap: Coap::default(), dtls: None, headers: 28 };
        let random = RandomStream::named(1, 0, "f", member, "coap");
        let mut client = Client::new(random);
        client.waiting.push_back(Arrival { at: Instant::ZERO, bytes: 1 });
        client.begin(Instant::ZERO, &rules.coap);
        client.deadline().as_secs_f64()
    };
    let timeouts: Vec<_> = (0..1_000).map(first).collect();
    assert!(timeouts.iter().all(|secs| (2.0..=3.0).contains(secs)));
    // Standard deviation of the mean: 1 s / sqrt(12 * 1,000) = 9 ms.
    assert!((timeouts.iter().sum::<f64>() / 1_000.0 - 2.5).abs() < 0.05);
}

/// RFC 7252, section 4.5: the server acknowledges each copy, and processes one.
#[test]
fn a_duplicate_is_answered_and_not_delivered() {
    let network = Network::new("", &[1, 3]).run(&[0], 100);
    assert_eq!(network.requests(), [0, 2_000, 6_000]);
    assert_eq!(network.delivered, [100]);
    assert_eq!(network.value(Metric::DuplicateMessages), 2.0);
    assert_eq!(network.value(Metric::Acknowledged), 1.0);
    assert_eq!(network.value(Metric::ResponseTimeMean), 6.2);
}

#[test]
fn a_message_given_up_may_have_arrived() {
    let network = Network::new("coap.max_retransmit = 1", &[1, 3]).run(&[0], 100);
    assert_eq!(network.delivered, [100]);
    assert_eq!(network.value(Metric::GivenUp), 1.0);
    assert_eq!(network.value(Metric::MessageLoss), 0.0);
}

#[test]
fn a_copy_that_arrives_late_is_delivered_within_the_lifetime_only() {
    // Without a random factor: 30 s of retransmissions, 200 s of latency and 2 s of processing.
    for (after, arrives) in [(232, true), (233, false)] {
        let mut network = Network::new("", &[0, 1, 2, 3, 4]).run(&[0], 200);
        assert_eq!(network.value(Metric::MessageLoss), 1.0);
        let now = Instant::ZERO + Duration::from_secs(after);
        let datagram = network.sent[0].1.datagram;
        let counters = &mut network.counters;
        let message = network.member.handle_datagram(now, FlowEnd::To, datagram, counters);
        assert_eq!(message.is_some(), arrives);
        assert_eq!(network.value(Metric::MessageLoss), f64::from(u8::from(!arrives)));
    }
}

#[test]
fn undelivered_messages_are_those_that_wait_and_the_one_in_progress() {
    let network = Network::new("", &[0, 1, 2, 3]).run(&[0, 1, 2], 10);
    let waiting: Vec<_> = network.member.undelivered().map(millis).collect();
    assert_eq!(waiting, [0, 1_000, 2_000]);
}

/// RFC 6347, figure 1: six flights, and the message waits for the last one.
#[test]
fn a_handshake_of_version_1_2_takes_three_round_trips() {
    let network = Network::new("dtls.version = '1.2'", &[]).run(&[0, 1], 10);
    assert_eq!(network.times(|content| matches!(content, CoapContent::Flight(_))).len(), 6);
    assert_eq!(network.requests(), [600, 1_000]);
    assert_eq!(network.delivered, [700, 1_100]);
    assert_eq!(network.value(Metric::DtlsHandshakeTime), 0.6);
    assert_eq!(network.value(Metric::DtlsHandshakeBytes), 533.0);
    // 50 B + 15 B + 29 B, and a response of 6 B + 29 B.
    assert_eq!(network.sent[6].1.bytes, 94);
    assert_eq!(network.sent[7].1.bytes, 35);
}

/// RFC 9147, figure 6: the message follows the last flight of the client.
#[test]
fn a_message_follows_the_client_s_last_flight_of_version_1_3() {
    let network = Network::new("dtls.session = 'per_message'", &[]).run(&[0, 1], 10);
    assert_eq!(network.requests(), [200, 1_200]);
    assert_eq!(network.delivered, [300, 1_300]);
    assert_eq!(network.value(Metric::DtlsHandshakes), 2.0);
    assert_eq!(network.value(Metric::DtlsHandshakeBytes), 2.0 * 360.0);
    assert_eq!(network.value(Metric::DtlsRetransmissions), 0.0);
    let sessions: Vec<_> = network.sent.iter().map(|(_, sent)| sent.datagram.session).collect();
    assert_eq!(sessions, [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]);
}

/// RFC 6347, section 4.2.4.1: 1 s, doubled up to 60 s.
#[test]
fn the_first_flight_is_retransmitted_until_it_arrives() {
    let lost: Vec<_> = (0..9).collect();
    let network = Network::new("dtls.version = '1.2'", &lost).run(&[0], 300);
    let first = network.times(|content| content == CoapContent::Flight(0));
    let seconds: Vec<_> = first.iter().map(|at| at / 1_000).collect();
    assert_eq!(seconds, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
    assert_eq!(network.delivered, [243_700]);
}

#[test]
fn a_handshake_survives_the_loss_of_each_datagram() {
    for keys in ["dtls.version = '1.2'", "dtls.version = '1.3'"] {
        // The last datagrams are the message and its response.
        for lost in 0..8 {
            let network = Network::new(keys, &[lost]).run(&[0], 30);
            assert_eq!(network.delivered.len(), 1, "{keys} {lost}");
            assert_eq!(network.value(Metric::Acknowledged), 1.0, "{keys} {lost}");
            assert_eq!(network.value(Metric::DtlsHandshakes), 1.0, "{keys} {lost}");
            // The timers of a complete handshake have stopped.
            assert_eq!(network.member.next_deadline(), Instant::NEVER, "{keys} {lost}");
        }
    }
}

/// RFC 6347, section 4.2.1: the server keeps no state before the cookie returns.
#[test]
fn a_request_for_a_cookie_has_no_timer() {
    let network = Network::new("dtls.version = '1.2'", &[1]).run(&[0], 30);
    let sent = |number| network.times(|content| content == CoapContent::Flight(number));
    assert_eq!((sent(0), sent(1)), (vec![0, 1_000], vec![100, 1_100]));
    assert_eq!(network.value(Metric::DtlsRetransmissions), 2.0);
}

/// The server of 1.2 has a timer for its long flight; the client has one for the flight before.
#[test]
fn both_ends_retransmit_after_a_loss() {
    let network = Network::new("dtls.version = '1.2'", &[3]).run(&[0], 30);
    // Flight 3 is sent at 300 ms and flight 2 again at 1,200 ms, which the server answers when it
    // arrives at 1,300 ms, as its own timer expires.
    let sent = |number| network.times(|content| content == CoapContent::Flight(number));
    assert_eq!(sent(2), [200, 1_200]);
    assert_eq!(sent(3), [300, 1_300]);
    assert_eq!(sent(4), [1_400]);
}

/// A message that arrives before the handshake is complete is discarded, and retransmitted.
#[test]
fn a_server_discards_messages_before_the_handshake_is_complete() {
    let network = Network::new("dtls.version = '1.3'", &[2]).run(&[0], 30);
    assert_eq!(network.requests(), [200, 2_200]);
    assert_eq!(network.times(|content| content == CoapContent::Flight(2)).len(), 2);
    assert_eq!(network.delivered, [2_300]);
}

#[test]
fn given_flights_replace_the_default() {
    let keys = "dtls.flights = ['100 B', '20 B', '30 B', '40 B', '50 B', '60 B']";
    let network = Network::new(keys, &[]).run(&[0], 30);
    // With a cookie, a handshake of 1.3 takes two round trips.
    assert_eq!(network.requests(), [400]);
    assert_eq!(network.value(Metric::DtlsHandshakeBytes), 300.0);
    let default = Dtls { version: DtlsVersion::V1_2, ..Dtls::default() };
    assert_eq!(default.flight_sizes().iter().map(|size| size.get()).sum::<u64>(), 533);
}
