//! A transparent proxy between three network namespaces: client, router with a TPROXY rule, server. Both ends see the
//! address of the other.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use gridhaul_linux::Namespace;
use gridhaul_relay::run::query;

use crate::proxies::wait_until;
use crate::relay;

const SERVER: &str = "10.2.0.2:4059";
const CLIENT: &str = "10.1.0.2";

/// Packets of connections that the relay has, and new ones to the port, are delivered to this machine.
const RULES: &str = "table ip relay {
    chain divert {
        type filter hook prerouting priority mangle;
        meta l4proto tcp socket transparent 1 meta mark set 1 accept
        tcp dport 4059 tproxy to :4059 meta mark set 1 accept
    }
}
";

const CONFIG: &str = "name = \"transparent\"
management.address = \"127.0.0.1:9180\"
[split.listener.meters]
address = \"0.0.0.0:4059\"
transparent = true
";

/// Runs a command in a namespace.
fn run(namespace: &Namespace, words: &str) {
    let words: Vec<_> = words.split(' ').collect();
    let work = || Command::new(words[0]).args(&words[1..]).output().unwrap();
    let done = namespace.enter(work).unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Whether the programs and rights exist; the test is skipped otherwise, unless `GRIDHAUL_REQUIRE_TOOLS` is 1.
fn is_possible() -> bool {
    let has = |program: &str| Command::new(program).arg("-V").output().is_ok();
    let missing = if !has("nft") {
        "nft (package nftables)"
    } else if !has("ip") {
        "ip (package iproute2)"
    } else if Namespace::new().is_err() {
        "the right to make network namespaces"
    } else {
        return true;
    };
    let required = std::env::var("GRIDHAUL_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
    assert!(!required, "the test of the transparent proxy needs {missing}");
    println!("the test of the transparent proxy is skipped: it needs {missing}");
    false
}

struct Network {
    client: Namespace,
    router: Namespace,
    server: Namespace,
}

fn network() -> Network {
    let [client, router, server] = [(); 3].map(|()| Namespace::new().unwrap());
    for (end, device, net) in [(&client, "c0", 1), (&server, "s0", 2)] {
        run(
            &router,
            &format!(
                "ip link add r{net} type veth peer name {device} netns {}",
                end.path().display()
            ),
        );
        run(&router, &format!("ip addr add 10.{net}.0.1/24 dev r{net}"));
        run(&router, &format!("ip link set r{net} up"));
        run(end, &format!("ip addr add 10.{net}.0.2/24 dev {device}"));
        run(end, &format!("ip link set {device} up"));
        run(end, &format!("ip route add default via 10.{net}.0.1"));
    }
    run(&router, "ip link set lo up");
    run(&router, "ip rule add fwmark 1 lookup 100");
    run(&router, "ip route add local default dev lo table 100");
    router.enter(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap()).unwrap();
    Network { client, router, server }
}

/// Ends a process that the test has started.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn both_addresses_are_kept() {
    if !is_possible() {
        return;
    }
    let network = network();
    let folder = tempfile::tempdir().unwrap();
    let (rules, config) = (folder.path().join("rules"), folder.path().join("relay.toml"));
    fs::write(&rules, RULES).unwrap();
    fs::write(&config, CONFIG).unwrap();
    run(&network.router, &format!("nft -f {}", rules.display()));
    let server = network.server.enter(|| TcpListener::bind(SERVER).unwrap()).unwrap();
    let start = || {
        let mut command = Command::new(relay());
        command.arg("run").arg(&config).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let _relay = Running(network.router.enter(start).unwrap());
    let ask = |path: &str| network.router.enter(|| query("127.0.0.1:9180", path)).unwrap();
    wait_until("the relay runs", || ask("/status").is_ok());

    let server_address: SocketAddr = SERVER.parse().unwrap();
    let connect = || TcpStream::connect_timeout(&server_address, Duration::from_secs(10)).unwrap();
    let mut client = network.client.enter(connect).unwrap();
    let (mut accepted, seen) = server.accept().unwrap();
    assert_eq!(seen, client.local_addr().unwrap(), "the server sees the client");
    assert_eq!(seen.ip().to_string(), CLIENT);
    assert_eq!(client.peer_addr().unwrap(), server_address, "the client sees the server");
    let bytes = vec![b'x'; 300_000];
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || {
        client.write_all(&sent).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut reply = String::new();
        client.read_to_string(&mut reply).unwrap();
        reply
    });
    let mut found = Vec::new();
    accepted.read_to_end(&mut found).unwrap();
    assert!(found == bytes);
    accepted.write_all(b"reply").unwrap();
    drop(accepted);
    assert_eq!(writer.join().unwrap(), "reply");
    let status = ask("/status").unwrap();
    assert!(status.contains("\"to_servers_byte\":300000"), "through the relay: {status}");

    // A client of the relay itself would be connected to the relay again, without end.
    let own: SocketAddr = "10.1.0.1:4059".parse().unwrap();
    let mut lost = network.client.enter(|| TcpStream::connect(own).unwrap()).unwrap();
    assert!(lost.read(&mut [0]).is_err());
    let status: serde_json::Value = serde_json::from_str(&ask("/status").unwrap()).unwrap();
    assert_eq!((&status["refused_count"], &status["accepted_count"]), (&1.into(), &1.into()));
}
