//! Scenarios of links whose results are known by hand, for the simulator and the emulator.

/// A scenario and ranges of its results.
#[derive(Debug, Clone)]
pub struct LinkCase {
    /// Behaviour that the case shows.
    pub name: &'static str,
    /// The scenario, as TOML.
    pub scenario: String,
    /// Ranges of results.
    pub expected: Vec<ExpectedValue>,
}

/// The range of a result.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedValue {
    /// Row of the answer: a flow or a direction of a link.
    pub row: &'static str,
    /// Column of the answer.
    pub column: &'static str,
    /// Smallest and largest value.
    pub range: [f64; 2],
}

impl LinkCase {
    /// Checks all results; `value` returns the value of a row and a column.
    ///
    /// # Panics
    /// A value is absent or outside its range.
    pub fn check(&self, value: impl Fn(&str, &str) -> Option<f64>) {
        for ExpectedValue { row, column, range: [low, high] } in &self.expected {
            let found = value(row, column);
            let found = found.unwrap_or_else(|| panic!("{}: {row} has no {column}", self.name));
            let name = self.name;
            assert!(
                (*low..=*high).contains(&found),
                "{name}: {column} of {row} is {found}, expected {low} to {high}"
            );
        }
    }

    /// Cases of shapers: the token buckets of the kernel, and those of the simulator.
    #[must_use]
    pub fn shapers() -> [Self; 2] {
        [shares(), burst()]
    }

    /// Cases of rates that change and of shared media.
    #[must_use]
    pub fn all() -> [Self; 3] {
        [rate_change(), contention(), time_slots()]
    }
}

fn two_nodes(times: &str, link: &str, rest: &str) -> String {
    format!(
        "title = 'case'\n{times}\n[node]\nnear = {{}}\nfar = {{}}\n\
         [link.wire]\nfrom = 'near'\nto = 'far'\n{link}\n{rest}"
    )
}

/// 4 Mbit/s in the first second of the measured time, and 1 Mbit/s in the other three: 1.75 Mbit/s
/// on average.
fn rate_change() -> LinkCase {
    let link = "both = { rate = '4 Mbit/s', delay = '5 ms', queue = '40 packets', \
                rate_change = [{ at = '2 s', rate = '1 Mbit/s' }] }";
    let rest = "[stack.s]\ncongestion_control = 'cubic'\nreceive_window = '30 kB'\n\
                [flow.up]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nstack = 's'";
    let forward = |column, range| ExpectedValue { row: "wire.forward", column, range };
    LinkCase {
        name: "a bulk flow follows the rate of its link",
        scenario: two_nodes("duration = '5 s'\nwarmup = '1 s'", link, rest),
        expected: vec![
            forward("link_throughput_bit_per_s", [1.75e6 * 0.98, 1.75e6 * 1.02]),
            forward("utilisation_ratio", [0.98, 1.0]),
        ],
    }
}

/// An echo alone on the medium: there and back 20 ms of priority resolution, on average 1.5 slots
/// of 2 ms, 5 ms of preamble and 125 B at 100 kbit/s. The response and the time between
/// transmissions delay the packet back by 3 ms: 79 ms. The mean of 41 echoes has a standard
/// deviation of 2.24 ms · √(2 / 41) = 0.5 ms.
fn contention() -> LinkCase {
    let link = "medium = 'line'\nboth = { rate = '100 kbit/s', queue = '10 packets' }";
    let rest = "[medium.line.csma_ca]\nslot = '2 ms'\ninterframe = '1 ms'\nresponse = '2 ms'\n\
                priority_resolution = '20 ms'\npreamble = '5 ms'\nwindows = [4]\ndeferral = [0]\n\
                [flow.ping]\nfrom = 'near'\nto = 'far'\ntransport = 'echo'\n\
                load.periodic = { size = '97 B', every = '100 ms', synchronised = true }";
    let mean = 2.0 * (0.020 + 1.5 * 0.002 + 0.005 + 0.010) + 0.003;
    LinkCase {
        name: "both directions contend for one medium",
        scenario: two_nodes("duration = '4050 ms'", link, rest),
        expected: vec![
            ExpectedValue {
                row: "ping",
                column: "delay_mean_s",
                range: [mean - 0.0015, mean + 0.0025],
            },
            ExpectedValue { row: "wire.forward", column: "collisions_count", range: [0.0, 0.0] },
        ],
    }
}

