//! An outage during a run: of all links, of the broker, or one that the user causes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time;

use anyhow::Context;
use gridhaul_scenario::scenario::{Outage, OutageMode, Scenario};
use gridhaul_scenario::units::{Duration, Instant};

use super::Run;
use crate::broker::Broker;
use crate::measurement::{BrokerOutage, LinkOutage};
use crate::method::Interruption;
use crate::place::{Sites, StopOnDrop};
use crate::transfer::Plan;

/// Time between two checks of the thread that waits for the outage of a broker.
const CHECK: time::Duration = time::Duration::from_millis(5);

/// Times without an arrival from this number of message intervals on may be an outage that the user
/// caused; shorter ones also follow from losses and jitter.
pub(crate) const OBSERVED_INTERVALS: f64 = 10.0;

/// Shorter times without an arrival also follow from the load of a machine.
pub(crate) const OBSERVED_MIN: Duration = Duration::from_millis(100);

/// The longest time without an arrival, if it may be an outage.
pub(crate) fn observed(run: &Run) -> Option<Interruption> {
    let summary = &run.outcome.summary;
    let min = summary.interval.mul_f64(OBSERVED_INTERVALS).max(OBSERVED_MIN);
    summary.interruption().filter(|found| found.length() >= min)
}

/// Results of an outage from the messages.
#[derive(Debug)]
pub(crate) struct Recovery {
    /// Longest time without an arrival.
    pub(crate) gap: Interruption,
    /// Time from the end of the outage to the next arrival; `None` without one.
    pub(crate) first_after: Option<Duration>,
}

impl Recovery {
    /// The recovery from an outage between these times on the clock of the network; `None` if the
    /// longest time without an arrival is not that of the outage.
    pub(crate) fn new(run: &Run, [begin, end]: [Instant; 2]) -> Option<Self> {
        let outcome = &run.outcome;
        let found = outcome.summary.interruption()?;
        let [last, first] =
            [found.start, found.end].map(|at| outcome.start + at.since(Instant::ZERO));
        let ends_after = if found.is_open { first > begin } else { first >= end };
        let contains = last < end && ends_after && outcome.start < begin;
        let first_after = (!found.is_open).then(|| first.since(end));
        contains.then_some(Self { gap: found, first_after })
    }
}

impl LinkOutage {
    /// Adds the outage to both directions of each link.
    pub(super) fn add_to(self, scenario: &mut Scenario) {
        let Self { start, length } = self;
        for link in scenario.link.values_mut() {
            let directions = [&mut link.both, &mut link.forward, &mut link.reverse];
            for direction in directions.into_iter().flatten() {
                let outage = Outage { start, length, every: None, mode: OutageMode::Drop };
                direction.outage.push(outage);
            }
        }
    }

    /// Start and end on the clock of the network.
    pub(crate) fn times(self) -> [Instant; 2] {
        [self.start, self.start + self.length].map(|at| Instant::ZERO + at)
    }
}

/// The failure of a broker during a run.
pub(super) struct BrokerFailure<'a> {
    pub(super) outage: &'a BrokerOutage,
    pub(super) plan: &'a Plan,
    pub(super) sites: &'a Sites<'a>,
    /// Number of messages that the schedule has reached.
    pub(super) scheduled: &'a AtomicU64,
}

impl BrokerFailure<'_> {
    /// Runs `work` during an outage of the broker. Returns the time at which the broker was killed,
    /// and the one at which it accepted connections again; `None` if `work` was over before.
    pub(super) fn run_during<T>(
        &self,
        broker: &mut Broker,
        work: impl FnOnce() -> T,
    ) -> anyhow::Result<(T, Option<[Instant; 2]>)> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let is_over = &is_over;
            let failing = scope.spawn(move || self.fail(broker, is_over));
            let done = {
                let _stop = StopOnDrop(is_over);
                work()
            };
            match failing.join() {
                Ok(outage) => Ok((done, outage?)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Kills the broker after the messages of the time before the outage, and starts it again after
    /// the length of the outage.
    #[expect(clippy::disallowed_methods, reason = "a fault in the middle of a run in real time")]
    fn fail(
        &self,
        broker: &mut Broker,
        is_over: &AtomicBool,
    ) -> anyhow::Result<Option<[Instant; 2]>> {
        let BrokerOutage { start, length } = *self.outage;
        let before = start.as_secs_f64() / self.plan.schedule.interval().as_secs_f64();
        let first = self.plan.schedule.warm_up_messages() + before.ceil() as u64;
        let clock = self.sites.clock;
        let wait_until = |is_due: &dyn Fn() -> bool| {
            while !is_due() && !is_over.load(Ordering::Relaxed) {
                thread::sleep(CHECK);
            }
        };
        wait_until(&|| self.scheduled.load(Ordering::Relaxed) >= first);
        if is_over.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let killed = clock.now();
        broker.kill().context("ending the broker")?;
        wait_until(&|| clock.now() >= killed + length);
        broker.restart(&self.sites.to)?;
        Ok(Some([killed, clock.now()]))
    }
}
