//! A network that stands for other programs: what their sockets get without asking for it. It needs
//! root; where that is missing the test says so and passes, but fails where `CI` is set.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time;

use gridhaul_emu::{Held, Pair};
use gridhaul_linux::TcpInfo;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Duration;
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

/// What a program finds at its socket.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    control: String,
    mss: u32,
    /// Least timeout, up to what the round trip adds.
    timeout_ms: u64,
}

#[test]
fn programs_get_from_routes_what_stacks_ask_for() {
    let scenario = Scenario::from_toml(SCENARIO, "programs.toml").expect("a scenario");
    let prefix = format!("ghp{}", std::process::id());
    let held = match (Held::build(&scenario, &prefix), std::env::var_os("CI")) {
        (Ok(held), _) => held,
        (Err(error), None) if error.to_string().contains("gridhaul doctor") => {
            eprintln!("passed over, this machine lacks what a network needs: {error}");
            return;
        }
        (Err(error), _) => panic!("{error}"),
    };
    let pairs = held.pairs(&prefix);
    let stop = AtomicBool::new(false);
    let found = thread::scope(|scope| {
        let carrier = scope.spawn(|| held.carry(|| stop.load(Ordering::Relaxed)));
        let found = scope.spawn(|| pairs.iter().map(ends_of).collect::<Vec<_>>()).join();
        stop.store(true, Ordering::Relaxed);
        carrier.join().expect("no panic").expect("it carried");
        found.expect("connections")
    });
    let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    let default = default.expect("every kernel says it").trim().to_owned();
    let ends = |near: (&str, u32, u64), far: (&str, u32, u64)| {
        [near, far].map(|(control, mss, timeout_ms)| Found {
            control: control.to_owned(),
            mss,
            timeout_ms,
        })
    };
    // Nobody chose a variant: the machine's. The segments of a run are 1460 bytes long here as well.
    assert_eq!(found[0], ends((&default, 1460, 200), (&default, 1460, 200)));
    // The smaller segments are those of both; each end has the timeout of its own stack.
    assert_eq!(found[1], ends(("reno", 500, 50), ("cubic", 500, 200)));
    assert_eq!(found[2], ends(("cubic", 1460, 1000), ("cubic", 1460, 1000)));
    let told = |pair: &Pair| pair.control.each_ref().map(|name| name.clone().unwrap_or_default());
    assert_eq!(
        pairs.iter().map(told).collect::<Vec<_>>(),
        [["", ""], ["reno", "cubic"], ["cubic", "cubic"]]
    );
}

/// Connects over the addresses of a pair, sends something each way, and looks at both sockets.
fn ends_of(pair: &Pair) -> [Found; 2] {
    let [near, far] = [&pair.from, &pair.to];
    let at = SocketAddr::new(far.1, 7_000);
    let listener = inside(&far.0, || TcpListener::bind(at).expect("an own address"));
    let limit = time::Duration::from_secs(5);
    let client =
        inside(&near.0, || TcpStream::connect_timeout(&at, limit).expect("the far end listens"));
    let (server, from) = listener.accept().expect("a connection");
    assert_eq!(from.ip(), near.1, "the route says which address is its own");
    for (mut one, mut other) in [(&client, &server), (&server, &client)] {
        other.set_read_timeout(Some(limit)).expect("a limit");
        one.write_all(&[7; 3_000]).expect("room");
        other.read_exact(&mut [0; 3_000]).expect("what was sent");
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

fn found(socket: &TcpStream) -> Found {
    let info = TcpInfo::of(socket).expect("a TCP socket");
    // A round trip is 10 ms and what this machine is late; it comes on top of the least timeout.
    let beyond = |least: u64| (Duration::from_millis(least)..).contains(&info.rto);
    let timeout_ms = [1_000, 200, 50].into_iter().find(|&least| beyond(least)).unwrap_or_default();
    Found { control: tcp_congestion(socket).expect("a name"), mss: info.mss, timeout_ms }
}
