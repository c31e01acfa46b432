//! A network for other programs: parameters that their sockets get from routes. The test requires
//! root; otherwise it reports this and passes, but fails with `CI` set.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time;

use gridhaul_emu::{FlowEndpoints, StandaloneNetwork};
use gridhaul_linux::{Clock, TcpInfo};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Duration;
use gridhaul_testing::close;
use rustix::net::sockopt::tcp_congestion;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

const SCENARIO: &str = "title = 'programs'\nduration = '1 s'\n\
    [node]\nnear = {}\nfar = {}\n\
    [link.wire]\nfrom = 'near'\nto = 'far'\nboth = { rate = '10 Mbit/s', delay = '5 ms' }\n\
    [stack.quick]\ncongestion_control = 'reno'\nmss = '500 B'\nrto_min = '50 ms'\n\
    [stack.slow]\ncongestion_control = 'cubic'\nmss = '800 B'\n\
    [stack.six]\ncongestion_control = 'cubic'\nrto_min = '1 s'\n\
    [flow.plain]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\n\
    [flow.both]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 'quick'\nto_stack = 'slow'\n\
    [flow.long]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 'six'\nip = 6\n";

/// Parameters of a program's socket.
#[derive(Debug, PartialEq, Eq)]
struct SocketState {
    control: String,
    mss: u32,
    /// Minimum retransmission timeout.
    timeout_ms: u64,
}

#[test]
fn routes_apply_the_parameters_of_stacks_to_programs() {
    let scenario = Scenario::from_toml(SCENARIO, "programs.toml").expect("a scenario");
    let prefix = format!("ghp{}", std::process::id());
    let network = match (StandaloneNetwork::build(&scenario, &prefix), std::env::var_os("CI")) {
        (Ok(network), _) => network,
        (Err(error), None) if error.to_string().contains("gridhaul doctor") => {
            eprintln!("skipped, this machine lacks a prerequisite: {error}");
            return;
        }
        (Err(error), _) => panic!("{error}"),
    };
    let pairs = network.pairs(&prefix);
    let stop = AtomicBool::new(false);
    let found = thread::scope(|scope| {
        let carrier = scope.spawn(|| {
            network.run(Clock::starts_in(Duration::ZERO), || stop.load(Ordering::Relaxed))
        });
        let found = scope.spawn(|| pairs.iter().map(ends_of).collect::<Vec<_>>()).join();
        stop.store(true, Ordering::Relaxed);
        carrier.join().expect("no panic").expect("the network ran");
        found.expect("connections")
    });
    let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    let default = default.expect("each kernel has a default").trim().to_owned();
    let ends = |near: (&str, u32, u64), far: (&str, u32, u64)| {
        [near, far].map(|(control, mss, timeout_ms)| SocketState {
            control: control.to_owned(),
            mss,
            timeout_ms,
        })
    };
    // Without a stack: the default congestion control of the machine, and the 1460 B segments of a
    // run.
    assert_eq!(found[0], ends((&default, 1460, 200), (&default, 1460, 200)));
    // Both ends use the smaller MSS; each has the timeout of its own stack.
    assert_eq!(found[1], ends(("reno", 500, 50), ("cubic", 500, 200)));
    assert_eq!(found[2], ends(("cubic", 1460, 1000), ("cubic", 1460, 1000)));
    let congestion_control = |pair: &FlowEndpoints| {
        pair.congestion_control.each_ref().map(|name| name.clone().unwrap_or_default())
    };
    assert_eq!(
        pairs.iter().map(congestion_control).collect::<Vec<_>>(),
        [["", ""], ["reno", "cubic"], ["cubic", "cubic"]]
    );
}

/// Connects over the addresses of a pair, sends data in both directions, and reads both sockets.
fn ends_of(pair: &FlowEndpoints) -> [SocketState; 2] {
    let [near, far] = [&pair.from, &pair.to];
    let at = SocketAddr::new(far.1, 7_000);
    let listener = inside(&far.0, || TcpListener::bind(at).expect("an own address"));
    let limit = time::Duration::from_secs(5);
    let client =
        inside(&near.0, || TcpStream::connect_timeout(&at, limit).expect("the far end listens"));
    let (server, from) = listener.accept().expect("a connection");
    close(listener);
    assert_eq!(from.ip(), near.1, "the route sets the source address");
    for (mut one, mut other) in [(&client, &server), (&server, &client)] {
        other.set_read_timeout(Some(limit)).expect("a limit");
        one.write_all(&[7; 3_000]).expect("buffer space");
        other.read_exact(&mut [0; 3_000]).expect("the sent data");
    }
    [found(&client), found(&server)]
}

fn inside<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> T {
    let entered = || {
        let namespace = File::open(format!("/run/netns/{name}")).expect("a name");
        let network = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(namespace.as_fd(), network).expect("root may enter");
        work()
    };
    thread::scope(|scope| scope.spawn(entered).join()).expect("no panic")
}

fn found(socket: &TcpStream) -> SocketState {
    let info = TcpInfo::of(socket).expect("a TCP socket");
    // The timeout is the minimum plus the round-trip time, which is 10 ms plus the lateness of this
    // machine.
    let beyond = |minimum: u64| (Duration::from_millis(minimum)..).contains(&info.rto);
    let timeout_ms =
        [1_000, 200, 50].into_iter().find(|&minimum| beyond(minimum)).unwrap_or_default();
    SocketState { control: tcp_congestion(socket).expect("a name"), mss: info.mss, timeout_ms }
}
