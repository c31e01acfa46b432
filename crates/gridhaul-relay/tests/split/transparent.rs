//! A transparent proxy between three network namespaces: client, router with a TPROXY rule, server.
//! Both ends see the address of the other.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use gridhaul_linux::Namespace;
use gridhaul_relay::daemon::query;
use gridhaul_testing::{has_program, has_tool, wait_until_stopped};
use rustix::process::{Pid, Signal, kill_process};
use socket2::SockRef;

use crate::proxies::wait_until;
use crate::relay;

/// Packets of connections that the relay has, and new ones to the port, are delivered to this
/// machine.
const RULES: &str = "table TABLE relay {
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
address = \"ANY:4059\"
transparent = true
";

/// A version of IP.
struct Family {
    /// Option of the program `ip`.
    option: &'static str,
    /// Family of tables of `nft`.
    table: &'static str,
    any: &'static str,
    /// Address of a host in a network, and options of addresses.
    address: fn(u8, u8) -> IpAddr,
    prefix: &'static str,
    forwarding: &'static str,
}

const IPV4: Family = Family {
    option: "-4",
    table: "ip",
    any: "0.0.0.0",
    address: |net, host| IpAddr::V4(Ipv4Addr::new(10, net, 0, host)),
    prefix: "24",
    forwarding: "/proc/sys/net/ipv4/ip_forward",
};

/// Without duplicate address detection, which delays the first packet (RFC 4862, section 5.4).
const IPV6: Family = Family {
    option: "-6",
    table: "ip6",
    any: "[::]",
    address: |net, host| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, net.into(), 0, 0, 0, host.into())),
    prefix: "64 nodad",
    forwarding: "/proc/sys/net/ipv6/conf/all/forwarding",
};

/// Runs a command in a namespace.
fn run(namespace: &Namespace, words: &str) {
    let words: Vec<_> = words.split(' ').collect();
    let work = || Command::new(words[0]).args(&words[1..]).output().unwrap();
    let done = namespace.enter(work).unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Whether the programs and rights exist.
fn is_possible() -> bool {
    has_program("nft")
        && has_program("ip")
        && has_tool(Namespace::new().is_ok(), "the right to create network namespaces")
}

struct Network {
    client: Namespace,
    router: Namespace,
    server: Namespace,
}

fn network(family: &Family) -> Network {
    let [client, router, server] = [(); 3].map(|()| Namespace::new().unwrap());
    let Family { option, address, prefix, .. } = family;
    for (end, device, net) in [(&client, "c0", 1), (&server, "s0", 2)] {
        run(
            &router,
            &format!(
                "ip link add r{net} type veth peer name {device} netns {}",
                end.path().display()
            ),
        );
        let (own, other) = (address(net, 1), address(net, 2));
        run(&router, &format!("ip {option} addr add {own}/{prefix} dev r{net}"));
        run(&router, &format!("ip link set r{net} up"));
        run(end, &format!("ip {option} addr add {other}/{prefix} dev {device}"));
        run(end, &format!("ip link set {device} up"));
        run(end, &format!("ip {option} route add default via {own}"));
    }
    run(&router, "ip link set lo up");
    run(&router, &format!("ip {option} rule add fwmark 1 lookup 100"));
    run(&router, &format!("ip {option} route add local default dev lo table 100"));
    router.enter(|| fs::write(family.forwarding, "1").unwrap()).unwrap();
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
    both_addresses_are_kept_with(&IPV4);
}

#[test]
fn both_addresses_are_kept_with_ipv6() {
    both_addresses_are_kept_with(&IPV6);
}

fn both_addresses_are_kept_with(family: &Family) {
    if !is_possible() {
        return;
    }
    let network = network(family);
    let server_address = SocketAddr::new((family.address)(2, 2), 4059);
    let folder = tempfile::tempdir().unwrap();
    let (rules, config) = (folder.path().join("rules"), folder.path().join("relay.toml"));
    fs::write(&rules, RULES.replace("TABLE", family.table)).unwrap();
    fs::write(&config, CONFIG.replace("ANY", family.any)).unwrap();
    run(&network.router, &format!("nft -f {}", rules.display()));
    let server = network.server.enter(|| TcpListener::bind(server_address).unwrap()).unwrap();
    let reports = folder.path().join("errors");
    let errors = fs::File::create(&reports).unwrap();
    let start = || {
        let mut command = Command::new(relay());
        command.arg("run").arg(&config).stdin(Stdio::null()).stderr(errors).spawn().unwrap()
    };
    let running = Running(network.router.enter(start).unwrap());
    let ask = |path: &str| network.router.enter(|| query("127.0.0.1:9180", path)).unwrap();
    wait_until("the relay runs", || ask("/status").is_ok());

    let connect = || TcpStream::connect_timeout(&server_address, Duration::from_secs(10)).unwrap();
    let mut client = network.client.enter(connect).unwrap();
    let (mut accepted, seen) = server.accept().unwrap();
    assert_eq!(seen, client.local_addr().unwrap(), "the server sees the client");
    assert_eq!(seen.ip(), (family.address)(1, 2));
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

    // A client that resets its connection before the relay has accepted it.
    let process = Pid::from_child(&running.0);
    kill_process(process, Signal::STOP).unwrap();
    wait_until_stopped(running.0.id());
    let early = network.client.enter(connect).unwrap();
    SockRef::from(&early).set_linger(Some(Duration::ZERO)).unwrap();
    drop(early);
    kill_process(process, Signal::CONT).unwrap();
    wait_until("the client is counted", || {
        ask("/status").is_ok_and(|text| text.contains("\"refused_count\":1"))
    });
    let text = fs::read_to_string(&reports).unwrap();
    assert!(!text.contains("a client is reset"), "{text}");

    // A client of the relay itself would be connected to the relay again, without end.
    let own = SocketAddr::new((family.address)(1, 1), 4059);
    let mut lost = network.client.enter(|| TcpStream::connect(own).unwrap()).unwrap();
    assert!(lost.read(&mut [0]).is_err());
    let status: serde_json::Value = serde_json::from_str(&ask("/status").unwrap()).unwrap();
    assert_eq!((&status["refused_count"], &status["accepted_count"]), (&2.into(), &1.into()));
    drop(running);
    pass_without_the_relay(&network, &server, family);
}

/// Without the relay, connections pass to the server, or wait if a rule drops their packets.
fn pass_without_the_relay(network: &Network, server: &TcpListener, family: &Family) {
    let address = server.local_addr().unwrap();
    let connect = |limit| TcpStream::connect_timeout(&address, limit);
    let open = |limit| network.client.enter(|| connect(limit)).unwrap();
    let client = open(Duration::from_secs(10)).unwrap();
    assert_eq!(server.accept().unwrap().1, client.local_addr().unwrap());
    let rule = format!("nft add rule {} relay divert tcp dport 4059 drop", family.table);
    run(&network.router, &rule);
    let error = open(Duration::from_millis(500)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}
