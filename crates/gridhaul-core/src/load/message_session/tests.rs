//! A session whose frames the test delivers.

use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Duration;

use super::*;
use crate::load::{Demand, SharedLoad};
use crate::random::RandomStream;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// The session of a flow with these keys, on its first connection.
fn session_of(keys: &str) -> MessageSession {
    let text = format!(
        "title = 't'\nduration = '1000 s'\n[node]\na = {{}}\nb = {{}}\n\
         [link.l]\nfrom = 'a'\nto = 'b'\nboth.rate = '1 Mbit/s'\n\
         [flow.f]\nfrom = 'a'\nto = 'b'\n{keys}"
    );
    let scenario = Scenario::from_toml(&text, "t.toml").unwrap();
    let flow = &scenario.flow["f"];
    // Messages are a second apart, and a keep alive has whole seconds: the tests take a tenth.
    let rules = SessionRules::of(&scenario, "f", flow);
    let rules = rules.map(|rules| SessionRules { keep_alive: rules.keep_alive / 10, ..rules });
    let random = RandomStream::named(1, 0, "f", 0, "load");
    let demand = Demand::of_member(&SharedLoad::from(&flow.load), at(0), random);
    let Demand::Messages(mut session) = demand.acknowledged(rules.as_ref()) else {
        panic!("no session")
    };
    assert!(session.handle_connection(at(0), Some(1)));
    *session
}

/// A session with a message of 100 B every second and acknowledgements.
fn session(keys: &str) -> MessageSession {
    session_of(&format!(
        "load.periodic = {{ size = '100 B', every = '1 s', synchronised = true }}\n\
         acknowledgement = {{ size = '20 B', timeout = '300 ms', {keys} }}"
    ))
}

/// A client with a message of 100 B every second, whose connection is open.
fn client(keys: &str) -> MessageSession {
    let mut session = session_of(&format!(
        "load.mqtt = {{ size = '100 B', every = '1 s', synchronised = true, {keys} }}"
    ));
    open(&mut session, 0);
    session
}

/// CONNECT and CONNACK.
fn open(session: &mut MessageSession, now: u64) {
    for (sender, receiver) in [(FlowEnd::From, FlowEnd::To), (FlowEnd::To, FlowEnd::From)] {
        let frame = MessageFrame::Opening(sender as usize);
        assert_eq!(session.poll_frame(at(now)), Some((sender, frame)));
        assert_eq!(session.poll_frame(at(now)), None);
        session.handle_frame(at(now), receiver, frame);
    }
}

const NOTHING: [Vec<u64>; 2] = [Vec::new(), Vec::new()];

/// Numbers of the messages and of the acknowledgements that are written.
fn written(session: &mut MessageSession, now: u64) -> [Vec<u64>; 2] {
    while session.poll_ready(at(now)).is_some() {}
    let mut written = [Vec::new(), Vec::new()];
    while let Some((end, frame)) = session.poll_frame(at(now)) {
        match frame {
            MessageFrame::Message(number, _) | MessageFrame::Reply(number, _) => {
                written[end as usize].push(number);
            }
            _ => panic!("{frame:?}"),
        }
    }
    written
}

const fn id(number: u64) -> PublicationId {
    PublicationId { publisher: 0, number }
}

fn message(number: u64) -> MessageFrame {
    let message = Arrival { at: at(1_000 * number), bytes: 100 };
    MessageFrame::Message(number, Publication { message, id: id(number), is_copy: false })
}

const ACKNOWLEDGEMENT: MessageFrame = MessageFrame::Reply(0, 0);

fn events(session: &mut MessageSession) -> Vec<MessageEvent> {
    std::iter::from_fn(|| session.poll_event()).map(|(_, event)| event).collect()
}

