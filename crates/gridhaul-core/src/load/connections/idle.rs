//! Idle connections: the state of a NAT, keep-alive and user timeout, for one connection each.

use gridhaul_scenario::scenario::{Flow, KeepAlive, Nat, NatAnswer};
use gridhaul_scenario::units::{Duration, Instant};

/// Time after which Linux gives a connection up whose data is not acknowledged: 15 retransmissions
/// from the least timeout of 200 ms to the largest of 120 s (`tcp_retries2`, ip-sysctl.rst).
const USER_TIMEOUT: Duration = Duration::from_millis(924_600);

/// Rules for the idle connections of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleRules {
    /// NAT before the `to` end.
    pub nat: Option<Nat>,
    /// Keep-alive of the `from` end.
    pub keep_alive: Option<KeepAlive>,
    /// User timeout of the `from` end; `None`: that of Linux.
    pub user_timeout: Option<Duration>,
}

impl IdleRules {
    /// The rules of a flow; `None` if idle connections are neither forgotten nor watched.
    #[must_use]
    pub fn of(flow: &Flow) -> Option<Self> {
        flow.watches_idle_connections().then_some(Self {
            nat: flow.nat,
            keep_alive: flow.keep_alive,
            user_timeout: flow.user_timeout,
        })
    }
}

/// Treatment of a segment by a NAT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NatVerdict {
    /// The segment is forwarded.
    Forwarded,
    /// The segment is discarded.
    Discarded,
    /// The segment is discarded, and its sender receives RST.
    Reset,
}

/// The entry of a connection in a NAT.
#[derive(Debug, Clone)]
pub struct NatEntry {
    rules: Nat,
    /// When the last segment passed; `None` without an entry.
    used_at: Option<Instant>,
    /// When the first segment was discarded because the entry was forgotten.
    discarded_at: Option<Instant>,
    /// Whether the device has noticed.
    is_noticed: bool,
}

impl NatEntry {
    /// A connection that the NAT does not know yet.
    #[must_use]
    pub const fn new(rules: Nat) -> Self {
        Self { rules, used_at: None, discarded_at: None, is_noticed: false }
    }

    /// A segment arrives at the NAT. SYN makes an entry.
    pub fn handle(&mut self, now: Instant, is_syn: bool) -> NatVerdict {
        let is_known = self.used_at.is_some_and(|used| now.since(used) < self.rules.idle_timeout);
        if is_known || is_syn && self.discarded_at.is_none() {
            self.used_at = Some(now);
            return NatVerdict::Forwarded;
        }
        self.used_at = None;
        self.discarded_at.get_or_insert(now);
        match self.rules.answers {
            NatAnswer::Drop => NatVerdict::Discarded,
            NatAnswer::Reset => NatVerdict::Reset,
        }
    }

    /// The device has lost its connection. Returns when its first segment was discarded, if this is
    /// the reason and new: RST of a device that gives up is discarded as well.
    pub fn take_discarded(&mut self) -> Option<Instant> {
        let is_new = !std::mem::replace(&mut self.is_noticed, self.discarded_at.is_some());
        self.discarded_at.filter(|_| is_new)
    }
}

/// Keep-alive of one end of a connection.
#[derive(Debug, Clone)]
pub struct KeepAliveTimer {
    rules: KeepAlive,
    user_timeout: Option<Duration>,
    probes: u32,
    received_at: Instant,
    deadline: Instant,
}

/// Action of keep-alive when its timer has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepAliveAction {
    /// A probe is sent.
    Probe,
    /// The connection is reset.
    GiveUp,
}

impl KeepAliveTimer {
    /// The timer of a connection that is not open.
    #[must_use]
    pub const fn new(rules: KeepAlive, user_timeout: Option<Duration>) -> Self {
        let (received_at, deadline) = (Instant::ZERO, Instant::NEVER);
        Self { rules, user_timeout, probes: 0, received_at, deadline }
    }

    /// A segment of the other end has arrived.
    pub fn on_received(&mut self, now: Instant) {
        self.probes = 0;
        self.received_at = now;
        self.deadline = now + self.rules.idle;
    }

    /// When [`Self::handle_timeout`] is due.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The timer has expired. While data is outstanding, its retransmissions take the place of
    /// probes (Linux, `tcp_keepalive_timer`).
    pub fn handle_timeout(
        &mut self,
        now: Instant,
        is_outstanding: bool,
    ) -> Option<KeepAliveAction> {
        if self.deadline > now {
            return None;
        }
        if is_outstanding {
            self.deadline = now + self.rules.idle;
            return None;
        }
        if self.gives_up(now) {
            self.deadline = Instant::NEVER;
            return Some(KeepAliveAction::GiveUp);
        }
        self.probes += 1;
        self.deadline = now + self.rules.interval;
        Some(KeepAliveAction::Probe)
    }

