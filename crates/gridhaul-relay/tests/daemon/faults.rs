//! Faults of the disk, the name service and the clock: each is reported with a remedy, and nothing
//! is lost.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gridhaul_testing::free_address;

use crate::cases::connect;
use crate::ledger;
use crate::meters::connect_with_ethernet_mss;
use crate::mounts::{Holder, clock_ahead, mounts};
use crate::relays::{Relays, Role, impatient_resolver};

/// Lines of 1,000 bytes, which begin with their number.
fn line(number: u64) -> String {
    format!("{number:<999}\n")
}

/// Sends lines in a thread, which waits until FIN is answered.
fn send(address: SocketAddr, lines: u64) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut socket = connect_with_ethernet_mss(address);
        for number in 0..lines {
            socket.write_all(line(number).as_bytes()).unwrap();
        }
        socket.shutdown(Shutdown::Write).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "everything is stored");
    })
}

/// Everything that was delivered, as text.
fn text_of(messages: &std::path::Path) -> String {
    let mut text = String::new();
    ledger::read(messages, |_, _, piece| text += piece);
    text
}

fn check(messages: &std::path::Path, lines: u64) {
    let expected: String = (0..lines).map(line).collect();
    assert!(text_of(messages) == expected, "lines are missing, repeated or out of order");
}

#[test]
fn a_log_that_fills_its_disk_continues_when_the_head_is_back() {
    let mut relays = Relays::new("local", "");
    let script = "mkdir collector-log && mount -t tmpfs -o size=5m tmpfs collector-log";
    let Some(_holder) = mounts(&mut relays, script) else { return };
    relays.start(Role::Collector);
    let meter = send(relays.meters, 10_000);
    for text in [
        "reading from peers stops until space is free",
        "No space left on device",
        "help: free space on the file system of `log.folder`",
    ] {
        relays.wait_for_report(Role::Collector, text);
    }
    // Nobody removes anything: the segments that the head confirms are the space.
    relays.start(Role::Head);
    meter.join().unwrap();
    relays.wait_until_delivered();
    check(&relays.messages(), 10_000);
}

#[test]
fn a_full_disk_of_the_head_delays_delivery() {
    let mut relays = Relays::with_delivery("server", "", "deliver.file = \"sink/messages.jsonl\"");
    let script = "mkdir head-log sink && mount -t tmpfs -o size=4m tmpfs head-log && \
                  mount -t tmpfs -o size=1m tmpfs sink";
    let Some(holder) = mounts(&mut relays, script) else { return };
    let ballast = holder.path(&relays.path("head-log/ballast"));
    fs::write(&ballast, vec![0; 3_900_000]).unwrap();
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let meter = send(relays.meters, 2_000);
    relays.wait_for_report(Role::Head, "reading from peers stops until space is free");
    assert!(!meter.is_finished(), "FIN is answered only when the head has everything");
    fs::remove_file(ballast).unwrap();
    meter.join().unwrap();
    // The lines need more space than the sink has.
    relays.wait_for_report(Role::Head, "delivery is repeated every second");
    relays.wait_for_report(Role::Head, "free space on the file system of `head.deliver.file`");
    let mut words = relays.wrapper.iter();
    let mut command = Command::new(words.next().unwrap());
    let words = words.map(String::as_str);
    command.args(words.chain(["mount", "-o", "remount,size=20m", "sink"]));
    assert!(command.status().unwrap().success());
    relays.wait_until_delivered();
    check(&holder.path(&relays.path("sink/messages.jsonl")), 2_000);
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_with_a_remedy() {
    let mut relays = Relays::new("local", "");
    let script = "mkdir collector-log sink && mount -t tmpfs -o ro tmpfs collector-log && \
                  mount -t tmpfs -o ro tmpfs sink";
    let Some(_holder) = mounts(&mut relays, script) else { return };
    let done = relays.command(&["run", "collector.toml"]).output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{error}");
    assert!(error.contains("collector-log: Read-only file system"), "{error}");
    assert!(error.contains("mount the file system for writing, or change `log.folder`"), "{error}");
    let path = relays.path("head.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"messages.jsonl\"", "\"sink/messages.jsonl\"")).unwrap();
    let done = relays.command(&["run", "head.toml"]).output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{error}");
    assert!(error.contains("sink/messages.jsonl: Read-only file system"), "{error}");
    assert!(error.contains("or change `head.deliver.file`"), "{error}");
}

/// Relays that find the addresses of names in a file, which has no names of servers.
fn relays_with_hosts() -> Option<(Relays, PathBuf, Holder)> {
    let mut relays = Relays::new("local", "");
    relays.environment = impatient_resolver();
    let hosts = relays.path("hosts");
    fs::write(&hosts, "127.0.0.1 localhost\n").unwrap();
    let holder = mounts(&mut relays, "mount --bind hosts /etc/hosts")?;
    Some((relays, hosts, holder))
}

