//! A relay daemon as a child process.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use gridhaul_linux::Namespace;
use gridhaul_scenario::units::Duration;

use crate::error::EmulationError;

/// Nice value of the daemons (setpriority(2)).
const HIGHEST_PRIORITY: i32 = -20;

/// Name of the program.
const PROGRAM: &str = "gridhaul-relay";

/// A running daemon. Dropping this value kills it.
#[derive(Debug)]
pub(super) struct RelayProcess {
    name: String,
    child: Child,
    stderr: Option<BufReader<ChildStderr>>,
    /// Messages of the daemon.
    messages: Arc<Mutex<String>>,
}

/// The program in the folder of this one, or in `PATH`. Test programs are in its subfolder `deps`.
///
/// # Errors
/// The program is not installed.
pub(super) fn program() -> Result<PathBuf, EmulationError> {
    let own = env::current_exe().ok();
    let folder = own.as_deref().and_then(Path::parent);
    let folder = match folder {
        Some(deps) if deps.ends_with("deps") => deps.parent(),
        other => other,
    };
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = folder.map(Path::to_owned).into_iter().chain(env::split_paths(&path));
    let found = folders.map(|folder| folder.join(PROGRAM)).find(|path| path.is_file());
    let profile = folder.and_then(Path::file_name).and_then(|name| name.to_str());
    found.ok_or_else(|| EmulationError::RelayMissing {
        build: match profile {
            Some("debug") => format!("cargo build -p {PROGRAM}"),
            Some("release") => format!("cargo build --release -p {PROGRAM}"),
            _ => format!("cargo install --path crates/{PROGRAM}"),
        },
    })
}

impl RelayProcess {
    /// Starts the daemon of a configuration in a namespace.
    pub(super) fn start(
        program: &Path,
        file: &Path,
        namespace: &Namespace,
        name: String,
    ) -> Result<Self, EmulationError> {
        let failed = || EmulationError::call(format!("starting {}", program.display()));
        // A child process belongs to the namespace of the thread that starts it, and has its
        // priority: other programs must not delay the daemons. Without the permission, the priority
        // stays.
        let spawn = || {
            let _ = rustix::process::setpriority_process(None, HIGHEST_PRIORITY);
            Command::new(program)
                .args(["run".as_ref(), "--until-input-ends".as_ref(), file.as_os_str()])
                // The pipe ends with this process, even if it is killed.
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
        };
        let mut child = namespace.enter(spawn)?.map_err(failed())?;
        let stderr = child.stderr.take().map(BufReader::new);
        Ok(Self { name, child, stderr, messages: Arc::default() })
    }

    /// Waits until the daemon accepts connections.
    pub(super) fn await_ready(&mut self) -> Result<(), EmulationError> {
        let Some(mut stderr) = self.stderr.take() else { return Ok(()) };
        let mut text = String::new();
        loop {
            let start = text.len();
            match stderr.read_line(&mut text) {
                Ok(0) => return Err(self.ended(text)),
                Ok(_) if text[start..].contains("is ready") => break,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.ended(error.to_string())),
            }
        }
        let messages = Arc::clone(&self.messages);
        // The pipe must not fill.
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut messages = messages.lock().unwrap_or_else(PoisonError::into_inner);
                if messages.len() < MESSAGES_MAX {
                    *messages += &line;
                    messages.push('\n');
                }
            }
        });
        Ok(())
    }

    /// Fails if the daemon has ended.
    pub(super) fn check(&mut self) -> Result<(), EmulationError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            _ => {
                let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
                Err(self.ended(messages.clone()))
            }
        }
    }

    /// Mean time for which the thread of the daemon's connections has waited for a processor when
    /// it could run (`/proc/<pid>/schedstat`: nanoseconds on a processor and waiting, number of
    /// turns).
    pub(super) fn mean_wait(&self) -> Option<Duration> {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.child.id())).ok()?;
        let mut numbers = text.split_whitespace().map(|number| number.parse::<u64>().ok());
        let (_, waited, turns) = (numbers.next()??, numbers.next()??, numbers.next()??);
        Some(Duration::from_nanos(waited / turns.max(1)))
    }

    /// Kills the daemon, unless it has ended.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn ended(&self, messages: String) -> EmulationError {
        EmulationError::RelayEnded { name: self.name.clone(), messages }
    }
}

/// Bytes of messages of a daemon that are kept.
const MESSAGES_MAX: usize = 4_096;

impl Drop for RelayProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
