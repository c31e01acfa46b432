//! Delivery to an MQTT broker: acknowledgement, order, and failures of the broker.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use gridhaul_testing::find_program;
use rumqttc::{Client, Event, MqttOptions, Packet, QoS};
use rustix::process::{Pid, Signal, kill_process};

use gridhaul_testing::free_address;

use crate::cases::connect;
use crate::certificates::Authority;
use crate::relays::{Relays, Role};

/// The broker mosquitto, which keeps the session of the subscriber when it is stopped.
struct Broker {
    program: PathBuf,
    address: SocketAddr,
    folder: tempfile::TempDir,
    process: Option<Child>,
}

impl Broker {
    /// `None`: the broker is not installed.
    fn new() -> Option<Self> {
        let program = find_program("mosquitto")?;
        let (address, folder) = (free_address(), tempfile::tempdir().unwrap());
        let text = format!(
            "user root\nlistener {} {}\nallow_anonymous true\npersistence \
             true\npersistence_location {}/\n\
             max_queued_messages 0\nset_tcp_nodelay true\nlog_dest none\n",
            address.port(),
            address.ip(),
            folder.path().display()
        );
        fs::write(folder.path().join("broker.conf"), text).unwrap();
        Some(Self { program, address, folder, process: None })
    }

    /// The broker has another address with TLS, for clients with a certificate. `relays` has the
    /// files.
    fn add_tls(&self, relays: &Relays) -> SocketAddr {
        let (address, path) = (free_address(), self.folder.path().join("broker.conf"));
        let file = |name: &str| relays.path(name).display().to_string();
        let text = format!(
            "{}listener {} {}\ncafile {}\ncertfile {}\nkeyfile {}\nrequire_certificate true\n",
            fs::read_to_string(&path).unwrap(),
            address.port(),
            address.ip(),
            file("authority.pem"),
            file("broker.pem"),
            file("broker.key")
        );
        fs::write(path, text).unwrap();
        address
    }

    fn start(&mut self) {
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(self.folder.path().join("broker.conf"));
        self.process = Some(command.stderr(Stdio::null()).spawn().unwrap());
        let begun = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "the broker does not listen");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("the broker runs");
        kill_process(Pid::from_child(process), signal).unwrap();
    }

    fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
            process.wait().unwrap();
        }
    }
}

/// Bytes of the head's log that are not delivered.
fn backlog(relays: &Relays) -> u64 {
    relays.ask(Role::Head, "/status").unwrap()["backlog_byte"].as_u64().unwrap()
}

fn wait_until_the_head_has_the_records(relays: &Relays) {
    relays.wait_until("the head has the records", |relays| {
        relays.ask(Role::Collector, "/status").unwrap()["backlog_byte"] == 0
    });
}

