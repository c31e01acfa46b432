//! What a run will take, before it starts: a count with a few zeros too many is refused instead of
//! filling the memory or never ending.
//!
//! The estimates are rough on purpose: within a factor of ten they are right, and a mistyped number
//! is further off. `--ignore-estimate` starts a run that they refuse.

mod refusal;
mod workload;

use std::fs;

use gridhaul_scenario::scenario::{Scenario, ScenarioPoint};

use crate::engine::{BackendName, Engine};
use refusal::{refuse_memory, refuse_time};
use workload::Workload;

/// What a run may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
    seconds: f64,
    bytes: f64,
}

/// What the whole run is made of.
#[derive(Debug, Clone, Copy)]
struct RunEstimate<'a> {
    scenario: &'a Scenario,
    points: f64,
    replications: f64,
    /// The point that takes longest, and the one that needs most memory, in one.
    largest: &'a Workload,
    /// Workload of all points, each counted once.
    sum: Workload,
}

/// Longest run that starts without being asked for.
const SECONDS_MAX: f64 = 86_400.0;

/// A packet that crosses a link takes the simulator 0.1 µs to 2 µs, depending on how many connections
/// compete for the processor's caches.
const SECONDS_PER_TRANSIT: f64 = 1e-6;

/// A connection with its messages takes about this (`cargo xtask bench meters`: 958 MB for a million
/// meters).
const BYTES_PER_CONNECTION: f64 = 1000.0;

/// A direction of a link, without its queue.
const BYTES_PER_DIRECTION: f64 = 200.0;

/// A row of an answer keeps this for each replication until all are finished.
const BYTES_PER_ROW: f64 = 400.0;

/// A point of a sweep: its scenario, its rows and their place in the report.
const BYTES_PER_POINT: f64 = 10_000.0;

/// A sample of a series, before and while it is written.
const BYTES_PER_SAMPLE: f64 = 100.0;

/// A captured packet.
const BYTES_PER_CAPTURED: f64 = 120.0;

/// Points that are looked at; of more, an even selection stands for all.
const POINTS_SAMPLED: usize = 200;

/// # Errors
/// The key to change, if the run would take more memory than is free or longer than a day.
pub(crate) fn ensure_possible(scenario: &Scenario, engine: &Engine) -> anyhow::Result<()> {
    let counts =
        engine.backends.iter().any(|name| matches!(name, BackendName::Sim | BackendName::Emu));
    if engine.ignore_estimate || !counts {
        return Ok(());
    }
    let limits = Limits { seconds: SECONDS_MAX, bytes: available() };
    check(scenario, engine, limits)
}

/// Checks that there is enough memory for a network that stands.
///
/// # Errors
/// The key to change, if a network that stands would take more memory than is free.
pub fn ensure_memory(scenario: &Scenario) -> anyhow::Result<()> {
    let limits = Limits { seconds: f64::INFINITY, bytes: available() };
    check(scenario, &Engine::sim(1, false), limits).map_err(|error| {
        let text = error.to_string();
        anyhow::anyhow!("{}", text.trim_end_matches(refusal::IGNORE_HINT).trim_end_matches("; "))
    })
}

fn check(scenario: &Scenario, engine: &Engine, limits: Limits) -> anyhow::Result<()> {
    let all = scenario.points()?;
    let step = all.len().div_ceil(POINTS_SAMPLED).max(1);
    let seen: Vec<Workload> = all
        .iter()
        .step_by(step)
        .map(|ScenarioPoint { scenario, .. }| Workload::of(scenario))
        .collect();
    let mut sum = Workload::default();
    let mut largest = Workload::default();
    for work in &seen {
        sum.add(work);
        largest.raise(work);
    }
    sum.scale(all.len() as f64 / seen.len().max(1) as f64);
    let replications = f64::from(scenario.replications);
    let whole =
        RunEstimate { scenario, points: all.len() as f64, replications, largest: &largest, sum };
    whole.check_memory(threads(engine), limits)?;
    for name in &engine.backends {
        let seconds = match name {
            BackendName::Sim => sum.transits * SECONDS_PER_TRANSIT * replications / threads(engine),
            BackendName::Emu => sum.seconds * replications / engine.concurrent_runs.max(1) as f64,
            BackendName::Model | BackendName::PaperModel => continue,
        };
        if seconds > limits.seconds {
            return Err(refuse_time(&whole, seconds, limits.seconds));
        }
    }
    Ok(())
}

