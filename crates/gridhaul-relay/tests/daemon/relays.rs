//! A collector and a head as processes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use gridhaul_relay::daemon::query;
use gridhaul_testing::{free_address, wait_until_stopped};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_gridhaul-relay");

/// Both relays with their folder.
pub(crate) struct Relays {
    pub folder: tempfile::TempDir,
    pub meters: SocketAddr,
    management: [SocketAddr; 2],
    running: [Option<Child>; 2],
    logs: [Arc<Mutex<String>>; 2],
    /// Variables of the environment of relays that are started.
    pub environment: Vec<(String, String)>,
    /// Program and arguments by which relays are started, for example in a namespace.
    pub wrapper: Vec<String>,
}

/// Variables with which a name server that does not answer delays the resolution of a name by a
/// second, instead of up to a minute (resolv.conf(5)).
pub(crate) fn impatient_resolver() -> Vec<(String, String)> {
    vec![("RES_OPTIONS".to_owned(), "timeout:1 attempts:1".to_owned())]
}

/// One of the two relays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Collector,
    Head,
}

impl Relays {
    /// Writes the configurations; nothing is started. `keys` are further keys of the collector.
    pub(crate) fn new(tier: &str, keys: &str) -> Self {
        Self::with_delivery(tier, keys, "deliver.file = \"messages.jsonl\"")
    }

    /// The same with another destination of the head.
    pub(crate) fn with_delivery(tier: &str, keys: &str, deliver: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [meters, upstream, one, two] = [(); 4].map(|()| free_address());
        let log = if tier == "local" {
            "log.folder = \"collector-log\"\nlog.segment = \"2 MB\""
        } else {
            ""
        };
        let collector = format!(
            "name = \"collector\"\nmanagement.address = \"{one}\"\n{log}\n[collector]\ntier \
             = \"{tier}\"\n\
             upstream = \"{upstream}\"\nshards = 2\n{keys}\n[collector.listener.meters]\n\
             address = \"{meters}\"\nframing.delimiter.byte = 10\n"
        );
        let head = format!(
            "name = \"head\"\nmanagement.address = \"{two}\"\nlog.folder \
             = \"head-log\"\nlog.segment = \"2 MB\"\n\
             [head]\naddress = \"{upstream}\"\n{deliver}\n"
        );
        fs::write(folder.path().join("collector.toml"), collector).unwrap();
        fs::write(folder.path().join("head.toml"), head).unwrap();
        Self {
            folder,
            meters,
            management: [one, two],
            running: [None, None],
            logs: Default::default(),
            environment: Vec::new(),
            wrapper: Vec::new(),
        }
    }