impl Drop for Broker {
    fn drop(&mut self) {
        // A test that has failed may have suspended the process.
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Topics and payloads that a subscriber of all topics has received.
type Received = Arc<Mutex<Vec<(String, String)>>>;

/// Subscribes with a session that the broker keeps, and waits until this is done.
fn subscribe(address: SocketAddr) -> Received {
    let mut options = MqttOptions::new("subscriber", address.ip().to_string(), address.port());
    options.set_clean_session(false).set_max_packet_size(1 << 20, 1 << 20);
    let (client, mut connection) = Client::new(options, 10);
    let received = Received::default();
    let (all, (subscribed, is_subscribed)) = (Arc::clone(&received), std::sync::mpsc::channel());
    thread::spawn(move || {
        for event in connection.iter() {
            match event {
                Ok(Event::Incoming(Packet::ConnAck(_))) => {
                    client.try_subscribe("#", QoS::AtLeastOnce).unwrap();
                }
                Ok(Event::Incoming(Packet::SubAck(_))) => drop(subscribed.send(())),
                Ok(Event::Incoming(Packet::Publish(message))) => {
                    let payload = String::from_utf8_lossy(&message.payload).into_owned();
                    all.lock().unwrap().push((message.topic, payload));
                }
                Ok(_) => {}
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        }
    });
    is_subscribed.recv_timeout(Duration::from_secs(20)).unwrap();
    received
}

fn relays(broker: SocketAddr, keys: &str) -> Relays {
    let deliver = format!("deliver.mqtt.broker = \"{broker}\"\n{keys}");
    Relays::with_delivery("local", "", &deliver)
}

/// Stores numbered lines in one connection.
fn store(relays: &Relays, numbers: std::ops::Range<u32>) {
    let mut socket = connect(relays);
    for number in numbers {
        socket.write_all(format!("{number}\n").as_bytes()).unwrap();
    }
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
}

/// The payloads, without consecutive duplicates: after a failure, messages may be published again.
fn numbers(received: &Received) -> Vec<u32> {
    let all = received.lock().unwrap();
    let mut numbers: Vec<u32> = Vec::new();
    for number in all.iter().flat_map(|(_, payload)| payload.lines()) {
        let number = number.parse().unwrap();
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    numbers
}

#[test]
fn records_are_published_with_the_identity_of_the_meter() {
    let Some(mut broker) = Broker::new() else { return };
    broker.start();
    let received = subscribe(broker.address);
    let mut relays = relays(
        broker.address,
        "deliver.mqtt.topic = \"grid/{collector}/{listener}/{peer}/{certificate}/{meter}\"",
    );
    relays.start(Role::Head);
    relays.start(Role::Collector);
    store(&relays, 0..3);
    relays.wait_until_delivered();
    relays.wait_until("the subscriber has the end", |_| {
        received.lock().unwrap().iter().any(|(_, payload)| payload.contains("\"eof\""))
    });
    let all = received.lock().unwrap();
    let mut text = String::new();
    for (topic, payload) in all.iter() {
        let record: serde_json::Value = serde_json::from_str(payload).unwrap();
        let (epoch, meter) = (record["epoch"].as_str().unwrap(), &record["meter"]);
        let expected = format!("grid/collector/meters/127.0.0.1/unknown/{epoch}-{meter}");
        assert_eq!(topic, &expected);
        text += record["text"].as_str().unwrap_or("");
    }
    assert_eq!(text, "0\n1\n2\n");
}

#[test]
fn records_wait_for_a_broker_that_is_stopped() {
    let Some(mut broker) = Broker::new() else { return };
    broker.start();
    let received = subscribe(broker.address);
    let mut relays =
        relays(broker.address, "deliver.mqtt.payload = \"data\"\ndeliver.mqtt.in_flight = 7");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    store(&relays, 0..100);
    relays.wait_until_delivered();
    // The kernel of the broker accepts messages, fewer than may be in flight, and its program does
    // not acknowledge them.
    broker.signal(Signal::STOP);
    store(&relays, 100..105);
    wait_until_the_head_has_the_records(&relays);
    thread::sleep(Duration::from_millis(300));
    assert!(backlog(&relays) > 0, "nothing counts as delivered without PUBACK");
    broker.signal(Signal::CONT);
    relays.wait_until_delivered();
    broker.stop();
    relays.wait_for_report(Role::Head, "records stay in the log");
    store(&relays, 105..200);
    wait_until_the_head_has_the_records(&relays);
    assert!(backlog(&relays) > 0);
    // A head that is killed continues after the records that the broker has acknowledged.
    relays.kill(Role::Head);
    relays.start(Role::Head);
    assert!(backlog(&relays) > 0);
    broker.start();
    relays.wait_until_delivered();
    store(&relays, 200..210);
    relays.wait_until_delivered();
    relays.wait_until("the subscriber has everything", |_| numbers(&received).len() == 210);
    assert_eq!(numbers(&received), (0..210).collect::<Vec<_>>(), "in order");
}

#[test]
fn broker_and_head_identify_each_other() {
    let Some(mut broker) = Broker::new() else { return };
    // The configuration of the head is written when the address with TLS is known.
    let mut relays = relays(broker.address, "deliver.mqtt.payload = \"data\"");
    let authority = Authority::new(relays.folder.path(), "authority");
    authority.issue("broker", "broker");
    authority.issue("head", "head");
    let encrypted = broker.add_tls(&relays);
    let path = relays.path("head.toml");
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace(&broker.address.to_string(), &encrypted.to_string());
    let tls = "deliver.mqtt.tls.authorities = \"authority.pem\"\n\
               deliver.mqtt.tls.certificate = \"head.pem\"\ndeliver.mqtt.tls.key = \"head.key\"\n\
               deliver.mqtt.tls.server_name = \"relay.test\"\n";
    fs::write(&path, text + tls).unwrap();
    broker.start();
    let received = subscribe(broker.address);
    relays.start(Role::Head);
    relays.start(Role::Collector);
    store(&relays, 0..100);
    relays.wait_until_delivered();

    // Neither accepts a certificate of another authority. Nothing is lost meanwhile.
    let other = Authority::new(relays.folder.path(), "other");
    other.issue("broker", "broker");
    broker.stop();
    broker.start();
    relays.wait_for_report(Role::Head, "invalid peer certificate");
    let status = relays.ask(Role::Head, "/status").unwrap();
    assert!(status["delivery_error"].as_str().unwrap().contains("certificate"), "{status}");
    authority.issue("broker", "broker");
    other.issue("head", "head");
    relays.signal(Role::Head, Signal::HUP);
    relays.wait_for_report(Role::Head, "was read again");
    broker.stop();
    broker.start();
    store(&relays, 100..150);
    wait_until_the_head_has_the_records(&relays);
    relays.wait_for_report(Role::Head, "received fatal alert");
    assert!(backlog(&relays) > 0);
    authority.issue("head", "head");
    relays.signal(Role::Head, Signal::HUP);
    relays.wait_until_delivered();
    assert!(relays.ask(Role::Head, "/status").unwrap()["delivery_error"].is_null());
    relays.wait_until("the subscriber has everything", |_| numbers(&received).len() == 150);
    assert_eq!(numbers(&received), (0..150).collect::<Vec<_>>(), "in order");
}
