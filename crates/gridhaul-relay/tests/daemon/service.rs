//! The relay as a service: rights, socket activation, upgrade.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Gid, Signal, Uid};

use crate::cases::connect;
use crate::ledger;
use crate::relays::{Relays, Role};

/// Adds keys to the top of a configuration.
fn add_keys(relays: &Relays, file: &str, keys: &str) {
    let path = relays.path(file);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(path, format!("{keys}\n{text}")).unwrap();
}

/// Stores a line and waits for FIN.
fn store(relays: &Relays, line: &str) {
    let mut socket = connect(relays);
    socket.write_all(line.as_bytes()).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
}

fn lines(relays: &Relays) -> Vec<String> {
    let mut text = String::new();
    ledger::read(&relays.messages(), |_, _, piece| text += piece);
    text.lines().map(str::to_owned).collect()
}

/// A field of the status of each thread of a process (proc(5)).
fn of_threads(process: u32, field: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    // A thread may end meanwhile.
    let statuses =
        tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let value = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    statuses.map(value).collect()
}

#[test]
fn rights_are_given_up_when_the_addresses_are_open() {
    if !rustix::process::geteuid().is_root() {
        println!("the test of a change of the user is skipped: it needs root");
        return;
    }
    let mut relays = Relays::new("local", "");
    // A port that only root can open.
    relays.meters.set_port(4);
    let path = relays.path("collector.toml");
    let text = fs::read_to_string(&path).unwrap();
    let listener = text.lines().rfind(|line| line.starts_with("address")).unwrap();
    let reserved = format!("address = \"{}\"", relays.meters);
    fs::write(&path, text.replace(listener, &reserved)).unwrap();
    add_keys(&relays, "collector.toml", "user = \"1234\"\ngroup = \"1235\"");
    // The folder belongs to root.
    let done = relays.command(&["run", "collector.toml"]).output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{error}");
    assert!(error.contains("permit the user of the relay to write to `log.folder`"), "{error}");
    let (uid, gid) = (Uid::from_raw(1_234), Gid::from_raw(1_235));
    rustix::fs::chown(relays.path(""), Some(uid), Some(gid)).unwrap();
    relays.start(Role::Collector);
    store(&relays, "stored without rights\n");
    let process = relays.process(Role::Collector);
    for (field, value) in [
        ("Uid:", "1234 1234 1234 1234"),
        ("Gid:", "1235 1235 1235 1235"),
        ("Groups:", "1235"),
        ("CapEff:", "0000000000000000"),
        ("CapPrm:", "0000000000000000"),
    ] {
        let values = of_threads(process, field);
        assert!(
            values.len() > 2 && values.iter().all(|found| found == value),
            "{field} {values:?}"
        );
    }
    relays.start(Role::Head);
    relays.wait_until_delivered();
    assert_eq!(lines(&relays), ["stored without rights"]);
}

#[test]
fn an_unknown_user_is_refused() {
    let relays = Relays::new("local", "");
    add_keys(&relays, "collector.toml", "user = \"nobody-like-this\"");
    let done = relays.command(&["run", "collector.toml"]).output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{error}");
    assert!(error.contains("there is no user \"nobody-like-this\" in /etc/passwd"), "{error}");
}

#[test]
fn a_service_manager_passes_its_sockets() {
    let mut relays = Relays::new("local", "");
    let listener = TcpListener::bind(relays.meters).unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    for socket in [&listener, &other] {
        fcntl_setfd(socket, FdFlags::empty()).unwrap();
    }
    let script = format!(
        "exec 3<&{} 4<&{}; export LISTEN_FDS=2 LISTEN_PID=$$; exec \"$@\"",
        listener.as_raw_fd(),
        other.as_raw_fd()
    );
    relays.wrapper = ["bash", "-c", &script, "bash"].map(str::to_owned).to_vec();
    for line in ["first\n", "second\n"] {
        // The relay does not run: the connection waits.
        let mut socket = connect(&relays);
        socket.write_all(line.as_bytes()).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        relays.start(Role::Collector);
        assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "FIN");
        let report = format!("at {} is closed: no key", other.local_addr().unwrap());
        assert!(relays.log(Role::Collector).contains(&report), "{report}");
        relays.kill(Role::Collector);
    }
    let activation = std::mem::take(&mut relays.wrapper);
    relays.start(Role::Head);
    relays.wrapper = activation;
    relays.start(Role::Collector);
    relays.wait_until_delivered();
    let mut delivered = lines(&relays);
    delivered.sort();
    assert_eq!(delivered, ["first", "second"]);
}

