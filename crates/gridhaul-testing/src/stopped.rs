//! Processes that a test suspends.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Longest time until a process is suspended.
const LIMIT: Duration = Duration::from_secs(30);

/// Waits until all threads of a process are suspended after SIGSTOP. One thread takes the signal
/// and suspends the others when a processor is free for it: on a busy machine, these can work for
/// some time after kill(2) has returned.
///
/// # Panics
/// The process is not suspended.
#[expect(clippy::disallowed_methods, reason = "waits for the kernel in real time")]
pub fn wait_until_stopped(process: u32) {
    let begun = Instant::now();
    while !is_stopped(process) {
        assert!(begun.elapsed() < LIMIT, "process {process} is not suspended");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Whether all threads of a process are suspended (`State` of proc_pid_status(5)).
fn is_stopped(process: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return false };
    let mut statuses =
        threads.flatten().map(|thread| fs::read_to_string(thread.path().join("status")));
    statuses.all(|status| status.is_ok_and(|status| status.contains("\nState:\tT")))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_suspended_after_the_signal_only() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let process = child.id();
        assert!(!is_stopped(process));
        let signal = Command::new("kill").args(["-STOP", &process.to_string()]).status();
        assert!(signal.unwrap().success());
        wait_until_stopped(process);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_stopped(process), "it has ended");
    }
}
