//! How much the machine itself delays a test: by other work on its processors and its disk.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Interval of observations.
const INTERVAL: Duration = Duration::from_millis(10);

/// Observes delays in a thread until it is dropped.
pub(crate) struct Machine {
    delays: Arc<Mutex<Vec<(Instant, Duration)>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Machine {
    /// Synchronises `file` about 70 times per second; a sleep or a synchronisation that takes long
    /// is a delay.
    pub(crate) fn observe(mut file: File) -> Self {
        let delays: Arc<Mutex<Vec<(Instant, Duration)>>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let (notes, end) = (Arc::clone(&delays), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                let begun = Instant::now();
                thread::sleep(INTERVAL);
                file.write_all(b"0").unwrap();
                file.sync_data().unwrap();
                let done = Instant::now();
                notes.lock().unwrap().push((done, (done - begun).saturating_sub(INTERVAL)));
            }
        });
        Self { delays, stop, thread: Some(thread) }
    }

    /// The longest delay of a sleep and a synchronisation since a time.
    pub(crate) fn delay_since(&self, time: Instant) -> Duration {
        let mut delays = self.delays.lock().unwrap();
        delays.retain(|(done, delay)| *done + *delay >= time);
        // An observation that has not ended is a delay as well.
        let last = delays.last().map_or(time, |(done, _)| *done);
        let present = last.elapsed().saturating_sub(INTERVAL);
        delays.iter().map(|(_, delay)| *delay).max().unwrap_or_default().max(present)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}
