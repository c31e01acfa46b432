//! Waiting for the time of a message.

use gridhaul_linux::{Clock, SleepBudget};
use gridhaul_scenario::units::Instant;

/// Sleeps until `at`, precisely to some microseconds while the thread is not always busy, or until
/// `stop` returns `true`.
#[expect(clippy::disallowed_methods, reason = "a measurement runs in real time")]
pub fn sleep_until(at: Instant, clock: Clock, budget: &mut SleepBudget, stop: impl Fn() -> bool) {
    while !stop() {
        if let Some(time) = budget.must_yield() {
            std::thread::sleep(time);
        }
        let remaining = clock.until(at);
        if remaining.is_zero() {
            return;
        }
        let sleep = budget.sleep_for(remaining);
        if !sleep.is_zero() {
            std::thread::sleep(sleep);
        }
    }
}
