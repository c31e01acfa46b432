//! Which published law stands for which variant.

use gridhaul_core::tcp::{ByteCounting, StackParams};
use gridhaul_scenario::scenario::CongestionControlAlgorithm;

use super::own_queue::mean_round_s;
use super::square_root::LOSS_MAX;
use super::timeouts::{WINDOW_MIN, window_at_loss};
use super::way::Way;
use super::{
    Connection, cubic_rate, cubic_window, limited_square_root_rate, send_rate, square_root_rate,
};
use crate::rules::Rules;

/// A law of the steady state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// Reno with timeouts (Padhye et al. 1998).
    Timeouts,
    /// The square root law (paper `plc`, equations 1 to 3): the paper's rules.
    SquareRoot,
    /// CUBIC's response function (RFC 9438, section 5).
    Cubic,
    /// Vegas without loss: α to β segments of each flow wait in the queue (Brakmo and Peterson
    /// 1995).
    Vegas,
    /// Nothing is lost, and the window that the receiver offers stands.
    Window,
    /// Reno alone on a link whose queue overflows (Lakshman and Madhow 1997).
    Sawtooth,
    /// Window halvings on a link that is taken to be kept full: no published law.
    FullLink,
}

/// The law for a variant on a way that loses (`loss` above zero) or does not.
///
/// # Errors
/// Why there is none.
pub fn law_of(
    congestion_control: CongestionControlAlgorithm,
    loss: f64,
    rules: Rules,
) -> Result<Law, &'static str> {
    match congestion_control {
        CongestionControlAlgorithm::Reno if rules == Rules::Paper => Ok(Law::SquareRoot),
        // The formula was made for Reno. Of the two laws it is the nearer one for NewReno and SACK as
        // well, since it knows timeouts; docs/limitations/model.md has the figures.
        CongestionControlAlgorithm::Reno
        | CongestionControlAlgorithm::NewReno
        | CongestionControlAlgorithm::Sack => Ok(Law::Timeouts),
        CongestionControlAlgorithm::Cubic => Ok(Law::Cubic),
        CongestionControlAlgorithm::Bbr => {
            Err("no published law gives the steady state of BBR; ask `--on sim`")
        }
        CongestionControlAlgorithm::Vegas if loss <= 0.0 => Ok(Law::Vegas),
        CongestionControlAlgorithm::Vegas => {
            Err("Vegas has a law for links without loss only; ask `--on sim`")
        }
        CongestionControlAlgorithm::Fixed | CongestionControlAlgorithm::Tahoe if loss <= 0.0 => {
            Ok(Law::Window)
        }
        CongestionControlAlgorithm::Fixed => {
            Err("a fixed window has no law under loss; ask `--on sim`")
        }
        CongestionControlAlgorithm::Medx
        | CongestionControlAlgorithm::Veno
        | CongestionControlAlgorithm::Westwood => {
            Err("no law is used for `medx`, `veno` and `westwood`; ask `--on sim`")
        }
        CongestionControlAlgorithm::Tahoe => {
            Err("no published law is used for Tahoe under loss; ask `--on sim`")
        }
    }
}

