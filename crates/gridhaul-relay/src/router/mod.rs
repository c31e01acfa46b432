//! The daemon of a hybrid router (paper `hybrid`, section 3.3). The router itself is the machine of
//! [`gridhaul_core::router`].

pub(crate) mod io;
