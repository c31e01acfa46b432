//! An outage during a run: of all links, or of the broker.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time;

use anyhow::{Context, ensure};
use gridhaul_measure::bench::Plan;
use gridhaul_measure::broker::Broker;
use gridhaul_measure::network::{Sites, StopOnDrop};
use gridhaul_scenario::scenario::{Outage, OutageMode, Scenario};
use gridhaul_scenario::units::{Duration, Instant};

use crate::args::{FailingPart, RunArgs};

/// Time between two checks of the thread that waits for the outage of a broker.
const CHECK: time::Duration = time::Duration::from_millis(5);

/// An outage.
#[derive(Debug, Clone, Copy)]
pub(super) struct Disturbance {
    pub(super) part: FailingPart,
    /// After the start of the network; for a broker, after the warm-up.
    pub(super) start: Duration,
    pub(super) length: Duration,
}

impl Disturbance {
    /// Whether there is something that can fail.
    pub(super) fn check(&self, args: &RunArgs) -> anyhow::Result<()> {
        match self.part {
            FailingPart::Links => ensure!(
                args.common.place.is_emulated(),
                "an outage of the links needs an emulated network\n  help: add --scenario FILE or --system NAME"
            ),
            FailingPart::Broker => ensure!(
                args.common.protocol.has_broker() && args.common.connection.broker.is_none(),
                "--of broker: this program kills only a broker that it has started\n  help: choose mqtt, mqtt5, amqp-0-9-1, amqp-1.0 or \
                 xmpp, without --broker"
            ),
            FailingPart::Observed => {}
        }
        Ok(())
    }

    /// Adds an outage of the links to both directions of each.
    pub(super) fn change(&self, scenario: &mut Scenario) {
        if self.part != FailingPart::Links {
            return;
        }
        let Self { start, length, .. } = *self;
        for link in scenario.link.values_mut() {
            let directions = [&mut link.both, &mut link.forward, &mut link.reverse];
            for direction in directions.into_iter().flatten() {
                let outage = Outage { start, length, every: None, mode: OutageMode::Drop };
                direction.outage.push(outage);
            }
        }
    }

    /// Runs `work` beside an outage of the broker. Returns the time at which the broker was killed, and the one at which it accepted
    /// connections again; `None` if `work` was over before. `scheduled` is the number of messages that the schedule has reached.
    pub(super) fn beside<T>(
        &self,
        broker: &mut Broker,
        (plan, sites): (&Plan, &Sites<'_>),
        scheduled: &AtomicU64,
        work: impl FnOnce() -> T,
    ) -> anyhow::Result<(T, Option<[Instant; 2]>)> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let is_over = &is_over;
            let failing = scope.spawn(move || self.fail(broker, (plan, sites), scheduled, is_over));
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

    /// Kills the broker after the messages of the time before the outage, and starts it again after the length of the outage.
    #[expect(clippy::disallowed_methods, reason = "a fault in the middle of a run in real time")]
    fn fail(
        &self,
        broker: &mut Broker,
        (plan, sites): (&Plan, &Sites<'_>),
        scheduled: &AtomicU64,
        is_over: &AtomicBool,
    ) -> anyhow::Result<Option<[Instant; 2]>> {
        let before = self.start.as_secs_f64() / plan.schedule.interval().as_secs_f64();
        let first = plan.schedule.warm_up_messages() + before.ceil() as u64;
        let clock = sites.clock;
        let wait_until = |is_due: &dyn Fn() -> bool| {
            while !is_due() && !is_over.load(Ordering::Relaxed) {
                thread::sleep(CHECK);
            }
        };
        wait_until(&|| scheduled.load(Ordering::Relaxed) >= first);
        if is_over.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let killed = clock.now();
        broker.kill().context("ending the broker")?;
        wait_until(&|| clock.now() >= killed + self.length);
        broker.restart(&sites.to)?;
        Ok(Some([killed, clock.now()]))
    }
}