impl Law {
    /// What it is called in warnings.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Timeouts => {
                "Reno's full formula with timeouts (Padhye, Firoiu, Towsley and Kurose 1998)"
            }
            Self::SquareRoot => "the square root law (paper `plc`, equations 1 to 3)",
            Self::Cubic => {
                "CUBIC's response function (RFC 9438, section 5), which knows no timeouts"
            }
            Self::Vegas => {
                "Vegas' equilibrium without loss: alpha to beta segments wait (Brakmo and \
                 Peterson 1995)"
            }
            Self::Window => "the receive window over the round trip, nothing being lost",
            Self::Sawtooth => {
                "the sawtooth of one Reno flow on a full link (Lakshman and Madhow 1997)"
            }
            Self::FullLink => "the rate of the link, taken to be kept full (no published law)",
        }
    }

    /// Segments a second that one connection sends where no link holds it up.
    pub(super) fn rate(self, connection: &Connection) -> f64 {
        let Connection { rtt_s, loss, window, .. } = *connection;
        let by_window = window / rtt_s;
        match self {
            Self::Timeouts => send_rate(connection),
            Self::SquareRoot => limited_square_root_rate(connection),
            Self::Cubic => cubic_rate(rtt_s, loss).min(by_window),
            Self::Vegas | Self::Window | Self::Sawtooth | Self::FullLink => by_window,
        }
    }

    /// Mean round trip of one connection in seconds when it has `link` segments a second to itself
    /// and `queue` segments may wait: its own window waits there.
    pub(super) fn round_s(self, connection: &Connection, link: f64, queue: f64) -> f64 {
        let Connection { rtt_s, loss, window, acked_by_each: b, .. } = *connection;
        let most = window.min(link * rtt_s + queue);
        if self.is_window_limited(connection) {
            return rtt_s.max(most / link);
        }
        if self != Self::Cubic {
            return mean_round_s(rtt_s, link, window_at_loss(loss, b).min(most), 0.5);
        }
        // CUBIC's window depends on the round trip and the round trip on the window. The former
        // grows with a power below one of the latter, so that each step comes nearer.
        let kept = 0.7;
        let step = |round_s: f64| {
            let top = cubic_window(round_s, loss).0 * 2.0 / (1.0 + kept);
            mean_round_s(rtt_s, link, top.min(most), kept)
        };
        (0..60).fold(rtt_s, |round_s, _| step(round_s))
    }

    /// Whether the receive window binds rather than the loss.
    pub(super) fn is_window_limited(self, connection: &Connection) -> bool {
        let Connection { rtt_s, loss, window, acked_by_each: b, .. } = *connection;
        match self {
            Self::Timeouts => window_at_loss(loss, b) >= window,
            Self::SquareRoot => square_root_rate(rtt_s, loss, b) >= window / rtt_s,
            Self::Cubic => cubic_window(rtt_s, loss).0 >= window,
            Self::Vegas | Self::Window | Self::Sawtooth | Self::FullLink => true,
        }
    }

    /// What of the law's assumptions does not hold.
    pub(super) fn outside(self, connection: &Connection) -> Option<String> {
        let Connection { rtt_s, loss, window, acked_by_each: b, .. } = *connection;
        let mean = match self {
            Self::Timeouts => window_at_loss(loss, b).min(window),
            Self::Cubic => cubic_window(rtt_s, loss).0.min(window),
            Self::Vegas | Self::Window | Self::Sawtooth | Self::FullLink | Self::SquareRoot => {
                return None;
            }
        };
        if loss > LOSS_MAX && self != Self::Timeouts {
            return Some(format!(
                "more than {} % are lost, where timeouts rule and this law knows none: an upper \
                 bound",
                LOSS_MAX * 100.0
            ));
        }
        (loss > 0.0 && mean < WINDOW_MIN).then(|| match self {
            Self::Timeouts => "the window is below 4 segments, where nearly every loss waits for \
                               the timer and the details of the timer decide"
                .to_owned(),
            _ => "the window is below 4 segments, where losses wait for the timer, which this law \
                  does not know: an upper bound"
                .to_owned(),
        })
    }
}

impl Connection {
    /// What a stack makes of a way. By the paper's rules a round trip is delays alone (paper `plc`,
    /// Table II: they stand for the time that units need).
    pub(super) fn of(stack: &StackParams, way: &Way, rules: Rules) -> Self {
        let is_delayed =
            !stack.delayed_ack.is_zero() && stack.byte_counting != ByteCounting::PerAcked;
        // The first segment that an acknowledgement covers waits for the last one.
        let company = f64::from(stack.ack_every.saturating_sub(1)) * way.slowest_s;
        let rtt_s = match rules {
            Rules::Refined => way.rtt_s() + company.min(stack.delayed_ack.as_secs_f64()),
            Rules::Paper => way.propagation_s,
        };
        let mut connection = Self {
            rtt_s,
            loss: way.loss(),
            window: (f64::from(stack.receive_window) / f64::from(stack.mss)).floor().max(1.0),
            acked_by_each: if is_delayed { f64::from(stack.ack_every) } else { 1.0 },
            timeout_s: 0.0,
        };
        connection.set_round(rtt_s, stack, way);
        connection
    }

    /// Sets the round trip, and the timer that follows from it.
    pub(super) fn set_round(&mut self, rtt_s: f64, stack: &StackParams, way: &Way) {
        // RFC 6298, 2.3: SRTT + max(G, 4 RTTVAR); Linux has its floor in place of G.
        let spread = 4.0 * way.jitter_deviation_s;
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
