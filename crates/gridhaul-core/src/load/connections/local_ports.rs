//! Local ports of a host.

use std::collections::VecDeque;

use gridhaul_scenario::units::{Duration, Instant};

/// Time for which a port stays in TIME-WAIT: 60 s in Linux (`TCP_TIMEWAIT_LEN`).
const TIME_WAIT: Duration = Duration::from_secs(60);

/// The local ports of a host for connections to one address and port.
#[derive(Debug, Clone)]
pub struct LocalPorts {
    limit: usize,
    /// Ports of connections that are not closed.
    open: usize,
    /// When each port in TIME-WAIT becomes free, in order of time.
    waiting: VecDeque<Instant>,
}

impl LocalPorts {
    /// This many ports, all free.
    #[must_use]
    pub const fn new(limit: u32) -> Self {
        Self { limit: limit as usize, open: 0, waiting: VecDeque::new() }
    }

    /// Takes a port for a new connection. Returns false if none is free.
    pub fn take(&mut self, now: Instant) -> bool {
        while self.waiting.front().is_some_and(|free_at| *free_at <= now) {
            self.waiting.pop_front();
        }
        let is_free = self.open + self.waiting.len() < self.limit;
        self.open += usize::from(is_free);
        is_free
    }

    /// A connection has ended without TIME-WAIT: its port is free at once.
    pub const fn release(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// A connection has entered TIME-WAIT.
    pub fn keep_in_time_wait(&mut self, now: Instant) {
        self.release();
        self.waiting.push_back(now + TIME_WAIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_used_again_after_time_wait() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let mut ports = LocalPorts::new(2);
        assert!(ports.take(at(0)) && ports.take(at(0)) && !ports.take(at(0)));
        ports.keep_in_time_wait(at(10));
        assert!(!ports.take(at(69)));
        assert!(ports.take(at(70)));
        ports.release();
        assert!(ports.take(at(70)) && !ports.take(at(70)));
    }

    /// 28,232 ports that wait for 60 s permit 470 connections per second.
    #[test]
    fn the_ports_of_linux_permit_470_connections_per_second() {
        let mut ports = LocalPorts::new(gridhaul_scenario::scenario::LOCAL_PORTS);
        let mut opened = 0;
        for millis in 0..180_000 {
            let now = Instant::ZERO + Duration::from_millis(millis);
            while ports.take(now) {
                ports.keep_in_time_wait(now);
                opened += 1;
            }
        }
        // Three full ranges in 180 s.
        assert_eq!(opened, 3 * 28_232);
    }
}
