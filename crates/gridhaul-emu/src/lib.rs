//! The backend that runs a scenario on real kernels: each node is a network namespace, each link a
//! pair of TUN devices with the links of [`gridhaul_core::link`] between them on the monotonic
//! clock, and what is sent goes through the kernel's own TCP.
//!
//! Two threads do the work of a run. `wire` carries packets between the devices, `traffic` is all
//! applications. They meet at the start, and then only the kernel and the clock join them.
//!
//! Everything that is made hangs on file descriptors of this process: namespaces have no names, and
//! devices are not persistent. So nothing is left when it ends, in whatever way it ends. Only a
//! network that stands for other programs ([`StandaloneNetwork`]) has names, which
//! [`gridhaul_linux::remove_stale_namespaces`] removes if the process was killed.

#![forbid(unsafe_code)]

mod backend;
mod error;
mod kernel_congestion_control;
mod link_emulator;
mod loss_classification;
mod network;
mod outcome;
mod standalone;
mod thread_wakeup;
mod traffic;
mod unsupported;

pub use backend::Emu;
pub use standalone::{FlowEndpoints, StandaloneNetwork};
