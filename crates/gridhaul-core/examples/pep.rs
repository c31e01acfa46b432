//! Prints the time that each proxy takes for a segment, both directions counted, while a transfer
//! runs through it.

#![expect(clippy::disallowed_methods, reason = "a bench measures with the machine's clock")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time;

use gridhaul_core::pep::{AckFilter, PassThrough, Proxy, Reflect, Side, Snoop, Split};
use gridhaul_core::random::RandomStream;
use gridhaul_core::tcp::{Connection, Flags, Segment, StackParams};
use gridhaul_scenario::scenario::{Profile, Stack};
use gridhaul_scenario::units::{Bytes, Duration, Instant, Probability, WindowSize};

/// Segments that a proxy handles in one run, and runs of which the fastest counts.
const SEGMENTS: u32 = 300_000;
const RUNS: usize = 5;
/// Bytes of the receive window: some three hundred segments are on their way.
const WINDOW: Bytes = Bytes::new(400_000);
/// One way over each hop.
const DELAY: Duration = Duration::from_millis(10);

fn main() {
    println!("reading the clock, in each of the following: {:.0} ns", clock_ns());
    for loss in [0.0, 0.01] {
        for name in ["pass", "ack", "snoop", "split", "reflect"] {
            let runs = (0..RUNS).map(|_| Transfer::new(machine(name), loss).run());
            let fastest = runs.fold(f64::INFINITY, f64::min);
            println!("{name}, loss {loss} behind it: {fastest:.0} ns a segment");
        }
    }
}

fn machine(name: &str) -> Box<dyn Proxy> {
    let buffer = Bytes::new(1_000_000);
    match name {
        "snoop" => Box::new(Snoop::new(Side::Server, buffer)),
        "split" => Box::new(Split::new(stack(), buffer, [3, 4])),
        "reflect" => Box::new(Reflect::new(stack(), buffer)),
        "ack" => Box::new(AckFilter::new(Side::Client, DELAY)),
        _ => Box::new(PassThrough::default()),
    }
}

/// The stack of the hosts, and of proxies that end the connection.
fn stack() -> Arc<StackParams> {
    Arc::new(StackParams::resolve(&Stack {
        profile: Profile::Linux,
        receive_window: Some(WindowSize::Bytes(WINDOW)),
        ..Stack::default()
    }))
}

/// What a reading of the clock takes, in nanoseconds. Each segment is measured with two of them; of
/// their time, that of one lies within what is measured.
fn clock_ns() -> f64 {
    let begun = time::Instant::now();
    (0..SEGMENTS).for_each(|_| {
        std::hint::black_box(time::Instant::now());
    });
    begun.elapsed().as_nanos() as f64 / f64::from(SEGMENTS)
}

/// What is on its way, in order of time.
type Flying = VecDeque<(Instant, Side, Segment)>;

/// Takes what arrives now.
fn due(flying: &mut Flying, now: Instant) -> Option<(Side, Segment)> {
    flying.front().filter(|front| front.0 <= now)?;
    flying.pop_front().map(|(_, side, segment)| (side, segment))
}

/// A transfer from left to right without rates, over hops that keep their order.
struct Transfer {
    hosts: [Connection; 2],
    proxy: Box<dyn Proxy>,
    now: Instant,
    /// What is on its way: to the proxy from either side, and from it to either host.
    to_proxy: Flying,
    to_host: Flying,
    loss: Probability,
    random: RandomStream,
    spent: time::Duration,
    handled: u32,
}

impl Transfer {
    fn new(proxy: Box<dyn Proxy>, loss: f64) -> Self {
        let params = stack();
        let mut left = Connection::connect(params.clone(), 1);
        left.write(u64::MAX);
        Self {
            hosts: [left, Connection::listen(params, 2)],
            proxy,
            now: Instant::ZERO,
            to_proxy: VecDeque::new(),
            to_host: VecDeque::new(),
            loss: Probability::new(loss).expect("a probability"),
            random: RandomStream::named(1, 0, "hop", 0, "loss"),
            spent: time::Duration::ZERO,
            handled: 0,
        }
    }

    /// Nanoseconds of the proxy for each segment that came to it.
    fn run(mut self) -> f64 {
        self.poll_hosts();
        while self.handled < SEGMENTS {
            let deadlines = self.hosts.iter().map(Connection::next_deadline);
            let fronts = [&self.to_proxy, &self.to_host].map(|queue| queue.front());
            let arrivals = fronts.into_iter().flatten().map(|&(at, _, _)| at);
            let next = deadlines.chain([self.proxy.next_deadline()]).chain(arrivals).min();
            self.now = self.now.max(next.expect("there are hosts"));
            self.step();
            self.poll_hosts();
        }
        self.spent.as_nanos() as f64 / f64::from(self.handled)
    }

    fn step(&mut self) {
        let now = self.now;
        for host in &mut self.hosts {
            if host.next_deadline() <= now {
                host.handle_timeout(now);
            }
        }
        while let Some((side, segment)) = due(&mut self.to_host, now) {
            let lossy = side == Side::Server && !segment.flags.has(Flags::SYN);
            if !(lossy && self.random.occurs(self.loss.into())) {
                self.hosts[side.index()].handle_segment(now, &segment);
            }
        }
        if self.proxy.next_deadline() <= now {
            let begun = time::Instant::now();
            self.proxy.handle_timeout(now);
            self.spent += begun.elapsed();
            self.poll_proxy(None);
        }
        while let Some((from, segment)) = due(&mut self.to_proxy, now) {
            self.handled += 1;
            self.poll_proxy(Some((from, segment)));
        }
    }

    /// Gives the proxy a segment and takes what it sends; the time is its own.
    fn poll_proxy(&mut self, segment: Option<(Side, Segment)>) {
        let now = self.now;
        let begun = time::Instant::now();
        if let Some((from, segment)) = segment {
            self.proxy.handle_segment(now, from, &segment);
        }
        while let Some(out) = self.proxy.poll_transmit(now) {
            self.to_host.push_back((now + DELAY, out.to, out.segment));
        }
        self.spent += begun.elapsed();
    }

    fn poll_hosts(&mut self) {
        for side in Side::BOTH {
            while let Some(segment) = self.hosts[side.index()].poll_transmit(self.now) {
                self.to_proxy.push_back((self.now + DELAY, side, segment));
            }
        }
    }
}
