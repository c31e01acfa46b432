//! The Linux kernel as gridhaul uses it. All `unsafe` calls into the kernel are here.
//!
//! * Networks: [`Namespace`] and [`NamespaceNames`], [`Tun`], [`PacketSocket`] (Ethernet frames),
//!   [`IpCommands`] (devices, addresses, routes), [`LinkEvents`] (carrier), [`Htb`] (shapers),
//!   [`apply_ruleset`] and [`replace_mark_rules`] (packet filter), [`TcpSysctls`] and
//!   [`set_sysctl`].
//! * TCP sockets: [`configure_socket`], [`configure_leg`], [`SocketOption`], [`TcpInfo`],
//!   [`Established`] (`TCP_REPAIR`).
//! * Capabilities: [`check_tun_in_namespace`], [`require_congestion_control`], [`kernel_tick`], the
//!   ranges of TCP parameters such as [`TCP_RTO_MAX_RANGE`].
//! * Time: [`Clock`] reads the monotonic clock, [`SystemTime`] converts receive times of the kernel
//!   to it, [`Poll`] waits for files and deadlines with a precision of some ten microseconds,
//!   [`SleepBudget`] keeps this within the CPU time of real-time threads. [`utc_us`] is the time of
//!   day, [`clock_synchronisation`] its quality.
//! * Rights and files of this process: [`become_user`], [`take_inherited_listeners`],
//!   [`raise_open_file_limit`].
//! * Programs in the kernel: [`bpf`], and a [`Lease`] on packets of the kernel's bridge. Child
//!   processes: [`kill_with_parent_thread`].
//!
//! Handles own their resources: a namespace, a device or an eBPF link goes with the last handle, in
//! however the process ends. Names of namespaces outlive a process that is killed;
//! [`remove_stale_namespaces`] removes them.

pub mod bpf;
mod capability;
mod child;
mod clock;
mod congestion_control;
mod cpu_latency;
mod error;
mod frame_batch;
mod frame_metadata;
mod htb;
mod inherited;
mod ip_commands;
mod ip_prefix;
mod iproute;
mod lease;
mod leg_options;
mod limits;
mod link_events;
mod mark_rule;
mod mtu;
mod namespace;
mod namespace_names;
mod neighbours;
mod netlink;
mod network_devices;
mod offload;
mod packet_send;
mod packet_socket;
mod poll;
mod priority;
mod privileges;
mod receive_time;
mod sleep;
mod socket;
mod socket_option;
mod sysctl;
mod system_time;
mod tcp_info;
mod tcp_limits;
mod tcp_repair;
mod tcp_socket;
mod tun;
mod unacknowledged;
mod user_namespace;
mod utc;

pub use capability::{
    check_tun_in_namespace, is_root, may_open_tun, succeeds_in_network_namespace,
};
pub use child::kill_with_parent_thread;
pub use clock::Clock;
pub use congestion_control::{
    available_congestion_control, congestion_control_name, require_congestion_control,
    set_congestion_control,
};
pub use cpu_latency::CpuLatencyLimit;
pub use error::Error;
pub use frame_batch::{FrameBatch, ReceivedFrame};
pub use frame_metadata::{
    Checksum, FrameMetadata, OutgoingFrame, Segmentation, SegmentationKind, VlanTag,
};
pub use htb::{Htb, HtbClass};
pub use inherited::{take_inherited_connection, take_inherited_listeners, take_inherited_memory};
pub use ip_commands::{DeviceAttributes, IpCommands, Route, RouteMetrics};
pub use ip_prefix::IpPrefix;
pub use iproute::{apply_ruleset, read_output, run_batch};
pub use lease::{Lease, LeaseCounters, LeaseError, LeaseHandOver, Probe, ProtectedFlow, Renewal};
pub use leg_options::{
    LegOptions, acknowledge_at_once, close_with_fin, configure_leg, set_transparent,
};
pub use limits::{kernel_tick, raise_open_file_limit};
pub use link_events::{LinkEvent, LinkEvents};
pub use mark_rule::{MarkRule, replace_mark_rules};
pub use mtu::interface_mtu;
pub use namespace::Namespace;
pub use namespace_names::{NAMESPACE_NAME_MAX, NamespaceNames, remove_stale_namespaces};
pub use neighbours::discard_waiting_packets;
pub use network_devices::{NetworkDevice, network_devices};
pub use offload::{Offload, disable_offloads, interface_index, set_offload};
pub use packet_send::{SendRejection, SendResult};
pub use packet_socket::PacketSocket;
pub use poll::{Event, EventFlags, Poll};
pub use priority::{pin_to_processor, request_realtime_priority};
pub use privileges::{become_user, require_user};
pub use receive_time::{enable_receive_times, receive_with_time, wait_for_receive_times};
pub use sleep::SleepBudget;
pub use socket::{begin_connect, bind_free, set_receive_buffer, set_send_buffer};
pub use socket_option::{SocketOption, set_option};
pub use sysctl::{
    TcpSysctls, disable_ipv6_autoconfiguration, enable_forwarding, limit_receive_windows,
    read_sysctl, set_sysctl, set_tcp_buffer_limits,
};
pub use system_time::SystemTime;
pub use tcp_info::TcpInfo;
pub use tcp_limits::{
    TCP_DELACK_MAX, TCP_MAX_SEGMENT_RANGE, TCP_REORDERING_MAX, TCP_RTO_MAX_RANGE, TCP_RTO_MIN,
    TCP_WINDOW_MIN,
};
pub use tcp_repair::Established;
pub use tcp_socket::{TcpSocketConfig, configure_socket};
pub use tun::Tun;
pub use unacknowledged::{bind_foreign, unacknowledged_bytes};
pub use user_namespace::become_root;
pub use utc::{ClockSynchronisation, clock_synchronisation, utc_us};
