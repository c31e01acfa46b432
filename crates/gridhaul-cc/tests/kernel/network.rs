//! A sender, a router with a bottleneck queue, and a receiver: three network namespaces.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gridhaul_testing::close;
use nix::sched::{CloneFlags, setns};

/// Algorithm names are global to the machine, so these tests run one at a time. `None`: this
/// machine cannot run them, which is an error in CI.
pub(crate) fn permit() -> Option<Permit> {
    let missing = gridhaul_cc::missing_requirements();
    if !missing.is_empty() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        assert!(!ci, "CI needs these: {missing:#?}");
        eprintln!("skipped: {missing:#?}");
        return None;
    }
    Some(Permit { _alone: gridhaul_cc::acquire_lock().unwrap() })
}

/// Exclusive use of algorithms; unloads them after a failed test.
pub(crate) struct Permit {
    _alone: File,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let _ = gridhaul_cc::unload(&gridhaul_cc::Algorithm::ALL);
    }
}

/// Three namespaces in a row, deleted on drop.
pub(crate) struct Network {
    name: String,
}

impl Network {
    /// `rate` and `queue` in the syntax of `tc`, for the router's link to the receiver.
    pub(crate) fn new(rate: &str, queue: &str) -> Self {
        let network = Self { name: format!("ghcc{}", std::process::id()) };
        network.sweep();
        let [a, r, b] = network.names();
        for name in [&a, &r, &b] {
            run(&format!("ip netns add {name}"));
        }
        run(&format!("ip -n {a} link add name ab type veth peer name ra netns {r}"));
        run(&format!("ip -n {r} link add name rb type veth peer name ba netns {b}"));
        for (space, device, net, host) in
            [(&a, "ab", 1, 1), (&r, "ra", 1, 2), (&r, "rb", 2, 2), (&b, "ba", 2, 1)]
        {
            run(&format!("ip -n {space} address add 10.{net}.0.{host}/24 dev {device}"));
            run(&format!("ip -n {space} address add fd00:{net}::{host}/64 dev {device} nodad"));
            run(&format!(
                "ip -n {space} link set dev {device} up gso_max_segs 1 gso_max_size 1500"
            ));
        }
        run(&format!("ip -n {a} route add default via fd00:1::2"));
        run(&format!("ip -n {b} route add default via fd00:2::2"));
        run(&format!("ip netns exec {r} sysctl -q net.ipv6.conf.all.forwarding=1"));
        run(&format!("ip -n {a} route add default via 10.1.0.2"));
        run(&format!("ip -n {b} route add default via 10.2.0.2 quickack 1"));
        run(&format!("ip netns exec {r} sysctl -q net.ipv4.ip_forward=1"));
        run(&format!("ip netns exec {a} sysctl -q net.ipv4.tcp_no_metrics_save=1"));
        // MEDX's option replaces timestamps, as in the simulator: with both, only few SACK blocks
        // fit.
        run(&format!("ip netns exec {a} sysctl -q net.ipv4.tcp_timestamps=0"));
        run(&format!("tc -n {r} qdisc add dev rb root tbf rate {rate} burst 1600 limit {queue}"));
        network
    }

    /// Drops every `count`th packet with data, before it reaches the queue.
    pub(crate) fn lose_every(&self, count: u32) {
        let [_, r, _] = self.names();
        run(&format!("ip -n {r} link add name hole type veth peer name bottom"));
        run(&format!("ip -n {r} link set dev hole up"));
        run(&format!("ip -n {r} link set dev bottom up"));
        run(&format!("tc -n {r} qdisc add dev ra clsact"));
        // Classic BPF: packets longer than 500 bytes whose IP identification, a counter of the
        // connection, is a multiple of `count`: length > 500? half word at 18 (Ethernet 14 + IP 4),
        // mod count, is 0?
        let program = format!(
            "7,128 0 0 0,37 0 4 500,40 0 0 18,148 0 0 {count},21 0 1 0,6 0 0 4294967295,6 0 0 0"
        );
        run_words(
            "tc",
            &["-n", &r, "filter", "add", "dev", "ra", "ingress", "bpf", "bytecode", &program]
                .into_iter()
                .chain("action mirred egress redirect dev hole".split(' '))
                .collect::<Vec<_>>(),
        );
    }

