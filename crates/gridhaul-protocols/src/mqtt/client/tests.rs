//! The client, with packets of a broker.

use proptest::prelude::*;

use super::*;

const NOW: Instant = Instant::ZERO;

/// Packets of a broker of MQTT 3.1.1 (sections 3.2, 3.9 and 3.4).
const CONNACK: [u8; 4] = [0x20, 2, 0, 0];
const SUBACK: [u8; 5] = [0x90, 3, 0xff, 0xff, 0];
const PUBACK_1: [u8; 4] = [0x40, 2, 0, 1];

fn client(version: Version, quality: QualityOfService, subscribes: bool) -> Client {
    let mut client = Client::new(Settings {
        version,
        quality,
        client: "test-client".into(),
        topic: "test-topic".into(),
        subscribes,
        login: None,
        keep_alive: Duration::from_secs(60),
    });
    client.open(NOW);
    client
}

fn ready(quality: QualityOfService) -> Client {
    let mut client = client(Version::V3, quality, true);
    client.handle_input(&CONNACK, NOW).unwrap();
    client.handle_input(&SUBACK, NOW).unwrap();
    assert!(client.is_ready());
    output(&mut client);
    client
}

fn output(client: &mut Client) -> Vec<u8> {
    let mut output = Vec::new();
    client.poll_output(&mut output);
    output
}

#[test]
fn a_client_connects_subscribes_and_receives() {
    let mut client = client(Version::V3, QualityOfService::AtMostOnce, true);
    let connect = output(&mut client);
    assert_eq!((connect[0], &connect[4..9]), (0x10, &b"MQTT\x04"[..]));
    assert_eq!(client.publish(b"early", NOW), Err(NotSent::NotReady));
    client.handle_input(&CONNACK, NOW).unwrap();
    assert_eq!(output(&mut client)[0], 0x82, "SUBSCRIBE");
    assert!(!client.is_ready());
    client.handle_input(&SUBACK, NOW).unwrap();
    assert!(client.is_ready());
    let mut publish = vec![0x30, 14, 0, 10];
    publish.extend(b"test-topichi");
    // In pieces of one byte.
    for byte in publish {
        client.handle_input(&[byte], NOW).unwrap();
    }
    assert_eq!(client.poll_message().as_deref(), Some(&b"hi"[..]));
}

#[test]
fn messages_at_least_once_are_acknowledged_in_both_directions() {
    let mut client = ready(QualityOfService::AtLeastOnce);
    client.publish(b"hi", NOW).unwrap();
    let publish = output(&mut client);
    assert_eq!((publish[0], &publish[14..]), (0x32, &b"\0\x01hi"[..]));
    client.handle_input(&PUBACK_1, NOW).unwrap();
    let error = client.handle_input(&PUBACK_1, NOW).unwrap_err().to_string();
    assert!(error.contains("was not sent"), "{error}");
    let mut client = ready(QualityOfService::AtLeastOnce);
    client.handle_input(b"\x32\x10\0\x0atest-topic\0\x07hi", NOW).unwrap();
    assert_eq!(output(&mut client), [0x40, 2, 0, 7]);
    for _ in 0..IN_FLIGHT {
        client.publish(b"", NOW).unwrap();
    }
    assert_eq!(client.publish(b"", NOW), Err(NotSent::WindowFull));
    client.handle_input(&PUBACK_1, NOW).unwrap();
    assert_eq!(client.publish(b"", NOW), Ok(()), "an acknowledgement opens the window");
}

#[test]
fn a_refusal_is_an_error_with_its_reason() {
    for (version, connack) in
        [(Version::V3, &[0x20, 2, 0, 5][..]), (Version::V5, &[0x20, 3, 0, 0x87, 0][..])]
    {
        let mut client = client(version, QualityOfService::AtMostOnce, false);
        let error = client.handle_input(connack, NOW).unwrap_err().to_string();
        assert!(error.ends_with("refuses the connection: the client is not authorised"), "{error}");
    }
}

#[test]
fn an_idle_client_pings_and_notices_that_nobody_answers() {
    let mut client = ready(QualityOfService::AtMostOnce);
    let at = |seconds| NOW + Duration::from_secs(seconds);
    client.handle_time(at(59)).unwrap();
    assert!(output(&mut client).is_empty());
    client.handle_time(at(60)).unwrap();
    assert_eq!(output(&mut client), [0xc0, 0]);
    client.handle_input(&[0xd0, 0], at(61)).unwrap();
    client.handle_time(at(120)).unwrap();
    assert_eq!(output(&mut client), [0xc0, 0]);
    let error = client.handle_time(at(180)).unwrap_err().to_string();
    assert!(error.contains("did not answer within 1 min"), "{error}");
}

/// Nothing arrives at a client that publishes at most once, so that only a ping finds out whether
/// the broker is there.
#[test]
fn a_publishing_client_notices_that_nobody_answers() {
    let mut client = ready(QualityOfService::AtMostOnce);
    let at = |seconds| NOW + Duration::from_secs(seconds);
    for second in 1..60 {
        client.publish(b"x", at(second)).unwrap();
        client.handle_time(at(second)).unwrap();
    }
    assert!(!output(&mut client).ends_with(&[0xc0, 0]));
    client.handle_time(at(60)).unwrap();
    assert_eq!(output(&mut client), [0xc0, 0]);
    client.publish(b"x", at(119)).unwrap();
    let error = client.handle_time(at(120)).unwrap_err().to_string();
    assert!(error.contains("did not answer within 1 min"), "{error}");
}

#[test]
fn the_last_packet_ends_the_session() {
    let mut client = ready(QualityOfService::AtMostOnce);
    client.close();
    assert_eq!(output(&mut client), [0xe0, 0]);
}

proptest! {
    #[test]
    fn any_bytes_do_not_panic(bytes: Vec<u8>, is_5: bool, piece in 1_usize..9) {
        let version = if is_5 { Version::V5 } else { Version::V3 };
        let mut client = client(version, QualityOfService::AtLeastOnce, true);
        for piece in bytes.chunks(piece) {
            if client.handle_input(piece, NOW).is_err() {
                break;
            }
        }
    }
}
