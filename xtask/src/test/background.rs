//! Steps that run in the background at low priority. They use the processor time that other steps leave idle:
//! real-time tests mostly sleep, and linking uses one core.

use std::env;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use anyhow::{Context, ensure};

use crate::process::{program, target};

/// A process that runs steps in the background and writes to a log.
pub(super) struct Background {
    process: Child,
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
        command.args(["-n", "10"]).arg(env::current_exe()?).arg("test").args(steps);
        command.stdout(output.try_clone()?).stderr(Stdio::from(output));
        let process = command.spawn().context("cannot start the background steps")?;
        println!("\n== in the background: {} (log: {})", steps.join(", "), log.display());
        Ok(Self { process, log })
    }

    /// Waits for the end of the steps and prints their output.
    ///
    /// # Errors
    /// A step failed.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        let status = self.process.wait()?;
        println!("\n== output of the background steps\n{}", fs::read_to_string(&self.log)?);
        ensure!(status.success(), "a background step failed; see its output above");
        Ok(())
    }
}

impl Drop for Background {
    /// Ends the steps if another step has failed.
    fn drop(&mut self) {
        // After `finish`, the process has ended already and there is nothing to do.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
