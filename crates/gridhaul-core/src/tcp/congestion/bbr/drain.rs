//! Drain: empties the queue built up in start-up (section 4.3.3).

use super::startup::HIGH_GAIN;

/// `BBR.pacing_gain` = 1 / `BBRHighGain`: drains the queue of the last round in one round.
pub(super) const GAIN: f64 = 1.0 / HIGH_GAIN;
