//! Tests of the emulator that measure no time; `kernel` has the others.

#[path = "../pair/mod.rs"]
mod pair;
mod standalone;
mod unsupported;
