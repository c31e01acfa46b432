//! What the programs of `bpf/` do with numbers, without a kernel: their headers, compiled for this machine.

mod compiled;
mod judgement;
mod known;
