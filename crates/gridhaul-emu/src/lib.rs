//! The backend that runs a scenario on real kernels: each node is a network namespace, each link a
//! pair of TUN devices connected by the links of [`gridhaul_core::link`] on the monotonic clock,
//! and all traffic uses the TCP of the kernel.
//!
//! A run has two threads: `link_emulator` forwards packets between the devices, and `traffic` runs
//! all applications. They start together and share only the kernel and the clock.
//!
//! All resources belong to file descriptors of this process: namespaces have no names, and devices
//! are not persistent, so nothing remains when the process ends. Only a network for other programs
//! ([`StandaloneNetwork`]) has names, which [`gridhaul_linux::remove_stale_namespaces`] removes if
//! the process was killed.

#![forbid(unsafe_code)]

mod backend;
mod error;
mod kernel_congestion_control;
mod link_emulator;
mod loss_classification;
mod network;
mod outcome;
mod relay;
mod socket_config;
mod standalone;
mod thread_wakeup;
mod traffic;
mod unsupported;

pub use backend::Emu;
pub use link_emulator::Forwarded;
pub use socket_config::{socket_config, tcp_sysctls};
pub use standalone::{FlowEndpoints, StandaloneNetwork};
