//! Resolution of host names, in a thread: getaddrinfo(3) blocks for seconds if a name server does
//! not answer.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use crate::runtime::poll::Waker;

/// A resolution in progress.
#[derive(Debug)]
pub(crate) struct Resolution(Receiver<Result<SocketAddr, String>>);

impl Resolution {
    /// Resolves `host:port`.
    pub(crate) fn start(target: &str, waker: Arc<Waker>) -> Self {
        let (answer, result) = channel();
        let target = target.to_owned();
        thread::spawn(move || {
            let found = match target.to_socket_addrs() {
                Ok(mut addresses) => {
                    addresses.next().ok_or_else(|| format!("{target} has no address"))
                }
                Err(error) => Err(format!("cannot resolve {target}: {error}")),
            };
            let _ = answer.send(found);
            waker.wake();
        });
        Self(result)
    }

    /// The result, once there is one.
    pub(crate) fn poll(&self) -> Option<Result<SocketAddr, String>> {
        match self.0.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err("the resolution has failed".to_owned())),
        }
    }
}
