//! What only some stacks need, in one piece apart: a simulation has senders by the million, and most of them
//! need none of it.

use super::usage::Usage;
use crate::tcp::rate::RateAccount;

#[derive(Debug, Clone)]
pub(super) struct OptionalState(Option<Box<Parts>>);

#[derive(Debug, Clone)]
struct Parts {
    /// For controllers that want delivery rates, or pace.
    rate: Option<RateAccount>,
    usage: Option<Usage>,
}

impl OptionalState {
    pub(super) fn new(rate: Option<RateAccount>, usage: Option<Usage>) -> Self {
        let is_needed = rate.is_some() || usage.is_some();
        Self(is_needed.then(|| Box::new(Parts { rate, usage })))
    }

    #[inline]
    pub(super) fn rate(&self) -> Option<&RateAccount> {
        self.0.as_ref()?.rate.as_ref()
    }

    #[inline]
    pub(super) fn rate_mut(&mut self) -> Option<&mut RateAccount> {
        self.0.as_mut()?.rate.as_mut()
    }

    #[inline]
    pub(super) fn usage(&self) -> Option<&Usage> {
        self.0.as_ref()?.usage.as_ref()
    }

    #[inline]
    pub(super) fn usage_mut(&mut self) -> Option<&mut Usage> {
        self.0.as_mut()?.usage.as_mut()
    }
}
