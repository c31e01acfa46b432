//! Steps that run in the background at low priority. They use the processor time that other steps
//! leave idle: real-time tests mostly sleep, and linking uses one core.

use std::env;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio, exit};

use anyhow::{Context, ensure};

use crate::process::{program, target};

/// A process that runs steps in the background and writes to a log.
pub(super) struct Background {
    group: ProcessGroup,
    log: PathBuf,
}

impl Background {
    /// Starts `cargo xtask test STEPS` at low priority.
    ///
    /// # Errors
    /// The process or its log cannot be created.
    pub(super) fn start(steps: &[&str]) -> anyhow::Result<Self> {
        fs::create_dir_all(target())?;
        let log = target().join("background-steps.log");
        let output = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        let mut command = program("nice");
        // Lower priorities starve during processes that always compute.
        command.args(["-n", "5"]).arg(env::current_exe()?).arg("test").args(steps);
        command.stdout(output.try_clone()?).stderr(Stdio::from(output));
        let group = ProcessGroup::spawn(&mut command)?;
        // Ctrl-C on the terminal does not reach another process group.
        let id = group.id();
        ctrlc::set_handler(move || {
            kill(id);
            exit(130)
        })?;
        println!("\n== in the background: {} (log: {})", steps.join(", "), log.display());
        Ok(Self { group, log })
    }

    /// Waits for the end of the steps, at normal priority, and prints their output.
    ///
    /// # Errors
    /// A step failed.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        // Only root may raise a priority; without it, the steps take longer on a busy machine.
        let group = self.group.id().to_string();
        let mut renice = program("renice");
        let _ = renice
            .args(["-n", "0", "-g", &group])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let status = self.group.leader.wait()?;
        println!("\n== output of the background steps\n{}", fs::read_to_string(&self.log)?);
        ensure!(status.success(), "a background step failed; see its output above");
        Ok(())
    }
}

/// A process and all its descendants, which end together when this value is dropped: a step starts
/// cargo, which starts compilers and tests.
struct ProcessGroup {
    leader: Child,
}

impl ProcessGroup {
    fn spawn(command: &mut Command) -> anyhow::Result<Self> {
        let leader = command.process_group(0).spawn().context("cannot start in the background")?;
        Ok(Self { leader })
    }

    /// The number of the group, which is that of its first process.
    fn id(&self) -> u32 {
        self.leader.id()
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // A group whose first process was waited for has ended, and its number may be in use again.
        if matches!(self.leader.try_wait(), Ok(None)) {
            kill(self.id());
            let _ = self.leader.wait();
        }
    }
}

/// Ends all processes of a group.
fn kill(group: u32) {
    let mut kill = program("kill");
    let _ = kill.args(["-KILL", "--", &format!("-{group}")]).status();
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    /// Whether a process runs; a terminated one may wait for its parent to notice.
    fn runs(process: &str) -> bool {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        !status.is_empty() && !status.contains("State:\tZ")
    }

    /// Waits up to 10 s for a condition.
    #[expect(clippy::disallowed_methods, reason = "waits for processes of the test")]
    fn eventually(condition: impl Fn() -> bool) -> bool {
        (0..1_000).any(|_| {
            condition() || {
                sleep(Duration::from_millis(10));
                false
            }
        })
    }

    #[test]
    fn processes_of_background_steps_end_with_them() {
        let file = env::temp_dir().join(format!("xtask-descendant-{}", std::process::id()));
        let mut command = program("sh");
        command.args(["-c", "sleep 600 & echo $! > \"$0\"; wait"]).arg(&file);
        let group = ProcessGroup::spawn(&mut command).unwrap();
        let descendant = || fs::read_to_string(&file).unwrap_or_default().trim().to_owned();
        assert!(eventually(|| !descendant().is_empty() && runs(&descendant())));
        drop(group);
        assert!(eventually(|| !runs(&descendant())), "process {} still runs", descendant());
        fs::remove_file(&file).unwrap();
    }
}
