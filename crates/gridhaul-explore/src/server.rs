//! The server: a thread for each request, and a limited number of them at the same time.

use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::explorer::Explorer;
use crate::http::{Request, Response};

/// Requests that are answered at the same time. Others are closed.
const REQUESTS_MAX: usize = 32;

/// Longest pause of a client during a request or a response.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Answers requests until the process ends.
///
/// # Errors
/// The socket accepts no connection.
pub fn serve(listener: &TcpListener, explorer: Explorer) -> io::Result<()> {
    let (explorer, open) = (Arc::new(explorer), Arc::new(AtomicUsize::new(0)));
    loop {
        let socket = match listener.accept() {
            Ok((socket, _)) => socket,
            // The client has closed the connection before it was accepted (accept(2)).
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let Some(place) = Place::take(&open) else { continue };
        let explorer = Arc::clone(&explorer);
        thread::spawn(move || {
            // The client may have closed the connection.
            let _ = exchange(socket, &explorer);
            drop(place);
        });
    }
}

/// One of the requests in progress, also if its thread panics.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(open: &Arc<AtomicUsize>) -> Option<Self> {
        let place = Self(Arc::clone(open));
        (open.fetch_add(1, Ordering::AcqRel) < REQUESTS_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn exchange(mut socket: TcpStream, explorer: &Explorer) -> io::Result<()> {
    socket.set_read_timeout(Some(PAUSE_MAX))?;
    socket.set_write_timeout(Some(PAUSE_MAX))?;
    socket.set_nodelay(true)?;
    let response = match Request::read(&mut socket) {
        Ok(request) => explorer.handle(&request),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Response::text("400 Bad Request", &error.to_string())
        }
        Err(error) => return Err(error),
    };
    socket.write_all(&response.encode())?;
    socket.flush()
}
