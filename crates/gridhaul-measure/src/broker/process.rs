//! A child process that ends with this program.

use std::fs::OpenOptions;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time;

use gridhaul_linux::kill_with_parent_thread;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Pid, Signal, getpriority_process, kill_process, setpriority_process};

use super::BrokerError;
use crate::place::Site;

/// Time for an orderly end.
const END_WITHIN: time::Duration = time::Duration::from_secs(10);

/// Highest priority of ordinary threads (sched(7)). Other programs of this machine then delay the
/// process hardly, as they do the threads of a measurement, which have real-time priority.
const NICE: i32 = -20;

/// A process at an end of the network, which is stopped when this value is dropped, and killed if
/// this program is killed.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// The thread that started the process waits until this end is dropped: the kernel kills the
    /// process with the thread.
    release: Option<SyncSender<()>>,
    keeper: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts a command at an end of the network. Its output is appended to the file `log`.
    pub(super) fn spawn(
        site: &Site<'_>,
        mut command: Command,
        log: &Path,
    ) -> Result<Self, BrokerError> {
        let output = OpenOptions::new().create(true).append(true).open(log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let (release, released) = sync_channel::<()>(0);
        let (started, child) = sync_channel(1);
        // The thread belongs to the namespace in which it is started, and the process to that of
        // the thread.
        let keeper = site.enter(move || {
            thread::spawn(move || {
                let _ = started.send(kill_with_parent_thread(&mut command).spawn());
                let _ = released.recv();
            })
        })?;
        let child = child.recv().map_err(io::Error::other)??;
        // Without the permission, the process keeps the priority of this one. Its threads inherit
        // the priority.
        let _ = setpriority_process(Some(Pid::from_child(&child)), NICE);
        Ok(Self { child, release: Some(release), keeper: Some(keeper) })
    }

    /// Nice value; `None` if the process has ended.
    pub(super) fn nice(&self) -> Option<i32> {
        getpriority_process(Some(Pid::from_child(&self.child))).ok()
    }

    /// Time for which the threads of the process were ready and waited for a processor so far
    /// (second field of `/proc/PID/task/TID/schedstat`, sched-stats.rst); `None` if the kernel does
    /// not count it.
    pub(super) fn waited(&self) -> Option<time::Duration> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.id())).ok()?;
        let waited = tasks.map(|task| {
            let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            text.split_whitespace().nth(1)?.parse::<u64>().ok()
        });
        // A thread that ends meanwhile is not counted.
        let nanos = waited.flatten().reduce(|sum, nanos| sum + nanos)?;
        Some(time::Duration::from_nanos(nanos))
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends the process without its cooperation, as a crash does.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Waits until the process accepts connections; `false` if it ends before, or does not within
    /// this time.
    #[expect(clippy::disallowed_methods, reason = "a process is waited for in real time")]
    pub(super) fn accepts_connections(
        &mut self,
        site: &Site<'_>,
        address: SocketAddr,
        within: time::Duration,
    ) -> Result<bool, BrokerError> {
        let begin = time::Instant::now();
        while begin.elapsed() < within && self.child.try_wait()?.is_none() {
            if site.enter(|| TcpStream::connect(address).is_ok())? {
                return Ok(true);
            }
            thread::sleep(time::Duration::from_millis(5));
        }
        Ok(false)
    }

    /// Asks the process to end, and kills it if it does not.
    #[expect(clippy::disallowed_methods, reason = "a process is waited for in real time")]
    fn stop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let begin = time::Instant::now();
        while begin.elapsed() < END_WITHIN {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(time::Duration::from_millis(5));
        }
        let _ = self.kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
        self.release = None;
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

/// Ports that no socket of this end uses now.
pub(super) fn free_ports<const N: usize>(site: &Site<'_>) -> Result<[u16; N], BrokerError> {
    let address = SocketAddr::new(site.address, 0);
    let open = || -> io::Result<[u16; N]> {
        let mut ports = [0; N];
        let mut listeners = Vec::new();
        for port in &mut ports {
            let listener = TcpListener::bind(address)?;
            *port = listener.local_addr()?.port();
            listeners.push(listener);
        }
        // A program that another thread starts meanwhile has their file descriptors until it
        // begins, and would keep them open.
        for listener in &listeners {
            shutdown(listener, Shutdown::Both)?;
        }
        Ok(ports)
    };
    Ok(site.enter(open)??)
}
