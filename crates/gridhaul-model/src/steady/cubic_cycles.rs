//! Cycles of CUBIC's window between losses that are independent of each other.
//!
//! The response function of RFC 9438, section 5, has a loss after every 1/p segments. Independent
//! losses come after few segments or after many, and the window grows with the cube of the time: a
//! long cycle adds more to the mean than a short one takes away, unless the receive window cuts off
//! its peak. The windows at which losses occur are a Markov chain, because the window at a loss and
//! fast convergence determine the next cycle (sections 4.2 to 4.7).

use super::cubic::{BETA, C, friendly_window, window_of_cubic_region};

/// Windows at which a loss occurs that are distinguished; between them, interpolation is linear.
/// More of them, and more lengths of a cycle, change the rate by less than 2 %; a chain of proxies
/// needs thousands of rates.
const WINDOWS: usize = 16;
/// Lengths of a cycle that are distinguished: the means of equally probable parts of the
/// exponential distribution.
const LENGTHS: usize = 16;
/// Means over the cycles do not change by more than this share from one cycle to the next at the
/// end.
const PRECISION: f64 = 1e-6;

/// Means over the cycles of a long connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CubicCycles {
    /// Segments per second.
    pub rate: f64,
    /// Window at a loss, in segments.
    pub at_loss: f64,
}

impl CubicCycles {
    /// Cycles at a loss ratio above 0, with windows of at most `limit` segments.
    pub(super) fn new(rtt_s: f64, loss: f64, limit: f64) -> Self {
        // The tail of the distribution ends where the probability is below 1 / LENGTHS, after about
        // five mean lengths: no window exceeds a few times the mean one.
        let mean = window_of_cubic_region(rtt_s, loss).max(friendly_window(loss));
        let largest = limit.min(6.0 * mean + 20.0);
        if largest <= 1.0 {
            return Self { rate: limit / rtt_s, at_loss: limit };
        }
        let chain = Chain { rtt_s, limit: largest, lengths: cycle_lengths(loss) };
        chain.means()
    }
}

/// Segments from one loss to the next: the means of equally probable parts of the exponential
/// distribution, in ascending order.
fn cycle_lengths(loss: f64) -> [f64; LENGTHS] {
    // The mean of the part from a to b, where exp(-a) - exp(-b) = 1 / LENGTHS, by the integral of
    // x exp(-x): (a + 1) exp(-a) - (b + 1) exp(-b).
    let parts = LENGTHS as f64;
    let beyond = |part: usize| {
        let tail = 1.0 - part as f64 / parts;
        if tail > 0.0 { (1.0 - tail.ln()) * tail } else { 0.0 }
    };
    std::array::from_fn(|part| parts * (beyond(part) - beyond(part + 1)) / loss)
}

/// The Markov chain of the windows at which losses occur.
struct Chain {
    rtt_s: f64,
    /// Largest window, in segments.
    limit: f64,
    lengths: [f64; LENGTHS],
}

/// A state of the chain: a window at a loss, and whether fast convergence follows.
#[derive(Clone, Copy)]
struct State {
    at_loss: f64,
    converges: bool,
}

/// Number of states: every window with and without fast convergence.
const STATES: usize = 2 * WINDOWS;

/// Results of a cycle that begins in a state.
struct Cycle {
    /// Window at the loss with which it begins.
    at_loss: f64,
    mean_s: f64,
    mean_segments: f64,
    /// Probability of each state at its end.
    next: [f64; STATES],
}

impl Chain {
    fn means(&self) -> CubicCycles {
        let cycles: Vec<Cycle> = (0..STATES).map(|number| self.cycle(self.state(number))).collect();
        let mut probability = [1.0 / STATES as f64; STATES];
        let mut means = weighted(&cycles, &probability);
        loop {
            let mut next = [0.0; STATES];
            for (cycle, share) in cycles.iter().zip(probability) {
                for (sum, by_cycle) in next.iter_mut().zip(cycle.next) {
                    *sum += share * by_cycle;
                }
            }
            probability = next;
            let before = means;
            means = weighted(&cycles, &probability);
            if (means.at_loss - before.at_loss).abs() <= PRECISION * means.at_loss {
                return means;
            }
        }
    }

