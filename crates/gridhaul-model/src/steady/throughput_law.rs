//! The published throughput law for each congestion control algorithm.

use gridhaul_core::tcp::{ByteCounting, StackParams};
use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Recovery};

use super::ack_cycle::{AckCycle, AckTimer};
use super::own_queue::mean_round_s;
use super::path::Path;
use super::timeouts::{WINDOW_MIN, window_at_loss};
use super::{
    Connection, cubic, cubic_send_rate, cubic_window, limited_square_root_rate, send_rate,
    square_root_rate,
};
use crate::model_rules::ModelRules;

/// A formula of steady-state throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThroughputLaw {
    /// Reno with timeouts (Padhye et al. 1998).
    Timeouts,
    /// The square-root law (paper `plc`, equations 1 to 3): the assumptions of the paper.
    SquareRoot,
    /// CUBIC's window growth (RFC 9438, section 4.2) between independent losses, with timeouts.
    Cubic,
    /// Vegas without loss: α to β segments of each flow wait in the queue (Brakmo and Peterson
    /// 1995).
    Vegas,
    /// No loss: the receive window, or a fixed window, limits the rate.
    Window,
    /// A single Reno flow on a link whose queue overflows (Lakshman and Madhow 1997).
    Sawtooth,
    /// Window reductions on a link that is assumed to stay saturated: no published law.
    FullLink,
}

/// Selects the law for an algorithm on a path with loss (`loss` above zero) or without.
///
/// # Errors
/// The reason why there is no law.
pub fn law_of(
    congestion_control: CongestionControlAlgorithm,
    loss: f64,
    rules: ModelRules,
) -> Result<ThroughputLaw, &'static str> {
    match congestion_control {
        CongestionControlAlgorithm::Reno if rules.are_of_a_paper() => Ok(ThroughputLaw::SquareRoot),
        // The formula describes Reno. It is also the more accurate one of the two laws for NewReno
        // and SACK, since it includes timeouts; docs/limitations/model.md has the figures.
        CongestionControlAlgorithm::Reno
        | CongestionControlAlgorithm::NewReno
        | CongestionControlAlgorithm::Sack => Ok(ThroughputLaw::Timeouts),
        CongestionControlAlgorithm::Cubic => Ok(ThroughputLaw::Cubic),
        CongestionControlAlgorithm::Bbr => {
            Err("there is no published formula for the steady state of BBR; use backend `sim`")
        }
        CongestionControlAlgorithm::Vegas if loss <= 0.0 => Ok(ThroughputLaw::Vegas),
        CongestionControlAlgorithm::Vegas => {
            Err("the formula for Vegas requires links without loss; use backend `sim`")
        }
        CongestionControlAlgorithm::Fixed | CongestionControlAlgorithm::Tahoe if loss <= 0.0 => {
            Ok(ThroughputLaw::Window)
        }
        CongestionControlAlgorithm::Fixed => {
            Err("there is no formula for a fixed window with loss; use backend `sim`")
        }
        CongestionControlAlgorithm::Medx
        | CongestionControlAlgorithm::Veno
        | CongestionControlAlgorithm::Westwood => {
            Err("there is no formula for `medx`, `veno` and `westwood`; use backend `sim`")
        }
        CongestionControlAlgorithm::Tahoe => {
            Err("there is no formula for Tahoe with loss; use backend `sim`")
        }
    }
}

