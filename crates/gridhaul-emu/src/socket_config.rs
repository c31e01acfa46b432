//! Parameters of the kernel's TCP for a stack: socket options and settings of a namespace.

use gridhaul_core::tcp::StackParams;
use gridhaul_linux::{TcpSocketConfig, TcpSysctls};

/// The MSS of a stack as Linux counts it, in bytes, options included.
pub(crate) fn kernel_mss(stack: &StackParams) -> u32 {
    socket_config(stack, None).max_segment()
}

/// Socket options of a stack, with this congestion control. Parameters without a socket option in
/// Linux are unsupported keys.
#[must_use]
pub fn socket_config<'a>(
    stack: &StackParams,
    congestion_control: Option<&'a str>,
) -> TcpSocketConfig<'a> {
    TcpSocketConfig {
        congestion_control,
        mss: stack.mss,
        timestamps: stack.has_clock_option(),
        receive_window: stack.receive_window,
        nagle: stack.nagle,
        rto_min: stack.rto_min,
        rto_max: stack.rto_max,
        delayed_ack_max: (!stack.delayed_ack.is_zero()).then_some(stack.delayed_ack_max),
    }
}

/// Settings of a namespace in which all connections have this stack.
#[must_use]
pub const fn tcp_sysctls(stack: &StackParams) -> TcpSysctls {
    TcpSysctls {
        sack: stack.sack,
        timestamps: stack.timestamps,
        ecn: stack.ecn,
        mtu_probing: stack.mtu_probing,
        slow_start_after_idle: stack.restart_after_idle,
        reordering: stack.dupthresh,
    }
}
