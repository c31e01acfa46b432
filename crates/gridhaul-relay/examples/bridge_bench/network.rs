//! Two hosts in network namespaces, and the bridge between them in a third one.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use gridhaul_linux::{Namespace, disable_offloads, run_batch};
use gridhaul_relay::daemon::query;
use serde_json::Value;

use crate::process::cpu_s;

/// Where the server listens, on the right host.
const SERVER: &str = "10.78.0.2:7000";

const MANAGEMENT: &str = "127.0.0.1:9180";

/// Two hosts and what connects them.
pub(crate) struct Network {
    pub(crate) left: Namespace,
    pub(crate) right: Namespace,
    between: Namespace,
    relay: Option<Relay>,
}

impl Network {
    /// Hosts that the bridge of the kernel connects (`kernel`), or a relay with this mode.
    pub(crate) fn new(subject: &str, has_offloads: bool) -> Result<Self> {
        let [left, right, between] = [Namespace::new()?, Namespace::new()?, Namespace::new()?];
        let path = between.path().display().to_string();
        for (host, device, number) in [(&left, "left", 1), (&right, "right", 2)] {
            let lines = format!(
                "link add eth0 type veth peer name {device} netns {path}\n\
                 address add 10.78.0.{number}/24 dev eth0\nlink set eth0 up\n"
            );
            host.enter(|| run_batch("ip", &lines, device))??;
            between.enter(|| run_batch("ip", &format!("link set {device} up\n"), device))??;
            if !has_offloads {
                host.enter(|| disable_offloads("eth0"))??;
                between.enter(|| disable_offloads(device))??;
            }
        }
        between.enter(|| run_batch("ip", "link set lo up\n", "lo"))??;
        let relay = match subject {
            "kernel" => {
                let lines = "link add br0 type bridge\nlink set left master br0\n\
                     link set right master br0\nlink set br0 up\n";
                between.enter(|| run_batch("ip", lines, "br0"))??;
                None
            }
            mode => Some(between.enter(|| Relay::start(mode))??),
        };
        Ok(Self { left, right, between, relay })
    }

    /// A connection from the left host to the right one: the client's socket and the server's.
    pub(crate) fn connect(&self) -> Result<(TcpStream, TcpStream)> {
        let listener = self.right.enter(|| TcpListener::bind(SERVER))??;
        let server: SocketAddr = SERVER.parse()?;
        let client = self.left.enter(|| TcpStream::connect_timeout(&server, LIMIT))??;
        Ok((client, listener.accept()?.0))
    }

    /// CPU time of the relay in seconds; 0 without a relay.
    pub(crate) fn relay_cpu_s(&self) -> f64 {
        self.relay.as_ref().map_or(0.0, |relay| cpu_s(relay.0.id()))
    }

    /// Process of the relay.
    pub(crate) fn relay_process(&self) -> Option<u32> {
        self.relay.as_ref().map(|relay| relay.0.id())
    }

    /// Frames that have arrived at both interfaces of the bridge. With offloads, a frame may be
    /// several packets.
    pub(crate) fn frames(&self) -> Result<u64> {
        let text = self.between.enter(|| fs::read_to_string("/proc/thread-self/net/dev"))??;
        let received = |line: &str| {
            let (device, counters) = line.trim().split_once(':')?;
            let is_port = matches!(device, "left" | "right");
            is_port.then(|| counters.split_whitespace().nth(1)?.parse::<u64>().ok()).flatten()
        };
        Ok(text.lines().filter_map(received).sum())
    }

    /// The status document of the relay.
    pub(crate) fn status(&self) -> Result<Value> {
        let text = self.between.enter(|| query(MANAGEMENT, "/status"))?;
        Ok(serde_json::from_str(&text.map_err(anyhow::Error::msg)?)?)
    }
}

/// The relay as a process, which ends with this.
struct Relay(Child);

/// Longest time for a connection, and for the start of the relay.
const LIMIT: Duration = Duration::from_secs(30);

impl Relay {
    /// Starts the relay in the namespace of the calling thread.
    fn start(mode: &str) -> Result<Self> {
        let toward = if matches!(mode, "snoop" | "ack") { "toward = \"right\"\n" } else { "" };
        let buffer = if matches!(mode, "ack" | "none") { "" } else { "buffer = \"4 MB\"\n" };
        let text = format!(
            "name = \"bench\"\nmanagement.address = \"{MANAGEMENT}\"\n[bridge]\n\
             interfaces = [\"left\", \"right\"]\nfail_open = false\nconnections = 200000\n\
             [bridge.rule.all]\nmode = \"{mode}\"\n{toward}{buffer}"
        );
        let file = std::env::temp_dir().join(format!("bridge-bench-{}.toml", std::process::id()));
        fs::write(&file, text)?;
        let program = std::env::var_os("GRIDHAUL_RELAY").map(PathBuf::from);
        let program = program.context("GRIDHAUL_RELAY is the program of the relay")?;
        let child = Command::new(program).arg("run").arg(&file).stderr(Stdio::null()).spawn();
        let relay = Self(child.context("the relay cannot be started")?);
        let begun = Instant::now();
        while query(MANAGEMENT, "/status").is_err() {
            ensure!(begun.elapsed() < LIMIT, "the relay does not start");
            thread::sleep(Duration::from_millis(10));
        }
        fs::remove_file(file)?;
        Ok(relay)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
