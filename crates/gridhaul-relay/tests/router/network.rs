//! Two namespaces with two links, and one address for each of them.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use gridhaul_linux::{Namespace, set_sysctl};
use gridhaul_relay::daemon::query;
use gridhaul_testing::{close, has_program, has_tool, wait_until_stopped};
use serde_json::Value;

/// A side of the links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Terminal,
    Centre,
}

pub(crate) const SIDES: [Side; 2] = [Side::Terminal, Side::Centre];

impl Side {
    /// The address, which the loopback device has.
    pub(crate) const fn address(self) -> IpAddr {
        match self {
            Self::Terminal => IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2)),
            Self::Centre => IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1)),
        }
    }

    const fn peer(self) -> Self {
        match self {
            Self::Terminal => Self::Centre,
            Self::Centre => Self::Terminal,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Centre => "centre",
        }
    }
}

/// The network, and the routers that run in it.
pub(crate) struct Network {
    namespaces: [Namespace; 2],
    folder: tempfile::TempDir,
    routers: [Option<Child>; 2],
}

const STATUS: &str = "127.0.0.1:9180";

/// Whether the programs and rights exist.
pub(crate) fn is_possible() -> bool {
    has_program("nft")
        && has_program("ip")
        && has_tool(Namespace::new().is_ok(), "the right to create network namespaces")
}

