//! Estimates of memory and run time before a run starts, so that a mistyped count is rejected
//! instead of exhausting the memory or running for years.
//!
//! The estimates are accurate within a factor of ten, which is enough to detect mistyped numbers.
//! `--ignore-estimate` starts a run that they reject.

mod bounded_sim;
mod limit_error;
mod workload;

use std::fs;

use gridhaul_scenario::scenario::Scenario;

use crate::engine::{BackendName, Engine};
pub(crate) use bounded_sim::BoundedSim;
pub(crate) use limit_error::time;
use limit_error::{memory_error, time_error};
use workload::Workload;

/// Limits of time and memory of a run.
#[derive(Debug, Clone, Copy)]
struct Limits {
    seconds: f64,
    bytes: f64,
}

/// The estimated workload of a run over all points and replications.
#[derive(Debug, Clone, Copy)]
struct RunEstimate<'a> {
    scenario: &'a Scenario,
    points: f64,
    replications: f64,
    /// Maximum of each quantity over the points.
    largest: &'a Workload,
    /// Sum over all points, with one replication each.
    sum: Workload,
}

/// Longest run that starts without `--ignore-estimate`.
const SECONDS_MAX: f64 = 86_400.0;

/// The simulator needs 0.1 µs to 2 µs for the transit of a packet over a link, depending on how
/// many connections share the processor caches.
const SECONDS_PER_TRANSIT: f64 = 1e-6;

/// Memory of a connection with its messages (`cargo xtask bench meters`: 958 MB for a million
/// meters).
const BYTES_PER_CONNECTION: f64 = 1000.0;

/// Memory of a link direction without its queue.
const BYTES_PER_DIRECTION: f64 = 200.0;

/// Memory of a row of an answer for each replication.
const BYTES_PER_ROW: f64 = 400.0;

/// Memory of a sweep point: its scenario, its rows and its part of the report.
const BYTES_PER_POINT: f64 = 10_000.0;

/// Memory of a sample of a series that is recorded on real kernels. A simulation stores its
/// recordings in a file.
const BYTES_PER_SAMPLE: f64 = 100.0;

/// Memory of a packet that is captured on real kernels.
const BYTES_PER_CAPTURED: f64 = 120.0;

/// Number of points whose workload is computed; larger sweeps are sampled evenly.
const POINTS_SAMPLED: usize = 200;

/// Checks that a run fits into the free memory and takes at most a day.
///
/// # Errors
/// The run exceeds a limit: the message names the key to change.
pub(crate) fn ensure_possible(scenario: &Scenario, engine: &Engine) -> anyhow::Result<()> {
    let counts =
        engine.backends.iter().any(|name| matches!(name, BackendName::Sim | BackendName::Emu));
    if engine.ignore_estimate || !counts {
        return Ok(());
    }
    let limits = Limits { seconds: SECONDS_MAX, bytes: available() };
    check(scenario, engine, limits)
}

/// Expected CPU time of one simulated run, in seconds.
pub(crate) fn simulation_seconds(scenario: &Scenario) -> f64 {
    Workload::of(scenario).transits * SECONDS_PER_TRANSIT
}

/// Checks that the network of a scenario fits into the free memory, for `emu up`.
///
/// # Errors
/// The network exceeds the free memory: the message names the key to change.
pub fn ensure_memory(scenario: &Scenario) -> anyhow::Result<()> {
    let limits = Limits { seconds: f64::INFINITY, bytes: available() };
    // The memory of a network is that of one simulated run. `emu up` has no option that ignores the
    // estimate, so that the message must not name it.
    check(scenario, &Engine::sim(1, false), limits).map_err(|error| {
        let text = error.to_string();
        anyhow::anyhow!(
            "{}",
            text.trim_end_matches(limit_error::IGNORE_HINT).trim_end_matches("; ")
        )
    })
}

