//! Exit codes. 0 is success.

/// A check failed, or the run ended early.
pub const CHECK_FAILED: u8 = 1;

/// Invalid input or usage, or a missing feature of the machine.
pub const INVALID_INPUT: u8 = 2;

/// A defect of gridhaul.
pub const INTERNAL_ERROR: u8 = 3;

/// The disk is full.
pub const DISK_FULL: u8 = 4;

/// Interrupted by Ctrl-C or SIGTERM: 128 + SIGINT, the convention of shells.
pub const INTERRUPTED: u8 = 130;