/// Slots of 40 ms in turn. Each echo is sent at the start of a frame of 80 ms, arrives after 10 ms
/// and waits for the slot of the reverse direction at 40 ms, so that it is back at 50 ms.
fn time_slots() -> LinkCase {
    let link = "medium = 'line'\nboth = { rate = '100 kbit/s', queue = '10 packets' }";
    let rest = "[medium.line.tdma]\nslot = '40 ms'\n\
                [flow.ping]\nfrom = 'near'\nto = 'far'\ntransport = 'echo'\n\
                load.periodic = { size = '97 B', every = '80 ms', synchronised = true }";
    LinkCase {
        name: "a packet waits for the time slot of its direction",
        scenario: two_nodes("duration = '3 s'", link, rest),
        expected: vec![ExpectedValue {
            row: "ping",
            column: "delay_p50_s",
            range: [0.0499, 0.0515],
        }],
    }
}

/// An offered load of 3 + 3 Mbit/s of datagrams and a bulk flow at 4 Mbit/s: each flow has its
/// guarantee, one is limited to 2.8 Mbit/s, and the others share the remaining rate.
fn shares() -> LinkCase {
    let link = "[link.wire.forward]\nrate = '10 Mbit/s'\ndelay = '1 ms'\n\
        [link.wire.forward.shaper]\nrate = '4 Mbit/s'\n\
        share.one = { guarantee = '2 Mbit/s', limit = '2800 kbit/s' }\n\
        share.six.guarantee = '500 kbit/s'\n\
        [link.wire.reverse]\nrate = '10 Mbit/s'";
    let datagrams = |name: &str| {
        format!(
            "[flow.{name}]\nfrom = 'near'\nto = 'far'\ntransport = 'datagram'\n\
             load = {{ periodic = {{ size = '972 B', every = '2667 us' }} }}\n"
        )
    };
    let six = "[flow.six]\nfrom = 'near'\nto = 'far'\nload = 'bulk'\nip = 6";
    let flows = format!("{}{}{six}", datagrams("one"), datagrams("two"));
    let throughput = |row, range| ExpectedValue { row, column: "throughput_bit_per_s", range };
    LinkCase {
        name: "a shaper enforces guarantees and limits",
        scenario: two_nodes("duration = '5 s'\nwarmup = '1 s'", link, &flows),
        expected: vec![
            ExpectedValue {
                row: "wire.forward",
                column: "link_throughput_bit_per_s",
                range: [4e6 * 0.99, 4e6 * 1.01],
            },
            throughput("one", [2e6, 2.81e6]),
            throughput("six", [0.45e6, f64::INFINITY]),
            // The rate without a guarantee.
            throughput("two", [0.3e6, f64::INFINITY]),
        ],
    }
}

/// A file of 60 kB at once leaves at 500 kbit/s: 42 segments with 52 B of headers, two of them as a
/// burst. Without a shaper it would queue at the link.
fn burst() -> LinkCase {
    let link = "[link.wire.forward]\nrate = '1 Mbit/s'\ndelay = '5 ms'\n\
        [link.wire.forward.shaper]\nrate = '500 kbit/s'\nburst = '1500 B'\n\
        [link.wire.reverse]\nrate = '1 Mbit/s'";
    let flows = "[stack.s]\ninitial_window = '60 kB'\n\
                 [flow.file]\nfrom = 'near'\nto = 'far'\nload = { transfer = { size = '60 kB' } \
                 }\nstack = 's'";
    let time = (60_000.0 + 42.0 * 52.0 - 3_000.0) * 8.0 / 500e3;
    let file = |column, range| ExpectedValue { row: "file", column, range };
    LinkCase {
        name: "a shaper divides a burst into packets",
        scenario: two_nodes("duration = '2500 ms'", link, flows),
        expected: vec![
            file("completion_time_s", [time, time + 0.1]),
            file("retransmissions_count", [0.0, 0.0]),
        ],
    }
}
