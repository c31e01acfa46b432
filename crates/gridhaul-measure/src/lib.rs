//! Measurement of power-grid protocols message by message, over emulated or real networks.
//!
//! The program `gridhaul-measure` is a thin command line over this library.

#![forbid(unsafe_code)]

pub mod frame;
