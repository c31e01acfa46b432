//! Child processes that do not outlive this program.

#![expect(unsafe_code, reason = "code between fork and exec")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// Makes the kernel kill the process of `command` when the thread that starts the process ends, in
/// whatever way (`PR_SET_PDEATHSIG` of prctl(2)).
///
/// A program that changes its user or group, or that has the set-user-ID bit, loses the setting.
/// The thread, and not the program, is the parent: a process that is started by a short-lived
/// thread is killed with the thread.
pub fn kill_with_parent_thread(command: &mut Command) -> &mut Command {
    let parent = Pid::from_raw(std::process::id().cast_signed());
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // A parent that has ended before this call sends no signal.
        if getppid() == parent { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    };
    // SAFETY: between fork and exec, `prepare` makes two system calls and neither allocates nor
    // takes a lock.
    unsafe { command.pre_exec(prepare) }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::Stdio;
    use std::thread;

    use super::*;

    #[test]
    fn a_process_ends_with_the_thread_that_started_it() {
        let started = thread::spawn(|| {
            let mut command = Command::new("sleep");
            command.arg("1000").stdout(Stdio::piped());
            kill_with_parent_thread(&mut command).spawn().unwrap()
        });
        let mut child = started.join().unwrap();
        // The pipe closes when the process has ended; the signal is the one that it was sent.
        let mut output = String::new();
        child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    }
}
