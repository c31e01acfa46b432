//! The server: a thread for each request, and a limited number of them at the same time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::access::Access;
use crate::cancellation::Cancellation;
use crate::explorer::Explorer;
use crate::http::{Request, Response};

/// Requests that are answered at the same time. Others are closed.
const REQUESTS_MAX: usize = 32;

/// Longest time until a request is complete.
const REQUEST_TIME: Duration = Duration::from_secs(10);

/// Longest pause of a client during a response.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Time after which connections are accepted again if the system had no resources for one.
const RETRY: Duration = Duration::from_millis(100);

/// A page, and who may use it.
struct GuardedPage {
    access: Access,
    explorer: Explorer,
}

/// Answers the permitted requests until the process ends.
///
/// # Errors
/// The socket accepts no connection.
pub fn serve(listener: &TcpListener, access: Access, explorer: Explorer) -> io::Result<()> {
    let page = Arc::new(GuardedPage { access, explorer });
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let socket = match listener.accept() {
            Ok((socket, _)) => socket,
            Err(error) if is_transient(&error) => {
                pause();
                continue;
            }
            Err(error) => return Err(error),
        };
        let Some(place) = Place::take(&open) else { continue };
        let page = Arc::clone(&page);
        let answer = move || {
            // The client may have closed the connection.
            let _ = exchange(&socket, &page);
            drop(place);
        };
        // Without memory for a thread, the connection is closed.
        let _ = thread::Builder::new().name("request".to_owned()).spawn(answer);
    }
}

/// Whether later connections may be accepted after an error (accept(2)): the client has closed the
/// connection before, or too many files are open.
fn is_transient(error: &io::Error) -> bool {
    /// Numbers of the errors ENFILE, EMFILE and ENOBUFS.
    const RESOURCES: [i32; 3] = [23, 24, 105];
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::Interrupted | ErrorKind::OutOfMemory
    ) || error.raw_os_error().is_some_and(|number| RESOURCES.contains(&number))
}

#[expect(clippy::disallowed_methods, reason = "the server runs in real time")]
fn pause() {
    thread::sleep(RETRY);
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

impl GuardedPage {
    fn handle(&self, request: Request, cancellation: &Cancellation) -> Response {
        match self.access.admit(request) {
            Ok(request) => self.explorer.handle(&request, cancellation),
            Err(refusal) => refusal,
        }
    }
}

fn exchange(mut socket: &TcpStream, page: &GuardedPage) -> io::Result<()> {
    socket.set_write_timeout(Some(PAUSE_MAX))?;
    socket.set_nodelay(true)?;
    let response = match Request::read(&mut Limited::new(socket, REQUEST_TIME)) {
        Ok(request) => answer(socket, page, request)?,
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            Response::text("400 Bad Request", &error.to_string())
        }
        Err(error) => return Err(error),
    };
    socket.write_all(&response.encode())?;
    socket.flush()
}

/// The answer to a request. A run ends if the page that has requested it is closed.
fn answer(socket: &TcpStream, page: &GuardedPage, request: Request) -> io::Result<Response> {
    let cancellation = Cancellation::default();
    if request.method != "POST" {
        return Ok(page.handle(request, &cancellation));
    }
    let (watched, run) = (socket.try_clone()?, cancellation.clone());
    watched.set_read_timeout(None)?;
    let watch = move || {
        // Nothing follows a request: the end, or an error, means that the client has left.
        if !watched.peek(&mut [0]).is_ok_and(|length| length > 0) {
            run.cancel();
        }
    };
    let watcher = thread::Builder::new().name("client".to_owned()).spawn(watch)?;
    let response = page.handle(request, &cancellation);
    // Ends the watcher; the response is not affected.
    let _ = socket.shutdown(Shutdown::Read);
    let _ = watcher.join();
    Ok(response)
}

/// Reads from a socket until a point in time: a client that sends a byte now and then does not keep
/// its place.
struct Limited<'s> {
    socket: &'s TcpStream,
    end: Instant,
}

impl<'s> Limited<'s> {
    #[expect(clippy::disallowed_methods, reason = "the time of a client, not of a simulation")]
    fn new(socket: &'s TcpStream, time: Duration) -> Self {
        Self { socket, end: Instant::now() + time }
    }
}

impl Read for Limited<'_> {
    #[expect(clippy::disallowed_methods, reason = "the time of a client, not of a simulation")]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.socket.set_read_timeout(Some(left))?;
        self.socket.read(buffer)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "clients and runs take real time")]
mod tests {
    use super::*;
    use crate::runner::CancelledRunner;
    use crate::subject::Subject;

    /// A run that lasts until it is cancelled.
    fn endless(cancellation: &Cancellation) {
        while !cancellation.is_cancelled() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The page of a built-in scenario whose runs are this function.
    fn page(run: fn(&Cancellation)) -> GuardedPage {
        let runner = Box::new(CancelledRunner(run));
        GuardedPage {
            access: Access::new("secret".to_owned(), 80),
            explorer: Explorer::new(Subject::example().unwrap(), runner),
        }
    }

    #[test]
    fn nothing_is_served_without_the_token() {
        let page = page(|_| panic!("a run has begun"));
        let status = |method: &str, path: &str| {
            let text = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
            let request = Request::read(&mut text.as_bytes()).unwrap();
            page.handle(request, &Cancellation::default()).status
        };
        for path in [
            "/",
            "/index.html",
            "/api/subject",
            "/api/run",
            "/api/capture/packets",
            "/api/capture/simulation",
            "/public/main.js",
        ] {
            for method in ["GET", "POST", "HEAD", "OPTIONS"] {
                assert_eq!(status(method, path), "403 Forbidden", "{method} {path}");
            }
        }
        assert_eq!(status("GET", "/secret/"), "200 OK");
        assert_eq!(status("GET", "/secret/main.js"), "200 OK");
    }

    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn a_run_ends_when_its_client_leaves() {
        let page = page(endless);
        let (mut client, server) = connection();
        let request = "POST /secret/api/run HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: \
                       application/json\r\nContent-Length: 2\r\n\r\n{}";
        client.write_all(request.as_bytes()).unwrap();
        let served = thread::spawn(move || exchange(&server, &page));
        thread::sleep(Duration::from_millis(50));
        assert!(!served.is_finished(), "the run goes on while the client waits");
        drop(client);
        let _ = served.join().unwrap();
    }

    #[test]
    fn a_request_that_arrives_byte_by_byte_ends_at_its_limit() {
        let (mut client, server) = connection();
        let slow = thread::spawn(move || {
            while client.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        });
        let found = Request::read(&mut Limited::new(&server, Duration::from_millis(100)));
        let kind = found.unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::TimedOut | ErrorKind::WouldBlock), "{kind}");
        drop(server);
        slow.join().unwrap();
    }
}
