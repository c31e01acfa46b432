//! Congestion control: the limit of the data in flight. One file for each algorithm.
//!
//! A congestion control determines the window and the pacing rate; [`Recovery`] detects losses and
//! retransmits. The default methods of the trait implement Reno, so that the file of a related
//! algorithm has only the differences.

mod counters;
mod window;

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Recovery};
use gridhaul_scenario::units::{Duration, Instant};

use super::event::{Ack, DelayReport, LinkReport, Loss};
use super::params::StackParams;

pub use counters::{EstimatorCounters, LossClassifications};
pub use window::Window;

/// [`CongestionControl::window`] and [`CongestionControl::window_mut`] for a state with a field
/// `window`.
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

// rustfmt and cargo-mutants find only modules that no macro declares.
pub mod bbr;
pub mod cubic;
pub mod fixed;
pub mod medx;
pub mod new_reno;
pub mod reno;
pub mod sack;
pub mod tahoe;
pub mod vegas;
pub mod veno;
pub mod westwood;

/// A congestion control algorithm. Sizes are bytes of payload.
pub trait CongestionControl: Sized {
    /// Storage of the state in a connection: `Self`, or `Box<Self>` where the state is much larger
    /// than a [`Window`], so that connections with other algorithms do not carry its size.
    type Storage: From<Self>;
    /// Loss recovery of the algorithm, unless the stack sets one.
    const RECOVERY: Recovery;
    /// Whether [`Self::pacing_rate`] ever returns a rate.
    const PACED: bool = false;
    /// Whether the algorithm reads [`Ack::rate`], [`Ack::delivered_total`] and [`Ack::lost_total`],
    /// which are not computed otherwise.
    const SAMPLES_RATE: bool = false;

    /// Whether acknowledgements only call [`Window::grow`] and transmissions have no effect, as in
    /// Reno.
    const ONLY_GROWS: bool = false;

    /// The state at the start of a connection.
    fn new(params: &StackParams) -> Self;

    /// Congestion window and slow-start threshold.
    fn window(&self) -> &Window;
    /// Mutable access to congestion window and slow-start threshold.
    fn window_mut(&mut self) -> &mut Window;

    /// New data was acknowledged outside fast recovery: the window may grow.
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        self.window_mut().grow(ack);
    }

    /// Any acknowledgement that delivered data (cumulative or selective), in recovery or not.
    /// Called before [`Self::on_ack`]. For algorithms that measure.
    #[inline]
    fn on_delivered(&mut self, _ack: &Ack) {}

    /// A round trip was measured. Called before the loss recovery handles the acknowledgement,
    /// which may call [`Self::expired`].
    #[inline]
    fn on_rtt_sample(&mut self, _rtt: Duration) {}

    /// An acknowledgement, of new data or not, reports the delay of a segment. Called before the
    /// acknowledgement is processed otherwise.
    #[inline]
    fn on_delay_report(&mut self, _report: &DelayReport) {}

    /// A link reports an event of a segment, for classifiers that learn the causes of losses.
    fn on_link_report(&mut self, _report: &LinkReport) {}

    /// Acknowledgements indicate a loss: fast recovery begins.
    fn on_loss(&mut self, loss: &Loss) {
        self.window_mut().halve(loss);
    }

    /// The peer echoes a congestion mark. RFC 3168, section 6.1.2: the response is "essentially the
    /// same as the response to a dropped packet".
    fn on_congestion_mark(&mut self, loss: &Loss) {
        self.on_loss(loss);
    }

    /// Fast recovery has ended: all data sent before it is acknowledged.
    fn on_recovered(&mut self, _now: Instant) {}

    /// A reduction was spurious: restores at least the window and the threshold before it (RFC
    /// 4015).
    fn on_undo(&mut self, cwnd: u32, ssthresh: u32) {
        let window = self.window_mut();
        // Since the reduction, the window may have grown beyond its previous value.
        window.set_cwnd(window.cwnd_f64().max(f64::from(cwnd)));
        window.set_ssthresh(f64::from(window.ssthresh().max(ssthresh)));
    }

    /// The retransmission timer has expired. RFC 5681, section 3.1: cwnd to the loss window of one
    /// segment, ssthresh as for a loss.
    fn on_timeout(&mut self, loss: &Loss) {
        self.window_mut().collapse(loss);
    }

    /// Segments become smaller, because the path carries no larger ones.
    fn on_mss_lowered(&mut self, mss: u32) {
        self.window_mut().lower_mss(mss);
    }

    /// Transmission resumes after an idle period longer than the RTO (RFC 5681, section 4.1).
    fn on_idle_restart(&mut self, _now: Instant, initial_window: u32) {
        let window = self.window_mut();
        // RFC 5681, section 4.1: "we define RW = min(IW,cwnd)". The threshold stays: slow start
        // grows the window up to it.
        window.set_cwnd(window.cwnd_f64().min(f64::from(initial_window)));
    }

    /// The window was not used for an RTO and is reduced to `cwnd`; three quarters of it become the
    /// threshold if that is higher (RFC 2861, in the whole segments of Linux).
    fn on_cwnd_unused(&mut self, cwnd: u32) {
        let window = self.window_mut();
        let segments = (window.cwnd_f64() / window.mss()).floor();
        // `tcp_current_ssthresh` of Linux computes three quarters as (cwnd >> 1) + (cwnd >> 2),
        // each in whole segments.
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

    /// Pacing rate in bytes per second, headers included. `None`: no pacing.
    #[inline]
    fn pacing_rate(&self) -> Option<f64> {
        None
    }

    /// Number of segments in a burst where [`Self::pacing_rate`] spaces bursts (segmentation
    /// offload).
    #[inline]
    fn burst(&self) -> u32 {
        1
    }

    /// Name of the state, where it is not slow start or congestion avoidance by the threshold.
    fn state(&self) -> Option<&'static str> {
        None
    }

    /// Counters of estimates about the network; `None` where they are not counted.
    fn estimator_counters(&self) -> Option<EstimatorCounters> {
        None
    }

    /// Whether the first unacknowledged segment, sent at `sent_at`, is so old that a single
    /// duplicate acknowledgement proves its loss (Vegas).
    #[inline]
    fn expired(&self, _now: Instant, _sent_at: Instant) -> bool {
        false
    }
}