    /// Ends the loss of [`Self::lose_every`].
    pub(crate) fn stop_loss(&self) {
        let [_, r, _] = self.names();
        run(&format!("tc -n {r} qdisc del dev ra clsact"));
    }

    /// The sender passes several segments as one unit to its device, as hosts do by default: an
    /// acknowledgement covers two segments and releases two. The number does not depend on the
    /// round-trip time (`tcp_tso_rtt_log`).
    pub(crate) fn use_segmentation_offload(&self) {
        let [a, _, b] = self.names();
        run(&format!("ip -n {a} link set dev ab gso_max_segs 65535 gso_max_size 65536"));
        run(&format!("ip netns exec {a} sysctl -q net.ipv4.tcp_tso_rtt_log=0"));
        run(&format!("ip -n {b} route change default via 10.2.0.2 quickack 0"));
    }

    /// Mean number of segments in the units that the sender passed to its device. The router's
    /// shaper separates the segments.
    pub(crate) fn segments_per_unit(&self) -> f64 {
        let [a, r, _] = self.names();
        let packets = |name: &str, device: &str| {
            let text = run(&format!("ip -n {name} -s -o link show dev {device}"));
            let sent = text.split("TX:").nth(1).unwrap();
            let mut numbers = sent.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
            numbers.nth(1).unwrap()
        };
        packets(&r, "rb") / packets(&a, "ab")
    }

    /// Packets lost by [`Self::lose_every`], and packets dropped by the full queue.
    pub(crate) fn lost(&self) -> (u64, u64) {
        let [_, r, _] = self.names();
        let links = run(&format!("ip -n {r} -s -o link show"));
        let hole = links.lines().find(|line| line.contains(" hole@")).unwrap_or_default();
        let sent = hole.split("TX:").nth(1).unwrap_or("0");
        let numbers = sent.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
        let in_hole = numbers.collect::<Vec<_>>().get(1).copied().unwrap_or(0);
        (in_hole, self.queue("dropped"))
    }

    /// Queue length of the router in packets.
    pub(crate) fn queue_length(&self) -> u64 {
        let [_, r, _] = self.names();
        let text = run(&format!("tc -n {r} -s qdisc show dev rb"));
        let backlog = text.split("backlog").nth(1).and_then(|rest| rest.split_whitespace().nth(1));
        backlog.and_then(|packets| packets.trim_end_matches('p').parse().ok()).unwrap()
    }

    fn queue(&self, word: &str) -> u64 {
        let [_, r, _] = self.names();
        let text = run(&format!("tc -n {r} -s qdisc show dev rb"));
        let mut rest = text.split(word).nth(1).unwrap().split(|c: char| !c.is_ascii_digit());
        rest.find_map(|number| number.parse().ok()).unwrap()
    }

