//! Other implementations at the other end, in Python: pika, qpid-proton, paho, pymodbus, pyzmq,
//! pynng, c104, slixmpp, pyiec61850, nfm-dnp3, synchrophasor, gurux-dlms.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gridhaul_measure::broker::Broker;
use gridhaul_measure::place::Sites;
use gridhaul_measure::protocol::{
    DataSet, FrameIdentity, GooseControlBlock, Protocol, Received, SampledValueStream, Subscriber,
    ThroughBroker,
};
use gridhaul_protocols::endpoint::Endpoint;
use gridhaul_protocols::iec104;
use gridhaul_protocols::mqtt::{QualityOfService, Version};
use gridhaul_protocols::payload::{Encoding, Sample, Timestamp};
use gridhaul_protocols::settings::{
    BrokerProgram, BrokerProtocol, BrokerSettings, ClientSettings, DirectKind, Modbus, Mqtt,
    Pattern, ReconnectPolicy,
};
use gridhaul_scenario::units::Instant;
use gridhaul_testing::{ReservedPort, has_program, has_tool};

use crate::turn;

/// The messages of `peers.py`.
pub(crate) fn messages() -> Vec<Vec<u8>> {
    vec![vec![0], b"a".to_vec(), (0..=255).collect(), vec![b'x'; 5_000]]
}

/// Python with the other implementations, if it can be provided.
pub(crate) fn python() -> Option<PathBuf> {
    // Tests that begin at the same time do not install the packages at the same time.
    static INSTALLATION: Mutex<()> = Mutex::new(());
    let _alone = INSTALLATION.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../peers");
    let python = folder.join("bin/python");
    let wanted = include_str!("requirements.txt");
    let installed = folder.join("requirements.txt");
    if std::fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Some(python);
    }
    let provide = || -> Option<()> {
        let run = |command: &mut Command| {
            command.status().is_ok_and(|status| status.success()).then_some(())
        };
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        let requirements =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protocols/requirements.txt");
        let arguments = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
        run(Command::new(&python).args(arguments).arg(requirements))?;
        std::fs::write(&installed, wanted).ok()
    };
    let provided = provide();
    has_tool(provided.is_some(), "an environment with Python packages").then_some(python)
}

/// A peer that runs. It does not outlive a test that fails.
pub(crate) struct Peer(Option<Child>);

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Peer {
    pub(crate) fn start(python: &Path, role: &str, port: u16, name: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protocols/peers.py");
        let mut command = Command::new(python);
        command.arg("-B").arg(script).args([role, &port.to_string(), name]);
        Self(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
    }

    /// Whether it has ended.
    fn has_ended(&mut self) -> bool {
        self.0.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some())
    }

    /// The lines that it has printed when it ends.
    pub(crate) fn end(mut self) -> Vec<String> {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }
}

/// The lines that a receiver prints for the messages.
pub(crate) fn printed() -> Vec<String> {
    let hex = |message: &Vec<u8>| message.iter().map(|byte| format!("{byte:02x}")).collect();
    messages().iter().map(hex).collect()
}

/// Waits for messages, at most 100 s on a busy machine.
pub(crate) fn receive(subscriber: &mut dyn Subscriber, count: usize) -> Vec<Vec<u8>> {
    let (mut received, mut message) = (Vec::new(), Vec::new());
    for _ in 0..2_000 {
        if let Received::Message(_) = subscriber.receive(&mut message).unwrap() {
            received.push(message.clone());
        }
        if received.len() == count {
            break;
        }
    }
    received
}

/// A machine with a socket that a peer connects to.
struct Server {
    endpoint: Box<dyn Endpoint>,
    socket: TcpStream,
}

impl Server {
    fn accept(listener: &TcpListener, mut endpoint: Box<dyn Endpoint>) -> Self {
        let (socket, _) = listener.accept().unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        endpoint.open(Instant::ZERO);
        Self { endpoint, socket }
    }

    /// Exchanges bytes until `is_done`, at most 100 s on a busy machine; `false` if it is not then.
    fn exchange(&mut self, mut is_done: impl FnMut(&mut dyn Endpoint) -> bool) -> bool {
        let mut buffer = [0; 10_000];
        for _ in 0..5_000 {
            let mut output = Vec::new();
            self.endpoint.poll_output(&mut output);
            // A peer that has received everything may have gone.
            let _ = self.socket.write_all(&output);
            if is_done(&mut *self.endpoint) {
                return true;
            }
            if let Ok(length) = self.socket.read(&mut buffer) {
                self.endpoint.handle_input(&buffer[..length], Instant::ZERO).unwrap();
            }
        }
        false
    }
}

