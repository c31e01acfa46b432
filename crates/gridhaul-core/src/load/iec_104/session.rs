//! Successive connections of the stations.

use gridhaul_scenario::scenario::{self, FlowEnd};
use gridhaul_scenario::units::Instant;

use super::Iec104;
use super::timers::TestProcedure;
use crate::load::MessageEvent;

/// The connection of the stations.
#[derive(Debug, Clone)]
pub(super) struct TransferSession {
    /// Number of the connection; `None` between connections.
    connection: Option<u64>,
    /// The last connection that the `from` end has closed.
    closed: Option<u64>,
    /// Whether the `to` end has closed the connection, which the `from` end has not noticed.
    is_half_open: bool,
    /// Ends whose connection is to be reset.
    aborts: [bool; 2],
    /// Whether the controlled station has received STARTDT act.
    pub is_started: bool,
}

impl TransferSession {
    /// Before the first connection, or on the only one.
    pub(super) fn new(keys: &scenario::Iec104) -> Self {
        let is_only = !keys.starts_transfer();
        Self {
            connection: is_only.then_some(0),
            closed: None,
            is_half_open: false,
            aborts: [false; 2],
            is_started: is_only,
        }
    }

    pub(super) const fn is_connected(&self) -> bool {
        self.connection.is_some()
    }
}

impl Iec104 {
    /// End of the controlling station.
    pub(super) const fn controlling(&self) -> FlowEnd {
        self.keys.controlled.peer()
    }

    /// Whether a station has a connection that it has not closed.
    pub(super) const fn is_active(&self, end: FlowEnd) -> bool {
        self.session.is_connected() && !(matches!(end, FlowEnd::To) && self.session.is_half_open)
    }

    /// The number of the connection that carries frames, if there is one. Returns whether another
    /// connection has begun, or the previous one has ended: what it had not delivered is lost.
    pub fn handle_connection(&mut self, now: Instant, connection: Option<u64>) -> bool {
        if !self.keys.starts_transfer() {
            return false;
        }
        let connection = connection.filter(|number| Some(*number) != self.session.closed);
        if connection == self.session.connection {
            return false;
        }
        self.leave_connection();
        if connection.is_some() {
            self.session.connection = connection;
            self.tests = [TestProcedure::new(now); 2];
            self.tests[self.controlling() as usize] = TestProcedure::starting(now);
            self.write_at = now;
        }
        true
    }

    /// The numbers of frames begin anew on the next connection.
    fn leave_connection(&mut self) {
        self.session.connection = None;
        self.session.is_half_open = false;
        self.session.is_started = false;
        self.sent.append(&mut self.again);
        self.again = std::mem::take(&mut self.sent);
        self.owed = 0;
        self.full_acknowledgements = 0;
        self.acknowledge_at = Instant::NEVER;
    }

    /// Closes the connection at a station whose timer t1 has ended.
    pub(super) fn expire_timers(&mut self, now: Instant) {
        for end in [FlowEnd::To, FlowEnd::From] {
            if self.timeout(end) > now {
                continue;
            }
            self.session.aborts[end as usize] = true;
            match end {
                FlowEnd::To => self.session.is_half_open = true,
                FlowEnd::From => {
                    self.session.closed = self.session.connection;
                    self.leave_connection();
                }
            }
        }
    }

    /// The next end that resets its connection now.
    pub fn poll_abort(&mut self) -> Option<FlowEnd> {
        let mut ends = [FlowEnd::From, FlowEnd::To].into_iter();
        ends.find(|end| std::mem::take(&mut self.session.aborts[*end as usize]))
    }

    /// The next event that has not been returned, of values that were ready at a time.
    pub fn poll_event(&mut self) -> Option<(Instant, MessageEvent)> {
        self.events.pop_front()
    }
}
