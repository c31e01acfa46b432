//! Tests of the arithmetic of the programs in `bpf/` without a kernel, compiled for this machine.

mod compiled;
mod loss_classification;
mod medx;
mod window_check;
