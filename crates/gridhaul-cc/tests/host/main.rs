//! What the programs of `bpf/` do with numbers, without a kernel: compiled for this machine.

mod compiled;
mod loss_classification;
mod medx;
mod window_check;
