//! Instructions of the simulator for a unit of work, counted by callgrind. Unlike times, they do
//! not depend on the load of the machine.
//!
//! Each count is the difference of a long and a short run of the same program, divided by the
//! difference of the work in their answers, which eliminates start-up.

use std::fs;
use std::path::Path;
use std::thread;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::process::{output, program, root, target};

/// Work of the simulator whose instructions are counted.
pub(crate) struct Workload {
    pub name: &'static str,
    /// The scenario file, in `bench`, and keys that differ from it.
    scenario: &'static str,
    settings: &'static [&'static str],
    unit: Unit,
    /// Simulated seconds of the short and of the long run.
    seconds: [u32; 2],
}

/// The unit of work, with its metric in the answer.
#[derive(Debug, Clone, Copy)]
enum Unit {
    /// A data packet and its acknowledgement.
    Packet,
    /// A message of a meter.
    Message,
}

/// One bulk flow with loss.
pub(crate) const BULK: Workload = Workload {
    name: "bulk",
    scenario: "sim/bulk.toml",
    settings: &[],
    unit: Unit::Packet,
    seconds: [100, 400],
};

/// 1,000 flows whose windows are small and whose losses end in timeouts.
pub(crate) const FLOWS: Workload = Workload {
    name: "flows",
    scenario: "sim/flows.toml",
    settings: &[],
    unit: Unit::Packet,
    seconds: [4, 8],
};

/// As [`BULK`], with the rules of Linux.
pub(crate) const CUBIC: Workload = Workload {
    name: "cubic",
    scenario: "sim/bulk.toml",
    settings: &["stack.peer.profile=linux", "stack.peer.congestion_control=cubic"],
    unit: Unit::Packet,
    seconds: [100, 400],
};

/// 5,000 meters on a link that suffices.
pub(crate) const METERS: Workload = Workload {
    name: "meters",
    scenario: "meters/meters.toml",
    settings: &["flow.reading.count=5000", "link.way.both.rate=20 Mbit/s"],
    unit: Unit::Message,
    seconds: [90, 180],
};

pub(crate) const WORKLOADS: [&Workload; 4] = [&BULK, &FLOWS, &CUBIC, &METERS];

impl Unit {
    const fn metric(self) -> &'static str {
        match self {
            Self::Packet => "segments_sent_count",
            Self::Message => "messages_count",
        }
    }
}

/// Total of a run.
struct Run {
    instructions: f64,
    /// Units of work.
    work: f64,
}

impl Workload {
    /// Instructions of `gridhaul`, an executable, for a unit of work.
    ///
    /// # Errors
    /// A run fails, or its answer lacks the work.
    pub(crate) fn count(&self, gridhaul: &Path) -> anyhow::Result<f64> {
        let [short, long] = thread::scope(|scope| {
            let runs = self.seconds.map(|seconds| scope.spawn(move || self.run(gridhaul, seconds)));
            runs.map(|run| run.join().expect("a run does not panic"))
        });
        let (short, long) = (short?, long?);
        ensure!(long.work > short.work, "{}: the long run does no more work", self.name);
        Ok((long.instructions - short.instructions) / (long.work - short.work))
    }

    /// A run under callgrind, in one thread.
    fn run(&self, gridhaul: &Path, seconds: u32) -> anyhow::Result<Run> {
        let folder = target().join(format!("instructions/{}-{seconds}", self.name));
        fs::create_dir_all(&folder)?;
        let profile = folder.join("callgrind");
        let mut command = program("valgrind");
        command.args(["--quiet", "--tool=callgrind"]);
        command.arg(format!("--callgrind-out-file={}", profile.display()));
        command.arg(gridhaul).arg("run").arg(root().join("bench").join(self.scenario));
        command.args(["--set", &format!("duration={seconds} s")]);
        command.args(self.settings.iter().flat_map(|setting| ["--set", setting]));
        // The folder has the answer of an earlier count.
        command.args(["--json", "--quiet", "--threads", "1", "--force", "--out"]);
        command.arg(folder.join("answer"));
        let printed = output(&mut command)?;
        let answer: Value = serde_json::from_str(&printed).context("the answer is not JSON")?;
        let metric = self.unit.metric();
        let work = answer["points"][0]["flows"][0]["metrics"][metric]["mean"].as_f64();
        let work = work.with_context(|| format!("no {metric} in the answer"))?;
        let profile = fs::read_to_string(&profile).context("callgrind wrote no profile")?;
        Ok(Run { instructions: total(&profile)?, work })
    }
}

/// The number of instructions in a profile of callgrind.
fn total(profile: &str) -> anyhow::Result<f64> {
    let lines = ["totals: ", "summary: "];
    let total = profile.lines().find_map(|line| lines.iter().find_map(|n| line.strip_prefix(n)));
    Ok(total.context("the profile of callgrind has no total")?.trim().parse()?)
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn the_total_of_a_profile_is_read() {
        assert_eq!(total("events: Ir\nfn=(1)\n0 5\ntotals: 12345\n").ok(), Some(12_345.0));
        assert!(total("events: Ir\n").is_err());
    }
}
