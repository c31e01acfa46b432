//! XMPP: the client against a scripted server, and through prosody.

use std::{thread, time};

use gridhaul_measure::broker::Broker;
use gridhaul_measure::place::Sites;
use gridhaul_measure::protocol::{Protocol, ProtocolError, ThroughBroker};
use gridhaul_protocols::endpoint::Endpoint;
use gridhaul_protocols::overhead::xmpp::Stanza;
use gridhaul_protocols::settings::{
    BrokerAddress, BrokerProgram, BrokerProtocol, BrokerSettings, ClientSettings, Credentials,
};
use gridhaul_protocols::xmpp::{Client, Settings};
use gridhaul_scenario::units::{Duration, Instant};
use gridhaul_testing::has_program;
use proptest::prelude::*;

use crate::peers::{Peer, messages, printed, python, receive};
use crate::recorder::{Recorder, dissect, pieces};
use crate::{MESSAGES, assert_complete, plan, run, turn};

const NOW: Instant = Instant::ZERO;

const HEADER: &str = "<?xml version='1.0'?><stream:stream xmlns='jabber:client' \
                      xmlns:stream='http://etherx.jabber.org/streams' version='1.0' id='1'>";

const MECHANISMS: &str = "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\
                          <mechanism>SCRAM-SHA-1</mechanism><mechanism>PLAIN</mechanism>\
                          </mechanisms></stream:features>";

const SUCCESS: &str = "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>";

const FEATURES: &str =
    "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>";

const BOUND: &str = "<iq type='result' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>\
                     <jid>me@host/here</jid></bind></iq>";

fn client() -> Client {
    let mut client = Client::new(Settings {
        user: "me".into(),
        domain: "host".into(),
        password: "pass<word".into(),
        resource: "here".into(),
        destination: Some("you@host/there".into()),
        keep_alive: Duration::from_secs(10),
    });
    client.open(NOW);
    client
}

/// Output of the client after these bytes of the server.
fn answer(client: &mut Client, server: &str) -> String {
    client.handle_input(server.as_bytes(), NOW).unwrap();
    output(client)
}

