//! Random numbers of the kernel.

use rustls::crypto::ring;

/// A random number that identifies a log or a run. It needs no file descriptor: getrandom(2) works
/// while none is left.
pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    let filled = ring::default_provider().secure_random.fill(&mut bytes);
    filled.expect("the kernel has random numbers (getrandom(2))");
    u64::from_ne_bytes(bytes)
}
