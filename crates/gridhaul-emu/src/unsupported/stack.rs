//! Keys of a stack that the Linux kernel, or this machine, does not support.

use gridhaul_cc::Algorithm;
use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::{CongestionControlAlgorithm, IpVersion, Profile, Stack};
use gridhaul_scenario::units::Duration;

use crate::kernel_congestion_control;
use crate::kernel_congestion_control::congestion_name;
use crate::socket_config::kernel_mss;
use gridhaul_linux::{
    TCP_DELACK_MAX, TCP_MAX_SEGMENT_RANGE, TCP_REORDERING_MAX, TCP_RTO_MAX_RANGE, TCP_WINDOW_MIN,
    kernel_tick,
};

/// Unsupported keys of a stack, with reasons.
type UnsupportedKeys = Vec<(&'static str, String)>;

/// The keys of a stack that this backend does not support.
pub(super) fn unsupported_stack_keys(stack: &Stack) -> UnsupportedKeys {
    if stack.profile != Profile::Linux {
        // The parameters that the profile implies are not listed one by one.
        return vec![(
            "profile",
            "the emulator uses the TCP of Linux; use the profile `linux`".to_owned(),
        )];
    }
    let params = StackParams::resolve(stack);
    let mut unsupported = algorithm(&params);
    unsupported.extend(fixed_behaviour(stack, &params));
    unsupported.extend(sizes(&params));
    unsupported.extend(timers(&params));
    unsupported
}

/// The congestion control algorithm and its parameters.
fn algorithm(params: &StackParams) -> UnsupportedKeys {
    if congestion_name(params).is_none() {
        return vec![(
            "congestion_control",
            "not available in the Linux kernel; use backend `sim`".to_owned(),
        )];
    }
    let (algorithm, keys) = match params.congestion_control {
        CongestionControlAlgorithm::Vegas => {
            (Algorithm::Vegas, ["vegas_alpha", "vegas_beta", "vegas_gamma"])
        }
        CongestionControlAlgorithm::Medx => {
            (Algorithm::Medx, ["medx_alpha", "medx_beta", "medx_buffer"])
        }
        _ => return Vec::new(),
    };
    let settings = match kernel_congestion_control::settings(params) {
        Ok(settings) => settings,
        Err(parameter) => {
            let why = "gh_vegas counts whole segments, up to 1000000: use a whole number, or \
                       backend `sim`";
            return vec![(keys[parameter], why.to_owned())];
        }
    };
    let mut unsupported: UnsupportedKeys = Vec::new();
    if let Some((parameter, why)) = settings.refusal(algorithm) {
        unsupported.push((keys[parameter], format!("{why}; or use backend `sim`")));
    }
    if algorithm == Algorithm::Medx
        && kernel_congestion_control::classifier_of(params.medx.classifier).is_none()
    {
        let why = "gh_medx has `one_way_delay`, `half_rtt`, `always_error` and `always_congestion` \
                   only; use backend `sim`";
        unsupported.push(("medx_classifier", why.to_owned()));
    }
    if let Some(missing) = kernel_congestion_control::missing_prerequisites(algorithm) {
        let why = format!(
            "{} lacks a prerequisite on this machine (see `gridhaul doctor`): {missing}; or use \
             backend `sim`",
            algorithm.name(),
        );
        unsupported.push(("congestion_control", why));
    }
    unsupported
}

/// Parameters that are fixed in the Linux kernel.
fn fixed_behaviour(stack: &Stack, params: &StackParams) -> UnsupportedKeys {
    let linux = StackParams::resolve(&Stack { profile: Profile::Linux, ..Stack::default() });
    let mut unsupported = Vec::new();
    let mut reject = |key, reason: &str| unsupported.push((key, reason.to_owned()));
    if stack.recovery.is_some() {
        reject("recovery", "loss recovery is fixed in the kernel; remove this key");
    }
    if stack.header.is_some_and(|header| IpVersion::of_tcp_headers(header).is_none()) {
        reject(
            "header",
            "the headers of the kernel have 40 B with IPv4 and 60 B with IPv6; remove this key, \
             and set the IP version with `ip` of the flow",
        );
    }
    if params.initial_ssthresh != linux.initial_ssthresh {
        reject(
            "initial_ssthresh",
            "slow start has no initial threshold in the kernel; remove this key",
        );
    }
    if params.prr != linux.prr {
        reject("prr", "always on in the kernel, except with `bbr`; remove this key");
    }
    if params.hystart != linux.hystart {
        reject("hystart", "a setting of the whole machine (module tcp_cubic); remove this key");
    }
    if params.fixed_window != linux.fixed_window && stack.fixed_window.is_some() {
        reject("fixed_window", "the Linux kernel has no congestion control algorithm `fixed`");
    }
    if !params.handshake {
        reject("handshake", "connections of the kernel always have a handshake; remove this key");
    }
    if params.ack_every != linux.ack_every {
        reject("ack_every", "the kernel acknowledges every second full segment");
    }
    if params.quick_ack != linux.quick_ack && params.delayed_ack > Duration::ZERO {
        reject(
            "quick_ack",
            "the kernel decides on the number of quick acknowledgements; remove this key",
        );
    }
    if !params.limited_transmit {
        reject("limited_transmit", "always on in the kernel; remove this key");
    }
    if params.clock_granularity != linux.clock_granularity {
        reject("clock_granularity", "the kernel measures in microseconds; remove this key");
    }
    if params.clock_phase.is_some() {
        reject("clock_phase", "the kernel measures in microseconds; remove this key");
    }
    if params.rto_initial != linux.rto_initial {
        reject("rto_initial", "1 s in the kernel; remove this key");
    }
    unsupported
}

/// Segments and windows.
fn sizes(params: &StackParams) -> UnsupportedKeys {
    let mut unsupported = Vec::new();
    let mut reject = |key, reason: &str| unsupported.push((key, reason.to_owned()));
    let options = kernel_mss(params) - params.mss;
    if !TCP_MAX_SEGMENT_RANGE.contains(&kernel_mss(params)) {
        let (minimum, largest) =
            (TCP_MAX_SEGMENT_RANGE.start() - options, TCP_MAX_SEGMENT_RANGE.end() - options);
        reject(
            "mss",
            &format!("with these options the kernel accepts \"{minimum} B\" to \"{largest} B\""),
        );
    }
    if params.receive_window < TCP_WINDOW_MIN {
        reject(
            "receive_window",
            "the kernel supports no window below 1152 B (SOCK_MIN_RCVBUF / 2)",
        );
    } else if params.receive_window < params.mss.saturating_mul(2) {
        reject("receive_window", "the kernel supports no window below two segments");
    }
    if params.dupthresh > TCP_REORDERING_MAX {
        let reason = format!(
            "the kernel accepts 1 to {TCP_REORDERING_MAX} (tcp_max_reordering); use \
             {TCP_REORDERING_MAX} or less, or backend `sim`"
        );
        reject("dupthresh", &reason);
    }
    unsupported
}

/// Timers. The kernel rounds them up to its ticks, and its socket options reject a duration of one
/// tick.
fn timers(params: &StackParams) -> UnsupportedKeys {
    let mut unsupported = Vec::new();
    let mut reject = |key, reason: String| unsupported.push((key, reason));
    let tick = kernel_tick();
    let delayed = params.delayed_ack;
    let waits = delayed > tick && delayed <= TCP_DELACK_MAX;
    if !delayed.is_zero() && !waits {
        reject(
            "delayed_ack",
            format!(
                "the delayed-ACK timer of the kernel is more than {tick} (one of its ticks) and \
                 {TCP_DELACK_MAX} at most (TCP_DELACK_MAX); use such a value, \"0 s\" to \
                 acknowledge at once, or backend `sim`"
            ),
        );
    }
    if !TCP_RTO_MAX_RANGE.contains(&params.rto_max) {
        let (minimum, maximum) = TCP_RTO_MAX_RANGE.into_inner();
        let range = format!("the kernel accepts \"{minimum}\" to \"{maximum}\"");
        reject("rto_max", format!("{range}; use a value in this range, or backend `sim`"));
    }
    if params.rto_min <= tick {
        reject(
            "rto_min",
            format!(
                "the kernel accepts more than {tick} (one of its ticks); use \"{}\" or more, or \
                 backend `sim`",
                Duration::from_millis(tick.as_nanos() / 1_000_000 + 1)
            ),
        );
    } else if params.rto_min > params.rto_max {
        let range = format!("above `rto_max`, which is {}", params.rto_max);
        reject("rto_min", format!("{range}; use that or less"));
    }
    unsupported
}
