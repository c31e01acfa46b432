//! TLS with meters, and between collector and head.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use gridhaul_testing::free_address;

use crate::admission::long_header;
use crate::certificates::Authority;
use crate::ledger;
use crate::relays::{Relays, Role};
use crate::upgrade::upgrade;

const METER_TLS: &str = "tls.certificate = \"collector.pem\"\ntls.key = \"collector.key\"";
const CLIENTS: &str = "tls.client_authorities = \"authority.pem\"";
const UPSTREAM_TLS: &str = "tls.certificate = \"collector.pem\"\ntls.key = \"collector.key\"\n\
                            tls.authorities = \"authority.pem\"\ntls.server_name = \"relay.test\"";
const HEAD_TLS: &str = "tls.certificate = \"head.pem\"\ntls.key = \"head.key\"\n\
                        tls.authorities = \"authority.pem\"";

/// Relays whose meters use TLS.
fn relays_with_tls(listener: &str) -> (Relays, Authority) {
    let relays = Relays::new("local", "");
    let authority = Authority::new(relays.folder.path(), "authority");
    authority.issue("collector", "collector");
    authority.issue("meter", "meter-7");
    relays.configure(Role::Collector, METER_TLS);
    relays.configure(Role::Collector, listener);
    (relays, authority)
}

fn certificates(path: &Path) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(path).unwrap().map(Result::unwrap).collect()
}

/// A meter that trusts an authority, with a certificate if `own` names one.
fn connect(
    relays: &Relays,
    authority: &str,
    own: Option<&str>,
) -> StreamOwned<ClientConnection, TcpStream> {
    connect_to(relays.meters, relays, authority, own)
}

fn connect_to(
    address: SocketAddr,
    relays: &Relays,
    authority: &str,
    own: Option<&str>,
) -> StreamOwned<ClientConnection, TcpStream> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(&relays.path(authority)));
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match own {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let key = PrivateKeyDer::from_pem_file(relays.path(&format!("{own}.key"))).unwrap();
            let chain = certificates(&relays.path(&format!("{own}.pem")));
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let name = "127.0.0.1".try_into().unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), socket)
}

/// Starts the relays and sends data of a meter without certificate.
fn send_first(relays: &mut Relays, data: &[u8]) -> StreamOwned<ClientConnection, TcpStream> {
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut meter = connect(relays, "authority.pem", None);
    meter.write_all(data).unwrap();
    meter.flush().unwrap();
    meter
}

fn refused(relays: &Relays, cause: &str) -> u64 {
    relays.ask(Role::Collector, "/status").unwrap()["refused_count"][cause].as_u64().unwrap()
}

/// Sends `close_notify` and reads until the collector answers.
fn close(meter: &mut StreamOwned<ClientConnection, TcpStream>) -> std::io::Result<usize> {
    meter.conn.send_close_notify();
    meter.flush()?;
    meter.read(&mut [0; 1])
}

#[test]
fn a_meter_with_a_certificate_is_identified() {
    let (mut relays, _authority) = relays_with_tls(CLIENTS);
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut meter = connect(&relays, "authority.pem", Some("meter"));
    // More than a record of TLS, and more than the relay accepts at once.
    let line = "x".repeat(999) + "\n";
    for _ in 0..300 {
        meter.write_all(line.as_bytes()).unwrap();
    }
    assert_eq!(close(&mut meter).unwrap(), 0, "close_notify confirms that all is stored");
    relays.wait_until_delivered();
    let delivered = ledger::read(&relays.messages(), |_, _, _| {});
    assert_eq!(delivered.values().map(|stream| stream.length).collect::<Vec<_>>(), [300_000]);
    assert!(delivered.values().all(|stream| stream.is_ended));
    let lines = fs::read_to_string(relays.messages()).unwrap();
    assert!(lines.contains("meter-7"), "the name of the certificate is part of `open`");
}

