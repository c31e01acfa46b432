//! Parameters of the equations, from a stack, a load and a direction of a link.

use gridhaul_core::tcp::{IdleRestart, OptionBytes, StackParams};
use gridhaul_scenario::scenario::{
    CongestionControlAlgorithm, Direction, Load, Loss, Scenario, Stage,
};
use gridhaul_scenario::units::Probability;

use super::layout::Sizes;
use crate::chain::aggregator::Control;
use crate::chain::meter::{Demand, Restart, Timer};

pub(super) fn stack(scenario: &Scenario, stage: &Stage) -> StackParams {
    let mut params = StackParams::named(scenario, stage.stack.as_ref(), stage.ip);
    // RFC 9293, section 3.8.6.2.1: a window below the MSS is filled by one smaller segment.
    params.mss = params.mss.min(params.receive_window);
    params
}

pub(super) fn sizes(tcp: &StackParams, payload: u64, segments: u32) -> Sizes {
    let (segment, ack) = (packet_bits(tcp, payload), packet_bits(tcp, 0));
    Sizes { payload: (8 * payload) as f64, segment, ack, segments }
}

pub(super) fn control(tcp: &StackParams) -> Control {
    match tcp.congestion_control {
        CongestionControlAlgorithm::Vegas => {
            let [alpha, beta, _] = tcp.vegas.thresholds();
            Control::Vegas { alpha, beta }
        }
        CongestionControlAlgorithm::Reno | CongestionControlAlgorithm::Tahoe => {
            Control::Reno { recovers_multiple_losses: false }
        }
        _ => Control::Reno { recovers_multiple_losses: true },
    }
}

/// Receive window, in segments.
pub(super) fn window(tcp: &StackParams) -> u32 {
    (tcp.receive_window / tcp.mss.max(1)).max(1)
}

pub(super) fn timer(tcp: &StackParams) -> Timer {
    Timer {
        min: tcp.rto_min.as_secs_f64(),
        max: tcp.rto_max.as_secs_f64(),
        floor_on_variance: tcp.rto_floor_on_variance,
        timestamps: tcp.timestamps,
    }
}

/// Behaviour of the simulator after a silence (`Sender::restart_after_idle`).
pub(super) fn restart(tcp: &StackParams) -> Restart {
    if !tcp.restart_after_idle {
        return Restart::Never;
    }
    if tcp.policy.timer_runs_while_idle {
        return Restart::TimerRunsOn;
    }
    // ns-2 begins with one segment, others with their initial window.
    let one_segment = tcp.policy.idle_restart == IdleRestart::OneSegment;
    let segments = if one_segment { 1 } else { tcp.initial_window / tcp.mss.max(1) };
    if segments < 2 && window(tcp) > 1 {
        Restart::OneSegment { from_ack: tcp.policy.idle_since_last_ack }
    } else {
        Restart::Never
    }
}

/// Size of a packet; timestamps take 12 bytes (RFC 7323, padded).
pub(super) fn packet_bits(tcp: &StackParams, payload: u64) -> f64 {
    let options = if tcp.timestamps && tcp.option_bytes == OptionBytes::All { 12 } else { 0 };
    (8 * (payload + u64::from(tcp.header) + options)) as f64
}

/// Loss that does not depend on the load.
pub(super) fn independent_loss(direction: &Direction) -> f64 {
    let random = match &direction.loss {
        Some(Loss::Bernoulli(probability)) => probability.ratio(),
        _ => 0.0,
    };
    let corrupted = direction.corrupt.map_or(0.0, Probability::ratio);
    1.0 - (1.0 - random) * (1.0 - corrupted)
}

/// The application's demand, the number of segments per message, and the payload of a segment in
/// bytes.
pub(super) fn demand(load: &Load, tcp: &StackParams) -> (Demand, u32, u64) {
    let pieces = |size: u64| {
        let segments = size.div_ceil(u64::from(tcp.mss.max(1))).max(1);
        (u32::try_from(segments).unwrap_or(u32::MAX), size.div_ceil(segments).max(1))
    };
    let messages = |size: u64, per_second: f64| {
        let (segments, payload) = pieces(size);
        (Demand::Messages { per_second, segments }, segments, payload)
    };
    match load {
        Load::OnOff(load) => {
            let (on, off) = (load.on.as_secs_f64(), load.off.as_secs_f64());
            match load.rate {
                None => {
                    let (segments, payload) = pieces(load.size.get());
                    (Demand::Greedy { on, off }, segments, payload)
                }
                Some(rate) => {
                    let mean = rate.as_bits_per_sec() as f64 * on / (on + off);
                    messages(load.size.get(), mean / load.size.bits().max(1) as f64)
                }
            }
        }
        Load::Periodic(load) => messages(load.size.get(), 1.0 / load.every.as_secs_f64().max(1e-9)),
        Load::Poisson(load) => messages(load.size.get(), 1.0 / load.every.as_secs_f64().max(1e-9)),
        _ => messages(1, 0.0),
    }
}

/// Size of a message in bytes.
pub(super) fn message_bytes(load: &Load) -> u64 {
    match load {
        Load::OnOff(load) => load.size.get(),
        Load::Periodic(load) => load.size.get(),
        Load::Poisson(load) => load.size.get(),
        // Other loads are refused.
        _ => 1,
    }
}
