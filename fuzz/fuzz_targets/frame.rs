//! Arbitrary bytes as a frame of Sampled Values or GOOSE: decoding never panics, and a decoded
//! frame is encoded and decoded to the same value. The same bytes as input of each protocol over
//! TCP, before and after its handshake: no end panics, and no message is longer than the input. The
//! same bytes as input of an agent: nothing is started before its token was compared. The same
//! bytes as payload in each encoding: what is decoded is encoded and decoded to the same sample.

#![no_main]

use gridhaul_protocols::c37_118::{self, Synchrophasor};
use gridhaul_protocols::control_channel::{Action, Session, write_preface};
use gridhaul_protocols::dnp3;
use gridhaul_protocols::endpoint::Endpoint;
use gridhaul_protocols::iec104::{self, Station};
use gridhaul_protocols::mqtt::{self, QualityOfService, Version};
use gridhaul_protocols::nanomsg::{self, Pipeline};
use gridhaul_protocols::payload::Encoding;
use gridhaul_protocols::process_bus::Frame;
use gridhaul_protocols::xmpp::{Client, Settings};
use gridhaul_protocols::zmtp::{Socket, SocketType};
use gridhaul_scenario::units::{Duration, Instant};
use libfuzzer_sys::fuzz_target;

/// Both ends of each protocol.
fn endpoints() -> Vec<[Box<dyn Endpoint>; 2]> {
    let unit = c37_118::Role::MeasurementUnit(20);
    let master = dnp3::Role::Master { poll: None };
    vec![
        [dnp3::Role::Outstation, master].map(|role| Box::new(dnp3::Station::new(role)) as _),
        [iec104::Role::Controlled, iec104::Role::Controlling]
            .map(|role| Box::new(Station::new(role, iec104::Window::STANDARD)) as _),
        [nanomsg::Role::Push, nanomsg::Role::Pull].map(|role| Box::new(Pipeline::new(role)) as _),
        [unit, c37_118::Role::Concentrator].map(|role| Box::new(Synchrophasor::new(role)) as _),
        [SocketType::Push, SocketType::Pull].map(|kind| Box::new(Socket::new(kind)) as _),
        [SocketType::Pub, SocketType::Sub].map(|kind| Box::new(Socket::new(kind)) as _),
    ]
}

/// Exchanges the handshakes of two ends.
fn open(ends: &mut [Box<dyn Endpoint>; 2]) {
    ends.iter_mut().for_each(|end| end.open(Instant::ZERO));
    for from in [0, 1, 0, 1, 0, 1, 0, 1] {
        let mut bytes = Vec::new();
        ends[from].poll_output(&mut bytes);
        ends[1 - from].handle_input(&bytes, Instant::ZERO).expect("a handshake is valid");
    }
}

/// An agent handles bytes before and after its token was compared.
fn serve(bytes: &[u8], is_authenticated: bool) {
    let mut session = Session::new(Instant::ZERO);
    let mut input = Vec::new();
    write_preface(&mut input);
    session.handle_input(&input, Instant::ZERO);
    if is_authenticated {
        session.handle_authenticated(Ok(()), Instant::ZERO);
    }
    session.handle_input(bytes, Instant::ZERO);
    while let Some(action) = session.poll_action() {
        assert!(is_authenticated || matches!(action, Action::Authenticate(_)), "{action:?}");
    }
}

/// Stanzas of an XMPP server until messages can pass.
const SERVER: &str = "<?xml version='1.0'?><stream:stream \
    xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>\
    <stream:features><mechanisms><mechanism>PLAIN</mechanism></mechanisms></stream:features>\
    <success/>\
    <stream:stream xmlns:stream='http://etherx.jabber.org/streams' \
    version='1.0'><stream:features><bind/></stream:features>\
    <iq type='result' id='bind'><bind><jid>user@host/fuzz</jid></bind></iq>";

/// A client of XMPP, whose peer is a server, before or after the negotiation of the stream.
fn xmpp_client(is_bound: bool) -> Client {
    let mut client = Client::new(Settings {
        user: "user".into(),
        domain: "host".into(),
        password: "password".into(),
        resource: "fuzz".into(),
        destination: None,
        keep_alive: Duration::from_secs(60),
    });
    client.open(Instant::ZERO);
    if is_bound {
        client.handle_input(SERVER.as_bytes(), Instant::ZERO).expect("the negotiation is valid");
        assert!(client.is_ready());
    }
    client
}

/// A client of MQTT, whose peer is a broker, before or after its subscription.
fn mqtt_client(version: Version, is_subscribed: bool) -> mqtt::Client {
    let mut client = mqtt::Client::new(mqtt::Settings {
        version,
        quality: QualityOfService::AtLeastOnce,
        client: "fuzz".into(),
        topic: "topic".into(),
        subscribes: true,
        login: None,
        keep_alive: Duration::from_secs(60),
    });
    client.open(Instant::ZERO);
    if is_subscribed {
        // CONNACK and SUBACK.
        let broker: &[u8] = match version {
            Version::V3 => &[0x20, 2, 0, 0, 0x90, 3, 0xff, 0xff, 1],
            Version::V5 => &[0x20, 3, 0, 0, 0, 0x90, 4, 0xff, 0xff, 0, 1],
        };
        client.handle_input(broker, Instant::ZERO).expect("the answers are valid");
        assert!(client.is_ready());
    }
    client
}

/// Decodes the input as payload. JSON is read with a rounding error.
fn check_payload(bytes: &[u8]) {
    for encoding in Encoding::ALL {
        let Ok(sample) = encoding.decode(bytes) else { continue };
        let again = encoding.decode(&encoding.encode(&sample));
        let again = again.expect("an encoded sample is decoded");
        // NaN is not equal to itself: values are compared as text.
        let is_equal = format!("{again:?}") == format!("{sample:?}");
        assert!(is_equal || encoding == Encoding::Json, "{encoding:?}: {again:?} {sample:?}");
    }
}

/// Passes the input to an end, in pieces of the length that its first byte gives.
fn check(end: &mut dyn Endpoint, first: u8, bytes: &[u8]) {
    let mut pieces = bytes.chunks(1 + usize::from(first));
    let _ = pieces.try_for_each(|piece| end.handle_input(piece, Instant::ZERO));
    while let Some(message) = end.poll_message() {
        assert!(message.len() <= bytes.len() + 1, "a message of {} B", message.len());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let [first, ..] = *bytes else { return };
    check_payload(bytes);
    serve(&bytes[1..], first & 2 == 0);
    for mut ends in endpoints() {
        if first & 1 == 0 {
            open(&mut ends);
        }
        for end in &mut ends {
            check(&mut **end, first, &bytes[1..]);
        }
    }
    check(&mut xmpp_client(first & 1 == 0), first, &bytes[1..]);
    for version in [Version::V3, Version::V5] {
        check(&mut mqtt_client(version, first & 1 == 0), first, &bytes[1..]);
    }
    let Ok(frame) = Frame::decode(bytes) else { return };
    let mut written = Vec::new();
    if let Err(error) = frame.encode(&mut written) {
        // Elements with their default value may be absent, but are written: the frame may become
        // too long.
        assert!(bytes.len() > 1_400, "{error}");
        return;
    }
    // Lengths have the shortest form in a written frame.
    assert!(written.len() <= bytes.len() + 8, "{} {}", written.len(), bytes.len());
    let again = Frame::decode(&written).expect("a written frame is decoded");
    // NaN is not equal to itself: values are compared as text.
    assert_eq!(format!("{again:?}"), format!("{frame:?}"));
});