#[test]
fn pyzmq_and_pynng_send_and_receive() {
    let Some(python) = python() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pipeline = DirectKind::ZeroMq(Pattern::Pipeline);
    for (role, kind, end) in [
        ("zeromq_push", pipeline, 1),
        ("nanomsg_push", DirectKind::Nanomsg, 1),
        ("zeromq_pull", pipeline, 0),
        ("zeromq_sub", DirectKind::ZeroMq(Pattern::PublishSubscribe), 0),
        ("nanomsg_pull", DirectKind::Nanomsg, 0),
    ] {
        let peer = Peer::start(&python, role, port, "");
        let endpoint = kind.endpoints().into_iter().nth(end).unwrap();
        let mut server = Server::accept(&listener, endpoint);
        assert!(server.exchange(|status| status.is_ready()), "{role}");
        if end == 1 {
            let mut received = Vec::new();
            let is_complete = server.exchange(|status| {
                received.extend(status.poll_message());
                received.len() == messages().len()
            });
            assert!(is_complete, "{role}: {received:?}");
            assert_eq!(received, messages(), "{role}");
            peer.end();
        } else {
            messages()
                .iter()
                .for_each(|status| server.endpoint.publish(status, Instant::ZERO).unwrap());
            server.exchange(|_| true);
            assert_eq!(peer.end(), printed(), "{role}");
        }
    }
}

#[test]
fn a_controlling_station_of_lib60870_reads_the_values() {
    let Some(python) = python() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = Peer::start(&python, "iec104", listener.local_addr().unwrap().port(), "");
    let [endpoint, _] = DirectKind::Iec104(iec104::Window::STANDARD).endpoints();
    let mut server = Server::accept(&listener, endpoint);
    assert!(server.exchange(|status| status.is_ready()));
    let values = [1.5_f32, -2.0, 50.25].map(f32::to_le_bytes).concat();
    server.endpoint.publish(&values, Instant::ZERO).unwrap();
    server.exchange(|_| true);
    let lines = peer.end();
    // The first object is the length, 12, as bits of a number.
    let values: Vec<f32> = lines[0].split(' ').map(|status| status.parse().unwrap()).collect();
    assert_eq!(values[1..], [1.5, -2.0, 50.25], "{lines:?}");
    assert_eq!(values[0].to_bits(), 12, "{lines:?}");
}

/// Publishes a message to a peer that has connected and requests data; the lines that the peer
/// prints.
fn publish_to(role: &str, kind: DirectKind, message: &[u8]) -> Option<Vec<String>> {
    let python = python()?;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut peer = Peer::start(&python, role, listener.local_addr().unwrap().port(), "");
    let [endpoint, _] = kind.endpoints();
    let mut server = Server::accept(&listener, endpoint);
    assert!(server.exchange(|status| status.is_ready()), "{role}");
    server.endpoint.publish(message, Instant::ZERO).unwrap();
    // The connection may end before the program.
    server.exchange(|_| peer.has_ended());
    Some(peer.end())
}

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_master_of_nfm_dnp3_polls_events() {
    // Two objects, in three frames of the link.
    let message: Vec<u8> = (0..300).map(|number| number as u8).collect();
    let Some(lines) = publish_to("dnp3", DirectKind::Dnp3 { poll: None }, &message) else { return };
    let (first, second) = message.split_at(254);
    let object = |is_last: u8, chunk: &[u8]| {
        [&[111, chunk.len() as u8 + 1, 0x17, 1, 0, is_last][..], chunk].concat()
    };
    let objects = hex(&[object(0, first), object(1, second)].concat());
    // The second request has the indication of a function that is not supported.
    assert_eq!(lines, ["True 1", objects.as_str()]);
}

#[test]
fn a_concentrator_of_synchrophasor_receives_a_data_frame() {
    let message: Vec<u8> = (1..=16).collect();
    let kind = DirectKind::Synchrophasor(message.len());
    let Some(lines) = publish_to("c37_118", kind, &message) else { return };
    assert_eq!(lines, [format!("gridhaul {} 16", hex(&message))]);
}

