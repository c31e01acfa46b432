//! A lease on packets of the kernel's bridge, held by a process that forwards them unchanged, and
//! that is stopped or killed.

#![expect(clippy::disallowed_methods, reason = "waits for the kernel in real time")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use gridhaul_linux::{
    FrameBatch, Lease, LeaseHandOver, Namespace, PacketSocket, Probe, ProtectedFlow, ReceivedFrame,
    Renewal, run_batch,
};
use gridhaul_testing::wait_until_stopped;

use crate::bridged_hosts::{
    BridgedHosts, IPV4_SERVER, IPV6_SERVER, LIMIT, forward, sockets, transfer,
};
use crate::classifier::wait_until;

/// Environment of the process that holds the lease: whether it protects all connections.
const PROTECT: &str = "GRIDHAUL_TEST_LEASE_PROTECT";

/// Not a test: the process that holds a lease. The tests below start, stop and kill it.
#[test]
#[ignore = "a process that the tests of this file start"]
fn holder() {
    let protect = env::var(PROTECT).is_ok_and(|value| value == "1");
    let sockets = sockets();
    let mut lease = Lease::attach(["left", "right"]).unwrap();
    sockets.iter().for_each(|socket| lease.filter(socket).unwrap());
    let probes = lease.probes().unwrap();
    let mut protected = Vec::new();
    let mut next_renewal = Instant::now();
    let mut probed = false;
    let observed = RefCell::new(Vec::<ProtectedFlow>::new());
    let housekeeping = || {
        for flow in observed.take() {
            if protect && !protected.contains(&flow.ports) {
                lease.protect(&flow).unwrap();
                protected.push(flow.ports);
            }
        }
        if Instant::now() >= next_renewal {
            next_renewal = Instant::now() + Lease::INTERVAL;
            match lease.renew().unwrap() {
                Renewal::Held => {}
                renewal => eprintln!("{renewal:?}, {} probes", probes.len()),
            }
        }
        if !probed {
            probed = true;
            for Probe { interface, frame } in &probes {
                assert_eq!(sockets[*interface].send(&[frame]).unwrap(), 1);
            }
        }
        false
    };
    forward(&sockets, housekeeping, |side, frame| {
        observed.borrow_mut().extend(flow_of(side, frame));
    });
}

