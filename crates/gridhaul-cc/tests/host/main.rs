//! What the programs of `bpf/` do with numbers, without a kernel: compiled for this machine.

mod compiled;
mod judgement;
mod known;
mod medx;
