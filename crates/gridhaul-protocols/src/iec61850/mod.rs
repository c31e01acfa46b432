//! Parts that Sampled Values and GOOSE have in common: the header after the EtherType, time stamps,
//! the encoding of elements, and errors.

mod application;
pub(crate) mod ber;
mod error;
mod utc_time;

pub use application::{APPLICATION_HEADER_BYTES, Application};
pub use error::FrameError;
pub use utc_time::UtcTime;