/// The connection of a frame with TCP, as seen from the client.
fn flow_of(side: usize, frame: &ReceivedFrame<'_>) -> Option<ProtectedFlow> {
    let bytes = frame.bytes;
    let (addresses, tcp) = match (bytes.get(12..14)?, bytes.get(20)?, bytes.get(23)?) {
        ([0x08, 0], _, 6) => ([26, 30].map(|at| IpAddr::from(array::<4>(bytes, at))), 34),
        ([0x86, 0xdd], 6, _) => ([22, 38].map(|at| IpAddr::from(array::<16>(bytes, at))), 54),
        _ => return None,
    };
    let flow = ProtectedFlow {
        addresses,
        ports: [0, 2].map(|at| u16::from_be_bytes(array(bytes, tcp + at))),
        vlans: [frame.vlan.map(|tag| tag.control & 0xfff), None],
        hardware: [array(bytes, 6), array(bytes, 0)],
        seq: [4, 8].map(|at| u32::from_be_bytes(array(bytes, tcp + at))),
        interface: side,
    };
    Some(if flow.ports[0] == 7_000 { flow.reversed() } else { flow })
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

/// A process that runs [`holder`].
struct Holder {
    process: Child,
    messages: BufReader<ChildStderr>,
}

impl Holder {
    /// Starts the process, and waits until it holds the lease.
    fn start(hosts: &BridgedHosts, protect: bool) -> (Self, String) {
        let start = || {
            Command::new(env::current_exe().unwrap())
                .args(["--exact", "lease::holder", "--ignored", "--nocapture"])
                .env(PROTECT, if protect { "1" } else { "0" })
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let mut process = hosts.middle.enter(start).unwrap();
        let messages = BufReader::new(process.stderr.take().unwrap());
        let mut holder = Self { process, messages };
        let message = holder.message();
        assert!(message.starts_with("Begun"), "{message}");
        (holder, message)
    }

    fn message(&mut self) -> String {
        let mut line = String::new();
        self.messages.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Ends the process without any action of its own (SIGKILL).
    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An Ethernet frame with a TCP header, to a host that does not exist, and a number as payload.
fn numbered_frame(number: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 0x88, 8, 0];
    frame.extend([0x45, 0, 0, 44, 0, 0, 0x40, 0, 64, 6, 0x26, 0x13, 10, 88, 0, 1, 10, 88, 0, 9]);
    frame.extend([0x1b, 0x58, 0x1b, 0x58, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
    frame.extend(number.to_be_bytes());
    frame
}

/// Sends a frame every five milliseconds from client to server, while `events` runs.
#[derive(Default)]
struct Stream {
    sent: Vec<Instant>,
    /// When the frames arrived, by their number.
    arrived: BTreeMap<u32, Vec<Instant>>,
}

impl Stream {
    fn run(hosts: &BridgedHosts, events: impl FnOnce() + Send) -> Self {
        let sender = hosts.client.enter(|| PacketSocket::open("c0", 0x0800).unwrap()).unwrap();
        let receiver = hosts.server.enter(|| PacketSocket::open("s0", 0x0800).unwrap()).unwrap();
        hosts.server.enter(|| receiver.set_promiscuous("s0").unwrap()).unwrap();
        let mut stream = Self::default();
        thread::scope(|scope| {
            let events = scope.spawn(events);
            let mut batch = FrameBatch::new(32, 2_048);
            let mut ended: Option<Instant> = None;
            while ended.is_none_or(|ended| ended.elapsed() < Duration::from_millis(200)) {
                if ended.is_none() {
                    let frame = numbered_frame(stream.sent.len() as u32);
                    stream.sent.push(Instant::now());
                    assert_eq!(sender.send(&[&frame]).unwrap(), 1);
                }
                thread::sleep(Duration::from_millis(5));
                while receiver.receive(&mut batch).unwrap() > 0 {
                    for frame in batch.frames().filter(|frame| frame.bytes.len() >= 58) {
                        let number = u32::from_be_bytes(array(frame.bytes, 54));
                        stream.arrived.entry(number).or_default().push(Instant::now());
                    }
                }
                if events.is_finished() && ended.is_none() {
                    ended = Some(Instant::now());
                }
            }
        });
        stream
    }

    /// Whether all frames that were sent in this time have arrived.
    fn is_complete(&self, begin: Instant, end: Instant) -> bool {
        let mut sent = self.sent.iter().enumerate();
        sent.all(|(number, at)| {
            *at < begin || *at >= end || self.arrived.contains_key(&(number as u32))
        })
    }

    /// Time after `event` until the first of the frames that were sent after it, and all later
    /// ones, arrived.
    fn outage(&self, event: Instant, end: Instant) -> Duration {
        let lost = |number: usize| !self.arrived.contains_key(&(number as u32));
        let in_time = |at: &Instant| *at >= event && *at < end;
        let sent = self.sent.iter().enumerate().filter(|(_, at)| in_time(at));
        let late = |number: usize| {
            let arrived = self.arrived[&(number as u32)][0];
            arrived - self.sent[number] > Duration::from_millis(500)
        };
        let missing = sent.filter(|(number, _)| lost(*number) || late(*number));
        missing.map(|(_, at)| *at - event).max().unwrap_or_default()
    }
}

#[test]
fn the_bridge_forwards_within_a_second_after_the_holder_is_stopped_or_killed() {
    let hosts = BridgedHosts::new(true);
    let (mut holder, _) = Holder::start(&hosts, false);
    let mut times = Vec::new();
    let pause = |milliseconds| thread::sleep(Duration::from_millis(milliseconds));
    let stream = Stream::run(&hosts, || {
        times.push(Instant::now());
        pause(300);
        times.push(Instant::now());
        holder.signal("-STOP");
        wait_until_stopped(holder.process.id());
        // The lease expires within its duration from now on.
        times.push(Instant::now());
        pause(1_400);
        times.push(Instant::now());
        holder.signal("-CONT");
        assert_eq!(holder.message(), "Expired, 0 probes");
        pause(300);
        times.push(Instant::now());
        holder.kill();
        pause(1_100);
        times.push(Instant::now());
    });
    let [begin, signalled, stopped, continued, killed, end] = times[..] else {
        panic!("{times:?}")
    };
    assert!(stream.is_complete(begin, signalled), "while the lease was held");
    let (hung, dead) = (stream.outage(stopped, continued), stream.outage(killed, end));
    println!("outage after SIGSTOP {hung:?}, after SIGKILL {dead:?}");
    assert!(hung <= Duration::from_secs(1) && dead <= Duration::from_secs(1), "{hung:?} {dead:?}");
    let twice = stream.arrived.values().filter(|times| times.len() > 1).count();
    // The socket filter and the classifier read the clock one after the other.
    assert!(twice <= 2, "{twice} of {} frames arrived twice", stream.sent.len());
}

/// Writes and reads at both ends until both have failed. Returns the errors.
fn exchange_until_failure(ends: &mut [TcpStream; 2]) -> [ErrorKind; 2] {
    let begun = Instant::now();
    let mut failed = [None, None];
    for end in ends.iter() {
        end.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    }
    while failed.contains(&None) {
        assert!(begun.elapsed() < LIMIT, "the connection was not reset: {failed:?}");
        for (end, failed) in ends.iter_mut().zip(&mut failed) {
            let written = end.write(&[7; 100]).map(drop);
            let read = match end.read(&mut [0; 4_096]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
                result => result.map(drop),
            };
            *failed = failed.or(written.and(read).err().map(|error| error.kind()));
        }
    }
    failed.map(Option::unwrap)
}

#[test]
fn only_protected_connections_are_reset_when_the_holder_is_killed() {
    let hosts = BridgedHosts::new(true);
    let (mut holder, _) = Holder::start(&hosts, false);
    let mut unprotected = [IPV4_SERVER, IPV6_SERVER].map(|server| hosts.connect(server));
    let mut use_unprotected = || {
        unprotected.iter_mut().for_each(|connection| transfer(connection, 300_000));
    };
    use_unprotected();
    holder.kill();
    use_unprotected();
    drop(holder);

    let (mut holder, _) = Holder::start(&hosts, true);
    use_unprotected();
    let mut protected = [IPV4_SERVER, IPV6_SERVER].map(|server| hosts.connect(server));
    protected.iter_mut().for_each(|connection| transfer(connection, 300_000));
    holder.kill();
    for connection in &mut protected {
        let errors = exchange_until_failure(connection);
        println!("{errors:?}");
        assert!(errors.contains(&ErrorKind::ConnectionReset), "{errors:?}");
    }
    // All connections were protected, in two directions each. The hosts of two of them send
    // nothing, and are reset by the probes of the next holder.
    let (_holder, message) = Holder::start(&hosts, false);
    assert_eq!(message, "Begun, 8 probes");
    for end in unprotected.iter_mut().flatten() {
        let error = end.read(&mut [0; 100]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    transfer(&mut hosts.connect(IPV4_SERVER), 300_000);
}

#[test]
fn packets_to_the_machine_itself_are_not_withheld() {
    let hosts = BridgedHosts::new(true);
    let address = "10.88.0.3:7001";
    let listen = || {
        run_batch("ip", "address add 10.88.0.3/24 dev br0\n", "middle").unwrap();
        TcpListener::bind(address).unwrap()
    };
    let listener = hosts.middle.enter(listen).unwrap();
    let (_holder, _) = Holder::start(&hosts, false);
    for host in [&hosts.client, &hosts.server] {
        let connect = || TcpStream::connect_timeout(&address.parse().unwrap(), LIMIT).unwrap();
        let connection = host.enter(connect).unwrap();
        transfer(&mut [connection, listener.accept().unwrap().0], 100_000);
    }
}

/// Waits until so many programs are attached to the device `left`. A process that another test
/// starts has the descriptors of a lease that was dropped, until it runs its own program.
fn await_programs(count: usize) {
    let device = gridhaul_linux::interface_index("left").unwrap();
    wait_until(&format!("{count} programs are attached"), || {
        gridhaul_linux::bpf::attached(device).unwrap().len() == count
    });
}

#[test]
fn a_lease_needs_a_bridge_and_leaves_nothing_behind() {
    let namespace = Namespace::new().expect("the kernel tests run as root");
    let inside = || {
        run_batch("ip", "link add left type veth peer name right\n", "test").unwrap();
        let text = Lease::attach(["left", "right"]).unwrap_err().to_string();
        assert!(text.contains("left and right: no port of a bridge"), "{text}");
        let lines = "link add br0 type bridge\nlink set left master br0\n\
                     link set right master br0\n";
        run_batch("ip", lines, "test").unwrap();
        let mut lease = Lease::attach(["left", "right"]).unwrap();
        assert_eq!(lease.renew().unwrap(), Renewal::Begun);
        assert_eq!(lease.renew().unwrap(), Renewal::Held);
        await_programs(2);
        drop(lease);
        await_programs(0);
    };
    namespace.enter(inside).unwrap();
}

#[test]
fn protected_connections_stay_protected_when_a_lease_is_handed_over() {
    let namespace = Namespace::new().expect("the kernel tests run as root");
    let inside = || {
        let lines = "link add left type veth peer name right\nlink add br0 type bridge\n\
                     link set left master br0\nlink set right master br0\n";
        run_batch("ip", lines, "test").unwrap();
        let flow = ProtectedFlow {
            addresses: [IpAddr::from([10, 88, 0, 1]), IpAddr::from([10, 88, 0, 2])],
            ports: [1, 2],
            vlans: [None; 2],
            hardware: [[2; 6], [3; 6]],
            seq: [4, 5],
            interface: 0,
        };
        let mut lease = Lease::attach(["left", "right"]).unwrap();
        assert!(lease.hand_over().unwrap().is_none(), "the lease has not begun");
        lease = Lease::attach(["left", "right"]).unwrap();
        lease.renew().unwrap();
        lease.protect(&flow).unwrap();
        let hand_over = lease.hand_over().unwrap().expect("the lease is held");
        let owner = hand_over.owner();
        let numbers = hand_over.leave_open().unwrap();
        let hand_over = LeaseHandOver::inherited(owner, &numbers).unwrap();
        let mut lease = Lease::take_over(["left", "right"], hand_over).unwrap();
        assert_eq!(lease.renew().unwrap(), Renewal::Held);
        assert!(lease.probes().unwrap().is_empty(), "no connection is abandoned");
        await_programs(2);
        drop(lease);
        let lease = Lease::attach(["left", "right"]).unwrap();
        assert_eq!(lease.probes().unwrap().len(), 2, "both hosts are to be reset");
    };
    namespace.enter(inside).unwrap();
}
