//! The times of cases that run on a kernel leave its timers their tolerance.
//!
//! A timer of a kernel expires at a tick, earlier or later by chance. If a packet of the script
//! arrives in the meantime, or the run ends, a case fails in some runs and passes in others.

use gridhaul_conformance::case::{self, Case, Peer};
use gridhaul_conformance::compare::BackendTolerance;

/// Milliseconds of a tick of a kernel with 250 ticks per second.
const TICK_MS: f64 = 4.0;

#[test]
fn no_packet_arrives_and_no_run_ends_while_a_timer_of_the_kernel_may_expire() {
    let cases = case::load_all(&case::folder()).expect("valid cases");
    let on_kernel = cases.iter().filter(|case| case.runs_on("kernel"));
    let faults: Vec<_> = on_kernel.flat_map(|case| faults(&case.on_kernel())).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_packet_that_arrives_while_a_timer_may_expire_is_found() {
    let text = include_str!("../../cases/rto/linux_adds_rto_min_to_srtt.toml");
    let good = Case::parse("rto/good", text).expect("a valid case");
    assert_eq!(faults(&good), [""; 0]);
    let expiry = "the timer at 290 ms may expire until 306.5 ms";
    let ended = Case::parse("ended", &text.replace("340 ms", "300 ms")).expect("a valid case");
    assert_eq!(faults(&ended), [format!("ended: {expiry}, but the run ends at 300 ms")]);
    let with_ack = text.replace("50 write 1", "300 < ack 2001\n50 write 1");
    let answered = Case::parse("answered", &with_ack).expect("a valid case");
    let found = format!("answered: {expiry}, but the script has an event at 300 ms");
    assert_eq!(faults(&answered), [found]);
}

/// The times of a scripted case that fall into the tolerance of an expected timer.
fn faults(case: &Case) -> Vec<String> {
    if case.peer != Peer::Script {
        return Vec::new();
    }
    let rows = case.expect.rows().expect("valid rows");
    let times: Vec<f64> = rows.iter().filter_map(|row| row.ms).collect();
    let steps = case.steps().expect("a valid script");
    let steps: Vec<f64> = steps.iter().map(|step| step.at.as_secs_f64() * 1e3).collect();
    let end = case.until.as_secs_f64() * 1e3;
    let mut faults = Vec::new();
    for &at in &times {
        // The start of a connection and replies to the script are no timers.
        if at == 0.0 || steps.iter().any(|step| (step - at).abs() <= case.expect.tolerance_ms) {
            continue;
        }
        let earlier = times.iter().chain(&steps).filter(|&&earlier| earlier < at);
        let set = earlier.copied().fold(0.0, f64::max);
        let latest = at + BackendTolerance::KERNEL.late_ms + granularity_ms(at - set);
        let expiry = format!("{}: the timer at {at} ms may expire until {latest} ms", case.name);
        if let Some(step) = steps.iter().find(|&&step| step > at && step <= latest) {
            faults.push(format!("{expiry}, but the script has an event at {step} ms"));
        }
        if end <= latest {
            faults.push(format!("{expiry}, but the run ends at {end} ms"));
        }
    }
    faults
}

/// Resolution of the kernel's timer wheel for a duration (`kernel/time/timer.c`): each of its
/// levels has 64 slots, which are eight times as long as those of the level below.
fn granularity_ms(duration_ms: f64) -> f64 {
    let mut granularity = TICK_MS;
    while duration_ms > 63.0 * granularity {
        granularity *= 8.0;
    }
    granularity
}
