//! The running program: its configuration file, which is read again after SIGHUP, and its
//! replacement by another version.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use gridhaul_scenario::RelayConfig;
use rustix::process::{Signal, getpid, kill_process};

use super::listening_sockets::SERVICE_MANAGER;
use super::report::report_faults;
use super::upgrade::UpgradeState;
use super::{Level, RunError, report};

/// Checks a configuration whose relative paths begin at a folder. Returns faults with which a relay
/// starts, although peers will refuse it.
pub type Validate = fn(&RelayConfig, &Path) -> Result<Vec<String>, RunError>;

/// The program of a relay as it was started.
#[derive(Debug, Clone)]
pub struct Program {
    /// The configuration file.
    pub file: PathBuf,
    /// Stop when standard input ends.
    pub until_input_ends: bool,
    /// The file of the program, which another version may replace in the file system.
    executable: PathBuf,
    validate: Validate,
}

impl Program {
    /// A relay with this configuration file, which `validate` checks whenever it is read.
    ///
    /// # Errors
    /// The kernel does not state which program this process runs.
    pub fn new(file: &Path, until_input_ends: bool, validate: Validate) -> io::Result<Self> {
        let executable = std::env::current_exe()?;
        Ok(Self { file: file.to_owned(), until_input_ends, executable, validate })
    }

    /// The folder at which relative paths of the configuration begin.
    pub(crate) fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    /// Reads the configuration again and checks it.
    pub(crate) fn read(&self) -> Result<RelayConfig, String> {
        let config = RelayConfig::load(&self.file).map_err(|error| error.to_string())?;
        let faults = (self.validate)(&config, self.folder()).map_err(|error| error.to_string())?;
        report_faults(&faults);
        Ok(config)
    }

    /// Stops this process as SIGTERM does when standard input ends, if this was asked for.
    pub(crate) fn observe_input(&self) {
        if !self.until_input_ends {
            return;
        }
        std::thread::spawn(|| {
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            let _ = kill_process(getpid(), Signal::TERM);
        });
    }

    /// Whether the program in the file system accepts the configuration. Otherwise the error is
    /// reported.
    pub(crate) fn can_be_replaced(&self) -> bool {
        let done = Command::new(&self.executable).arg("check").arg(&self.file).output();
        let reason = match done {
            Ok(output) if output.status.success() => return true,
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        let text = format!(
            "no upgrade: {} check {}: {reason}\nthe present program continues",
            self.executable.display(),
            self.file.display()
        );
        report(Level::Error, &text);
        false
    }

    /// Replaces this process by the program in the file system, which takes over the sockets. Its
    /// other files are closed, so that the lock of the log is free. Returns only if this fails.
    pub(crate) fn replace(&self, upgrade_state: &UpgradeState) -> RunError {
        let failed = |source| RunError::Upgrade { program: self.executable.clone(), source };
        // The file must stay open until the next program has started.
        let (_memory, variables) = match upgrade_state.prepare() {
            Ok(prepared) => prepared,
            Err(error) => return failed(error),
        };
        let mut command = Command::new(&self.executable);
        command.args(std::env::args_os().skip(1)).envs(variables);
        for name in SERVICE_MANAGER {
            command.env_remove(name);
        }
        failed(command.exec())
    }
}