    /// Windows are spaced by equal factors from one segment on.
    fn state(&self, number: usize) -> State {
        let exponent = (number % WINDOWS) as f64 / (WINDOWS - 1) as f64;
        State { at_loss: self.limit.powf(exponent), converges: number >= WINDOWS }
    }

    /// All cycles that begin with a loss in this state.
    fn cycle(&self, state: State) -> Cycle {
        let growth = Growth::after(state, self.rtt_s, self.limit);
        let at_loss = state.at_loss;
        let mut cycle = Cycle { at_loss, mean_s: 0.0, mean_segments: 0.0, next: [0.0; STATES] };
        let (mut time_s, mut sent) = (0.0, 0.0);
        for length in self.lengths {
            time_s = growth.time_after(time_s, length - sent);
            sent = length;
            cycle.mean_s += time_s / LENGTHS as f64;
            cycle.mean_segments += sent / LENGTHS as f64;
            let window = growth.window(time_s);
            self.add(window, window < growth.origin, &mut cycle.next);
        }
        cycle
    }

    /// Adds the end of a cycle of one length, divided between the two closest windows.
    fn add(&self, window: f64, converges: bool, next: &mut [f64; STATES]) {
        let exponent = window.max(1.0).ln() / self.limit.ln();
        let place = (exponent * (WINDOWS - 1) as f64).floor().min((WINDOWS - 2) as f64) as usize;
        let (low, high) = (self.state(place).at_loss, self.state(place + 1).at_loss);
        let above = ((window.max(1.0) - low) / (high - low)).clamp(0.0, 1.0);
        let first = if converges { WINDOWS + place } else { place };
        next[first] += (1.0 - above) / LENGTHS as f64;
        next[first + 1] += above / LENGTHS as f64;
    }
}

/// Means of cycles that have these probabilities.
fn weighted(cycles: &[Cycle], probability: &[f64; STATES]) -> CubicCycles {
    let (mut seconds, mut segments, mut at_loss) = (0.0, 0.0, 0.0);
    for (cycle, share) in cycles.iter().zip(probability) {
        seconds += share * cycle.mean_s;
        segments += share * cycle.mean_segments;
        at_loss += share * cycle.at_loss;
    }
    CubicCycles { rate: segments / seconds, at_loss }
}

/// The window after a loss: a recovery of one round trip with the reduced window, then growth.
struct Growth {
    rtt_s: f64,
    limit: f64,
    /// The window after the loss.
    reduced: f64,
    /// `W_max`: the window of the plateau.
    origin: f64,
    /// `K`: time from the recovery to the plateau.
    plateau_s: f64,
}

impl Growth {
    fn after(state: State, rtt_s: f64, limit: f64) -> Self {
        let State { at_loss, converges } = state;
        // RFC 9438, section 4.7: a window below the last plateau makes space for other connections.
        let origin = if converges { at_loss * (1.0 + BETA) / 2.0 } else { at_loss };
        let reduced = (BETA * at_loss).max(1.0);
        // RFC 9438, equation 2.
        let plateau_s = ((origin - reduced).max(0.0) / C).cbrt();
        Self { rtt_s, limit, reduced, origin, plateau_s }
    }

    /// The window `time_s` after the loss was detected, in segments.
    fn window(&self, time_s: f64) -> f64 {
        if time_s < self.rtt_s {
            return self.reduced.min(self.limit);
        }
        let time_s = time_s - self.rtt_s;
        // RFC 9438, equations 1 and 4; α = 3 (1 - β) / (1 + β) of section 4.3, as in Linux also
        // above the window before the loss.
        let cubic = C * (time_s - self.plateau_s).powi(3) + self.origin;
        let friendly = self.reduced + 3.0 * (1.0 - BETA) / (1.0 + BETA) * time_s / self.rtt_s;
        cubic.max(friendly).min(self.limit)
    }