    /// A user timeout takes the place of the number of probes (tcp(7), `TCP_USER_TIMEOUT`).
    fn gives_up(&self, now: Instant) -> bool {
        match self.user_timeout {
            Some(limit) => self.probes > 0 && now.since(self.received_at) >= limit,
            None => self.probes >= self.rules.probes,
        }
    }
}

/// User timeout of one end of a connection (RFC 5482).
#[derive(Debug, Clone)]
pub struct UserTimeout {
    limit: Duration,
    acknowledged: u64,
    /// When the oldest outstanding data was sent, or the last acknowledgement for it arrived.
    deadline: Instant,
}

impl UserTimeout {
    /// The timeout of a connection that is not open; `None`: that of Linux.
    #[must_use]
    pub fn new(limit: Option<Duration>) -> Self {
        let limit = limit.unwrap_or(USER_TIMEOUT);
        Self { limit, acknowledged: 0, deadline: Instant::NEVER }
    }

    /// Notes how far the connection has sent, and how much of it is acknowledged.
    pub fn observe(&mut self, now: Instant, sent: u64, acknowledged: u64) {
        if sent == acknowledged {
            self.deadline = Instant::NEVER;
        } else if self.deadline == Instant::NEVER || acknowledged > self.acknowledged {
            self.deadline = now + self.limit;
        }
        self.acknowledged = acknowledged;
    }

    /// When the connection is given up.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn an_entry_lives_as_long_as_segments_pass() {
        let idle_timeout = Duration::from_secs(300);
        let mut entry = NatEntry::new(Nat { idle_timeout, answers: NatAnswer::Reset });
        assert_eq!(entry.handle(at(0), true), NatVerdict::Forwarded);
        assert_eq!(entry.handle(at(299), false), NatVerdict::Forwarded);
        assert_eq!(entry.handle(at(598), false), NatVerdict::Forwarded);
        assert_eq!(entry.handle(at(898), false), NatVerdict::Reset);
        // A later segment does not bring it back.
        assert_eq!(entry.handle(at(899), false), NatVerdict::Reset);
        assert_eq!(entry.handle(at(899), true), NatVerdict::Reset, "a SYN that is late");
        assert_eq!((entry.take_discarded(), entry.take_discarded()), (Some(at(898)), None));
        assert_eq!(entry.handle(at(900), false), NatVerdict::Reset);
        assert_eq!(entry.take_discarded(), None);
    }

    #[test]
    fn keep_alive_gives_up_after_its_probes() {
        let [idle, interval] = [60, 10].map(Duration::from_secs);
        let mut timer = KeepAliveTimer::new(KeepAlive { idle, interval, probes: 2 }, None);
        timer.on_received(at(5));
        assert_eq!(timer.handle_timeout(at(64), false), None);
        assert_eq!(timer.handle_timeout(at(65), false), Some(KeepAliveAction::Probe));
        assert_eq!(timer.handle_timeout(at(75), false), Some(KeepAliveAction::Probe));
        assert_eq!(timer.handle_timeout(at(85), false), Some(KeepAliveAction::GiveUp));
        timer.on_received(at(90));
        assert_eq!(timer.deadline(), at(150));
        assert_eq!(timer.handle_timeout(at(150), true), None);
        assert_eq!(timer.deadline(), at(210));
    }

    #[test]
    fn a_user_timeout_takes_the_place_of_the_number_of_probes() {
        let [idle, interval] = [60, 10].map(Duration::from_secs);
        let [probe, give_up] = [KeepAliveAction::Probe, KeepAliveAction::GiveUp].map(Some);
        // The limit counts from the last segment, at 10 s, and ends no connection without a probe.
        let cases = [
            (90, [probe, probe, probe, give_up]),
            (85, [probe, probe, probe, give_up]),
            (75, [probe, probe, give_up, None]),
            (30, [probe, give_up, None, None]),
        ];
        for (limit, expected) in cases {
            let rules = KeepAlive { idle, interval, probes: 1 };
            let mut timer = KeepAliveTimer::new(rules, Some(Duration::from_secs(limit)));
            timer.on_received(at(10));
            let actions = [70, 80, 90, 100].map(|time| timer.handle_timeout(at(time), false));
            assert_eq!(actions, expected, "{limit} s");
        }
    }

    #[test]
    fn an_acknowledgement_restarts_the_user_timeout() {
        let mut timeout = UserTimeout::new(Some(Duration::from_secs(30)));
        timeout.observe(at(1), 100, 0);
        timeout.observe(at(5), 200, 0);
        assert_eq!(timeout.deadline(), at(31));
        timeout.observe(at(9), 200, 100);
        assert_eq!(timeout.deadline(), at(39));
        timeout.observe(at(10), 200, 200);
        assert_eq!(timeout.deadline(), Instant::NEVER);
    }
}
