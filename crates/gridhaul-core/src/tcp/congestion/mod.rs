//! Congestion control: how much may be in flight. One file for each algorithm.
//!
//! A controller only decides; what was lost and what is retransmitted is the business of
//! [`Recovery`]. The defaults of the trait are Reno's, so that the file of a relative
//! of Reno shows just what differs.

mod event;
mod window;

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Recovery};
use gridhaul_scenario::units::{Duration, Instant};

use super::params::StackParams;

pub use event::{Ack, EstimatorCounters, Loss, LossClassifications};
pub use window::Window;

/// [`CongestionControl::window`] and its twin, for a state that has it as its field `window`.
macro_rules! own_window {
    () => {
        #[inline]
        fn window(&self) -> &Window {
            &self.window
        }
        #[inline]
        fn window_mut(&mut self) -> &mut Window {
            &mut self.window
        }
    };
}

/// A congestion control algorithm. Sizes are bytes of payload.
pub trait CongestionControl: Sized {
    /// How a connection holds the state: `Self` in place, or `Box<Self>` where it is much larger than
    /// a [`Window`], so that connections of other variants do not carry its size.
    type Storage: From<Self>;
    /// The loss recovery that belongs to the algorithm, where the stack names none.
    const RECOVERY: Recovery;
    /// Whether [`Self::pacing_rate`] ever says anything.
    const PACED: bool = false;
    /// Whether it reads [`Ack::rate`], [`Ack::delivered_total`] and [`Ack::lost_total`]; others need not
    /// pay for them.
    const SAMPLES_RATE: bool = false;

    /// Whether acknowledgements do nothing but [`Window::grow`], and sending nothing at all, as in Reno.
    const ONLY_GROWS: bool = false;

    /// The state at the start of a connection.
    fn new(params: &StackParams) -> Self;

    /// Congestion window and slow-start threshold.
    fn window(&self) -> &Window;
    /// The same, to change.
    fn window_mut(&mut self) -> &mut Window;

    /// New data was acknowledged outside of fast recovery: the window may grow.
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        self.window_mut().grow(ack);
    }

    /// Any acknowledgement that delivered data (cumulative or selective), in recovery or not.
    /// Called before [`Self::on_ack`]. For algorithms that measure.
    #[inline]
    fn on_delivered(&mut self, _ack: &Ack) {}

    /// A round trip was measured. Called before the loss recovery looks at the acknowledgement,
    /// which may ask [`Self::expired`].
    #[inline]
    fn on_rtt_sample(&mut self, _rtt: Duration) {}

    /// An acknowledgement, of new data or not, reports how long a segment was on its way to the peer, in
    /// microseconds. Called before anything else is made of that acknowledgement.
    #[inline]
    fn on_one_way_delay(&mut self, _us: u32) {}

    /// A loss was found by acknowledgements: fast recovery begins.
    fn on_loss(&mut self, loss: &Loss) {
        self.window_mut().halve(loss);
    }

    /// Fast recovery has ended: everything sent before it is acknowledged.
    fn on_recovered(&mut self, _now: Instant) {}

    /// A reduction was spurious: window and threshold are at least what they were before it (RFC 4015).
    fn on_undo(&mut self, cwnd: u32, ssthresh: u32) {
        let window = self.window_mut();
        window.set_cwnd(window.cwnd_f64().max(f64::from(cwnd)));
        window.set_ssthresh(f64::from(window.ssthresh().max(ssthresh)));
    }

    /// The retransmission timer has fired. RFC 5681, section 3.1: cwnd to the loss window of one
    /// segment, ssthresh as for a loss.
    fn on_timeout(&mut self, loss: &Loss) {
        self.window_mut().collapse(loss);
    }

    /// Data is retransmitted after an idle time longer than the RTO (RFC 5681, section 4.1).
    fn on_idle_restart(&mut self, _now: Instant, initial_window: u32) {
        let window = self.window_mut();
        window.set_cwnd(window.cwnd_f64().min(f64::from(initial_window)));
    }

    /// The window was not used for so long that it comes down to `cwnd`; three quarters of it stay as the
    /// threshold, if it was lower (RFC 2861, in the whole segments of Linux).
    fn on_cwnd_unused(&mut self, cwnd: u32) {
        let window = self.window_mut();
        let segments = (window.cwnd_f64() / window.mss()).floor();
        let kept = ((segments / 2.0).floor() + (segments / 4.0).floor()) * window.mss();
        if kept > f64::from(window.ssthresh()) {
            window.set_ssthresh(kept);
        }
        let left = (f64::from(cwnd) / window.mss()).floor() * window.mss();
        window.set_cwnd(left);
    }

    /// A segment with new data is sent; `next` is the stream position after it.
    #[inline]
    fn on_sent(&mut self, _now: Instant, _next: u64, _in_flight: u64) {}

    /// The rate at which segments may leave, in bytes per second, headers included. `None`: as fast
    /// as they can.
    #[inline]
    fn pacing_rate(&self) -> Option<f64> {
        None
    }

    /// Segments that leave together where [`Self::pacing_rate`] spaces bursts (segmentation offload).
    #[inline]
    fn burst(&self) -> u32 {
        1
    }

    /// What it has computed so far about the network; `None` where that is not counted.
    fn estimator_counters(&self) -> Option<EstimatorCounters> {
        None
    }

    /// Whether the first unacknowledged segment, sent at `sent_at`, is so late that a single
    /// duplicate acknowledgement proves its loss (Vegas).
    #[inline]
    fn expired(&self, _now: Instant, _sent_at: Instant) -> bool {
        false
    }
}

