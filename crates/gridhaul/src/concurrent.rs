//! Two tasks at the same time.

use std::{panic, thread};

/// The results of two tasks, of which the first runs in another thread, unless the user permits one
/// thread only (`threads`; 0: one for each core).
pub(crate) fn both<A: Send, B>(
    threads: usize,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B,
) -> (A, B) {
    if threads == 1 {
        return (first(), second());
    }
    thread::scope(|scope| {
        let other = scope.spawn(first);
        let second = second();
        (other.join().unwrap_or_else(|payload| panic::resume_unwind(payload)), second)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_task_runs_in_another_thread_if_there_may_be_several() {
        for threads in [0, 1, 2] {
            let (first, second) = both(threads, thread::current, thread::current);
            assert_eq!(second.id(), thread::current().id());
            assert_eq!(first.id() == second.id(), threads == 1, "{threads}");
        }
    }
}