#[test]
fn one_message_is_without_an_acknowledgement_at_a_time() {
    let mut session = session("retransmissions = 9, think = '10 ms'");
    assert_eq!(written(&mut session, 0), [vec![0], vec![]]);
    assert_eq!(session.handle_frame(at(50), FlowEnd::To, message(0)), Some(at(0)));
    assert_eq!(session.next_deadline(), at(60), "the receiver thinks");
    assert_eq!(written(&mut session, 60), [vec![], vec![0]]);
    // The acknowledgement is late: a copy is on its way when it arrives.
    assert_eq!(session.next_deadline(), at(300));
    assert_eq!(written(&mut session, 300), [vec![0], vec![]]);
    assert_eq!(written(&mut session, 500), NOTHING);
    session.handle_frame(at(510), FlowEnd::From, ACKNOWLEDGEMENT);
    assert!(!session.needs_connection());
    assert_eq!(session.handle_frame(at(520), FlowEnd::To, message(0)), None);
    let took = Duration::from_millis(510);
    assert_eq!(
        events(&mut session),
        [MessageEvent::Retransmitted, MessageEvent::Acknowledged(took), MessageEvent::Duplicate]
    );
    // Each copy is acknowledged.
    assert_eq!(written(&mut session, 1_000), [vec![1], vec![0]]);
    session.handle_frame(at(1_010), FlowEnd::From, ACKNOWLEDGEMENT);
    assert_eq!((events(&mut session), session.delivered()), (vec![], 100));
    assert_eq!(session.undelivered().collect::<Vec<_>>(), [at(1_000)]);
}

#[test]
fn a_message_may_arrive_after_it_was_given_up() {
    let mut session = session("retransmissions = 1");
    for (now, count) in [(0, 1), (300, 1), (600, 0)] {
        assert_eq!(written(&mut session, now)[0].len(), count);
    }
    let given_up = MessageEvent::GivenUp { is_delivered: false };
    assert_eq!(events(&mut session), [MessageEvent::Retransmitted, given_up]);
    assert_eq!(session.undelivered().count(), 0);
    assert_eq!(session.handle_frame(at(700), FlowEnd::To, message(0)), Some(at(0)));
    assert_eq!(session.handle_frame(at(700), FlowEnd::To, message(0)), None);
    assert_eq!(events(&mut session), [MessageEvent::LateDelivery, MessageEvent::Duplicate]);
}

#[test]
fn the_next_connection_carries_messages_without_an_acknowledgement() {
    let keys = "retransmissions = 2, retransmit_on = 'new_connection', window = 2";
    let mut session = session(keys);
    assert_eq!(written(&mut session, 1_000)[0], [0, 1]);
    assert_eq!(session.handle_frame(at(1_100), FlowEnd::To, message(0)), Some(at(0)));
    assert_eq!(written(&mut session, 1_100), [vec![], vec![0]]);
    assert_eq!(written(&mut session, 1_300), NOTHING);
    assert!(session.poll_abort() && !session.poll_abort() && session.needs_connection());
    // The carrier reports the connection until it has ended.
    assert!(!session.handle_connection(at(1_300), Some(1)));
    assert!(!session.handle_connection(at(1_310), None));
    assert_eq!(session.next_deadline(), at(2_000), "messages wait for a connection");
    assert_eq!(written(&mut session, 2_000)[0], [0_u64; 0]);
    // TCP ends the second connection: the third one carries them for the last time.
    for (number, now) in [(2, 2_100), (3, 2_200)] {
        session.handle_connection(at(now), None);
        assert!(session.handle_connection(at(now), Some(number)));
        assert_eq!(written(&mut session, now)[0], [0, 1]);
    }
    assert_eq!(written(&mut session, 2_500)[0], [0_u64; 0]);
    let given_up = [true, false].map(|is_delivered| MessageEvent::GivenUp { is_delivered });
    let events = events(&mut session);
    assert_eq!(events[..4], [MessageEvent::Retransmitted; 4]);
    assert_eq!(events[4..], given_up);
}

/// The frames that both ends write until they wait, with their senders.
fn frames(session: &mut MessageSession, now: u64) -> Vec<(FlowEnd, MessageFrame)> {
    while session.poll_ready(at(now)).is_some() {}
    std::iter::from_fn(|| session.poll_frame(at(now))).collect()
}

