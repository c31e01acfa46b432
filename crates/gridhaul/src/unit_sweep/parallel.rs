//! Work on a range of numbers that threads share.

use std::ops::Range;
use std::thread;

/// The results of `work` for contiguous parts of a range, in their order: one part for each thread.
///
/// # Errors
/// The first failure, in the order of the range.
pub(super) fn in_parallel<T: Send>(
    range: Range<u64>,
    threads: usize,
    work: impl Fn(Range<u64>) -> anyhow::Result<Vec<T>> + Sync,
) -> anyhow::Result<Vec<T>> {
    let length = (range.end - range.start).div_ceil(threads.max(1) as u64).max(1);
    let starts = (range.start..range.end).step_by(length as usize);
    let parts: Vec<Range<u64>> = starts.map(|start| start..range.end.min(start + length)).collect();
    if let [only] = &parts[..] {
        return work(only.clone());
    }
    let work = &work;
    let results = thread::scope(|scope| {
        let start = |part| scope.spawn(move || work(part));
        let workers: Vec<_> = parts.into_iter().map(start).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, anyhow::Result<Vec<T>>>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().map(join).collect::<Vec<_>>()
    });
    let results: Vec<Vec<T>> = results.into_iter().collect::<anyhow::Result<_>>()?;
    Ok(results.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_does_not_depend_on_the_number_of_threads() {
        for (range, threads) in [(0..0, 2), (3..4, 8), (0..10, 1), (5..105, 3), (0..7, 7)] {
            let results = in_parallel(range.clone(), threads, |part| Ok(part.collect())).unwrap();
            assert_eq!(results, range.collect::<Vec<u64>>());
        }
    }

    #[test]
    fn the_first_failure_is_reported() {
        let fail = |part: Range<u64>| -> anyhow::Result<Vec<u64>> {
            anyhow::ensure!(part.start < 4, "{}", part.start);
            Ok(part.collect())
        };
        assert_eq!(in_parallel(0..12, 6, fail).unwrap_err().to_string(), "4");
    }
}
