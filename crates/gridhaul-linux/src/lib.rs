//! The Linux kernel as gridhaul uses it. All `unsafe` calls into the kernel are here.
//!
//! * Networks: [`Namespace`], [`Tun`], [`PacketSocket`] (Ethernet frames), [`run_batch`] (`ip`, `tc`),
//!   [`set_sysctl`].
//! * TCP sockets: [`SocketOption`], [`TcpInfo`], [`Established`] (`TCP_REPAIR`).
//! * Time: [`Clock`] reads the monotonic clock, [`Poll`] waits for files and deadlines with a precision of
//!   some ten microseconds, [`SleepBudget`] keeps that within what real-time threads may take.
//! * Programs in the kernel: [`bpf`].
//!
//! Handles own what they stand for: a namespace, a device or an eBPF link goes with the last handle, in
//! whatever way the process ends.

pub mod bpf;
mod clock;
mod error;
mod iproute;
mod limits;
mod namespace;
mod offload;
mod packet_socket;
mod poll;
mod priority;
mod sleep;
mod socket_option;
mod sysctl;
mod tcp_info;
mod tcp_repair;
mod tun;
mod user_namespace;

pub use clock::Clock;
pub use error::Error;
pub use iproute::run_batch;
pub use limits::{kernel_tick, raise_open_file_limit};
pub use namespace::Namespace;
pub use offload::{Offload, disable_offloads, interface_index, set_offload};
pub use packet_socket::{FrameBatch, PacketSocket, ReceivedFrame, VlanTag};
pub use poll::{Event, EventFlags, Poll};
pub use priority::request_realtime_priority;
pub use sleep::SleepBudget;
pub use socket_option::{SocketOption, set_option};
pub use sysctl::set_sysctl;
pub use tcp_info::TcpInfo;
pub use tcp_repair::Established;
pub use tun::Tun;
pub use user_namespace::become_root;