#[test]
fn a_message_without_quality_of_service_is_lost_with_its_connection() {
    let mut session = client("qos = 0, keep_alive = '0 s'");
    assert_eq!(frames(&mut session, 0), [(FlowEnd::From, message(0))]);
    assert_eq!(session.handle_frame(at(10), FlowEnd::To, message(0)), Some(at(0)));
    assert_eq!(frames(&mut session, 2_000).len(), 2);
    assert!(session.handle_connection(at(2_010), None));
    let unconfirmed =
        [true, false, false].map(|is_delivered| MessageEvent::Unconfirmed { is_delivered });
    assert_eq!(events(&mut session), unconfirmed);
    // Messages that no connection has carried wait for the next one.
    session.handle_connection(at(3_000), Some(2));
    open(&mut session, 3_000);
    assert_eq!(frames(&mut session, 3_000), [(FlowEnd::From, message(3))]);
}

#[test]
fn the_receiver_accepts_a_copy_with_quality_of_service_1_only() {
    for (qos, copies) in [(1, 1), (2, 0)] {
        let mut session = client(&format!("qos = {qos}, keep_alive = '0 s'"));
        assert_eq!(frames(&mut session, 0), [(FlowEnd::From, message(0))]);
        assert_eq!(session.handle_frame(at(10), FlowEnd::To, message(0)), Some(at(0)));
        // The reply is lost.
        assert_eq!(frames(&mut session, 10), [(FlowEnd::To, MessageFrame::Reply(0, 0))]);
        session.handle_connection(at(20), None);
        session.handle_connection(at(30), Some(2));
        open(&mut session, 30);
        assert_eq!(frames(&mut session, 30), [(FlowEnd::From, message(0))]);
        assert_eq!(session.handle_frame(at(40), FlowEnd::To, message(0)), None);
        assert_eq!(frames(&mut session, 40), [(FlowEnd::To, MessageFrame::Reply(0, 0))]);
        session.handle_frame(at(50), FlowEnd::From, MessageFrame::Reply(0, 0));
        let events = events(&mut session);
        let duplicates = events.iter().filter(|event| **event == MessageEvent::Duplicate).count();
        assert_eq!(duplicates, copies, "QoS {qos}: {events:?}");
    }
}

#[test]
fn the_release_of_a_received_message_is_transmitted_again() {
    let mut session = client("qos = 2, keep_alive = '0 s'");
    assert_eq!(frames(&mut session, 0), [(FlowEnd::From, message(0))]);
    session.handle_frame(at(10), FlowEnd::To, message(0));
    let [received, release, complete] = [0, 1, 2].map(|reply| MessageFrame::Reply(0, reply));
    assert_eq!(frames(&mut session, 10), [(FlowEnd::To, received)]);
    session.handle_frame(at(20), FlowEnd::From, received);
    assert_eq!(frames(&mut session, 20), [(FlowEnd::From, release)]);
    // The connection ends before PUBREL arrives: PUBLISH does not follow again (section 4.4).
    session.handle_connection(at(30), None);
    session.handle_connection(at(40), Some(2));
    open(&mut session, 40);
    assert_eq!(frames(&mut session, 40), [(FlowEnd::From, release)]);
    session.handle_frame(at(50), FlowEnd::To, release);
    assert_eq!(frames(&mut session, 50), [(FlowEnd::To, complete)]);
    session.handle_frame(at(60), FlowEnd::From, complete);
    let took = Duration::from_millis(60);
    assert_eq!(events(&mut session), [MessageEvent::Acknowledged(took)]);
    assert!(!session.needs_connection());
}

