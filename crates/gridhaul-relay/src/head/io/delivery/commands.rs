//! Orders of the thread of the connections to a thread that delivers records.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::runtime::poll::Waker;

/// Sends orders, each of which wakes the delivering thread.
#[derive(Debug)]
pub(crate) struct OrderSender<T> {
    orders: Sender<T>,
    worker: Arc<Waker>,
}

impl<T> OrderSender<T> {
    /// The two ends of the orders to the thread that waits for this waker.
    pub(crate) fn to(worker: &Arc<Waker>) -> (Self, Receiver<T>) {
        let (orders, received) = channel();
        (Self { orders, worker: Arc::clone(worker) }, received)
    }

    pub(crate) fn send(&self, order: T) {
        // If the thread has ended, its failure is reported.
        let _ = self.orders.send(order);
        self.worker.wake();
    }
}
