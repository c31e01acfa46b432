//! State that only some stacks need, allocated together: a simulation has millions of senders, and
//! most need none of it.

use super::congestion_echo::CongestionEcho;
use super::cwnd_validation::CwndValidation;
use super::timer_wheel::TimerWheel;
use crate::tcp::params::StackParams;
use crate::tcp::rate::RateAccount;

#[derive(Debug, Clone)]
pub(super) struct OptionalState(Option<Box<State>>);

#[derive(Debug, Clone)]
struct State {
    /// For congestion controls that use delivery rates or pacing. Allocated apart, because it is
    /// three times as large as the rest.
    rate: Option<Box<RateAccount>>,
    cwnd_validation: Option<CwndValidation>,
    timer_wheel: TimerWheel,
    /// For stacks with ECN.
    congestion_echo: Option<Box<CongestionEcho>>,
}

impl OptionalState {
    pub(super) fn new(
        rate: Option<RateAccount>,
        cwnd_validation: Option<CwndValidation>,
        params: &StackParams,
    ) -> Self {
        let is_needed = rate.is_some() || cwnd_validation.is_some() || params.policy.timer_wheel;
        let is_needed = is_needed || params.ecn;
        let congestion_echo = params.ecn.then(Box::default);
        let timer_wheel = TimerWheel::default();
        let rate = rate.map(Box::new);
        Self(
            is_needed
                .then(|| Box::new(State { rate, cwnd_validation, timer_wheel, congestion_echo })),
        )
    }

    #[inline]
    pub(super) fn timer_wheel(&self) -> Option<TimerWheel> {
        self.0.as_ref().map(|state| state.timer_wheel)
    }

    pub(super) fn set_timer_wheel(&mut self, timer_wheel: TimerWheel) {
        if let Some(state) = &mut self.0 {
            state.timer_wheel = timer_wheel;
        }
    }

    #[inline]
    pub(super) fn rate(&self) -> Option<&RateAccount> {
        self.0.as_ref()?.rate.as_deref()
    }

    #[inline]
    pub(super) fn rate_mut(&mut self) -> Option<&mut RateAccount> {
        self.0.as_mut()?.rate.as_deref_mut()
    }

    #[inline]
    pub(super) fn congestion_echo(&self) -> Option<&CongestionEcho> {
        self.0.as_ref()?.congestion_echo.as_deref()
    }

    #[inline]
    pub(super) fn congestion_echo_mut(&mut self) -> Option<&mut CongestionEcho> {
        self.0.as_mut()?.congestion_echo.as_deref_mut()
    }

    /// See [`CongestionEcho::reduced_until`]; 0 without ECN.
    #[inline]
    pub(super) fn reduced_until(&self) -> u64 {
        self.congestion_echo().map_or(0, CongestionEcho::reduced_until)
    }

    #[inline]
    pub(super) fn cwnd_validation(&self) -> Option<&CwndValidation> {
        self.0.as_ref()?.cwnd_validation.as_ref()
    }

    #[inline]
    pub(super) fn cwnd_validation_mut(&mut self) -> Option<&mut CwndValidation> {
        self.0.as_mut()?.cwnd_validation.as_mut()
    }
}