#[test]
fn a_client_aborts_a_connection_whose_broker_does_not_respond() {
    let mut session = client("qos = 0, keep_alive = '3 s'");
    assert_eq!(frames(&mut session, 0), [(FlowEnd::From, message(0))]);
    assert_eq!(session.next_deadline(), at(300), "nothing was received since CONNACK");
    assert_eq!(frames(&mut session, 300), [(FlowEnd::From, MessageFrame::Probe)]);
    session.handle_frame(at(310), FlowEnd::To, MessageFrame::Probe);
    assert_eq!(frames(&mut session, 310), [(FlowEnd::To, MessageFrame::ProbeResponse)]);
    session.handle_frame(at(320), FlowEnd::From, MessageFrame::ProbeResponse);
    assert_eq!(session.next_deadline(), at(600));
    assert_eq!(frames(&mut session, 600), [(FlowEnd::From, MessageFrame::Probe)]);
    assert_eq!(frames(&mut session, 899), []);
    assert!(!session.poll_abort());
    assert_eq!(frames(&mut session, 900), []);
    assert!(session.poll_abort());
    // CONNECT has a response within the interval as well.
    session.handle_connection(at(1_000), Some(2));
    assert_eq!(frames(&mut session, 1_000), [(FlowEnd::From, MessageFrame::Opening(0))]);
    assert_eq!(frames(&mut session, 1_300), []);
    assert!(session.poll_abort());
}

#[test]
fn a_reply_that_waits_ends_with_its_connection() {
    let mut session = session("retransmissions = 1, think = '50 ms'");
    assert_eq!(written(&mut session, 0), [vec![0], vec![]]);
    assert_eq!(session.handle_frame(at(10), FlowEnd::To, message(0)), Some(at(0)));
    session.handle_connection(at(20), None);
    session.handle_connection(at(30), Some(2));
    assert_eq!(written(&mut session, 30), [vec![0], vec![]]);
    assert_eq!(written(&mut session, 100), NOTHING);
}

#[test]
fn the_broker_delays_messages_above_the_limit_in_flight() {
    for (qos, expected) in [(0, 4), (1, 2), (2, 2)] {
        let mut session = client(&format!("qos = {qos}, in_flight = 2, keep_alive = '0 s'"));
        assert_eq!(frames(&mut session, 3_000).len(), expected, "QoS {qos}");
    }
}

/// The session of a subscriber with this quality of service, on its first connection.
fn subscriber(qos: u8) -> MessageSession {
    session_of(&format!(
        "load.mqtt_subscription = {{ publications = 'p', qos = {qos} }}\n\
         [flow.p]\nfrom = 'a'\nto = 'b'\n\
         load.mqtt = {{ size = '100 B', every = '1 s', qos = 2, keep_alive = '3 s' }}"
    ))
}

/// The frames that open a connection.
fn open_subscriber(session: &mut MessageSession, now: u64) -> usize {
    let senders = [FlowEnd::From, FlowEnd::To].into_iter().cycle();
    for (number, sender) in senders.enumerate() {
        let frame = MessageFrame::Opening(number);
        match session.poll_frame(at(now)) {
            Some(written) if written == (sender, frame) => {
                session.handle_frame(at(now), sender.peer(), frame);
            }
            Some(written) => panic!("{written:?}"),
            None => return number,
        }
    }
    unreachable!("a cycle of senders")
}

const FIRST: Publication =
    Publication { message: Arrival { at: Instant::ZERO, bytes: 100 }, id: id(0), is_copy: false };

/// A message that the broker has received twice.
const COPY: Publication = Publication { is_copy: true, ..FIRST };

#[test]
fn a_subscriber_subscribes_on_its_first_connection_only() {
    let mut session = subscriber(0);
    // CONNECT, CONNACK, SUBSCRIBE and SUBACK; CONNECT and CONNACK.
    assert_eq!(open_subscriber(&mut session, 0), 4);
    session.handle_connection(at(20), None);
    session.handle_connection(at(30), Some(2));
    assert_eq!(open_subscriber(&mut session, 30), 2);
    // Messages do not precede SUBACK.
    let mut session = subscriber(0);
    session.push(at(0), COPY);
    let frames = std::iter::from_fn(|| {
        let (sender, frame) = session.poll_frame(at(0))?;
        session.handle_frame(at(0), sender.peer(), frame);
        Some(frame)
    });
    let frames: Vec<_> = frames.collect();
    assert_eq!(frames[..4], [0, 1, 2, 3].map(MessageFrame::Opening));
    assert_eq!(frames[4..], [MessageFrame::Message(0, COPY)]);
}

