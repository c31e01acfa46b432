//! Networks with known parameters, which are drawn afresh for each seed.

/// A network of one link between two hosts, captured at the sender.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) rate_bit_per_s: f64,
    /// Propagation delay of both directions.
    pub(crate) round_trip_s: f64,
    pub(crate) loss: f64,
    /// Mean number of consecutive lost packets, apart from chance.
    pub(crate) burst_packets: f64,
    pub(crate) queue_packets: f64,
    pub(crate) congestion_control: &'static str,
    pub(crate) scenario: String,
}

/// Random numbers of a network (splitmix64), so that a network is known by its seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Uniform between two limits.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in the logarithm.
    fn scale(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    fn choice<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.next() % of.len() as u64) as usize]
    }
}

/// Losses of the link.
struct Losses {
    probability: f64,
    burst_packets: f64,
    /// The key `loss`.
    key: String,
}

impl Losses {
    /// None, independent losses, or losses in bursts.
    fn new(numbers: &mut Numbers) -> Self {
        match numbers.choice(&["none", "independent", "independent", "bursts"]) {
            "none" => Self { probability: 0.0, burst_packets: 1.0, key: String::new() },
            "independent" => {
                let probability = numbers.scale(0.001, 0.03);
                let key = format!(", loss = {{ bernoulli = '{:.6} %' }}", 100.0 * probability);
                Self { probability, burst_packets: 1.0, key }
            }
            _ => {
                // The bad state loses all packets: bursts of 1 / leave packets.
                let burst_packets = numbers.between(1.5, 5.0);
                let leave = 1.0 / burst_packets;
                let probability = numbers.scale(0.002, 0.03);
                let enter = leave * probability / (1.0 - probability);
                let key = format!(
                    ", loss = {{ gilbert_elliott = {{ good_to_bad = '{:.6} %', bad_to_good = \
                     '{:.6} %' }} }}",
                    100.0 * enter,
                    100.0 * leave
                );
                Self { probability, burst_packets, key }
            }
        }
    }
}

impl Network {
    pub(crate) fn new(seed: u64) -> Self {
        let mut numbers = Numbers(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
        let rate = numbers.scale(0.2e6, 20e6).round();
        // Uplink and downlink of access networks: the acknowledgements have at least this rate.
        let reverse_rate = rate * numbers.choice(&[1.0, 1.0, 2.0, 5.0]);
        let delays_us = [0, 1].map(|_| numbers.scale(1e3, 100e3).round());
        let round_trip_s = 1e-6 * (delays_us[0] + delays_us[1]);
        let product_packets = rate * round_trip_s / 8.0 / 1_500.0;
        let queue_packets = match numbers.choice(&[true, true, false]) {
            true => (product_packets * numbers.scale(0.3, 3.0)).round().max(8.0),
            false => 100.0,
        };
        let losses = Losses::new(&mut numbers);
        let congestion_control = numbers.choice(&[
            "cubic", "cubic", "cubic", "reno", "new_reno", "sack", "bbr", "vegas", "westwood",
            "veno",
        ]);
        let load = match numbers.choice(&[true, true, true, false]) {
            true => "'bulk'".to_owned(),
            false => format!("{{ transfer = {{ size = '{:.0} kB' }} }}", numbers.scale(2e2, 4e3)),
        };
        let scenario = format!(
            "title = 'round trip'\nduration = '20 s'\nwarmup = '0 s'\nreplications = 1\nseed = \
             {seed}\nrecord = {{ pcap = ['access'] }}\n\
             [node]\na = {{}}\nm = {{}}\nb = {{}}\n\
             [link.access]\nfrom = 'a'\nto = 'm'\n\
             both = {{ rate = '10 Gbit/s', queue = '10000 packets' }}\n\
             [link.line]\nfrom = 'm'\nto = 'b'\n\
             forward = {{ rate = '{rate} bit/s', delay = '{} us', queue = '{queue_packets} \
             packets'{} }}\n\
             reverse = {{ rate = '{reverse_rate} bit/s', delay = '{} us' }}\n\
             [stack.t]\ncongestion_control = '{congestion_control}'\n\
             [flow.f]\nfrom = 'a'\nto = 'b'\nstack = 't'\nload = {load}\n",
            delays_us[0], losses.key, delays_us[1]
        );
        Self {
            rate_bit_per_s: rate,
            round_trip_s,
            loss: losses.probability,
            burst_packets: losses.burst_packets,
            queue_packets,
            congestion_control,
            scenario,
        }
    }
}