    fn name(role: Role) -> &'static str {
        if role == Role::Collector { "collector.toml" } else { "head.toml" }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program with arguments, in the folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut words = self.wrapper.iter().map(String::as_str).chain([PROGRAM]);
        let mut command = Command::new(words.next().expect("there is a program"));
        command.args(words).args(arguments).current_dir(self.folder.path());
        command
    }

    /// Starts a relay and waits until it is ready.
    pub(crate) fn start(&mut self, role: Role) {
        let mut command = self.command(&["run", Self::name(role)]);
        command.envs(self.environment.iter().cloned());
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut seen = String::new();
        loop {
            match lines.next() {
                Some(Ok(line)) if line.contains("is ready") => break,
                Some(Ok(line)) => seen += &(line + "\n"),
                _ => panic!("{role:?} has not started:\n{seen}"),
            }
        }
        // The pipe must not fill.
        let log = Arc::clone(&self.logs[role as usize]);
        *log.lock().unwrap() += &seen;
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                *log.lock().unwrap() += &format!("{line}\n");
                if std::env::var_os("GRIDHAUL_TRACE").is_some() {
                    eprintln!("{role:?}: {line}");
                }
            }
        });
        self.running[role as usize] = Some(child);
    }

    /// Number of the process of a relay.
    pub(crate) fn process(&self, role: Role) -> u32 {
        self.running[role as usize].as_ref().expect("the relay runs").id()
    }

    /// Sends a signal to a relay.
    pub(crate) fn signal(&self, role: Role, signal: Signal) {
        let child = self.running[role as usize].as_ref().expect("the relay runs");
        kill_process(Pid::from_child(child), signal).unwrap();
        if signal == Signal::STOP {
            wait_until_stopped(child.id());
        }
    }

    pub(crate) fn kill(&mut self, role: Role) {
        if let Some(mut child) = self.running[role as usize].take() {
            // SIGKILL.
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Waits until a relay has ended by itself.
    pub(crate) fn wait_for_end(&mut self, role: Role) {
        let mut child = self.running[role as usize].take().expect("the relay runs");
        let begun = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(30), "{role:?} has not ended");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Appends text to the configuration of a relay: to its listener, or to the table of the head.
    pub(crate) fn configure(&self, role: Role, text: &str) {
        let path = self.path(Self::name(role));
        fs::write(&path, fs::read_to_string(&path).unwrap() + text + "\n").unwrap();
    }

    /// Reports of a relay since its start.
    pub(crate) fn log(&self, role: Role) -> String {
        self.logs[role as usize].lock().unwrap().clone()
    }

    /// Waits until a relay has reported a text.
    pub(crate) fn wait_for_report(&self, role: Role, text: &str) {
        let begun = Instant::now();
        while !self.log(role).contains(text) {
            let log = self.log(role);
            assert!(begun.elapsed() < Duration::from_secs(30), "{text:?} is not in\n{log}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The management address of a relay.
    pub(crate) const fn management(&self, role: Role) -> SocketAddr {
        self.management[role as usize]
    }

    /// A document of a relay's management address.
    pub(crate) fn ask(&self, role: Role, path: &str) -> Option<Value> {
        let text = query(&self.management(role).to_string(), path).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// The metrics of a relay.
    pub(crate) fn metrics(&self, role: Role) -> String {
        query(&self.management(role).to_string(), "/metrics").unwrap()
    }

    /// Waits until a condition holds.
    pub(crate) fn wait_until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !condition(self) {
            if begun.elapsed() >= Duration::from_secs(30) {
                let status = [Role::Collector, Role::Head].map(|role| self.ask(role, "/status"));
                panic!("waiting until {what}; status of collector and head: {status:?}");
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the collector has received this number of bytes.
    pub(crate) fn wait_until_received(&self, bytes: u64) {
        self.wait_until("the data has arrived", |relays| {
            relays
                .ask(Role::Collector, "/status")
                .is_some_and(|status| status["received_byte"] == bytes)
        });
    }

    /// Waits until so many bytes of the meter with this address are durable.
    pub(crate) fn wait_until_durable(&self, peer: &str, bytes: u64) {
        self.wait_until("the data of a meter is durable", |relays| {
            let answer = relays.ask(Role::Collector, "/details");
            let meters = answer.as_ref().and_then(|answer| answer["meters"].as_array());
            let meter = meters.and_then(|meters| meters.iter().find(|meter| meter["peer"] == peer));
            meter.is_some_and(|meter| meter["durable_byte"].as_u64() == Some(bytes))
        });
    }

    /// Waits until everything that the collector has was delivered.
    pub(crate) fn wait_until_delivered(&self) {
        self.wait_until("all records are delivered", |relays| {
            // One document for both values: records that leave the memory for the backlog between
            // two documents would be in neither.
            let is_zero = |role, keys: &[&str]| {
                let status = relays.ask(role, "/status");
                status.is_some_and(|status| keys.iter().all(|key| status[key] == 0))
            };
            is_zero(Role::Collector, &["backlog_byte", "bytes_at_risk_byte"])
                && is_zero(Role::Head, &["backlog_byte"])
        });
    }

    pub(crate) fn messages(&self) -> PathBuf {
        self.path("messages.jsonl")
    }
}

impl Drop for Relays {
    fn drop(&mut self) {
        self.kill(Role::Collector);
        self.kill(Role::Head);
    }
}

/// Size of a file; 0 if it does not exist.
pub(crate) fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}