impl Network {
    /// `keys` are further keys of the routers, of each side.
    pub(crate) fn new(keys: [&str; 2]) -> Self {
        let namespaces = [(); 2].map(|()| Namespace::new().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let network = Self { namespaces, folder, routers: [None, None] };
        for namespace in &network.namespaces {
            // The kernel adds addresses and routes of IPv6 at any time after a device is up.
            let disable = || set_sysctl("ipv6/conf/default/disable_ipv6", "1");
            namespace.enter(disable).unwrap().unwrap();
        }
        for device in ["dvbt0", "gprs0"] {
            let other = network.namespaces[1].path();
            let peer = format!("peer name {device} netns {}", other.display());
            network.run(Side::Terminal, &format!("ip link add {device} type veth {peer}"));
        }
        for (side, keys) in SIDES.into_iter().zip(keys) {
            network.run(side, "ip link set lo up");
            network.run(side, &format!("ip addr add {}/32 dev lo", side.address()));
            for device in ["dvbt0", "gprs0"] {
                network.run(side, &format!("ip link set {device} up"));
            }
            let (own, peer) = (side.address(), side.peer().address());
            let text = format!(
                "name = \"{}\"\nmanagement.address = \"{STATUS}\"\n[router]\naddress = \"{own}\"\n\
                 peer = \"{peer}\"\ndestinations = [\"{peer}\"]\nstate = \"state\"\n\
                 link.dvbt.device = \"dvbt0\"\nlink.gprs.device = \"gprs0\"\n{keys}",
                side.name()
            );
            fs::write(network.config(side), text).unwrap();
        }
        // The kernel notices carrier within a second.
        wait_until("the links are up", || {
            SIDES.into_iter().all(|side| {
                network.run(side, "ip link show type veth").matches("state UP").count() == 2
            })
        });
        network
    }

    pub(crate) fn config(&self, side: Side) -> PathBuf {
        self.folder.path().join(format!("{}.toml", side.name()))
    }

    /// Runs work in the namespace of a side.
    pub(crate) fn enter<T: Send>(&self, side: Side, work: impl FnOnce() -> T + Send) -> T {
        self.namespaces[side as usize].enter(work).unwrap()
    }

    fn output(&self, side: Side, program: &str, words: &[&str]) -> Output {
        self.enter(side, || Command::new(program).args(words).output().unwrap())
    }

    /// Runs a command in the namespace of a side.
    pub(crate) fn run(&self, side: Side, command: &str) -> String {
        let words: Vec<_> = command.split(' ').collect();
        let done = self.output(side, words[0], &words[1..]);
        assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// A command of the relay with the configuration of a side.
    pub(crate) fn relay(&self, side: Side, options: &[&str]) -> Output {
        let file = self.config(side);
        let words: Vec<_> =
            ["run", file.to_str().unwrap()].into_iter().chain(options.iter().copied()).collect();
        self.output(side, env!("CARGO_BIN_EXE_gridhaul-relay"), &words)
    }

    /// Checks the configuration of a side.
    pub(crate) fn check(&self, side: Side) -> Output {
        let file = self.config(side);
        let words = ["check", file.to_str().unwrap()];
        self.output(side, env!("CARGO_BIN_EXE_gridhaul-relay"), &words)
    }

    /// Starts the router of a side, and waits until it is ready.
    pub(crate) fn start(&mut self, side: Side) {
        let file = self.config(side);
        let start = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_gridhaul-relay"));
            command.arg("run").arg(&file).stdin(Stdio::null()).stderr(Stdio::inherit());
            command.spawn().unwrap()
        };
        self.routers[side as usize] = Some(self.enter(side, start));
        wait_until("the router runs", || self.status(side, "/status").is_some());
    }

    /// Starts both routers, and waits until they know each other.
    pub(crate) fn start_both(&mut self) {
        for side in SIDES {
            self.start(side);
        }
        wait_until("the routers know each other", || {
            SIDES.into_iter().all(|side| {
                let status = self.status(side, "/status");
                let round_trips = |status: Value| status["link_round_trip_s"].as_object().cloned();
                status.and_then(round_trips).is_some_and(|known| known.len() == 2)
            })
        });
    }

    pub(crate) fn status(&self, side: Side, path: &str) -> Option<Value> {
        let text = self.enter(side, || query(STATUS, path)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// The link of a class, or of all other packets.
    pub(crate) fn link(&self, side: Side, class: Option<&str>) -> String {
        let status = self.status(side, "/details").unwrap();
        let classes = status["classes"].as_array().unwrap();
        let found = classes.iter().find(|found| found["class"].as_str() == class).unwrap();
        found["link"].as_str().unwrap().to_owned()
    }

    /// Stops the router of a side by a signal, and waits for its end.
    pub(crate) fn stop(&mut self, side: Side, signal: &str) {
        self.signal(side, signal);
        self.routers[side as usize].take().unwrap().wait().unwrap();
    }

    /// Sends a signal to the router of a side.
    pub(crate) fn signal(&self, side: Side, signal: &str) {
        let process = self.routers[side as usize].as_ref().unwrap().id();
        let done = Command::new("kill").args([signal, &process.to_string()]).status();
        assert!(done.unwrap().success());
        if signal == "-STOP" {
            wait_until_stopped(process);
        }
    }

    /// Packets that a device has sent.
    pub(crate) fn sent_packets(&self, side: Side, device: &str) -> u64 {
        let text = self.run(side, &format!("ip -s link show dev {device}"));
        let after = text.split("TX:").nth(1).unwrap().lines().nth(1).unwrap().to_owned();
        after.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Both ends of a connection that a side opens: those of the terminal and of the centre.
    pub(crate) fn connect(&self, opener: Side, port: u16) -> [TcpStream; 2] {
        let server = SocketAddr::new(opener.peer().address(), port);
        let listener = self.enter(opener.peer(), || TcpListener::bind(server).unwrap());
        let limit = Duration::from_secs(20);
        let own = self.enter(opener, || TcpStream::connect_timeout(&server, limit).unwrap());
        let (other, from) = listener.accept().unwrap();
        close(listener);
        assert_eq!(from.ip(), opener.address(), "the address is that of the side");
        match opener {
            Side::Terminal => [own, other],
            Side::Centre => [other, own],
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for router in self.routers.iter_mut().flatten() {
            let _ = router.kill();
            let _ = router.wait();
        }
    }
}

pub(crate) fn wait_until(what: &str, mut is_met: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_met() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waiting: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