macro_rules! controllers {
    ($($(#[$doc:meta])* $name:ident, $module:ident;)*) => {
        $(pub mod $module;)*

        /// One of the algorithms. An enum instead of a trait object: no vtable.
        #[derive(Debug, Clone)]
        pub enum Controller {
            $($(#[$doc])* $name(<$module::$name as CongestionControl>::Storage),)*
        }

        impl Controller {
            /// The controller of a stack.
            #[must_use]
            pub fn new(params: &StackParams) -> Self {
                match params.congestion_control {
                    $(CongestionControlAlgorithm::$name => Self::$name($module::$name::new(params).into()),)*
                }
            }

            /// The loss recovery that belongs to a variant.
            #[must_use]
            pub const fn recovery_of(congestion_control: CongestionControlAlgorithm) -> Recovery {
                match congestion_control {
                    $(CongestionControlAlgorithm::$name => <$module::$name as CongestionControl>::RECOVERY,)*
                }
            }

            /// Whether it paces.
            #[must_use]
            pub const fn is_paced(&self) -> bool {
                match self {
                    $(Self::$name(_) => <$module::$name as CongestionControl>::PACED,)*
                }
            }

            /// The window, where acknowledgements do nothing but let it grow.
            #[inline]
            pub fn growing_window(&mut self) -> Option<&mut Window> {
                match self {
                    $(Self::$name(inner) if <$module::$name as CongestionControl>::ONLY_GROWS => {
                        Some(inner.window_mut())
                    })*
                    _ => None,
                }
            }

            /// Whether it wants delivery rates.
            #[must_use]
            pub const fn samples_rate(&self) -> bool {
                match self {
                    $(Self::$name(_) => <$module::$name as CongestionControl>::SAMPLES_RATE,)*
                }
            }
        }

        /// Calls a method of whichever algorithm it is.
        macro_rules! dispatch {
            ($self:expr, $inner:ident => $call:expr) => {
                match $self {
                    $(Controller::$name($inner) => $call,)*
                }
            };
        }
    };
}
gridhaul_scenario::for_each_congestion_control!(controllers);

impl Controller {
    /// Congestion window in bytes.
    #[inline]
    #[must_use]
    pub fn cwnd(&self) -> u32 {
        dispatch!(self, inner => inner.window().cwnd())
    }
    /// Slow-start threshold in bytes.
    #[inline]
    #[must_use]
    pub fn ssthresh(&self) -> u32 {
        dispatch!(self, inner => inner.window().ssthresh())
    }
    /// Takes `bytes` off the window, but leaves one segment: the deflation of RFC 6582, step 5.
    pub fn deflate(&mut self, bytes: u32) {
        dispatch!(self, inner => inner.window_mut().deflate(bytes));
    }
    /// Adds `bytes` to the window: what ns-2's Vegas keeps of an inflation that nothing followed.
    pub fn inflate(&mut self, bytes: u32) {
        dispatch!(self, inner => {
            let window = inner.window_mut();
            window.set_cwnd(window.cwnd_f64() + f64::from(bytes));
        });
    }
    /// See [`CongestionControl::on_undo`].
    pub fn on_undo(&mut self, cwnd: u32, ssthresh: u32) {
        dispatch!(self, inner => inner.on_undo(cwnd, ssthresh));
    }
    /// See [`CongestionControl::on_delivered`], and [`CongestionControl::on_ack`] where the window
    /// may `grow`.
    #[inline]
    pub fn on_acknowledged(&mut self, ack: &Ack, grow: bool) {
        dispatch!(self, inner => {
            inner.on_delivered(ack);
            if grow {
                inner.on_ack(ack);
            }
        });
    }
    /// See [`CongestionControl::on_rtt_sample`].
    #[inline]
    pub fn on_rtt_sample(&mut self, rtt: Duration) {
        dispatch!(self, inner => inner.on_rtt_sample(rtt));
    }
    /// See [`CongestionControl::on_one_way_delay`].
    #[inline]
    pub fn on_one_way_delay(&mut self, us: u32) {
        dispatch!(self, inner => inner.on_one_way_delay(us));
    }
    /// See [`CongestionControl::estimator_counters`].
    #[must_use]
    pub fn estimator_counters(&self) -> Option<EstimatorCounters> {
        dispatch!(self, inner => inner.estimator_counters())
    }
    /// See [`CongestionControl::on_loss`].
    pub fn on_loss(&mut self, loss: &Loss) {
        dispatch!(self, inner => inner.on_loss(loss));
    }
    /// See [`CongestionControl::on_recovered`].
    pub fn on_recovered(&mut self, now: Instant) {
        dispatch!(self, inner => inner.on_recovered(now));
    }
    /// See [`CongestionControl::on_timeout`].
    pub fn on_timeout(&mut self, loss: &Loss) {
        dispatch!(self, inner => inner.on_timeout(loss));
    }
    /// See [`CongestionControl::on_idle_restart`].
    pub fn on_idle_restart(&mut self, now: Instant, initial_window: u32) {
        dispatch!(self, inner => inner.on_idle_restart(now, initial_window));
    }
    /// See [`CongestionControl::on_cwnd_unused`].
    pub fn on_cwnd_unused(&mut self, cwnd: u32) {
        dispatch!(self, inner => inner.on_cwnd_unused(cwnd));
    }
    /// See [`CongestionControl::on_sent`].
    #[inline]
    pub fn on_sent(&mut self, now: Instant, next: u64, in_flight: u64) {
        dispatch!(self, inner => inner.on_sent(now, next, in_flight));
    }
    /// See [`CongestionControl::pacing_rate`].
    #[inline]
    #[must_use]
    pub fn pacing_rate(&self) -> Option<f64> {
        dispatch!(self, inner => inner.pacing_rate())
    }
    /// See [`CongestionControl::burst`].
    #[inline]
    #[must_use]
    pub fn burst(&self) -> u32 {
        dispatch!(self, inner => inner.burst())
    }
    /// See [`CongestionControl::expired`].
    #[must_use]
    pub fn expired(&self, now: Instant, sent_at: Instant) -> bool {
        dispatch!(self, inner => inner.expired(now, sent_at))
    }
}

/// Events for tests of controllers, which replace what they are about.
#[cfg(test)]
mod samples {
    use super::*;

    /// A full segment is acknowledged, and nothing else is going on.
    pub(super) fn ack(mss: u32) -> Ack {
        Ack {
            now: Instant::ZERO,
            delivered: mss,
            slow_start_credit: mss,
            avoidance_credit: mss,
            rtt: None,
            srtt: Duration::ZERO,
            prior_in_flight: 0,
            in_flight: 0,
            una: 0,
            next: 0,
            window_limited: true,
            in_recovery: false,
            lost: 0,
            delivered_total: 0,
            lost_total: 0,
            rate: None,
            paced_until: Instant::ZERO,
            mss,
        }
    }

    /// One of so many segments that are outstanding is lost.
    pub(super) fn loss(mss: u32, segments: u32) -> Loss {
        Loss {
            now: Instant::ZERO,
            window: segments * mss,
            in_flight: u64::from(segments * mss),
            sent_at: Instant::ZERO,
            transmits: 1,
            next: 0,
            timed_out_before: false,
            mss,
        }
    }
}