fn output(client: &mut Client) -> String {
    let mut bytes = Vec::new();
    client.poll_output(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

fn bound() -> Client {
    let mut client = client();
    answer(&mut client, &[HEADER, MECHANISMS, SUCCESS, HEADER, FEATURES, BOUND].concat());
    assert!(client.is_ready());
    client
}

#[test]
fn a_stream_is_negotiated_in_the_order_of_the_rfc() {
    let mut client = client();
    let header = "<?xml version='1.0'?><stream:stream to='host' version='1.0' \
        xmlns='jabber:client' \
                  xmlns:stream='http://etherx.jabber.org/streams'>";
    assert_eq!(output(&mut client), header);
    // RFC 4616: zero, user, zero, password.
    let credentials = "AG1lAHBhc3M8d29yZA==";
    assert_eq!(
        answer(&mut client, &[HEADER, MECHANISMS].concat()),
        format!(
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{credentials}</auth>"
        )
    );
    assert_eq!(answer(&mut client, SUCCESS), header, "the stream restarts");
    assert_eq!(
        answer(&mut client, &[HEADER, FEATURES].concat()),
        "<iq type='set' id='bind'><bind \
         xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>here</resource></bind></iq>"
    );
    assert!(!client.is_ready() && client.publish(&[1], NOW).is_err());
    assert_eq!(answer(&mut client, BOUND), "");
    client.publish(&[0, 0xa5], NOW).unwrap();
    assert_eq!(
        output(&mut client),
        "<message to='you@host/there'><Octets xmlns='urn:gridhaul:measure'>00A5</Octets></message>"
    );
    client.close();
    assert_eq!(output(&mut client), "</stream:stream>");
}

#[test]
fn a_refusal_of_the_server_names_the_condition() {
    let tls = "<stream:features><starttls \
        xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls></stream:features>";
    let other = "<stream:features><mechanisms><mechanism>EXTERNAL</mechanism>\
                          </mechanisms></stream:features>";
    let failure = "<failure><not-authorized/><text>wrong</text></failure>";
    let conflict = "<iq type='error' id='bind'><error type='modify'><conflict/></error></iq>";
    let assigned = BOUND.replace("here", "elsewhere");
    for (server, expected) in [
        (vec!["<html>"], "<html> is not the header"),
        (vec![&HEADER.replace("1.0' id", "2.0' id")], "version 2.0"),
        (vec![HEADER, tls], "requires STARTTLS"),
        (vec![HEADER, other], "but: EXTERNAL"),
        (vec![HEADER, MECHANISMS, failure], "refuses the credentials: not-authorized (wrong)"),
        (vec![HEADER, MECHANISMS, SUCCESS, HEADER, MECHANISMS], "does not offer to bind"),
        (vec![HEADER, MECHANISMS, SUCCESS, HEADER, FEATURES, conflict], "resource: conflict"),
        (vec![HEADER, MECHANISMS, SUCCESS, HEADER, FEATURES, &assigned], "me@host/elsewhere"),
        (vec![HEADER, "<stream:error><host-unknown/></stream:error>"], "host-unknown"),
        (vec![HEADER, "</stream:stream>"], "closed the stream"),
        (vec![HEADER, "<message/>"], "<message> during the negotiation"),
    ] {
        let error = client().handle_input(server.concat().as_bytes(), NOW).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(expected) && !error.contains("pass<word"), "{error}");
    }
}

#[test]
fn a_client_answers_requests_and_keeps_the_connection_alive() {
    let mut client = bound();
    output(&mut client);
    let ping = "<iq type='get' id='&lt;1' from='host'><ping xmlns='urn:xmpp:ping'/></iq>";
    assert_eq!(
        answer(&mut client, ping),
        "<iq type='error' id='&lt;1' to='host'><error type='cancel'><service-unavailable \
         xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
    );
    assert_eq!(answer(&mut client, "<iq type='result' id='2'/><presence/>"), "");
    client.publish(&[1], NOW + Duration::from_secs(1)).unwrap();
    output(&mut client);
    client.handle_time(NOW + Duration::from_millis(10_999)).unwrap();
    assert_eq!(output(&mut client), "");
    client.handle_time(NOW + Duration::from_secs(11)).unwrap();
    assert_eq!(output(&mut client), " ");
}

#[test]
fn stanzas_of_other_applications_are_no_messages() {
    let mut client = bound();
    let octets = "<Octets xmlns='urn:gridhaul:measure'>01</Octets>";
    let stanzas = format!(
        "<message><body>chat</body></message><message type='error'>{octets}</message>\
         <message><Octets xmlns='urn:other'>02</Octets></message>\
         <message>{}</message><message>{}</message><message from='x'> {octets} </message>",
        octets.replace("01", "0"),
        octets.replace("01", "0g"),
    );
    answer(&mut client, &stanzas);
    assert_eq!(client.poll_message(), Some(vec![1]));
    assert_eq!(client.poll_message(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn messages_arrive_through_pieces_of_every_length(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..10),
        piece in 1_usize..400,
    ) {
        let mut sender = bound();
        output(&mut sender);
        messages.iter().for_each(|message| sender.publish(message, NOW).unwrap());
        let server = [HEADER, MECHANISMS, SUCCESS, HEADER, FEATURES, BOUND].concat();
            let server = server + &output(&mut sender);
        let mut receiver = client();
        for piece in server.as_bytes().chunks(piece) {
            receiver.handle_input(piece, NOW).unwrap();
        }
        for message in &messages {
            let received = receiver.poll_message();
            prop_assert_eq!(received.as_ref(), Some(message));
        }
        prop_assert_eq!(receiver.poll_message(), None);
    }

    #[test]
    fn any_bytes_are_read_without_panic(
        bytes: Vec<u8>,
        at in 0_usize..1_800,
        piece in 1_usize..64,
    ) {
        let server = [HEADER, MECHANISMS, SUCCESS, HEADER, FEATURES, BOUND].concat();
        let mut input = server.into_bytes();
        let is_whole = at >= input.len();
        input.truncate(at);
        // In about half of the cases as the contents of a stanza.
        input.extend(is_whole.then_some(b"<message>").into_iter().flatten());
        input.extend(&bytes);
        input.extend(is_whole.then_some(b"</message>").into_iter().flatten());
        let mut client = client();
        for piece in input.chunks(piece) {
            if client.handle_input(piece, NOW).is_err() {
                break;
            }
        }
    }
}

fn xmpp(broker: BrokerAddress) -> ThroughBroker {
    ThroughBroker { clients: ClientSettings::new(BrokerProtocol::Xmpp, "test"), broker }
}

fn prosody(tls: bool) -> Broker {
    let settings = BrokerSettings { tls, ..BrokerSettings::default() };
    Broker::start(BrokerProgram::Prosody, &Sites::loopback().to, settings).unwrap()
}

#[test]
fn messages_pass_through_prosody_with_tls() {
    let _turn = turn();
    if has_program("prosody") {
        assert_complete(&run(&plan(1_000.0, 100), &xmpp(prosody(true).address())), 100);
    }
}

#[test]
fn messages_pass_through_prosody() {
    let _turn = turn();
    if !has_program("prosody") || !has_program("tshark") {
        return;
    }
    let mut server = prosody(false);
    let plain = xmpp(server.address());
    let mut one = plain.clone();
    (one.clients.one_connection, one.clients.nodelay) = (true, false);
    for protocol in [&plain, &one] {
        assert_complete(&run(&plan(1_000.0, 100), protocol), 100);
    }
    wrong_credentials_are_an_error(&server);
    the_bytes_are_those_of_the_formula(&server);
    slixmpp_exchanges_messages(&server);
    a_killed_server_is_a_marked_gap(&mut server);
}

fn wrong_credentials_are_an_error(server: &Broker) {
    let mut address = server.address();
    address.credentials =
        Some(Credentials { user: "gridhaul".into(), password: "wrong-password".into() });
    let error = xmpp(address.clone()).connect(&Sites::loopback()).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ProtocolError::Connect { .. }), "{text}");
    assert!(text.contains(&address.address.to_string()) && text.contains("not-authorized"));
    assert!(!text.contains("wrong-password"), "the password is not printed: {text}");
    let error = xmpp(BrokerAddress { credentials: None, ..address });
    let error = error.connect(&Sites::loopback()).unwrap_err().to_string();
    assert!(error.contains("xmpp://user@example.org"), "{error}");
}