fn check(scenario: &Scenario, engine: &Engine, limits: Limits) -> anyhow::Result<()> {
    let all = scenario.sweep_points()?;
    let step = all.len().div_ceil(POINTS_SAMPLED).max(1);
    let sampled = (0..all.len()).step_by(step).map(|index| all.get(index));
    let sampled = sampled.map(|point| point.map(|point| Workload::of(&point.scenario)));
    let sampled = sampled.collect::<Result<Vec<Workload>, _>>()?;
    let mut sum = Workload::default();
    let mut largest = Workload::default();
    for work in &sampled {
        sum.add(work);
        largest.raise(work);
    }
    // Of a sampled sweep, the sum is extrapolated to all points.
    sum.scale(all.len() as f64 / sampled.len().max(1) as f64);
    let replications = f64::from(scenario.replications.max());
    let estimate =
        RunEstimate { scenario, points: all.len() as f64, replications, largest: &largest, sum };
    let records_in_memory = engine.backends.contains(&BackendName::Emu);
    estimate.check_memory(threads(engine), records_in_memory, limits)?;
    for name in &engine.backends {
        let seconds = match name {
            BackendName::Sim => sum.transits * SECONDS_PER_TRANSIT * replications / threads(engine),
            BackendName::Emu => sum.seconds * replications / engine.concurrent_runs.max(1) as f64,
            BackendName::Model | BackendName::PaperModel | BackendName::PrintedModel => continue,
        };
        if seconds > limits.seconds {
            return Err(time_error(&estimate, seconds, limits.seconds));
        }
    }
    Ok(())
}

impl RunEstimate<'_> {
    fn check_memory(
        &self,
        threads: f64,
        records_in_memory: bool,
        limits: Limits,
    ) -> anyhow::Result<()> {
        let Self { largest, sum, points, replications, .. } = self;
        let concurrent_runs = threads.min(points * replications);
        let recorded = f64::from(records_in_memory);
        let parts = [
            largest.connections * BYTES_PER_CONNECTION * concurrent_runs,
            largest.directions * BYTES_PER_DIRECTION * concurrent_runs,
            sum.rows * replications * BYTES_PER_ROW,
            points * BYTES_PER_POINT,
            recorded * sum.samples * BYTES_PER_SAMPLE,
            recorded * sum.captured * BYTES_PER_CAPTURED,
            largest.backlog * concurrent_runs,
        ];
        let bytes: f64 = parts.iter().sum();
        if bytes <= limits.bytes {
            return Ok(());
        }
        let largest = (0..parts.len()).max_by(|&a, &b| parts[a].total_cmp(&parts[b]));
        Err(memory_error(self, largest.unwrap_or(0), bytes, limits.bytes))
    }
}

fn threads(engine: &Engine) -> f64 {
    concurrent_threads(engine.threads)
}

/// Number of threads for a configured number; 0: one per core.
pub(crate) fn concurrent_threads(configured: usize) -> f64 {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (if configured == 0 { cores() } else { configured }) as f64
}

