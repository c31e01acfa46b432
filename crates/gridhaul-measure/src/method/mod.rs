//! The method of measurement, without input or output.
//!
//! Messages follow a fixed schedule, whatever happens to earlier ones (open loop). Each message has
//! an intended, an actual and a receive time on one monotonic clock, and an identifier, by which
//! [`Ledger`] distinguishes loss, duplication, reordering and corruption. [`Summary`] reports order
//! statistics with confidence bounds, and whether the lateness of the generator could explain them.

mod binomial;
mod distribution;
mod interruption;
mod ledger;
mod message;
mod pacing;
mod path;
mod proportion;
mod rate_search;
mod schedule;
mod spread;
mod summary;
mod time_profile;
mod validity;

pub use distribution::{Distribution, Quantile, messages_needed};
pub use interruption::Interruption;
pub use ledger::{Arrivals, Ledger, REPORTED_WITHIN};
pub use message::{Message, Phase, ReceiveTimes};
pub use pacing::sleep_until;
pub use path::{CaptureTimes, PathSummary, Stage};
pub use proportion::Proportion;
pub use rate_search::{RateLimit, RateRange, RateSearch, TrialResult};
pub use schedule::Schedule;
pub use spread::Spread;
pub use summary::{Counts, KernelSummary, Summary};
pub use time_profile::{ProfilePoint, TimeProfile};
pub use validity::{Finding, findings};