#[test]
fn data_waits_until_the_name_of_the_head_is_known() {
    let Some((mut relays, hosts, _holder)) = relays_with_hosts() else { return };
    let path = relays.path("collector.toml");
    let text = fs::read_to_string(&path).unwrap();
    let upstream = text.lines().find_map(|line| line.strip_prefix("upstream = ")).unwrap();
    let address: SocketAddr = upstream.trim_matches('"').parse().unwrap();
    let name = format!("\"head.invalid:{}\"", address.port());
    fs::write(&path, format!("insecure = true\n{}", text.replace(upstream, &name))).unwrap();
    relays.start(Role::Head);
    relays.start(Role::Collector);
    send(relays.meters, 100).join().unwrap();
    relays.wait_for_report(Role::Collector, "cannot resolve head.invalid");
    // The same file: it is mounted by its inode.
    fs::write(&hosts, format!("{} head.invalid\n", address.ip())).unwrap();
    relays.wait_until_delivered();
    check(&relays.messages(), 100);
}

#[test]
fn a_step_of_the_clock_between_two_runs_loses_nothing() {
    let mut relays = Relays::new("local", "");
    let Some(_holder) = clock_ahead(&mut relays, 100 * 86_400) else { return };
    relays.start(Role::Collector);
    send(relays.meters, 100).join().unwrap();
    relays.kill(Role::Collector);
    // As after a restart of the machine: the monotonic clock begins anew.
    relays.wrapper.clear();
    relays.start(Role::Collector);
    let status = relays.ask(Role::Collector, "/status").unwrap();
    assert!(status["oldest_record_age_s"].as_f64().unwrap() < 60.0, "{status}");
    relays.start(Role::Head);
    relays.wait_until_delivered();
    check(&relays.messages(), 100);
}

#[test]
fn one_meter_that_sends_much_cannot_fill_the_memory() {
    let mut relays = Relays::new("memory", "memory = \"2 MB\"");
    relays.start(Role::Collector);
    let mut chatty = connect_with_ethernet_mss(relays.meters);
    chatty.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    while chatty.write(line(0).as_bytes()).is_ok() {}
    // The head is unreachable, and the meter above still wants to send.
    let quiet: Vec<_> = (0..20).map(|_| send(relays.meters, 2)).collect();
    quiet.into_iter().for_each(|meter| meter.join().unwrap());
}

#[test]
fn clients_wait_until_the_name_of_their_server_is_known() {
    let Some((mut relays, hosts, _holder)) = relays_with_hosts() else { return };
    let server = TcpListener::bind(free_address()).unwrap();
    let address = server.local_addr().unwrap();
    let path = relays.path("collector.toml");
    let text = fs::read_to_string(&path).unwrap();
    let management = text.lines().find(|line| line.starts_with("management")).unwrap();
    let split = format!(
        "name = \"split\"\n{management}\n[split.listener.meters]\naddress = \"{}\"\n\
         upstream = \"server.invalid:{}\"\n",
        relays.meters,
        address.port()
    );
    fs::write(&path, split).unwrap();
    relays.start(Role::Collector);
    relays.wait_for_report(Role::Collector, "cannot resolve server.invalid");
    let mut client = connect(&relays);
    client.write_all(b"waits").unwrap();
    let error =
        |relays: &Relays| relays.ask(Role::Collector, "/status").unwrap()["upstream_error"].clone();
    assert!(error(&relays).as_str().unwrap().contains("cannot resolve server.invalid"));
    // Time for further attempts, which are not reported again.
    thread::sleep(Duration::from_millis(2_500));
    fs::write(&hosts, format!("127.0.0.1 localhost\n{} server.invalid\n", address.ip())).unwrap();
    let mut accepted = server.accept().unwrap().0;
    let mut bytes = [0; 5];
    accepted.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"waits");
    relays.wait_for_report(Role::Collector, "server.invalid:");
    relays.wait_for_report(Role::Collector, "is resolved again");
    assert!(error(&relays).is_null());
    let log = relays.log(Role::Collector);
    assert_eq!(log.matches("cannot resolve").count(), 1, "reported once: {log}");
}

#[test]
fn consumers_receive_the_reset_of_a_killed_collector_in_every_tier() {
    for tier in ["memory", "local", "server"] {
        let mut relays = Relays::new(tier, "message_wait = \"10 ms\"");
        relays.start(Role::Head);
        relays.start(Role::Collector);
        let events = |relays: &Relays, event: &str| {
            let text = fs::read_to_string(relays.messages()).unwrap_or_default();
            text.matches(&format!("\"event\":\"{event}\"")).count()
        };
        let mut sockets: Vec<_> = (0..3).map(|_| connect(&relays)).collect();
        sockets.iter_mut().for_each(|socket| socket.write_all(b"half of a message").unwrap());
        relays.wait_until("the data has arrived", |relays| events(relays, "data") == 3);
        relays.kill(Role::Collector);
        relays.start(Role::Collector);
        relays.wait_until("the resets are delivered", |relays| events(relays, "reset") == 3);
        relays.wait_until_delivered();
        // Delivery continues after the last line, which is that of a reset.
        relays.kill(Role::Head);
        relays.start(Role::Head);
        relays.wait_until_delivered();
        ledger::read(&relays.messages(), |_, _, _| {});
        assert_eq!(events(&relays, "reset"), 3, "{tier}");
    }
}