/// Publishes frames on the loopback device until a subscriber of libiec61850 has received six; the
/// lines that it prints.
#[expect(clippy::disallowed_methods, reason = "a subscriber is awaited in real time")]
fn subscribe(protocol: &dyn Protocol, message: &[u8], role: &str, name: &str) -> Vec<String> {
    let python = python().unwrap();
    let mut peer = Peer::start(&python, role, APPLICATION, name);
    let mut connected = protocol.connect(&Sites::loopback()).unwrap();
    while !peer.has_ended() {
        connected.publisher.publish(message).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    peer.end()
}

/// APPID of the frames for libiec61850, which no other test uses.
const APPLICATION: u16 = 0x4321;

#[test]
fn libiec61850_receives_sampled_values_and_goose() {
    if python().is_none() {
        return;
    }
    let identity = FrameIdentity { vlan: None, application: APPLICATION };
    let message: Vec<u8> = (1..=16).collect();
    let (id, data_set) = ("gridhaul-peer".into(), DataSet::Raw);
    let stream = SampledValueStream { identity, id, data_set };
    let mut lines = subscribe(&stream, &message, "sampled_values", "");
    // The loopback device may pass each frame to the library twice.
    lines.dedup();
    assert!(lines.len() >= 3, "{lines:?}");
    let samples = " gridhaul-peer 0102030405060708090a0b0c0d0e0f10";
    let numbers: Vec<u16> = lines
        .iter()
        .map(|line| line.strip_suffix(samples).unwrap_or_else(|| panic!("{line}")).parse().unwrap())
        .collect();
    // The library may lose frames on a busy machine.
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    let reference = "gridhaul/LLN0$GO$peer";
    let block = GooseControlBlock { identity, reference: reference.into(), retransmission: None };
    let lines = subscribe(&block, &message, "goose", reference);
    let numbers = lines.iter().map(|line| line.split(' ').collect::<Vec<_>>());
    for number in numbers {
        // A state number, no error, and one value.
        assert!(number[0].parse::<u32>().unwrap() > 0 && number[1..] == ["0", "1"], "{lines:?}");
    }
}

#[test]
fn paho_publishes_by_mqtt_5() {
    let _turn = turn();
    let (Some(python), true) = (python(), has_program("mosquitto")) else { return };
    let sites = Sites::loopback();
    let broker =
        Broker::start(BrokerProgram::Mosquitto, &sites.to, BrokerSettings::default()).unwrap();
    let mqtt = Mqtt { version: Version::V5, qos: QualityOfService::AtLeastOnce };
    let clients = ClientSettings::new(BrokerProtocol::Mqtt(mqtt), "test-topic");
    let clients = ClientSettings { one_connection: true, ..clients };
    let protocol = ThroughBroker { clients, broker: broker.address() };
    let mut connected = protocol.connect(&sites).unwrap();
    let peer = Peer::start(&python, "mqtt_sender", broker.address().address.port(), "test-topic");
    assert_eq!(receive(&mut *connected.subscriber, 4), messages());
    peer.end();
}

#[test]
fn pymodbus_writes_registers() {
    let Some(python) = python() else { return };
    let reserved = ReservedPort::new();
    let port = reserved.address().port();
    let protocol = Modbus { port, nodelay: true, reconnect: ReconnectPolicy::default() };
    let mut connected = protocol.connect(&Sites::loopback()).unwrap();
    let peer = Peer::start(&python, "modbus_sender", port, "");
    // The longer messages do not fit.
    assert_eq!(receive(&mut *connected.subscriber, 2), messages()[..2]);
    peer.end();
}

#[test]
fn gurux_reads_values_of_dlms() {
    let Some(python) = python() else { return };
    let origin = Some(Timestamp { seconds: 1, nanoseconds: 2 });
    // A length of the array with more than one byte.
    let values = vec![0.5; 200];
    let sample = Sample { origin, received: None, sequence: Some(0x0102_0304), values };
    let lines = Peer::start(&python, "dlms", 0, &hex(&Encoding::Dlms.encode(&sample))).end();
    let body = ["Structure 04", "Structure 02", "UInt32 00000001", "UInt32 00000002", "None "];
    let rest = ["UInt64 0000000001020304", "Array C8"];
    let at = lines.iter().position(|line| line == body[0]).unwrap();
    assert_eq!(lines[..at].last().map(String::as_str), Some("DataValue "), "{lines:?}");
    let expected = body.into_iter().chain(rest).chain([("Float64 3FE0000000000000"); 200]);
    assert_eq!(lines[at..], expected.collect::<Vec<_>>());
}
