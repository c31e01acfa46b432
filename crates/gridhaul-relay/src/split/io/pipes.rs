//! Pipes for bulk data, which the kernel moves between sockets without copies (splice(2)).

use std::os::fd::OwnedFd;

use gridhaul_linux::Error;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// A pipe that is empty whenever it is in the pool.
#[derive(Debug)]
pub(super) struct Pipe {
    pub read: OwnedFd,
    pub write: OwnedFd,
}

/// A bounded number of pipes.
#[derive(Debug)]
pub(super) struct PipePool {
    free: Vec<Pipe>,
    /// Pipes that exist, in the pool or in use.
    count: u32,
    count_max: u32,
    size: usize,
}

impl PipePool {
    pub(super) const fn new(count_max: u32, size: usize) -> Self {
        Self { free: Vec::new(), count: 0, count_max, size }
    }

    pub(super) const fn in_use(&self) -> usize {
        self.count as usize - self.free.len()
    }

    pub(super) const fn count_max(&self) -> u32 {
        self.count_max
    }

    /// Largest number of bytes that a pipe is asked to hold.
    pub(super) const fn size(&self) -> usize {
        self.size
    }

    /// An empty pipe; `None` if all are in use, or files are exhausted: then data is copied.
    pub(super) fn take(&mut self) -> Option<Pipe> {
        if let Some(pipe) = self.free.pop() {
            return Some(pipe);
        }
        if self.count >= self.count_max {
            return None;
        }
        let pipe = open(self.size).ok()?;
        self.count += 1;
        Some(pipe)
    }

    /// Returns a pipe, whose content is lost unless it is empty.
    pub(super) fn put(&mut self, pipe: Pipe, is_empty: bool) {
        if is_empty {
            self.free.push(pipe);
        } else {
            self.count -= 1;
        }
    }
}

fn open(size: usize) -> Result<Pipe, Error> {
    let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
    let (read, write) = pipe_with(flags).map_err(Error::call("opening a pipe"))?;
    // A user has a limit of memory for pipes (pipe(7)): with a smaller one, more calls move the
    // same data.
    let _ = fcntl_setpipe_size(&write, size);
    Ok(Pipe { read, write })
}
