//! A single flow on a path.

use std::collections::VecDeque;

use super::*;

/// A paced sender, a bottleneck and a receiver that acknowledges every segment.
pub(super) struct Path {
    pub(super) bbr: Bbr,
    pub(super) now: Instant,
    pub(super) paced_until: Instant,
    pub(super) link_free_at: Instant,
    pub(super) account: RateAccount,
    /// Outstanding segments: arrival time of the acknowledgement, and send time.
    pub(super) out: VecDeque<(Instant, Instant)>,
    pub(super) una: u64,
    /// Time and name of each change of state or gain.
    pub(super) log: Vec<(f64, &'static str)>,
    pub(super) longest_queue: f64,
}

impl Path {
    pub(super) fn new() -> Self {
        Self {
            bbr: bbr(),
            now: Instant::ZERO,
            paced_until: Instant::ZERO,
            link_free_at: Instant::ZERO,
            account: RateAccount::default(),
            out: VecDeque::new(),
            una: 0,
            log: Vec::new(),
            longest_queue: 0.0,
        }
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.out.len() as u64 * u64::from(MSS)
    }

    pub(super) fn run_until(&mut self, seconds: f64) {
        let end = Instant::from_secs_f64(seconds);
        while self.now < end {
            let may_send = self.in_flight() + u64::from(MSS) <= u64::from(self.bbr.window.cwnd());
            let arrival = self.out.front().map_or(Instant::NEVER, |first| first.0);
            if may_send && self.paced_until.max(self.now) < arrival {
                self.now = self.paced_until.max(self.now);
                self.send();
            } else {
                self.now = arrival;
                self.receive();
            }
            self.note();
        }
    }

    pub(super) fn send(&mut self) {
        self.account.on_sent(self.now, self.out.is_empty());
        let rate = self.bbr.pacing_rate().expect("BBR paces");
        self.paced_until = self.now + Duration::from_secs_f64(f64::from(MSS) / rate);
        self.link_free_at =
            self.link_free_at.max(self.now) + Duration::from_secs_f64(f64::from(MSS) / RATE);
        let arrival = self.link_free_at + Duration::from_secs_f64(RTT - f64::from(MSS) / RATE);
        self.out.push_back((arrival, self.now));
        self.longest_queue = self.longest_queue.max(segments(self.in_flight() as f64) - PRODUCT);
        self.bbr.on_sent(self.now, 0, self.in_flight());
    }

    pub(super) fn receive(&mut self) {
        let prior_in_flight = self.in_flight();
        let (_, sent_at) = self.out.pop_front().expect("a segment is outstanding");
        self.account.on_acknowledged(self.now, &OutstandingSegment::new(self.una, MSS, sent_at));
        self.una += u64::from(MSS);
        let rtt = self.now.since(sent_at);
        let ack = Ack {
            rtt: Some(rtt),
            srtt: rtt,
            rate: self.account.take_sample(),
            ..ack(self.now, MSS, prior_in_flight, self.in_flight(), self.una)
        };
        self.bbr.on_delivered(&ack);
    }

    pub(super) fn note(&mut self) {
        let name = match &self.bbr.state {
            State::Startup => "startup",
            State::Drain => "drain",
            State::ProbeBw(cycle) if cycle.gain() > 1.0 => "up",
            State::ProbeBw(cycle) if cycle.gain() < 1.0 => "down",
            State::ProbeBw(_) => "cruise",
            State::ProbeRtt(_) => "probe rtt",
        };
        if self.log.last().is_none_or(|last| last.1 != name) {
            self.log.push((self.now.as_secs_f64(), name));
        }
    }
}
