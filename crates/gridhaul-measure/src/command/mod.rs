//! The commands.

pub(crate) mod agent;
pub(crate) mod corruption;
pub(crate) mod efficiency;
pub(crate) mod matrix;
pub(crate) mod measure;
mod observer;
pub(crate) mod reserve;
pub(crate) mod sync;
