//! Prints the processing time per segment of each proxy, over both directions of a transfer.

#![expect(clippy::disallowed_methods, reason = "the benchmark measures wall-clock time")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time;

use gridhaul_core::pep::{
    AckFilter, MssLimit, PassThrough, Proxy, Reflect, Side, Snoop, Split, Spoof,
};
use gridhaul_core::random::RandomStream;
use gridhaul_core::tcp::{Connection, Flags, Segment, StackParams};
use gridhaul_scenario::scenario::{Profile, Stack};
use gridhaul_scenario::units::{Bytes, Duration, Instant, Probability, WindowSize};

/// Segments per run, and number of runs, of which the fastest is reported.
const SEGMENTS: u32 = 300_000;
const RUNS: usize = 5;
/// Receive window: about three hundred segments are in flight.
const WINDOW: Bytes = Bytes::new(400_000);
/// One-way delay of each hop.
const DELAY: Duration = Duration::from_millis(10);

fn main() {
    println!("time to read the clock, included in each result: {:.0} ns", clock_ns());
    for loss in [0.0, 0.01] {
        for name in ["pass-through", "ack", "snoop", "split", "reflect", "spoof"] {
            let runs = (0..RUNS).map(|_| Transfer::new(proxy(name), loss).run());
            let fastest = runs.fold(f64::INFINITY, f64::min);
            println!("{name}, loss ratio {loss} after the proxy: {fastest:.0} ns per segment");
        }
    }
}

fn proxy(name: &str) -> Box<dyn Proxy> {
    let buffer = Bytes::new(1_000_000);
    let hosts = MssLimit::of_hosts([stack().mss; 2]);
    match name {
        "snoop" => Box::new(Snoop::new(Side::Server, buffer)),
        "split" => Box::new(Split::new(stack(), buffer, [3, 4])),
        "reflect" => Box::new(Reflect::new(stack(), hosts, buffer)),
        "spoof" => Box::new(Spoof::new(stack(), hosts, buffer)),
        "ack" => Box::new(AckFilter::new(Side::Client, DELAY)),
        _ => Box::new(PassThrough::default()),
    }
}

/// Parameters of the hosts, and of proxies that terminate the connection.
fn stack() -> Arc<StackParams> {
    Arc::new(StackParams::resolve(&Stack {
        profile: Profile::Linux,
        receive_window: Some(WindowSize::Bytes(WINDOW)),
        ..Stack::default()
    }))
}

/// Time to read the clock, in nanoseconds. The clock is read before and after each segment, so that
/// the duration of one reading is included in the measured time.
fn clock_ns() -> f64 {
    let begun = time::Instant::now();
    (0..SEGMENTS).for_each(|_| {
        std::hint::black_box(time::Instant::now());
    });
    begun.elapsed().as_nanos() as f64 / f64::from(SEGMENTS)
}

/// Segments in flight, in order of arrival.
type InFlight = VecDeque<(Instant, Side, Segment)>;

/// Removes the next segment that has arrived.
fn due(in_flight: &mut InFlight, now: Instant) -> Option<(Side, Segment)> {
    in_flight.front().filter(|front| front.0 <= now)?;
    in_flight.pop_front().map(|(_, side, segment)| (side, segment))
}

/// A transfer from client to server over hops with delay, without rate limits and reordering.
struct Transfer {
    hosts: [Connection; 2],
    proxy: Box<dyn Proxy>,
    now: Instant,
    /// Segments in flight to the proxy and to the hosts, with the side they come from or go to.
    to_proxy: InFlight,
    to_host: InFlight,
    loss: Probability,
    random: RandomStream,
    spent: time::Duration,
    handled: u32,
}

impl Transfer {
    fn new(proxy: Box<dyn Proxy>, loss: f64) -> Self {
        let params = stack();
        let mut client = Connection::connect(params.clone(), 1);
        client.write(u64::MAX);
        Self {
            hosts: [client, Connection::listen(params, 2)],
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

    /// Processing time in nanoseconds per segment that arrives at the proxy.
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

    /// Passes a segment to the proxy and polls it, and measures the time.
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