    /// When `segments` more are sent, by the midpoint rule: a window is sent in each round trip.
    fn time_after(&self, time_s: f64, segments: f64) -> f64 {
        let half_s = segments / 2.0 * self.rtt_s / self.window(time_s);
        time_s + segments * self.rtt_s / self.window(time_s + half_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulated with profile `linux`: segments of 1,000 B on 20 Mbit/s, a queue of 400 packets, 6
    /// runs of 300 s. Loss, round trip in ms, receive window in segments, goodput in kbit/s.
    const CUT_OFF: [(f64, f64, f64, f64); 6] = [
        (0.001, 100.0, 20.0, 1512.0),
        (0.003, 100.0, 20.0, 1348.0),
        (0.001, 600.0, 64.0, 772.0),
        (0.003, 600.0, 64.0, 633.0),
        (0.003, 600.0, 20.0, 247.0),
        (0.01, 600.0, 20.0, 212.0),
    ];
    /// The same with a receive window that does not limit.
    const FREE: [(f64, f64, f64, f64); 6] = [
        (0.001, 100.0, 4000.0, 3366.0),
        (0.003, 100.0, 4000.0, 1789.0),
        (0.01, 100.0, 4000.0, 913.0),
        (0.001, 600.0, 4000.0, 1967.0),
        (0.003, 600.0, 4000.0, 906.0),
        (0.01, 600.0, 4000.0, 368.0),
    ];

    fn assert_within(tolerance: f64, simulations: &[(f64, f64, f64, f64)]) {
        for &(loss, rtt_ms, limit, simulated) in simulations {
            let cycles = CubicCycles::new(rtt_ms / 1e3 + 0.0008, loss, limit);
            let deviation = cycles.rate * (1.0 - loss) * 8.0 / simulated - 1.0;
            assert!(deviation.abs() < tolerance, "{loss}, {rtt_ms}, {limit}: {deviation:+.3}");
        }
    }

    #[test]
    fn a_receive_window_cuts_off_the_peaks_as_in_simulations() {
        // The mean window of RFC 9438, section 5, up to the receive window, is 24 % too high.
        assert_within(0.08, &CUT_OFF);
        assert_within(0.22, &FREE);
    }

    #[test]
    fn cycle_lengths_have_the_mean_of_the_distribution() {
        let lengths = cycle_lengths(0.01);
        let mean = lengths.iter().sum::<f64>() / LENGTHS as f64;
        assert!((mean - 100.0).abs() < 1e-9, "{mean}");
        assert!(lengths.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_narrow_window_is_full_all_the_time_but_for_recoveries() {
        // A loss in 1,000 segments and a window of ten: reduced to seven for one round trip, then
        // (3 / 0.4)^(1/3) = 1.957 s to ten, in which 10 - 3/4 are sent in each round trip.
        let cycles = CubicCycles::new(0.1, 1e-3, 10.0);
        let seconds = 0.1 + 1.957 + (1e3 - 7.0 - 9.25 * 19.57) / 100.0;
        assert!((cycles.rate / (1e3 / seconds) - 1.0).abs() < 0.01, "{cycles:?}");
        assert!((9.7..=10.0).contains(&cycles.at_loss), "{cycles:?}");
    }

    #[test]
    fn the_window_grows_by_the_equations_of_the_rfc() {
        // From 100 segments: 70, and K = (30 / 0.4)^(1/3) = 4.217 s.
        let state = State { at_loss: 100.0, converges: false };
        let growth = Growth::after(state, 0.1, 1000.0);
        assert!((growth.window(0.05) - 70.0).abs() < 1e-9);
        assert!((growth.plateau_s - 4.217).abs() < 1e-3);
        assert!((growth.window(0.1 + growth.plateau_s + 10.0) - 500.0).abs() < 1e-9);
        // Fast convergence: the plateau is at 85 segments.
        let converging = Growth::after(State { converges: true, ..state }, 0.1, 1000.0);
        assert!((converging.origin - 85.0).abs() < 1e-9);
        // At 10 ms, the Reno-friendly window is larger: 70 + 0.52941 · 100 after a second.
        let short = Growth::after(state, 0.01, 1000.0);
        assert!((short.window(1.01) - 122.941).abs() < 1e-3);
    }
}