#[test]
fn a_meter_without_a_valid_certificate_is_refused() {
    let (mut relays, authority) = relays_with_tls(CLIENTS);
    authority.issue_until("expired", "meter-8", 2_001);
    Authority::new(relays.folder.path(), "foreign").issue("stranger", "meter-7");
    relays.start(Role::Collector);
    for (own, expected) in [
        (None, "peer sent no certificates"),
        (Some("expired"), "expired"),
        (Some("stranger"), "UnknownIssuer"),
    ] {
        let before = refused(&relays, "handshake");
        let mut meter = connect(&relays, "authority.pem", own);
        // In TLS 1.3 the client learns of the refusal after its handshake (RFC 8446, certificates).
        let _ = meter.write_all(b"data\n");
        assert!(meter.read(&mut [0; 1]).is_err(), "{own:?}");
        relays.wait_until("the meter is refused", |relays| refused(relays, "handshake") > before);
        std::thread::sleep(Duration::from_millis(1_100));
        let log = relays.log(Role::Collector);
        let last = log.lines().rfind(|line| line.contains("handshake")).unwrap_or_default();
        assert!(last.contains(expected), "{own:?}: {log}");
    }
    // A client without TLS.
    let before = refused(&relays, "handshake");
    let mut plain = TcpStream::connect(relays.meters).unwrap();
    plain.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    relays.wait_until("it is refused", |relays| refused(relays, "handshake") > before);
    let status = relays.ask(Role::Collector, "/status").unwrap();
    assert_eq!(
        (status["meters_count"].as_u64(), status["received_byte"].as_u64()),
        (Some(0), Some(0))
    );
}

#[test]
fn a_long_proxy_header_precedes_the_handshake() {
    let (mut relays, _authority) = relays_with_tls("proxy_protocol = true");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut meter = connect(&relays, "authority.pem", None);
    meter.sock.write_all(&long_header("192.0.2.7:5000")).unwrap();
    meter.write_all(b"reading\n").unwrap();
    assert_eq!(close(&mut meter).unwrap(), 0, "close_notify confirms that all is stored");
    relays.wait_until_delivered();
    let lines = fs::read_to_string(relays.messages()).unwrap();
    assert!(lines.contains("192.0.2.7:5000") && lines.contains("reading"), "{lines}");
}

#[test]
fn keys_are_read_from_the_credentials_of_the_service_manager() {
    let (mut relays, _authority) = relays_with_tls("");
    fs::create_dir(relays.path("credentials")).unwrap();
    fs::rename(relays.path("collector.key"), relays.path("credentials/tls.key")).unwrap();
    let path = relays.path("collector.toml");
    let text = fs::read_to_string(&path).unwrap();
    let key = "\"$CREDENTIALS_DIRECTORY/tls.key\"";
    fs::write(&path, text.replace("\"collector.key\"", key)).unwrap();
    let done = relays.command(&["check", "collector.toml"]).output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(error.contains("CREDENTIALS_DIRECTORY is not set"), "{error}");
    let folder = relays.path("credentials").display().to_string();
    relays.environment = vec![("CREDENTIALS_DIRECTORY".to_owned(), folder)];
    let mut meter = send_first(&mut relays, b"line\n");
    assert_eq!(close(&mut meter).unwrap(), 0);
}

#[test]
fn fin_without_close_notify_is_no_end() {
    let (mut relays, _authority) = relays_with_tls("");
    let mut meter = send_first(&mut relays, b"part\n");
    meter.sock.shutdown(std::net::Shutdown::Write).unwrap();
    assert_ne!(meter.read(&mut [0; 1]).ok(), Some(0), "an attacker can insert FIN");
    relays.wait_until_delivered();
    let delivered = ledger::read(&relays.messages(), |_, _, _| {});
    let mut streams = delivered.values();
    assert!(streams.all(|stream| stream.length == 5 && !stream.is_ended), "{delivered:?}");
}

