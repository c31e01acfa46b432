//! Brokers with TLS, and brokers that fail, as users see them.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use gridhaul_measure::broker::Broker;
use gridhaul_measure::place::Sites;
use gridhaul_protocols::settings::{BrokerProgram, BrokerSettings};
use gridhaul_testing::{ReservedPort, find_program, has_program};
use serde_json::Value;

fn run(folder: &Path, arguments: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_gridhaul-measure"));
    program.args(arguments.split(' ')).args(["--no-floor", "-q", "--json"]);
    program.current_dir(folder).output().unwrap()
}

fn summary(done: &Output) -> Value {
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

fn mosquitto_with_tls() -> Broker {
    let settings = BrokerSettings { nodelay: true, tls: true };
    Broker::start(BrokerProgram::Mosquitto, &Sites::loopback().to, settings).unwrap()
}

#[test]
fn messages_of_both_versions_pass_an_encrypted_broker_that_is_started() {
    if !has_program("mosquitto") {
        return;
    }
    let desk = tempfile::tempdir().unwrap();
    for protocol in ["mqtt", "mqtt5 --qos 1 --connections 1"] {
        let arguments = format!("latency {protocol} --tls --rate 500 --messages 200");
        let summary = summary(&run(desk.path(), &arguments));
        assert_eq!((&summary["messages"], &summary["lost"]), (&200.into(), &0.into()), "{summary}");
        assert_eq!(summary["settings"]["encryption"], "TLS 1.3");
    }
}

#[test]
fn a_broker_is_trusted_only_with_the_certificate_of_its_authority() {
    if !has_program("mosquitto") {
        return;
    }
    let desk = tempfile::tempdir().unwrap();
    let [broker, other] = [mosquitto_with_tls(), mosquitto_with_tls()];
    let certificate = |broker: &Broker| broker.address().tls.unwrap().authorities;
    std::fs::write(desk.path().join("own.pem"), certificate(&broker)).unwrap();
    std::fs::write(desk.path().join("other.pem"), certificate(&other)).unwrap();
    std::fs::write(desk.path().join("empty.pem"), "").unwrap();
    let port = broker.address().address.port();
    let with = |host: &str, file: &str| {
        let url = format!("mqtts://{host}:{port}");
        let arguments = format!("latency mqtt --broker {url} --ca {file} --rate 500 --messages 50");
        run(desk.path(), &arguments)
    };
    assert_eq!(summary(&with("127.0.0.1", "own.pem"))["lost"], 0);
    // The certificate is for the address, not for a name.
    for (host, file, expected) in [
        ("127.0.0.1", "other.pem", "invalid peer certificate"),
        ("localhost", "own.pem", "not valid for name"),
        ("127.0.0.1", "empty.pem", "expected at least one certificate"),
        ("127.0.0.1", "missing.pem", "missing.pem"),
    ] {
        let done = with(host, file);
        let error = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{file}: {error}");
        assert!(error.contains(expected), "{file}: {error}");
    }
}

#[test]
fn a_broker_that_is_killed_is_an_outage_with_its_length() {
    if !has_program("mosquitto") {
        return;
    }
    let desk = tempfile::tempdir().unwrap();
    // Five seconds: on a busy machine, the broker starts late and the client connects again later.
    let arguments =
        "outage mqtt --of broker --start 500ms --length 700ms --rate 100 --messages 500";
    let summary = summary(&run(desk.path(), arguments));
    let outage = &summary["outage"];
    assert_eq!((&outage["of"], &summary["messages"]), (&"broker".into(), &500.into()), "{summary}");
    let seconds = |key: &str| outage[key].as_f64().unwrap_or(f64::NAN);
    assert!(seconds("broker_unavailable_s") >= 0.7, "{outage}");
    // The messages before and after the outage are 10 ms apart.
    assert!(seconds("without_arrival_s") >= 0.69, "{outage}");
    assert!(seconds("first_arrival_after_end_s") >= 0.0, "{outage}");
    assert!(!summary["reconnections_s"].as_array().unwrap().is_empty(), "{summary}");
}

/// A mosquitto of somebody else, which accepts the user `operator` with the password `secret` only.
struct Guarded {
    process: Child,
    port: ReservedPort,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Guarded {
    /// A broker with its files in `folder`; `None` if it is not installed.
    #[expect(clippy::disallowed_methods, reason = "a broker is awaited in real time")]
    fn start(folder: &Path) -> Option<Self> {
        let program = find_program("mosquitto")?;
        let reserved = ReservedPort::new();
        let port = reserved.address().port();
        let (passwords, settings) = (folder.join("passwords"), folder.join("guarded.conf"));
        let mut hash = Command::new("mosquitto_passwd");
        hash.args(["-b", "-c"]).arg(&passwords).args(["operator", "secret"]);
        assert!(hash.stderr(Stdio::null()).status().unwrap().success());
        let text = format!(
            "user root\nlistener {port} 127.0.0.1\nallow_anonymous false\npassword_file {}\n",
            passwords.display()
        );
        std::fs::write(&settings, text).unwrap();
        let mut command = Command::new(program);
        command.arg("-c").arg(&settings).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        let broker = Self { process, port: reserved };
        for _ in 0..1_000 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(broker);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the broker does not listen");
    }
}

#[test]
fn a_broker_refuses_a_wrong_password_with_a_reason() {
    let desk = tempfile::tempdir().unwrap();
    let Some(broker) = Guarded::start(desk.path()) else { return };
    for protocol in ["mqtt", "mqtt5"] {
        let with = |credentials: &str| {
            let url = format!("mqtt://{credentials}{}", broker.port.address());
            let arguments = format!("{protocol} --broker {url} --rate 500 --messages 50");
            run(desk.path(), &format!("latency {arguments}"))
        };
        if protocol == "mqtt5" {
            assert_eq!(summary(&with("operator:secret@"))["lost"], 0);
        }
        for credentials in ["operator:wrong@", ""] {
            let done = with(credentials);
            let error = String::from_utf8(done.stderr).unwrap();
            assert_eq!(done.status.code(), Some(2), "{protocol} {credentials}: {error}");
            assert!(error.contains("is not authorised"), "{protocol} {credentials}: {error}");
            assert!(error.contains("credentials") && !error.contains("wrong@"), "{error}");
        }
    }
}
