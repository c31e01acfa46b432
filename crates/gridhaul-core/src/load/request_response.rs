//! A request-response dialogue: a request, its response, then a pause.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{Duration, Instant};

use super::Arrival;

/// Both ends of a dialogue with one outstanding request.
///
/// Call order: send [`first_request`](Self::first_request) from `from`; call
/// [`handle_request_bytes`](Self::handle_request_bytes) when data are delivered at `to`, and
/// [`handle_response_bytes`](Self::handle_response_bytes) when data are delivered at `from`; send
/// the messages that these return from the same end, at their time.
#[derive(Debug, Clone)]
pub struct RequestResponse {
    request: u64,
    response: u64,
    think: Duration,
    pause: Duration,
    requested_at: Instant,
    /// Bytes of the outstanding request received at `to`, and of its response received at `from`.
    request_received: u64,
    response_received: u64,
    completed: u64,
}

impl RequestResponse {
    /// A dialogue whose first request is sent at `start`.
    #[must_use]
    pub fn new(keys: &scenario::RequestResponse, start: Instant) -> Self {
        Self {
            // The arrival of an empty message could not be detected on a byte stream.
            request: keys.request.get().max(1),
            response: keys.response.get().max(1),
            think: keys.think,
            pause: keys.pause,
            requested_at: start,
            request_received: 0,
            response_received: 0,
            completed: 0,
        }
    }

    /// The first request.
    #[must_use]
    pub const fn first_request(&self) -> Arrival {
        Arrival { at: self.requested_at, bytes: self.request }
    }

    /// `bytes` of the request have been delivered at `to`. Returns the response once the request is
    /// complete.
    pub fn handle_request_bytes(&mut self, now: Instant, bytes: u64) -> Option<Arrival> {
        let is_complete = completes(&mut self.request_received, bytes, self.request);
        is_complete.then(|| Arrival { at: now + self.think, bytes: self.response })
    }

    /// `bytes` of the response have been delivered at `from`. Returns the next request once the
    /// response is complete.
    pub fn handle_response_bytes(&mut self, now: Instant, bytes: u64) -> Option<Arrival> {
        if !completes(&mut self.response_received, bytes, self.response) {
            return None;
        }
        self.completed += 1;
        (self.request_received, self.response_received) = (0, 0);
        self.requested_at = now + self.pause;
        Some(Arrival { at: self.requested_at, bytes: self.request })
    }

    /// When the outstanding request was (or will be) sent.
    #[must_use]
    pub const fn requested_at(&self) -> Instant {
        self.requested_at
    }

    /// Number of requests with a complete response.
    #[must_use]
    pub const fn completed(&self) -> u64 {
        self.completed
    }
}

/// Adds received bytes; true only for the call that completes the message.
fn completes(received: &mut u64, bytes: u64, size: u64) -> bool {
    let before = *received;
    *received += bytes;
    before < size && *received >= size
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::units::Bytes;

    #[test]
    fn each_step_waits_for_the_one_before() {
        let keys = scenario::RequestResponse {
            request: Bytes::new(100),
            response: Bytes::new(3_000),
            think: Duration::from_millis(5),
            pause: Duration::from_millis(50),
        };
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut dialogue = RequestResponse::new(&keys, at(1_000));
        assert_eq!(dialogue.first_request(), Arrival { at: at(1_000), bytes: 100 });
        assert_eq!(dialogue.handle_request_bytes(at(1_010), 60), None);
        let answer = dialogue.handle_request_bytes(at(1_020), 40);
        assert_eq!(answer, Some(Arrival { at: at(1_025), bytes: 3_000 }));
        assert_eq!(dialogue.handle_response_bytes(at(1_030), 1_460), None);
        assert_eq!(dialogue.handle_response_bytes(at(1_031), 1_460), None);
        let next = dialogue.handle_response_bytes(at(1_032), 80);
        assert_eq!(next, Some(Arrival { at: at(1_082), bytes: 100 }));
        assert_eq!((dialogue.requested_at(), dialogue.completed()), (at(1_082), 1));
        // The counters of the second request start at zero.
        assert_eq!(dialogue.handle_request_bytes(at(1_090), 99), None);
    }
}