#[test]
fn a_client_of_openssl_delivers() {
    if !gridhaul_testing::has_program("openssl") {
        return;
    }
    let (mut relays, _authority) = relays_with_tls(CLIENTS);
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let target = relays.meters.to_string();
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", &target, "-tls1_3", "-quiet", "-no_ign_eof"]);
    command.args(["-verify_return_error", "-CAfile", "authority.pem"]);
    command.args(["-cert", "meter.pem", "-key", "meter.key"]).current_dir(relays.folder.path());
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"reading 42\n").unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    relays.wait_until("the reading is delivered", |relays| {
        fs::read_to_string(relays.messages()).is_ok_and(|text| text.contains("reading 42"))
    });
}

#[test]
fn collector_and_head_identify_each_other() {
    let mut relays = Relays::new("server", UPSTREAM_TLS);
    let authority = Authority::new(relays.folder.path(), "authority");
    authority.issue("collector", "collector");
    authority.issue("head", "head");
    relays.configure(Role::Head, HEAD_TLS);
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut socket = crate::cases::connect(&relays);
    // More than the buffers of TLS.
    socket.write_all(&b"0123456789abcde\n".repeat(20_000)).unwrap();
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "stored at the head");
    relays.wait_until_delivered();
    let delivered = ledger::read(&relays.messages(), |_, _, _| {});
    assert_eq!(delivered.values().map(|stream| stream.length).sum::<u64>(), 320_000);
    relays.kill(Role::Collector);

    authority.issue("collector", "another");
    relays.start(Role::Collector);
    relays.wait_for_report(Role::Collector, "has a certificate for another");
    relays.kill(Role::Collector);

    authority.issue_until("collector", "collector", 2_001);
    relays.start(Role::Collector);
    relays.wait_for_report(Role::Head, "expired");
    relays.kill(Role::Collector);

    authority.issue("collector", "collector");
    Authority::new(relays.folder.path(), "authority");
    relays.start(Role::Collector);
    relays.wait_for_report(Role::Collector, "invalid peer certificate");
}

#[test]
fn certificates_are_replaced_without_ending_connections() {
    let (mut relays, _authority) = relays_with_tls("");
    let mut meter = send_first(&mut relays, b"before\n");
    relays.wait_until_received(7);
    // A damaged file changes nothing.
    let certificate = fs::read(relays.path("collector.pem")).unwrap();
    fs::write(relays.path("collector.pem"), "damaged").unwrap();
    relays.signal(Role::Collector, Signal::HUP);
    relays.wait_for_report(Role::Collector, "the present configuration stays in use");
    assert!(relays.log(Role::Collector).contains("the file has no certificate"));
    connect(&relays, "authority.pem", None).write_all(b"still\n").unwrap();
    fs::write(relays.path("collector.pem"), certificate).unwrap();

    Authority::new(relays.folder.path(), "second").issue("collector", "collector");
    relays.signal(Role::Collector, Signal::HUP);
    relays.wait_for_report(Role::Collector, "was read again");
    let mut new = connect(&relays, "second.pem", None);
    new.write_all(b"new\n").unwrap();
    assert_eq!(close(&mut new).unwrap(), 0);
    meter.write_all(b"after\n").unwrap();
    assert_eq!(close(&mut meter).unwrap(), 0, "the connection has survived");
    assert!(connect(&relays, "authority.pem", None).write_all(b"old\n").is_err());
}

#[test]
fn an_upgrade_resets_meters_with_tls_and_records_it() {
    let (mut relays, _authority) = relays_with_tls("");
    let path = relays.path("collector.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("drain_limit = \"300 ms\"\n{text}")).unwrap();
    let mut meter = send_first(&mut relays, b"before\n");
    relays.wait_until_received(7);
    upgrade(&relays);
    assert!(meter.read(&mut [0; 1]).is_err(), "RST");
    relays.wait_until_delivered();
    let lines = fs::read_to_string(relays.messages()).unwrap();
    assert!(lines.contains("before") && lines.contains("\"event\":\"reset\""), "{lines}");
}

