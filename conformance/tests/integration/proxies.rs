//! Flows through proxies: the analytical model compared with the simulation.

use gridhaul_model::Model;
use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::{Load, Scenario};
use gridhaul_scenario::units::{BitRate, Duration};
use gridhaul_sim::Sim;

/// A file of 29 MB over two hops of 100 Mbit/s and 50 ms (round trip) with one proxy between them.
fn line(mode: &str, loss: [f64; 2]) -> Scenario {
    let text = format!(
        r#"
title = "line"
duration = "600 s"
replications = 4
[node]
source = {{}}
sink = {{}}
unit.proxy = {{ mode = "{mode}", buffer = "64 MiB" }}
[link.near]
from = "source"
to = "unit"
forward = {{ rate = "100 Mbit/s", delay = "25 ms", queue = "1000 packets", loss.bernoulli = "{} %" }}
reverse = {{ rate = "100 Mbit/s", delay = "25 ms" }}
[link.far]
from = "unit"
to = "sink"
forward = {{ rate = "100 Mbit/s", delay = "25 ms", queue = "1000 packets", loss.bernoulli = "{} %" }}
reverse = {{ rate = "100 Mbit/s", delay = "25 ms" }}
[stack.reno]
profile = "ns2"
congestion_control = "reno"
handshake = false
receive_window = "30000 segments"
[flow.file]
from = "source"
to = "sink"
stack = "reno"
load.transfer.size = "29 MB"
"#,
        loss[0], loss[1]
    );
    Scenario::from_toml(&text, "line.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn rate(backend: &dyn Backend, scenario: &Scenario) -> f64 {
    let answer: Answer =
        backend.run(scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"));
    answer.points[0].flows[0].mean(Metric::TransferRate).unwrap()
}

#[test]
fn the_bottleneck_hop_determines_the_rate_of_the_chain() {
    // Loss on one hop only, so that this hop is the bottleneck: equation 3 of paper `plc` without
    // the random change of the slowest hop.
    for loss in [[0.0, 0.5], [0.5, 0.0]] {
        for (mode, round_trip) in [("none", 1.0), ("split", 2.0), ("reflect", 2.0)] {
            let scenario = line(mode, loss);
            let sim = rate(&Sim::default(), &scenario);
            let by = |backend: &dyn Backend| sim / rate(backend, &scenario);
            let (paper, model) = (by(&Model::PAPER), by(&Model::REFINED));
            assert!((0.88..1.02).contains(&paper), "{mode} {loss:?}: {paper}");
            assert!((0.92..1.06).contains(&model), "{mode} {loss:?}: {model}");
            // The value of the equation: 12,000 · 1460 / 1500 bit / (RTT √(2 p / 3)).
            let root = (2.0 * 0.005 / 3.0_f64).sqrt();
            let by_hand = 11_680.0 * round_trip / (0.1 * root) * 0.995;
            let predicted = rate(&Model::PAPER, &scenario);
            assert!((predicted / by_hand - 1.0).abs() < 1e-3, "{predicted} {by_hand}");
        }
    }
}

/// The load that the sender offers does not include the packets of the proxy.
#[test]
fn the_offered_load_is_that_of_the_sender_in_the_model_and_the_simulation() {
    for mode in ["none", "split", "reflect"] {
        let mut scenario = line(mode, [0.0, 0.5]);
        scenario.duration = Duration::from_secs(100);
        scenario.warmup = Duration::from_secs(20);
        scenario.flow[0].load = Load::Bulk;
        let load = |backend: &dyn Backend| {
            let answer = backend.run(&scenario, &NoProgress).unwrap();
            answer.points[0].flows[0].mean(Metric::OfferedLoad).unwrap()
        };
        let (sim, model) = (load(&Sim::default()), load(&Model::REFINED));
        assert!((0.85..1.15).contains(&(sim / model)), "{mode}: {sim} {model}");
    }
}

/// A bulk flow over four hops with three proxies: the round-trip time of each hop in milliseconds,
/// its loss in percent, and the buffers of the proxies in KiB.
struct Chain {
    mode: &'static str,
    rate: &'static str,
    round_trips: [u32; 4],
    loss: [f64; 4],
    buffers: [u32; 3],
}

impl Chain {
    /// Goodput by equation 1 of paper `plc` without loss: the receive buffer at the end of each hop
    /// over the round-trip time of the hop, and the rate of the line. A reflecting proxy offers at
    /// most the window that it receives.
    fn equation_1(&self) -> f64 {
        let rate: BitRate = self.rate.parse().expect("a rate");
        let line = rate.as_bits_per_sec() as f64 * 1460.0 / 1500.0;
        let hops = self.round_trips.iter().zip(&self.buffers).enumerate();
        let by_hop = hops.map(|(index, (round_trip, own))| {
            let later = self.buffers[index..].iter().min().expect("a buffer");
            let buffer = if self.mode == "reflect" { later } else { own };
            f64::from(buffer * 1024 * 8) / (f64::from(*round_trip) * 1e-3)
        });
        by_hop.fold(line, f64::min)
    }

    fn scenario(&self) -> Scenario {
        let mut text =
            "title = \"chain\"\nduration = \"140 s\"\nwarmup = \"20 s\"\nreplications = 2\n\
             [stack.reno]\nprofile = \"ns2\"\ncongestion_control = \"reno\"\nhandshake = false\n\
             delayed_ack = \"0 s\"\nreceive_window = \"20000 segments\"\n\
             [flow.file]\nfrom = \"n0\"\nto = \"n4\"\nstack = \"reno\"\nload = \"bulk\"\n\
             [node.n0]\n[node.n4]\n"
                .to_owned();
        for (index, buffer) in self.buffers.iter().enumerate() {
            text += &format!(
                "[node.n{}.proxy]\nmode = \"{}\"\nbuffer = \"{buffer} KiB\"\n",
                index + 1,
                self.mode
            );
        }
        for (index, (round_trip, loss)) in self.round_trips.iter().zip(self.loss).enumerate() {
            let (rate, micros) = (self.rate, round_trip * 500);
            text += &format!(
                "[link.l{index}]\nfrom = \"n{index}\"\nto = \"n{}\"\nforward = {{ rate \
                 = \"{rate}\", \
                 delay = \"{micros} us\", queue = \"50 packets\", loss.bernoulli = \"{loss} %\" \
                 }}\n\
                 reverse = {{ rate = \"{rate}\", delay = \"{micros} us\" }}\n",
                index + 1
            );
        }
        Scenario::from_toml(&text, "chain.toml").unwrap_or_else(|error| panic!("{error}"))
    }
}

/// The chains for which model and simulation must agree: a small buffer at any of the proxies, and
/// losses before and after it. docs/limitations/model.md names the excluded cases.
fn chains_with_small_buffers() -> Vec<Chain> {
    const LARGE: u32 = 16_384;
    let at = |position: usize, buffer: u32| {
        let mut buffers = [LARGE; 3];
        buffers[position] = buffer;
        buffers
    };
    let mut chains = Vec::new();
    for mode in ["reflect", "split"] {
        for buffer in [16, 24, 32] {
            // The position of the small buffer, and losses before and after it.
            for position in 0..3 {
                for loss in [[0.0; 4], [0.1; 4], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]] {
                    // Loss and buffer both limit the rate here: up to 10.1 %
                    // (docs/limitations/model.md).
                    if buffer == 32 && loss.contains(&1.0) {
                        continue;
                    }
                    let (rate, round_trips) = ("10 Mbit/s", [25; 4]);
                    chains.push(Chain {
                        mode,
                        rate,
                        round_trips,
                        loss,
                        buffers: at(position, buffer),
                    });
                }
            }
            let (loss, buffers) = ([0.1; 4], [buffer; 3]);
            chains.push(Chain { mode, rate: "10 Mbit/s", round_trips: [25; 4], loss, buffers });
        }
        // Hops with different delays, and other rates.
        for (rate, round_trips, buffer) in [
            ("10 Mbit/s", [10, 10, 80, 10], 16),
            ("10 Mbit/s", [10, 80, 10, 10], 16),
            ("10 Mbit/s", [80, 10, 10, 10], 16),
            ("10 Mbit/s", [40, 20, 40, 20], 32),
            ("3 Mbit/s", [25; 4], 16),
            ("50 Mbit/s", [100, 100, 100, 100], 64),
            ("1 Mbit/s", [200, 100, 200, 100], 24),
        ] {
            for loss in [[0.0; 4], [0.2; 4]] {
                chains.push(Chain { mode, rate, round_trips, loss, buffers: at(1, buffer) });
            }
        }
    }
    chains
}

#[test]
fn a_byte_occupies_the_buffer_of_a_proxy_until_the_next_hop_has_acknowledged_it() {
    let goodput = |backend: &dyn Backend, scenario: &Scenario| {
        let answer = backend.run(scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"));
        answer.points[0].flows[0].mean(Metric::Goodput).unwrap()
    };
    let mut outside = Vec::new();
    for chain in chains_with_small_buffers() {
        let scenario = chain.scenario();
        let sim = goodput(&Sim::default(), &scenario);
        let lossless = chain.loss.iter().all(|&loss| loss <= 0.0);
        let mut check = |name, predicted: f64| {
            let Chain { mode, rate, round_trips, loss, buffers } = &chain;
            let line = format!(
                "{mode} {rate} {round_trips:?} ms {loss:?} % {buffers:?} KiB: simulation {:.3} \
                 Mbit/s, {name} {:+.1} %",
                sim / 1e6,
                100.0 * (predicted / sim - 1.0)
            );
            println!("{line}");
            if (predicted / sim - 1.0).abs() > 0.1 {
                outside.push(line);
            }
        };
        check("model", goodput(&Model::REFINED, &scenario));
        if lossless {
            let paper = goodput(&Model::PAPER, &scenario);
            assert!((paper / chain.equation_1() - 1.0).abs() < 1e-3, "{paper}");
            // Equation 1 ignores that a byte occupies the buffer until the next hop has
            // acknowledged it.
            assert!(paper > 1.05 * sim, "{paper} {sim}");
        }
    }
    assert!(outside.is_empty(), "{outside:#?}");
}
