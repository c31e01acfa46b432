//! Commands of the thread of the connections to a thread that delivers records.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::runtime::poll::Waker;

/// Sends commands, each of which wakes the delivering thread.
#[derive(Debug)]
pub(crate) struct CommandSender<T> {
    commands: Sender<T>,
    worker: Arc<Waker>,
}

impl<T> CommandSender<T> {
    /// The two ends of the commands to the thread that waits for this waker.
    pub(crate) fn to(worker: &Arc<Waker>) -> (Self, Receiver<T>) {
        let (commands, received) = channel();
        (Self { commands, worker: Arc::clone(worker) }, received)
    }

    pub(crate) fn send(&self, command: T) {
        // If the thread has ended, its failure is reported.
        let _ = self.commands.send(command);
        self.worker.wake();
    }
}