impl RunEstimate<'_> {
    fn check_memory(&self, threads: f64, limits: Limits) -> anyhow::Result<()> {
        let Self { largest, sum, points, replications, .. } = self;
        let concurrent_runs = threads.min(points * replications);
        let parts = [
            largest.connections * BYTES_PER_CONNECTION * concurrent_runs,
            largest.directions * BYTES_PER_DIRECTION * concurrent_runs,
            sum.rows * replications * BYTES_PER_ROW,
            points * BYTES_PER_POINT,
            sum.samples * BYTES_PER_SAMPLE,
            sum.captured * BYTES_PER_CAPTURED,
        ];
        let bytes: f64 = parts.iter().sum();
        if bytes <= limits.bytes {
            return Ok(());
        }
        let largest = (0..parts.len()).max_by(|&a, &b| parts[a].total_cmp(&parts[b]));
        Err(refuse_memory(self, largest.unwrap_or(0), bytes, limits.bytes))
    }
}

fn threads(engine: &Engine) -> f64 {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (if engine.threads == 0 { cores() } else { engine.threads }) as f64
}

/// Bytes that a program can still have: of the machine and of its control group. Without a limit where
/// the system does not say.
fn available() -> f64 {
    let read = |path: &str| fs::read_to_string(path).ok();
    let of_machine = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0)
    });
    let number = |path: &str| read(path)?.trim().parse::<f64>().ok();
    let of_group = number("/sys/fs/cgroup/memory.max")
        .map(|most| most - number("/sys/fs/cgroup/memory.current").unwrap_or(0.0));
    let known = [of_machine, of_group].into_iter().flatten();
    known.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: f64 = 3600.0;

    fn scenario(keys: &str) -> Scenario {
        let text = format!(
            "title = \"t\"\nduration = \"1 h\"\n{keys}\n[node]\na = {{ count = 500_000 }}\nb = {{}}\nc = {{}}\n\
             [link.up]\nfrom = \"a\"\nto = \"b\"\nboth.rate = \"1 Mbit/s\"\n\
             [link.on]\nfrom = \"b\"\nto = \"c\"\nboth.rate = \"1 Mbit/s\"\n\
             [flow.twice]\nfrom = \"b\"\nto = \"c\"\ncount = 2\nload = \"bulk\"\n"
        );
        Scenario::from_toml(&text, "test.toml").expect("a scenario")
    }

    fn engine(on: BackendName) -> Engine {
        Engine { backends: vec![on], threads: 1, concurrent_runs: 1, ignore_estimate: false }
    }

    fn refused(scenario: &Scenario, on: BackendName, limits: Limits) -> String {
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
    fn real_kernels_take_real_time() {
        let scenario = scenario("replications = 3\n[[sweep]]\nvary.seed = [1, 2, 3, 4]\n");
        let with = |hours| Limits { seconds: hours * HOUR, ..PLENTY };
        assert!(check(&scenario, &engine(BackendName::Emu), with(12.1)).is_ok());
        let error = refused(&scenario, BackendName::Emu, with(11.9));
        assert!(error.starts_with("sweep: ") && error.contains("12 h"), "{error}");
    }

    #[test]
    fn what_is_kept_of_each_replication_counts() {
        let error = refused(
            &scenario("replications = 4294967295"),
            BackendName::Sim,
            Limits { bytes: 1e12, ..PLENTY },
        );
        assert!(error.starts_with("replications = 4294967295"), "{error}");
        let error = refused(
            &scenario("record.interval = \"1 ms\""),
            BackendName::Sim,
            Limits { bytes: 3e8, ..PLENTY },
        );
        assert!(error.starts_with("record.interval"), "{error}");
    }

    /// The scenarios of the repository run on a machine of two cores and 8 GB.
    #[test]
    fn no_scenario_of_the_repository_is_refused() {
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
    fn equations_take_no_time_worth_an_estimate() {
        let scenario = scenario("replications = 4294967295");
        check(&scenario, &engine(BackendName::Model), PLENTY).unwrap_or(());
        ensure_possible(&scenario, &engine(BackendName::Model)).unwrap();
        let forced = Engine { ignore_estimate: true, ..engine(BackendName::Sim) };
        ensure_possible(&scenario, &forced).unwrap();
    }
}
