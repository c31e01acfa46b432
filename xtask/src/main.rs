//! See README.
fn main() {}