    /// Sends for this long, with this congestion control as default of the sender's namespace.
    pub(crate) fn send(&self, control: &str, time: Duration) -> Sent {
        let [a, _, b] = self.names();
        run(&format!("ip netns exec {a} sysctl -q net.ipv4.tcp_congestion_control={control}"));
        let listener = within(&b, || TcpListener::bind("10.2.0.1:7777").unwrap());
        let receiver = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            close(listener);
            let mut bytes = 0;
            let mut buffer = vec![0; 1 << 16];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                bytes += count as u64;
            }
            (bytes, stream)
        });
        let address = SocketAddr::from(([10, 2, 0, 1], 7777));
        let stream = within(&a, move || connect(address));
        stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let (writing, mut writer) = (Arc::clone(&over), stream.try_clone().unwrap());
        let writer = thread::spawn(move || {
            let block = [7; 1 << 14];
            while !writing.load(Ordering::Relaxed) {
                let _ = writer.write(&block);
            }
        });
        let (mut queued_packets, mut rtt_ms) = (Vec::new(), Vec::new());
        let samples = 20;
        let mut late = Duration::ZERO;
        for sample in 0..samples {
            let begun = Instant::now();
            thread::sleep(time / samples);
            late = late.max(begun.elapsed().saturating_sub(time / samples));
            if sample >= samples / 3 {
                queued_packets.push(self.queue_length());
                rtt_ms.push(self.socket("rtt:").unwrap());
            }
        }
        let segment = self.socket("bytes_sent:").unwrap() / self.socket("data_segs_out:").unwrap();
        over.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let (bytes, receiving) = receiver.join().unwrap();
        rtt_ms.sort_by(f64::total_cmp);
        queued_packets.sort_unstable();
        Sent {
            bytes,
            queued_packets: queued_packets[queued_packets.len() / 2],
            rtt_ms: rtt_ms[rtt_ms.len() / 2],
            segment,
            late,
            ends: [stream, receiving],
        }
    }

    /// The sender listens for a connection over IPv6, and sends `bytes` when one is established.
    /// Returns its socket and that of the receiver.
    pub(crate) fn serve(&self, control: &str, bytes: usize) -> [TcpStream; 2] {
        let [a, _, b] = self.names();
        run(&format!("ip netns exec {a} sysctl -q net.ipv4.tcp_congestion_control={control}"));
        let listener = within(&a, || TcpListener::bind("[fd00:1::1]:7777").unwrap());
        // The kernel completes the handshake before `accept`.
        let mut client = within(&b, || connect("[fd00:1::1]:7777".parse().unwrap()));
        let (mut stream, _) = listener.accept().unwrap();
        close(listener);
        let receiver = thread::spawn(move || {
            client.read_exact(&mut vec![0; bytes]).unwrap();
            client
        });
        stream.write_all(&vec![7; bytes]).unwrap();
        [stream, receiver.join().unwrap()]
    }

    /// A value of the sender's socket, as reported by `ss`.
    fn socket(&self, word: &str) -> Option<f64> {
        let [a, _, _] = self.names();
        let text = run(&format!("ip netns exec {a} ss -tniH dport = :7777"));
        let rest = text.split(word).nth(1)?;
        rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.parse().ok()
    }

    fn names(&self) -> [String; 3] {
        ["a", "r", "b"].map(|end| format!("{}{end}", self.name))
    }

    fn sweep(&self) {
        for name in
            self.names().into_iter().filter(|name| Path::new("/run/netns").join(name).exists())
        {
            run(&format!("ip netns del {name}"));
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.sweep();
    }
}

/// The result of a transfer.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Bytes delivered.
    pub(crate) bytes: u64,
    /// Queue length of the router in packets: the median of samples after the first third.
    pub(crate) queued_packets: u64,
    /// Smoothed RTT of the kernel: the median of the same samples.
    pub(crate) rtt_ms: f64,
    /// Mean payload bytes of a segment.
    pub(crate) segment: f64,
    /// Largest lateness of the thread that samples: a busy machine delays the sender as well.
    pub(crate) late: Duration,
    /// Sockets of sender and receiver.
    pub(crate) ends: [TcpStream; 2],
}

/// Connects, with retries: addresses and routes of new devices become usable with a delay.
fn connect(address: SocketAddr) -> TcpStream {
    for _ in 0..20 {
        if let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(500)) {
            return stream;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("{address} does not answer");
}

/// Runs a function in a namespace, on its own thread.
fn within<T: Send + 'static>(name: &str, run: impl FnOnce() -> T + Send + 'static) -> T {
    let namespace = File::open(Path::new("/run/netns").join(name)).unwrap();
    let inside = move || {
        setns(namespace.as_fd(), CloneFlags::CLONE_NEWNET).unwrap();
        run()
    };
    thread::spawn(inside).join().unwrap()
}

/// Runs a command that must succeed.
pub(crate) fn run(line: &str) -> String {
    let words: Vec<_> = line.split_whitespace().collect();
    run_words(words[0], &words[1..])
}

fn run_words(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {}: {}",
        words.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
