//! A connection behind a NAT that forgets idle connections, with keep-alive and user timeout of the
//! device.

use gridhaul_core::load::{
    ConnectionCounters, IdleRules, KeepAliveAction, KeepAliveTimer, NatEntry, NatVerdict,
    UserTimeout,
};
use gridhaul_core::tcp::{Connection, Flags, Segment, State};
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

/// The NAT before the server, and the timers of the device, for one connection.
#[derive(Debug, Clone)]
pub(super) struct IdleWatch {
    nat: Option<NatEntry>,
    keep_alive: Option<KeepAliveTimer>,
    user_timeout: UserTimeout,
    /// A keep-alive probe that the device is to send.
    probe: Option<Segment>,
    /// RST that the NAT is to send to the device.
    reset: Option<Segment>,
    /// Size of the headers of RST from the NAT, without options.
    header: u8,
}

impl IdleWatch {
    /// A new connection, whose headers have this size without options.
    pub(super) fn new(rules: &IdleRules, header: u32) -> Self {
        let IdleRules { nat, keep_alive, user_timeout } = *rules;
        Self {
            nat: nat.map(NatEntry::new),
            keep_alive: keep_alive.map(|keys| KeepAliveTimer::new(keys, user_timeout)),
            user_timeout: UserTimeout::new(user_timeout),
            probe: None,
            reset: None,
            header: header as u8,
        }
    }

    /// A segment has arrived. Returns whether the NAT forwards it to its end.
    pub(super) fn on_arrived(&mut self, now: Instant, to: FlowEnd, segment: &Segment) -> bool {
        if to == FlowEnd::From {
            if let Some(timer) = &mut self.keep_alive {
                timer.on_received(now);
            }
            return true;
        }
        match self.pass(now, segment) {
            NatVerdict::Forwarded => return true,
            NatVerdict::Discarded => {}
            NatVerdict::Reset => self.reset = Some(self.reset_for(segment)),
        }
        false
    }

    /// The next segment that an end transmits, or the NAT in its place.
    pub(super) fn poll_transmit(
        &mut self,
        now: Instant,
        end: FlowEnd,
        connection: &mut Connection,
    ) -> Option<Segment> {
        if end == FlowEnd::From {
            return self.probe.take().or_else(|| connection.poll_transmit(now));
        }
        if let Some(reset) = self.reset.take() {
            return Some(reset);
        }
        while let Some(segment) = connection.poll_transmit(now) {
            match self.pass(now, &segment) {
                NatVerdict::Forwarded => return Some(segment),
                NatVerdict::Discarded => {}
                NatVerdict::Reset => {
                    connection.handle_segment(now, &self.reset_for(&segment));
                }
            }
        }
        None
    }

    /// A segment from an end reaches the NAT. RST is never answered (RFC 9293, section 3.10.7.1).
    fn pass(&mut self, now: Instant, segment: &Segment) -> NatVerdict {
        let Some(nat) = &mut self.nat else { return NatVerdict::Forwarded };
        match nat.handle(now, segment.flags.has(Flags::SYN)) {
            NatVerdict::Reset if segment.flags.has(Flags::RST) => NatVerdict::Discarded,
            verdict => verdict,
        }
    }

    /// RST in the place of the other end, whose next sequence number the segment acknowledges (RFC
    /// 9293, section 3.10.7.1).
    fn reset_for(&self, segment: &Segment) -> Segment {
        let (seq, header) = (segment.ack, self.header);
        Segment { seq, flags: Flags::RST, header, ..Segment::default() }
    }

    /// Does what the timers of the device require.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        device: &mut Connection,
        counters: &mut ConnectionCounters,
    ) {
        if has_timers(device) {
            let (sent, acknowledged) = device.sent_and_acknowledged();
            self.user_timeout.observe(now, sent, acknowledged);
            if self.user_timeout.deadline() <= now {
                device.give_up();
            }
            let is_outstanding = sent > acknowledged;
            let timer = self.keep_alive.as_mut();
            match timer.and_then(|timer| timer.handle_timeout(now, is_outstanding)) {
                Some(KeepAliveAction::Probe) => {
                    let probe = device.keep_alive_probe(now);
                    counters.on_keep_alive(probe.wire_bytes());
                    self.probe = Some(probe);
                }
                Some(KeepAliveAction::GiveUp) => device.reset(),
                None => {}
            }
        }
        if device.state() == State::Closed
            && let Some(discarded) = self.nat.as_mut().and_then(NatEntry::take_discarded)
        {
            counters.on_noticed(now.since(discarded));
        }
    }

    /// When [`Self::advance`] is due without a segment.
    pub(super) fn next_deadline(&self, device: &Connection) -> Instant {
        if !has_timers(device) {
            return Instant::NEVER;
        }
        let keep_alive = self.keep_alive.as_ref().map_or(Instant::NEVER, KeepAliveTimer::deadline);
        keep_alive.min(self.user_timeout.deadline())
    }
}

/// Whether the timers of an established connection run: until both ends have closed.
fn has_timers(device: &Connection) -> bool {
    !matches!(
        device.state(),
        State::Listen | State::SynSent | State::SynReceived | State::TimeWait | State::Closed
    )
}