#[test]
fn a_copy_that_is_forwarded_is_no_message_of_its_own() {
    for qos in [0, 1] {
        let mut session = subscriber(qos);
        open_subscriber(&mut session, 0);
        session.push(at(0), COPY);
        let frame = MessageFrame::Message(0, COPY);
        assert_eq!(frames(&mut session, 0), [(FlowEnd::To, frame)]);
        assert_eq!(session.handle_frame(at(10), FlowEnd::From, frame), None);
        assert_eq!(frames(&mut session, 10).len(), usize::from(qos));
        session.handle_frame(at(20), FlowEnd::To, MessageFrame::Reply(0, 0));
        assert_eq!(events(&mut session), [MessageEvent::Duplicate], "QoS {qos}");
        session.push(at(20), COPY);
        assert_eq!(frames(&mut session, 20).len(), 1);
        session.handle_connection(at(30), None);
        assert_eq!(events(&mut session), [], "QoS {qos}: a lost copy is no lost message");
    }
}

/// The broker has a message twice (QoS 1) and forwards it without an acknowledgement. The first
/// copy ends with its connection, before or after the broker has the second one.
#[test]
fn a_message_whose_first_copy_is_lost_arrives_with_the_second_one() {
    let lost = MessageEvent::Unconfirmed { is_delivered: false };
    let arrived = MessageEvent::Unconfirmed { is_delivered: true };
    for (waits, expected) in
        [(false, vec![lost, MessageEvent::LateDelivery]), (true, vec![arrived])]
    {
        let mut session = subscriber(0);
        open_subscriber(&mut session, 0);
        session.push(at(0), FIRST);
        assert_eq!(frames(&mut session, 0).len(), 1);
        if waits {
            session.push(at(5), COPY);
        }
        session.handle_connection(at(10), None);
        if !waits {
            // The copy of another publisher's message with the same number is another message.
            let id = PublicationId { publisher: 1, ..COPY.id };
            session.push(at(20), Publication { id, ..COPY });
            session.push(at(20), COPY);
        }
        session.handle_connection(at(30), Some(2));
        let mut delivered = Vec::new();
        while let Some((sender, frame)) = session.poll_frame(at(30)) {
            delivered.extend(session.handle_frame(at(30), sender.peer(), frame));
        }
        assert_eq!((delivered, session.delivered()), (vec![at(0)], 100), "waits: {waits}");
        let mut events = events(&mut session);
        events.retain(|event| *event != MessageEvent::Duplicate);
        assert_eq!(events, expected, "waits: {waits}");
        // A third copy is a duplicate.
        session.push(at(50), COPY);
        let (_, third) = session.poll_frame(at(50)).unwrap();
        assert_eq!(session.handle_frame(at(60), FlowEnd::From, third), None);
    }
}

/// MQTT 3.1.1, section 3.1.2.10: the client awaits PINGRESP, also while messages arrive.
#[test]
fn a_message_is_no_response_to_a_probe() {
    let mut session = subscriber(0);
    open_subscriber(&mut session, 0);
    assert_eq!(frames(&mut session, 300), [(FlowEnd::From, MessageFrame::Probe)]);
    session.push(at(400), COPY);
    assert_eq!(frames(&mut session, 400).len(), 1);
    session.handle_frame(at(410), FlowEnd::From, MessageFrame::Message(0, COPY));
    assert_eq!((frames(&mut session, 599), session.poll_abort()), (vec![], false));
    assert_eq!((frames(&mut session, 600), session.poll_abort()), (vec![], true));
}
