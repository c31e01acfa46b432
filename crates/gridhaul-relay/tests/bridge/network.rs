//! Two hosts with a bridge between them, in network namespaces.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use gridhaul_linux::{Lease, Namespace, disable_offloads};
use gridhaul_relay::daemon::query;
use gridhaul_testing::{has_program, has_tool, wait_until_stopped};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The two hosts and the machine between them:
/// ```text
///  left  eth0 ────── left  bridge  right ────── eth0  right
/// ```
pub(crate) struct Network {
    pub(crate) left: Namespace,
    pub(crate) right: Namespace,
    pub(crate) between: Namespace,
    is_bridged: bool,
    daemon: Option<Child>,
    folder: tempfile::TempDir,
}

/// Differences from the default of virtual devices.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Devices {
    /// All offloads are switched off.
    pub(crate) without_offloads: bool,
    /// Both interfaces are ports of a bridge of the kernel, which takes over without the relay.
    pub(crate) is_bridged: bool,
    /// MTU of the host on the right.
    pub(crate) right_mtu: Option<u32>,
}

/// Whether the tests can run here.
pub(crate) fn is_possible() -> bool {
    let may_create = Namespace::new().is_ok();
    has_program("ip") && has_tool(may_create, "the right to create network namespaces")
}

/// The address of a host: 1 for the left one, 2 for the right one.
pub(crate) fn address(is_v6: bool, host: u8) -> IpAddr {
    match is_v6 {
        true => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host.into()).into(),
        false => Ipv4Addr::new(10, 77, 0, host).into(),
    }
}

const MANAGEMENT: &str = "127.0.0.1:9180";

impl Network {
    pub(crate) fn new(devices: Devices) -> Self {
        let [left, right, between] = [(); 3].map(|()| Namespace::new().unwrap());
        run(&between, "ip link set lo up");
        for (host, device, number) in [(&left, "left", 1), (&right, "right", 2)] {
            let path = host.path().display().to_string();
            run(&between, &format!("ip link add {device} type veth peer name eth0 netns {path}"));
            run(&between, &format!("ip link set {device} up"));
            run(host, "ip link set eth0 up");
            for (is_v6, prefix) in [(false, "24"), (true, "64 nodad")] {
                let address = address(is_v6, number);
                run(host, &format!("ip addr add {address}/{prefix} dev eth0"));
            }
            if devices.without_offloads {
                host.enter(|| disable_offloads("eth0").unwrap()).unwrap();
                between.enter(|| disable_offloads(device).unwrap()).unwrap();
            }
        }
        if devices.is_bridged {
            run(&between, "ip link add br0 type bridge");
            for device in ["left", "right"] {
                run(&between, &format!("ip link set {device} master br0"));
            }
            run(&between, "ip link set br0 up");
        }
        if let Some(mtu) = devices.right_mtu {
            run(&right, &format!("ip link set eth0 mtu {mtu}"));
        }
        let folder = tempfile::tempdir().unwrap();
        let is_bridged = devices.is_bridged;
        Self { left, right, between, is_bridged, daemon: None, folder }
    }

    /// Starts the bridge with these keys of `[bridge]`, and waits until it is ready.
    pub(crate) fn start(&mut self, keys: &str) {
        self.try_start(keys).unwrap();
    }

    /// The same; the error has the messages of a bridge that has not started.
    pub(crate) fn try_start(&mut self, keys: &str) -> Result<(), String> {
        let file = self.configure(keys);
        let errors = fs::File::create(self.errors()).unwrap();
        let start = || {
            let mut command = Command::new(relay());
            command.arg("run").arg(&file).stdin(Stdio::null()).stderr(errors).spawn().unwrap()
        };
        self.daemon = Some(self.between.enter(start).unwrap());
        let mut has_ended = false;
        wait_until("the bridge runs", || {
            has_ended =
                self.daemon.as_mut().is_some_and(|child| child.try_wait().unwrap().is_some());
            has_ended || self.between.enter(|| query(MANAGEMENT, "/status")).unwrap().is_ok()
        });
        if has_ended { Err(self.reports()) } else { Ok(()) }
    }

    /// Writes the configuration with these keys of `[bridge]`. Returns its file.
    pub(crate) fn configure(&self, keys: &str) -> PathBuf {
        let text = format!(
            "name = \"test\"\nmanagement.address = \"{MANAGEMENT}\"\ndrain_limit = \"500 ms\"\n\
             [bridge]\ninterfaces = [\"left\", \"right\"]\nfail_open = {}\n{keys}",
            self.is_bridged
        );
        let file = self.folder.path().join("relay.toml");
        fs::write(&file, text).unwrap();
        file
    }

    /// Sends a signal to the bridge.
    pub(crate) fn signal(&self, signal: Signal) {
        let daemon = self.daemon.as_ref().unwrap();
        kill_process(Pid::from_child(daemon), signal).unwrap();
        if signal == Signal::STOP {
            wait_until_stopped(daemon.id());
        }
    }

    /// Waits until the protection of connections without bytes at risk has ended, which is with the
    /// next renewal of the lease. A busy bridge renews it shortly before it expires.
    pub(crate) fn wait_for_renewal(&self) {
        wait_until("all bytes are delivered", || {
            self.document("/status")["bytes_at_risk_byte"] == 0
        });
        thread::sleep(Lease::DURATION + Lease::INTERVAL);
    }

    /// Waits until the bridge has ended. Returns whether it has succeeded.
    pub(crate) fn wait(&mut self) -> bool {
        self.daemon.take().unwrap().wait().unwrap().success()
    }

    /// A document of the running bridge.
    pub(crate) fn document(&self, path: &str) -> Value {
        let text = self.between.enter(|| query(MANAGEMENT, path)).unwrap().unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Metrics of the running bridge.
    pub(crate) fn metrics(&self) -> String {
        self.between.enter(|| query(MANAGEMENT, "/metrics")).unwrap().unwrap()
    }

    /// Messages of the bridge.
    pub(crate) fn reports(&self) -> String {
        fs::read_to_string(self.errors()).unwrap()
    }

    fn errors(&self) -> PathBuf {
        self.folder.path().join("errors")
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Address of the server on a host.
pub(crate) fn server_address(is_v6: bool, host: u8) -> SocketAddr {
    SocketAddr::new(address(is_v6, host), 7_000)
}

/// The program of the relay.
pub(crate) fn relay() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_gridhaul-relay"))
}

/// Runs a command in a namespace.
pub(crate) fn run(namespace: &Namespace, words: &str) {
    let words: Vec<_> = words.split(' ').collect();
    let work = || Command::new(words[0]).args(&words[1..]).output().unwrap();
    let done = namespace.enter(work).unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Waits until a condition holds.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waiting until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
