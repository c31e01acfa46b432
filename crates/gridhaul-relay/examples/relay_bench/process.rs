//! Resources of a process, from `/proc`.

use std::fs;
use std::path::{Path, PathBuf};

/// CPU time of all threads in seconds, with the resolution of the scheduler.
pub(crate) fn cpu_s(process: u32) -> f64 {
    threads(process).filter_map(|thread| thread_cpu_s(&thread)).sum()
}

/// How often threads have continued after they had waited.
pub(crate) fn wake_ups(process: u32) -> u64 {
    threads(process).filter_map(|thread| thread_wake_ups(&thread)).sum()
}

/// CPU time in seconds and wake-ups of the calling thread.
pub(crate) fn used_by_this_thread() -> (f64, u64) {
    let thread = Path::new("/proc/thread-self");
    (thread_cpu_s(thread).unwrap(), thread_wake_ups(thread).unwrap())
}

/// Memory in user space: the proportional set size in bytes (proc(5)).
pub(crate) fn pss_byte(process: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<f64>().unwrap() * 1_024.0
}

/// The process and the processes that it has started.
pub(crate) fn with_children(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = fs::read_to_string(path).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    std::iter::once(process).chain(children).collect()
}

/// Folders of the threads.
fn threads(process: u32) -> impl Iterator<Item = PathBuf> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    threads.filter_map(|thread| Some(thread.ok()?.path()))
}

/// `None` if the thread has ended.
fn thread_cpu_s(thread: &Path) -> Option<f64> {
    let text = fs::read_to_string(thread.join("schedstat")).ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

/// `None` if the thread has ended.
fn thread_wake_ups(thread: &Path) -> Option<u64> {
    let text = fs::read_to_string(thread.join("status")).ok()?;
    let count = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    count.trim().parse().ok()
}
