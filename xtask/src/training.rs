//! Profile-guided optimisation: a program is compiled with counters and simulates some scenarios.
//! With the counts, the compiler arranges and inlines the code of the next build as these runs need
//! it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::process::{self, output, program};

/// The target of both builds. Naming it keeps flags away from build scripts and macros, which are
/// loaded by the compiler, and counters are found by names of functions, which depend on it.
pub(crate) const TARGET: &str = if cfg!(target_arch = "aarch64") {
    "aarch64-unknown-linux-gnu"
} else {
    "x86_64-unknown-linux-gnu"
};

/// Runs of `gridhaul`: packets of one flow and of many, meters, proxies, aggregators, application
/// protocols, links with impairments, equations, and a report with series. A few seconds in all.
const RUNS: [&[&str]; 14] = [
    &["bench/sim/bulk.toml", "--set", "duration=300 s"],
    &[
        "bench/sim/bulk.toml",
        "--set",
        "duration=300 s",
        "--set",
        "stack.peer.profile=linux",
        "--set",
        "stack.peer.congestion_control=cubic",
    ],
    &["bench/sim/bulk.toml", "--set", "duration=50 s", "--series", "10 ms"],
    &["bench/sim/flows.toml", "--set", "duration=10 s"],
    &[
        "bench/meters/meters.toml",
        "--set",
        "flow.reading.count=5000",
        "--set",
        "link.way.both.rate=20 Mbit/s",
        "--set",
        "duration=180 s",
    ],
    &[
        "bench/pep/two_hops.toml",
        "--set",
        "duration=20 s",
        "--set",
        "node.middle.proxy.mode=reflect",
        "--set",
        "node.middle.proxy.buffer=150 kB",
    ],
    &["bench/model/figure10.toml", "--on", "model"],
    &["scenarios/aggregators.toml", "--replications", "1"],
    &["scenarios/coap-readings.toml", "--replications", "1"],
    &["scenarios/lte-harq.toml", "--replications", "1"],
    &["scenarios/plc-narrowband.toml", "--replications", "1"],
    &["scenarios/proxy-crash.toml", "--replications", "1"],
    &["scenarios/queues.toml", "--replications", "1"],
    &["scenarios/tls-per-reading.toml", "--replications", "1"],
];

/// Counts are kept for functions of these crates that have run. Those of the others depend on
/// random hashes or on time, and the same commit would not give the same program each time; and the
/// compiler would take functions that have not run for rare ones, although other programs or
/// commands need them.
const CRATES: &str = "gridhaul_(core|sim|model)";

/// Functions in these crates that depend on random hashes as well.
const HASH_TABLES: &str = "hashbrown|indexmap";

/// Compiles `gridhaul` with counters, runs it, and returns the file with the counts in `folder`.
///
/// `compile` gets the option with which the compiler adds the counters, and returns the start of
/// the command: everything before its arguments.
///
/// # Errors
/// The tool that merges counts is not installed, or a build or a run fails.
pub(crate) fn counts<C: Fn() -> Command>(
    folder: &Path,
    compile: impl FnOnce(&str) -> anyhow::Result<C>,
) -> anyhow::Result<PathBuf> {
    let merger = merger()?;
    let raw = folder.join("raw");
    if raw.exists() {
        fs::remove_dir_all(&raw)?;
    }
    fs::create_dir_all(&raw)?;
    let start = compile(&format!("-C profile-generate={}", raw.display()))?;
    for arguments in RUNS {
        let mut run = start();
        // One thread: the counters of several would lose counts.
        run.arg("run").args(arguments).args(["--quiet", "--json", "--threads", "1", "--force"]);
        run.arg("--out").arg(folder.join("answer"));
        // A file for each process, since the addresses in them are random.
        run.env("LLVM_PROFILE_FILE", raw.join("%p.profraw"));
        // Of its messages, only those of a failure are of interest.
        let finished = run.output().context("cannot start the program with counters")?;
        let messages = String::from_utf8_lossy(&finished.stderr);
        ensure!(finished.status.success(), "{}: {messages}", arguments.join(" "));
    }
    let counts = folder.join("counts.profdata");
    let mut merge = program(&merger);
    merge.args(["merge", "--sparse", &format!("--function={CRATES}")]);
    merge.arg(format!("--no-function={HASH_TABLES}")).arg("--output").arg(&counts);
    process::run(merge.arg(&raw))?;
    Ok(counts)
}

/// The option with which the compiler uses these counts.
pub(crate) fn option(counts: &Path) -> String {
    format!("-C profile-use={}", counts.display())
}

/// The tool that merges counts, of the same version as the compiler.
fn merger() -> anyhow::Result<PathBuf> {
    let libraries = output(program("rustc").args(["--print", "target-libdir"]))?;
    let merger = Path::new(libraries.trim()).with_file_name("bin").join("llvm-profdata");
    ensure!(
        merger.is_file(),
        "llvm-profdata of the compiler is not installed: `rustup component add llvm-tools` \
         installs it; `--untrained` compiles without it"
    );
    Ok(merger)
}

#[cfg(test)]
mod tests {
    use super::RUNS;
    use crate::process::root;

    #[test]
    fn the_scenarios_of_all_runs_exist() {
        for arguments in RUNS {
            assert!(root().join(arguments[0]).is_file(), "{}", arguments[0]);
        }
    }
}