#[test]
fn a_missing_file_is_an_error_with_key_and_remedy() {
    let (relays, _authority) = relays_with_tls("");
    fs::remove_file(relays.path("collector.key")).unwrap();
    let done = relays.command(&["run", "collector.toml"]).output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success());
    for part in ["collector.listener.meters.tls.key", "collector.key", "No such file", "help:"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn other_machines_read_the_status_with_a_certificate() {
    let mut relays = Relays::new("local", "");
    let authority = Authority::new(relays.folder.path(), "authority");
    authority.issue("collector", "collector");
    authority.issue("operator", "operator");
    let address = free_address();
    let path = relays.path("collector.toml");
    let text = fs::read_to_string(&path).unwrap();
    let keys = "management.tls.certificate = \"collector.pem\"\nmanagement.tls.key \
        = \"collector.key\"\n\
                management.tls.client_authorities = \"authority.pem\"";
    fs::write(&path, format!("management.tls.address = \"{address}\"\n{keys}\n{text}")).unwrap();
    relays.start(Role::Collector);
    let ask = |own: Option<&str>| {
        let mut client = connect_to(address, &relays, "authority.pem", own);
        client.write_all(b"GET /status HTTP/1.1\r\nHost: relay\r\n\r\n")?;
        let mut text = String::new();
        client.read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    };
    let answer = ask(Some("operator")).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\"role\":\"collector\""), "{answer}");
    assert!(ask(None).is_err(), "a client without a certificate");
    let mut plain = TcpStream::connect(address).unwrap();
    plain.write_all(b"GET /status HTTP/1.0\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    let _ = plain.read_to_end(&mut bytes);
    assert!(!String::from_utf8_lossy(&bytes).contains("collector"));
    // A certificate that was renewed is read again; one that cannot be read changes nothing.
    let renewed = Authority::new(relays.folder.path(), "second");
    fs::write(relays.path("collector.pem"), "damaged").unwrap();
    relays.signal(Role::Collector, Signal::HUP);
    relays.wait_for_report(Role::Collector, "management.tls.certificate: collector.pem");
    assert!(ask(Some("operator")).is_ok());
    renewed.issue("collector", "collector");
    relays.signal(Role::Collector, Signal::HUP);
    relays.wait_for_report(Role::Collector, "was read again");
    assert!(ask(Some("operator")).is_err(), "the client trusts the first authority only");
    authority.issue("collector", "collector");
    relays.signal(Role::Collector, Signal::HUP);
    relays.wait_until("the first authority's certificate is in use", |_| {
        ask(Some("operator")).is_ok_and(|answer| answer.contains("200 OK"))
    });
    assert!(!relays.log(Role::Collector).contains("have changed"), "nothing waits for a restart");
    // The upgraded program serves both addresses.
    relays.signal(Role::Collector, Signal::USR2);
    relays.wait_for_report(Role::Collector, "is ready");
    assert!(ask(Some("operator")).unwrap().contains("\"role\":\"collector\""));
    assert!(relays.ask(Role::Collector, "/status").is_some());
}

/// Anonymous memory of a process in bytes (`Pss_Anon`, proc(5)). The program itself is shared with
/// other processes, which would change its share.
fn memory(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap();
    let line = text.lines().find(|line| line.starts_with("Pss_Anon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
}

#[test]
fn an_idle_meter_needs_less_than_9_kilobytes() {
    const METERS: u64 = 400;
    let (mut relays, _authority) = relays_with_tls(CLIENTS);
    relays.start(Role::Collector);
    let open = |count: u64| {
        let meter = |_| {
            let mut meter = connect(&relays, "authority.pem", Some("meter"));
            meter.write_all(b"reading\n").unwrap();
            meter.flush().unwrap();
            meter
        };
        let meters: Vec<_> = (0..count).map(meter).collect();
        relays.wait_until("the data is durable", |relays| {
            let status = relays.ask(Role::Collector, "/status").unwrap();
            status["meters_count"].as_u64() >= Some(count) && status["bytes_at_risk_byte"] == 0
        });
        meters
    };
    let process = relays.process(Role::Collector);
    // The first connections allocate what all share.
    let first = open(20);
    let before = memory(process);
    let meters = open(METERS);
    let each = (memory(process) - before) / METERS;
    eprintln!("memory of an idle TLS meter with a certificate: {each} B");
    assert!(each < 9_000, "{each} B");
    drop((first, meters));
}