impl ThroughputLaw {
    /// Name in warnings.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Timeouts => {
                "Reno's full formula with timeouts (Padhye, Firoiu, Towsley and Kurose 1998)"
            }
            Self::SquareRoot => "the square-root law (paper `plc`, equations 1 to 3)",
            Self::Cubic => {
                "CUBIC's window growth (RFC 9438, section 4.2) between independent losses, with \
                    timeouts as in the formula of Padhye, Firoiu, Towsley and Kurose (1998)"
            }
            Self::Vegas => {
                "Vegas' equilibrium without loss: alpha to beta segments in the queue (Brakmo \
                    and Peterson 1995)"
            }
            Self::Window => "the receive window over the round-trip time, without loss",
            Self::Sawtooth => {
                "the sawtooth of one Reno flow on a saturated link (Lakshman and Madhow 1997)"
            }
            Self::FullLink => "the link rate, assuming a saturated link (no published law)",
        }
    }

    /// Segments per second that one connection sends if no link limits it.
    pub(super) fn rate(self, connection: &Connection) -> f64 {
        let Connection { rtt_s, window, .. } = *connection;
        let by_window = window / rtt_s;
        match self {
            Self::Timeouts => send_rate(connection),
            Self::SquareRoot => limited_square_root_rate(connection),
            Self::Cubic => cubic_send_rate(connection),
            Self::Vegas | Self::Window | Self::Sawtooth | Self::FullLink => by_window,
        }
    }

    /// Mean round-trip time of one connection in seconds on a link of `link` segments per second
    /// with a queue of `queue` segments, including the queueing delay of its own window.
    pub(super) fn round_s(self, connection: &Connection, link: f64, queue: f64) -> f64 {
        let Connection { rtt_s, loss, window, acked_by_each: b, .. } = *connection;
        let maximum = window.min(link * rtt_s + queue);
        if self.is_window_limited(connection) {
            return rtt_s.max(maximum / link);
        }
        if self != Self::Cubic {
            return mean_round_s(rtt_s, link, window_at_loss(loss, b).min(maximum), 0.5);
        }
        // CUBIC's window depends on the round-trip time, and the round-trip time on the window. The
        // window grows with a power below one of the round-trip time, so that the iteration
        // converges.
        let kept = 0.7;
        let step = |round_s: f64| {
            let top = cubic_window(round_s, loss).0 * 2.0 / (1.0 + kept);
            mean_round_s(rtt_s, link, top.min(maximum), kept)
        };
        (0..60).fold(rtt_s, |round_s, _| step(round_s))
    }

    /// Whether the receive window limits the rate, not the loss.
    pub(super) fn is_window_limited(self, connection: &Connection) -> bool {
        let Connection { rtt_s, loss, window, acked_by_each: b, .. } = *connection;
        match self {
            Self::Timeouts => window_at_loss(loss, b) >= window,
            Self::SquareRoot => square_root_rate(rtt_s, loss, b) >= window / rtt_s,
            Self::Cubic => cubic_window(rtt_s, loss).0 >= window,
            Self::Vegas | Self::Window | Self::Sawtooth | Self::FullLink => true,
        }
    }

    /// The assumption of the law that does not hold, as a warning.
    pub(super) fn violated_assumption(self, connection: &Connection) -> Option<String> {
        let Connection { rtt_s, loss, window, acked_by_each: b, .. } = *connection;
        let mean = match self {
            Self::Timeouts => window_at_loss(loss, b).min(window),
            Self::Cubic => cubic_window(rtt_s, loss).0.min(window),
            Self::Vegas | Self::Window | Self::Sawtooth | Self::FullLink | Self::SquareRoot => {
                return None;
            }
        };
        let minimum = if self == Self::Cubic { cubic::WINDOW_MIN } else { WINDOW_MIN };
        (loss > 0.0 && mean < minimum).then(|| {
            format!(
                "the window is below {minimum} segments, where nearly every loss causes a timeout \
                    and the result depends on timer details"
            )
        })
    }
}

impl Connection {
    /// The parameters of a stack on a path. With the paper's assumptions the round-trip time is the
    /// sum of the delays (paper `plc`, Table II: they include the processing time of the proxies).
    pub(super) fn of(stack: &StackParams, path: &Path, rules: ModelRules) -> Self {
        let is_delayed =
            !stack.delayed_ack.is_zero() && stack.byte_counting != ByteCounting::PerAcked;
        let window = usable_window(stack, path, rules);
        let rtt_s = match rules {
            ModelRules::Refined => path.rtt_s() + ack_delay_s(stack, window, path),
            ModelRules::Paper | ModelRules::Printed => path.propagation_s,
        };
        let mut connection = Self {
            rtt_s,
            loss: path.loss(),
            window,
            acked_by_each: if is_delayed { f64::from(stack.ack_every) } else { 1.0 },
            timeout_s: 0.0,
            // RACK compares times and needs no third duplicate acknowledgement (RFC 8985,
            // section 6.2): as if two more segments followed.
            limited_transmit: match stack.recovery == Recovery::Rack || stack.limited_transmit {
                true => 2.0,
                false => 0.0,
            },
        };
        connection.set_round(rtt_s, stack, path);
        connection
    }