/// Free memory in bytes: the smaller value of the machine and of the control group; infinite if
/// neither is known.
fn available() -> f64 {
    let read = |path: &str| fs::read_to_string(path).ok();
    let of_machine = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0)
    });
    let number = |path: &str| read(path)?.trim().parse::<f64>().ok();
    let of_group = number("/sys/fs/cgroup/memory.max")
        .map(|maximum| maximum - number("/sys/fs/cgroup/memory.current").unwrap_or(0.0));
    let known = [of_machine, of_group].into_iter().flatten();
    known.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: f64 = 3600.0;

    fn scenario(keys: &str) -> Scenario {
        let text = format!(
            "title = \"t\"\nduration = \"1 h\"\n{keys}\n[node]\na = {{ count = 500_000 }}\nb = \
             {{}}\nc = {{}}\n\
             [link.up]\nfrom = \"a\"\nto = \"b\"\nboth.rate = \"1 Mbit/s\"\n\
             [link.on]\nfrom = \"b\"\nto = \"c\"\nboth.rate = \"1 Mbit/s\"\n\
             [flow.twice]\nfrom = \"b\"\nto = \"c\"\ncount = 2\nload = \"bulk\"\n"
        );
        Scenario::from_toml(&text, "test.toml").expect("a scenario")
    }

    fn engine(on: BackendName) -> Engine {
        Engine { backends: vec![on], threads: 1, ..Engine::default() }
    }

    fn rejected(scenario: &Scenario, on: BackendName, limits: Limits) -> String {
        check(scenario, &engine(on), limits).unwrap_err().to_string()
    }

    const PLENTY: Limits = Limits { seconds: 1e12, bytes: 1e15 };

    #[test]
    fn a_million_links_need_two_hundred_megabytes() {
        // Half a million members have a link each, with two directions.
        let scenario = scenario("");
        let with = |bytes| check(&scenario, &engine(BackendName::Sim), Limits { bytes, ..PLENTY });
        assert!(with(2.1e8).is_ok());
        let error = with(1.9e8).unwrap_err().to_string();
        assert!(error.starts_with("node.a.count = 500000"), "{error}");
        assert!(error.contains("0.2 GB") && error.contains("--ignore-estimate"), "{error}");
    }

    #[test]
    fn the_backlog_of_a_sender_counts() {
        let load = "[flow.flood]\nfrom = \"a\"\nto = \"b\"\nload.periodic = { size = \"100 B\", \
                    every = \"1 ms\" }\n";
        let text = format!(
            "title = \"t\"\nduration = \"1 h\"\n[node]\na = {{}}\nb = {{}}\n[link.up]\nfrom \
             = \"a\"\nto = \"b\"\n\
             both.rate = \"10 kbit/s\"\n{load}"
        );
        // 3.6 million messages.
        let scenario = Scenario::from_toml(&text, "test.toml").expect("a scenario");
        let with = |bytes| check(&scenario, &engine(BackendName::Sim), Limits { bytes, ..PLENTY });
        assert!(with(1.5e8).is_ok());
        let error = with(1.3e8).unwrap_err().to_string();
        assert!(
            error.starts_with("flow.flood: ") && error.contains("--ignore-estimate"),
            "{error}"
        );
    }

    #[test]
    fn a_simulation_takes_a_microsecond_for_each_packet_on_a_link() {
        // One hour of 1 Mbit/s in packets of 1500 B, and as many acknowledgements: 600,000.
        let scenario = scenario("replications = 1000");
        let with =
            |seconds| check(&scenario, &engine(BackendName::Sim), Limits { seconds, ..PLENTY });
        assert!(with(700.0).is_ok());
        let error = with(500.0).unwrap_err().to_string();
        assert!(error.starts_with("replications = 1000: "), "{error}");
    }

    #[test]
    fn an_emulation_takes_real_time() {
        let scenario = scenario("replications = 3\n[[sweep]]\nvary.seed = [1, 2, 3, 4]\n");
        let with = |hours| Limits { seconds: hours * HOUR, ..PLENTY };
        assert!(check(&scenario, &engine(BackendName::Emu), with(12.1)).is_ok());
        let error = rejected(&scenario, BackendName::Emu, with(11.9));
        assert!(error.starts_with("sweep: ") && error.contains("12 h"), "{error}");
    }

    #[test]
    fn the_memory_of_each_replication_counts() {
        let error = rejected(
            &scenario("replications = 4294967295"),
            BackendName::Sim,
            Limits { bytes: 1e12, ..PLENTY },
        );
        assert!(error.starts_with("replications = 4294967295"), "{error}");
        let recorded = scenario("record.interval = \"1 ms\"");
        let limits = || Limits { bytes: 3e8, ..PLENTY };
        let error = rejected(&recorded, BackendName::Emu, limits());
        assert!(error.starts_with("record.interval"), "{error}");
        // A simulation stores its recordings in a file.
        check(&recorded, &engine(BackendName::Sim), limits()).unwrap();
    }

    /// The scenarios of the repository run on a machine with two cores and 8 GB.
    #[test]
    fn no_scenario_of_the_repository_is_rejected() {
        let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let papers = fs::read_dir(root.join("papers")).unwrap().map(|paper| paper.unwrap().path());
        let mut checked = 0;
        for folder in papers.chain([root.join("scenarios")]) {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                let text = fs::read_to_string(&path).unwrap_or_default();
                let Ok(scenario) = Scenario::from_toml(&text, "test.toml") else { continue };
                let engine = Engine { threads: 2, ..engine(BackendName::Sim) };
                let limits = Limits { seconds: SECONDS_MAX, bytes: 8e9 };
                check(&scenario, &engine, limits)
                    .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                checked += 1;
            }
        }
        assert!(checked > 20, "{checked}");
    }

    #[test]
    fn the_analytical_model_needs_no_estimate() {
        let scenario = scenario("replications = 4294967295");
        check(&scenario, &engine(BackendName::Model), PLENTY).unwrap_or(());
        ensure_possible(&scenario, &engine(BackendName::Model)).unwrap();
        let forced = Engine { ignore_estimate: true, ..engine(BackendName::Sim) };
        ensure_possible(&scenario, &forced).unwrap();
    }
}