/// Meters that connect, send a line and wait for FIN, one after the other, until they are stopped.
struct Visitors {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u32>,
}

impl Visitors {
    fn start(address: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut count = 0;
            while !end.load(Ordering::Relaxed) {
                let mut socket = TcpStream::connect(address).expect("never refused");
                socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                socket.write_all(format!("visitor {count}\n").as_bytes()).unwrap();
                socket.shutdown(Shutdown::Write).unwrap();
                assert_eq!(socket.read(&mut [0; 1]).expect("never reset"), 0, "visitor {count}");
                count += 1;
                thread::sleep(Duration::from_millis(5));
            }
            count
        });
        Self { stop, thread }
    }

    fn stop(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

#[test]
fn an_upgrade_refuses_no_connection() {
    let mut relays = Relays::new("local", "");
    // Visitors of a busy machine need time to end.
    add_keys(&relays, "collector.toml", "drain_limit = \"20 s\"");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let process = relays.process(Role::Collector);
    let mut stays = connect(&relays);
    stays.write_all(b"stays\n").unwrap();
    relays.wait_until_received(6);
    let visitors = Visitors::start(relays.meters);
    thread::sleep(Duration::from_millis(200));
    relays.signal(Role::Collector, Signal::USR2);
    relays.signal(Role::Head, Signal::USR2);
    for role in [Role::Head, Role::Collector] {
        // The line of the first program is not part of what was reported since its start.
        relays.wait_for_report(role, "is ready");
    }
    assert!(fs::exists(format!("/proc/{process}")).unwrap(), "the process is the same");
    thread::sleep(Duration::from_millis(200));
    stays.write_all(b"stays connected\n").unwrap();
    stays.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stays.read(&mut [0; 1]).unwrap(), 0, "FIN of the new program");
    let count = visitors.stop();
    relays.wait_until_delivered();
    // Two shards, whose records are not in order to each other.
    let delivered: BTreeSet<_> = lines(&relays).into_iter().collect();
    let visitors = (0..count).map(|number| format!("visitor {number}"));
    assert_eq!(
        delivered,
        visitors.chain(["stays", "stays connected"].map(str::to_owned)).collect()
    );
}

#[test]
fn an_upgrade_with_a_damaged_configuration_does_not_begin() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    let path = relays.path("collector.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("shards", "sharts")).unwrap();
    relays.signal(Role::Collector, Signal::USR2);
    relays.wait_for_report(Role::Collector, "the present program continues");
    assert!(relays.log(Role::Collector).contains("did you mean `shards`?"));
    store(&relays, "served\n");
}

#[test]
fn records_in_memory_prevent_an_upgrade() {
    let mut relays = Relays::new("memory", "");
    add_keys(&relays, "collector.toml", "drain_limit = \"300 ms\"");
    relays.start(Role::Collector);
    store(&relays, "one\n");
    relays.signal(Role::Collector, Signal::USR2);
    relays.wait_for_report(Role::Collector, "which are in memory only");
    store(&relays, "two\n");
    relays.start(Role::Head);
    relays.wait_until_delivered();
    relays.signal(Role::Collector, Signal::USR2);
    relays.wait_for_report(Role::Collector, "is ready");
    store(&relays, "three\n");
    relays.wait_until_delivered();
    // Two shards, whose records are not in order to each other.
    let mut delivered = lines(&relays);
    delivered.sort();
    assert_eq!(delivered, ["one", "three", "two"]);
}
