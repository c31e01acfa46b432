//! TCP in user space against hosts with another implementation of its state: over links that lose,
//! duplicate and reorder packets, with kills at any time.

mod cases;
mod host;
mod kills;
mod world;