fn the_bytes_are_those_of_the_formula(server: &Broker) {
    let recorder = Recorder::start(server.address().address);
    let mut address = server.address();
    address.address = recorder.address;
    assert_complete(&run(&plan(500.0, 50), &xmpp(address)), 50);
    let mut segments = recorder.segments();
    // tshark reports the tag that ends a stream as an error of XML, because the segment does not
    // contain its start.
    for segment in &mut segments {
        if let Some(rest) = segment.bytes.strip_suffix(b"</stream:stream>") {
            segment.bytes = rest.to_vec();
        }
    }
    segments.retain(|segment| !segment.bytes.is_empty());
    let folder = tempfile::tempdir().unwrap();
    dissect(folder.path(), 5222, "xmpp", &segments, &[]);
    let length = |role: &str| format!("gridhaul@localhost/test-{role}").len() as u64;
    let stanza = Stanza { to: length("subscriber"), from: length("publisher"), language: 2 };
    let with = |from_client, length: u64| {
        let pieces = pieces(&segments, from_client, first_stanza);
        pieces.iter().filter(|piece| piece.len() as u64 == length).count()
    };
    let published = with(true, 132 + stanza.publish_overhead(132));
    let delivered = with(false, 132 + stanza.deliver_overhead(132));
    assert_eq!((published, delivered), (MESSAGES, MESSAGES));
}

/// Length of the message that the bytes begin with, or of what comes before the next one.
fn first_stanza(bytes: &[u8]) -> usize {
    const START: &[u8] = b"<message";
    const END: &[u8] = b"</message>";
    let position = |text: &[u8]| bytes.windows(text.len()).position(|window| window == text);
    match position(START) {
        Some(0) => position(END).map_or(bytes.len(), |end| end + END.len()),
        Some(start) => start,
        None => bytes.len(),
    }
}

fn slixmpp_exchanges_messages(server: &Broker) {
    let Some(python) = python() else { return };
    let port = server.address().address.port();
    let mut connected = xmpp(server.address()).connect(&Sites::loopback()).unwrap();
    let peer = Peer::start(&python, "xmpp", port, "gridhaul@localhost/test-subscriber");
    assert_eq!(receive(&mut *connected.subscriber, 4), messages());
    assert_eq!(peer.end(), printed());
}

/// The server is killed in the middle of a run and is back half a second later.
#[expect(clippy::disallowed_methods, reason = "a fault in the middle of a run in real time")]
fn a_killed_server_is_a_marked_gap(server: &mut Broker) {
    let protocol = xmpp(server.address());
    let plan =
        gridhaul_measure::transfer::Plan { horizon: Duration::from_secs(1), ..plan(100.0, 300) };
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(time::Duration::from_millis(2_000));
            server.kill().unwrap();
            thread::sleep(time::Duration::from_millis(500));
            server.restart(&Sites::loopback().to).unwrap();
        });
        run(&plan, &protocol)
    });
    let counts = outcome.summary.counts;
    assert_eq!((outcome.fault, counts.messages), (None, 300));
    assert!(counts.refused > 10 && !outcome.reconnections.is_empty(), "{counts:?}");
    assert!(outcome.refusal.is_some_and(|reason| reason.contains("no connection")));
    server.kill().unwrap();
    let error = protocol.connect(&Sites::loopback()).unwrap_err().to_string();
    assert!(error.contains(&server.address().address.to_string()), "{error}");
}
