//! Namespaces in which relays run: with small or read-only file systems, or with another monotonic
//! clock.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::relays::Relays;

/// A namespace, which exists as long as this value.
pub(crate) struct Holder {
    process: Child,
    /// Number of the process inside the namespace.
    inside: u32,
}

/// Runs `script` in the folder of the relays, in a new mount namespace, and lets the relays run
/// there. `None`: this machine does not permit it.
pub(crate) fn mounts(relays: &mut Relays, script: &str) -> Option<Holder> {
    let holder = Holder::start(relays, &["--mount", "--propagation", "private"], script)?;
    let namespace = format!("--mount=/proc/{}/ns/mnt", holder.inside);
    // The folder must be entered again: a process takes its working directory along from the other
    // namespace.
    let folder = relays.path("").display().to_string();
    let words = ["nsenter", &namespace, "--", "sh", "-c", "cd \"$0\" && exec \"$@\"", &folder];
    relays.wrapper = words.map(str::to_owned).to_vec();
    Some(holder)
}

/// Lets relays run with a monotonic clock that is ahead by some seconds.
pub(crate) fn clock_ahead(relays: &mut Relays, seconds: u64) -> Option<Holder> {
    let offset = seconds.to_string();
    let options = ["--time", "--monotonic", &offset, "--fork", "--kill-child"];
    let holder = Holder::start(relays, &options, "true")?;
    let namespace = format!("--time=/proc/{}/ns/time", holder.inside);
    relays.wrapper = ["nsenter", &namespace, "--"].map(str::to_owned).to_vec();
    Some(holder)
}

impl Holder {
    fn start(relays: &Relays, options: &[&str], script: &str) -> Option<Self> {
        let script = format!("{script} && echo $$ && exec sleep 1000");
        let mut command = Command::new("unshare");
        command.args(options).args(["sh", "-c", &script]).current_dir(relays.path(""));
        let mut process = command.stdout(Stdio::piped()).spawn().ok()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take()?).read_line(&mut line).ok()?;
        let Ok(inside) = line.trim().parse() else {
            let _ = process.wait();
            let _ = gridhaul_testing::has_tool(false, &format!("the right to unshare {options:?}"));
            return None;
        };
        Some(Self { process, inside })
    }

    /// A path as it is seen inside the namespace.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.inside));
        root.join(path.strip_prefix("/").unwrap())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // The process inside ends with its parent, or is the same.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