    /// Sets the round-trip time and the retransmission timeout that follows from it.
    pub(super) fn set_round(&mut self, rtt_s: f64, stack: &StackParams, path: &Path) {
        // RFC 6298, 2.3: SRTT + max(G, 4 RTTVAR); Linux has its floor in place of G.
        let spread = 4.0 * path.jitter_deviation_s;
        let floor = stack.rto_min.as_secs_f64();
        let timeout_s = if stack.rto_floor_on_variance {
            rtt_s + spread.max(floor)
        } else {
            (rtt_s + spread.max(stack.clock_granularity.as_secs_f64())).max(floor)
        };
        self.rtt_s = rtt_s;
        self.timeout_s = timeout_s.min(stack.rto_max.as_secs_f64());
    }
}

/// Window in segments: the receive window, or a fixed window that is smaller; whole segments,
/// except in the paper's equation 1 (`plc`), which divides bytes by the round-trip time. With
/// delayed acknowledgements, the segments of a round beyond a multiple of `ack_every` are
/// acknowledged with the next round, or by the timer, if it expires earlier.
fn usable_window(stack: &StackParams, path: &Path, rules: ModelRules) -> f64 {
    let bytes = match stack.congestion_control {
        CongestionControlAlgorithm::Fixed => stack.receive_window.min(stack.fixed_window),
        _ => stack.receive_window,
    };
    let window = f64::from(bytes) / f64::from(stack.mss);
    let window = if rules.are_of_a_paper() { window } else { window.floor() }.max(1.0);
    let each = f64::from(stack.ack_every);
    let is_odd = window > each && window % each > 0.0;
    if stack.delayed_ack.is_zero() || !is_odd || rules != ModelRules::Refined {
        return window;
    }
    let is_adaptive = stack.policy.adaptive_delayed_ack;
    if !is_adaptive && stack.delayed_ack.as_secs_f64() > path.rtt_s() {
        return (window / each).floor() * each;
    }
    let filled_s = window * path.slowest_s;
    if window > CYCLE_WINDOW_MAX || filled_s >= path.rtt_s() {
        // The odd segment hardly counts, or the link limits the rate.
        return window;
    }
    let cycle = AckCycle {
        window: window as usize,
        ack_every: stack.ack_every as usize,
        timer: match (stack.delayed_ack.as_secs_f64(), ack_timer_s(stack, path)) {
            (wait_s, largest_s) if is_adaptive => AckTimer::Adaptive { wait_s, largest_s },
            (seconds, _) => AckTimer::Constant(seconds),
        },
        rtt_s: path.rtt_s(),
        spacing_s: path.slowest_s,
    };
    (cycle.rate() * (path.rtt_s() + ack_delay_s(stack, window, path))).min(window)
}

/// Largest window in segments for which single acknowledgements are counted: beyond it, an odd
/// segment is less than 1 % of the window.
const CYCLE_WINDOW_MAX: f64 = 128.0;

/// Time after which a receiver acknowledges a single segment if no other follows, in seconds.
fn ack_timer_s(stack: &StackParams, path: &Path) -> f64 {
    let timer_s = stack.delayed_ack.as_secs_f64();
    if !stack.policy.adaptive_delayed_ack {
        return timer_s;
    }
    // The timer of Linux doubles whenever it expires, up to the round-trip time of the handshake.
    let bound_s = stack.handshake.then(|| path.rtt_without_payload_s().max(timer_s));
    stack.delayed_ack_max.as_secs_f64().min(bound_s.unwrap_or(f64::INFINITY))
}

/// Delay of the acknowledgement of the first segment of a window, in seconds.
fn ack_delay_s(stack: &StackParams, window: f64, path: &Path) -> f64 {
    let timer_s = stack.delayed_ack.as_secs_f64();
    if window >= f64::from(stack.ack_every) || stack.delayed_ack.is_zero() {
        // Until the last segment that the acknowledgement covers arrives.
        return (f64::from(stack.ack_every.saturating_sub(1)) * path.slowest_s).min(timer_s);
    }
    // The sender waits for the acknowledgement before it sends the segment that would release it,
    // so that the timer expires in every round (RFC 9293, section 3.8.6.3).
    ack_timer_s(stack, path)
}
