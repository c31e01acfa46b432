//! Long work: in a thread without the lock of the interpreter, while the calling thread handles
//! signals and reports progress.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use gridhaul::{Error, Observer};
use gridhaul_scenario::answer::RecordingFile;
use gridhaul_scenario::backend::Progress;
use pyo3::prelude::*;

use crate::error;

/// Time between two checks for signals. Ctrl-C has to take effect within 100 ms.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// Checks for signals between two reports of progress.
const POLLS_PER_REPORT: u32 = 5;

/// Checks for which an interrupted worker is waited for. It ends within a few milliseconds,
/// except in the analytical model, which finishes its point; its result is then discarded.
const POLLS_AFTER_INTERRUPTION: u32 = 4;

/// The end of a task.
pub(crate) struct Ended<T> {
    /// The result; after an interruption `None` if nothing was finished.
    pub(crate) result: Option<T>,
    /// The exception that interrupted the task: that of a signal, or of the progress function.
    pub(crate) interrupted: Option<PyErr>,
    /// Notes about parts that were skipped, and estimates.
    pub(crate) notes: Vec<String>,
}

/// The end of a task as a tuple of Python: result, exception that interrupted it, and notes.
pub(crate) type Outcome<T> = (Option<T>, Option<Py<PyAny>>, Vec<String>);

impl<T> Ended<T> {
    /// The tuple that Python gets.
    pub(crate) fn into_python(self, py: Python<'_>) -> Outcome<T> {
        (self.result, self.interrupted.map(|error| exception_object(py, error)), self.notes)
    }
}

/// An exception as an object, to be returned with results instead of being raised.
pub(crate) fn exception_object(py: Python<'_>, error: PyErr) -> Py<PyAny> {
    error.into_value(py).into_any()
}

/// State that worker and caller share.
#[derive(Debug, Default)]
struct Shared {
    interrupted: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
    part: Mutex<String>,
    notes: Mutex<Vec<String>>,
    recordings: Mutex<Weak<RecordingFile>>,
}

/// The place of a result.
struct Slot<T> {
    result: Mutex<Option<Result<T, Box<dyn Any + Send>>>>,
    filled: Condvar,
}

/// Runs work in another thread. `progress`, if given, is called with the part of the work, and the
/// numbers of finished and of all items.
///
/// # Errors
/// The exception of the work's error or panic, unless it was interrupted.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&dyn Observer) -> Result<T, Error> + Send + 'static,
) -> PyResult<Ended<T>> {
    let shared = Arc::new(Shared::default());
    let slot = Arc::new(Slot { result: Mutex::new(None), filled: Condvar::new() });
    let (worker_slot, watcher) = (Arc::clone(&slot), Watcher(Arc::clone(&shared)));
    let worker = move || {
        let result = catch_unwind(AssertUnwindSafe(|| work(&watcher)));
        *lock(&worker_slot.result) = Some(result);
        worker_slot.filled.notify_all();
    };
    let started = thread::Builder::new().name("gridhaul".to_owned()).spawn(worker);
    // The thread is not joined: an interrupted one may end later than the call.
    drop(started.map_err(|error| error::machine(&error))?);
    let (result, interrupted) = wait(py, progress, &shared, &slot);
    let notes = std::mem::take(&mut *lock(&shared.notes));
    let result = match (result, &interrupted) {
        (None | Some(Ok(Err(Error::Interrupted(_)))), Some(_)) => None,
        (None, None) => None,
        (Some(Ok(Ok(result))), _) => Some(result),
        (Some(Ok(Err(error))), _) => return Err(error::exception(py, &error)),
        (Some(Err(payload)), _) => return Err(error::panicked(py, &*payload)),
    };
    Ok(Ended { result, interrupted, notes })
}

/// Panics with a text in a task, so that the tests of a wheel can check that its panics are
/// exceptions.
#[pyfunction]
pub(crate) fn panic_in_task(py: Python<'_>, text: String) -> PyResult<()> {
    run::<()>(py, None, move |_| panic!("{text}")).map(drop)
}

type Finished<T> = Result<Result<T, Error>, Box<dyn Any + Send>>;

fn wait<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    shared: &Shared,
    slot: &Slot<Result<T, Error>>,
) -> (Option<Finished<T>>, Option<PyErr>) {
    let mut interrupted = None;
    let (mut polls, mut polls_left) = (0_u32, POLLS_AFTER_INTERRUPTION);
    loop {
        if let Some(result) = py.detach(|| slot.wait(POLL)) {
            return (Some(result), interrupted);
        }
        if interrupted.is_some() {
            polls_left -= 1;
            if polls_left == 0 {
                return (None, interrupted);
            }
            continue;
        }
        polls += 1;
        let checked = py.check_signals().and_then(|()| match progress {
            Some(progress) if polls.is_multiple_of(POLLS_PER_REPORT) => {
                progress.call1(shared.progress()).map(drop)
            }
            _ => Ok(()),
        });
        if let Err(error) = checked {
            shared.interrupted.store(true, Ordering::Relaxed);
            interrupted = Some(error);
        }
    }
}

impl<T> Slot<T> {
    /// Waits for the result, at most this long.
    fn wait(&self, at_most: Duration) -> Option<Result<T, Box<dyn Any + Send>>> {
        let result = lock(&self.result);
        let waited = self.filled.wait_timeout_while(result, at_most, |result| result.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.take()
    }
}

impl Shared {
    /// The part of the work, and the numbers of finished and of all items.
    fn progress(&self) -> (String, u64, u64) {
        let part = lock(&self.part).clone();
        (part, self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }
}

/// Observes the work.
struct Watcher(Arc<Shared>);

impl Observer for Watcher {
    fn begin(&self, part: &str) -> Box<dyn Progress> {
        part.clone_into(&mut lock(&self.0.part));
        Box::new(PartProgress(Arc::clone(&self.0)))
    }

    fn on_note(&self, note: &str) {
        lock(&self.0.notes).push(note.to_owned());
    }
}

/// Observes a part of the work.
struct PartProgress(Arc<Shared>);

impl Progress for PartProgress {
    fn advance(&self, done: u64, total: u64) {
        self.0.done.store(done, Ordering::Relaxed);
        self.0.total.store(total, Ordering::Relaxed);
    }

    fn is_interrupted(&self) -> bool {
        self.0.interrupted.load(Ordering::Relaxed)
    }

    fn recording_file(&self) -> io::Result<Option<Arc<RecordingFile>>> {
        let mut shared = lock(&self.0.recordings);
        if let Some(file) = shared.upgrade() {
            return Ok(Some(file));
        }
        let file = Arc::new(RecordingFile::new(tempfile::tempfile()?));
        *shared = Arc::downgrade(&file);
        Ok(Some(file))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