macro_rules! controllers {
    ($($(#[$doc:meta])* $name:ident, $module:ident;)*) => {
        /// The congestion control algorithms. An enum avoids the dynamic dispatch of a trait
        /// object.
        #[derive(Debug, Clone)]
        pub enum Controller {
            $($(#[$doc])* $name(<$module::$name as CongestionControl>::Storage),)*
        }

        impl Controller {
            /// The congestion control of a stack.
            #[must_use]
            pub fn new(params: &StackParams) -> Self {
                match params.congestion_control {
                    $(CongestionControlAlgorithm::$name => {
                        Self::$name($module::$name::new(params).into())
                    })*
                }
            }

            /// The loss recovery of a congestion control algorithm.
            #[must_use]
            pub const fn recovery_of(congestion_control: CongestionControlAlgorithm) -> Recovery {
                match congestion_control {
                    $(CongestionControlAlgorithm::$name => {
                        <$module::$name as CongestionControl>::RECOVERY
                    })*
                }
            }

            /// Whether the algorithm uses pacing.
            #[must_use]
            pub const fn is_paced(&self) -> bool {
                match self {
                    $(Self::$name(_) => <$module::$name as CongestionControl>::PACED,)*
                }
            }

            /// The window, where acknowledgements only let it grow.
            #[inline]
            pub fn growing_window(&mut self) -> Option<&mut Window> {
                match self {
                    $(Self::$name(inner) if <$module::$name as CongestionControl>::ONLY_GROWS => {
                        Some(inner.window_mut())
                    })*
                    _ => None,
                }
            }

            /// Whether the algorithm uses delivery rates.
            #[must_use]
            pub const fn samples_rate(&self) -> bool {
                match self {
                    $(Self::$name(_) => <$module::$name as CongestionControl>::SAMPLES_RATE,)*
                }
            }
        }

        /// Calls a method of the selected algorithm.
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
    /// Deducts `bytes` from the window, down to one segment: the deflation of RFC 6582, step 5.
    pub fn deflate(&mut self, bytes: u32) {
        dispatch!(self, inner => inner.window_mut().deflate(bytes));
    }
    /// Adds `bytes` to the window, as ns-2's Vegas does with the inflation if no duplicates
    /// followed a retransmission.
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
    /// See [`CongestionControl::on_delay_report`].
    #[inline]
    pub fn on_delay_report(&mut self, report: &DelayReport) {
        dispatch!(self, inner => inner.on_delay_report(report));
    }
    /// See [`CongestionControl::on_link_report`].
    pub fn on_link_report(&mut self, report: &LinkReport) {
        dispatch!(self, inner => inner.on_link_report(report));
    }
    /// See [`CongestionControl::state`].
    #[must_use]
    pub fn state(&self) -> Option<&'static str> {
        dispatch!(self, inner => inner.state())
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
    /// See [`CongestionControl::on_congestion_mark`].
    pub fn on_congestion_mark(&mut self, loss: &Loss) {
        dispatch!(self, inner => inner.on_congestion_mark(loss));
    }
    /// See [`CongestionControl::on_recovered`].
    pub fn on_recovered(&mut self, now: Instant) {
        dispatch!(self, inner => inner.on_recovered(now));
    }
    /// See [`CongestionControl::on_timeout`].
    pub fn on_timeout(&mut self, loss: &Loss) {
        dispatch!(self, inner => inner.on_timeout(loss));
    }
    /// See [`CongestionControl::on_mss_lowered`].
    pub fn on_mss_lowered(&mut self, mss: u32) {
        dispatch!(self, inner => inner.on_mss_lowered(mss));
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

#[cfg(test)]
mod tests;

/// Events for tests of congestion controls, which override individual fields.
#[cfg(test)]
mod samples {
    use gridhaul_scenario::scenario::{Profile, Stack};

    use super::*;

    /// A stack with an algorithm as its RFC or paper describes it.
    pub(super) fn stack(algorithm: CongestionControlAlgorithm) -> Stack {
        let congestion_control = Some(algorithm);
        Stack { profile: Profile::Rfc, congestion_control, ..Stack::default() }
    }

    /// An acknowledgement of a full segment without other events.
    pub(super) fn ack(mss: u32) -> Ack {
        Ack {
            delivered: mss,
            slow_start_credit: mss,
            avoidance_credit: mss,
            window_limited: true,
            mss,
            ..Ack::default()
        }
    }

    /// The loss of one of `segments` outstanding segments.
    pub(super) fn loss(mss: u32, segments: u32) -> Loss {
        Loss {
            now: Instant::ZERO,
            window: segments * mss,
            in_flight: u64::from(segments * mss),
            una: 0,
            sent_at: Instant::ZERO,
            transmits: 1,
            next: 0,
            timed_out_before: false,
            mss,
        }
    }
}
