//! The formulas of the steady state beside ns-2's goodput (`conformance/ns2/grid.csv`).
//!
//! `cargo run -p gridhaul-conformance --example model` prints each point; docs/limitations/model.md says
//! what is known of the differences.

use gridhaul_conformance::ns2_grid::{GridPoint, grid};

/// How near the formulas are at 5 % loss, where the timer rules and NewReno and SACK have fewer
/// timeouts than Reno.
const TOLERANCE: f64 = 0.26;

/// With losses up to 1 %, where the timer does not rule.
const TOLERANCE_LOW_LOSS: f64 = 0.12;

/// Reno loses several segments in one overflow of a short queue and waits for its timer, of which the
/// sawtooth knows nothing.
const SHORT_QUEUE: (&str, &str) = ("r64-d700-l0-b10-a100", "Reno");

/// A run of two minutes, most of them the way to the steady state.
const START: &str = "r4180-d343-l0-b15-a40";

fn difference(point: &GridPoint) -> Option<f64> {
    Some(point.model()? / point.goodput_mean - 1.0)
}

#[test]
fn goodput_is_within_what_the_formulas_promise() {
    let (mut known, mut near) = (0, 0);
    for point in grid().into_iter().filter(|point| point.name != START) {
        let Some(difference) = difference(&point) else { continue };
        let is_low = point.loss <= 0.01
            && (point.name.as_str(), point.congestion_control.as_str()) != SHORT_QUEUE;
        let bound = if is_low { TOLERANCE_LOW_LOSS } else { TOLERANCE };
        assert!(
            difference.abs() <= bound,
            "{} {}: {:+.1} %",
            point.name,
            point.congestion_control,
            difference * 100.0
        );
        known += 1;
        near += u32::from(difference.abs() <= 0.1);
    }
    // Reno, NewReno and SACK everywhere, Vegas without loss.
    assert_eq!(known, 3 * 36 + 9);
    assert!(near >= 100, "only {near} of {known} points are within 10 %");
}
