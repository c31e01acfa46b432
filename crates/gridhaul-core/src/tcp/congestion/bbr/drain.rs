//! Drain: empties the queue that start-up has built (section 4.3.3).

use super::startup::HIGH_GAIN;

/// `BBR.pacing_gain` = 1 / `BBRHighGain`: in one round the queue of the last one leaves.
pub(super) const GAIN: f64 = 1.0 / HIGH_GAIN;
