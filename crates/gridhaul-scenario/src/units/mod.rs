//! Types of quantities. In files, quantities are texts with a unit (`"3 Mbit/s"`); in code, they
//! are integers of different types, so that bits and bytes cannot be confused.

mod base_value;
mod bit_rate;
mod bytes;
mod count;
mod decibel;
mod distance;
mod number;
mod probability;
mod quantity;
mod time;
mod window;

use count::plural;
pub(crate) use number::split;

pub use base_value::{BaseUnit, BaseValue};
pub use bit_rate::BitRate;
pub use bytes::Bytes;
pub use count::{counted, was_or_were};
pub use decibel::Decibel;
pub use distance::Distance;
pub use number::Decimal;
pub use probability::Probability;
pub use quantity::{Quantity, UnitError};
pub use time::{Duration, Instant};
pub use window::{BufferLimit, QueueLimit, WindowSize};
