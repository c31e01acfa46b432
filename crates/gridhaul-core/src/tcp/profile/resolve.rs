//! Resolves the parameters of a stack from its profile and its keys in the scenario.

use std::sync::Arc;

use gridhaul_scenario::scenario::{
    CongestionControlAlgorithm, IpVersion, Recovery, Scenario, Stack,
};
use gridhaul_scenario::units::{Bytes, Duration, WindowSize};

use crate::tcp::params::{MedxParams, StackParams, VegasParams};

impl StackParams {
    /// Resolves the stack of this name, or the default stack, over this version of IP.
    #[must_use]
    pub fn named(scenario: &Scenario, name: Option<&String>, ip: IpVersion) -> Self {
        let stack = name.and_then(|name| scenario.stack.get(name));
        Self::resolve_for_ip(stack.unwrap_or(&Stack::default()), ip)
    }

    /// Resolves all parameters of a stack over IPv4.
    #[must_use]
    pub fn resolve(stack: &Stack) -> Self {
        Self::resolve_for_ip(stack, IpVersion::V4)
    }

    /// Resolves all parameters of a stack; the version of IP determines the header size unless the
    /// stack sets it.
    #[must_use]
    pub fn resolve_for_ip(stack: &Stack, ip: IpVersion) -> Self {
        let mut params = super::defaults(stack.profile);
        let mss = stack.mss.map_or(params.mss, clamp_bytes);
        (params.mss, params.derives_mss) = (mss, stack.mss.is_none());
        params.congestion_control = stack.congestion_control.unwrap_or(params.congestion_control);
        params.sack = stack.sack.unwrap_or(params.sack);
        params.recovery =
            stack.recovery.unwrap_or_else(|| super::loss_recovery(stack.profile, &params));
        // A recovery that the scenario names is that of its RFC.
        params.policy.counts_arrived_segments &=
            stack.recovery.is_none_or(|recovery| recovery == Recovery::Rack);
        if params.recovery == Recovery::Rack && !params.sack {
            // RACK requires selective acknowledgements.
            params.recovery = Recovery::NewReno;
        }
        super::adapt(stack, &mut params);
        params.header = clamp_bytes(stack.header.unwrap_or(ip.tcp_headers()));
        params.take_windows(stack);
        params.take_timers(stack);
        params.handshake = stack.handshake.unwrap_or(params.handshake);
        params.ack_every = stack.ack_every.unwrap_or(params.ack_every);
        params.quick_ack = stack.quick_ack.unwrap_or(params.quick_ack);
        params.timestamps = stack.timestamps.unwrap_or(params.timestamps);
        params.ecn = stack.ecn.unwrap_or(params.ecn);
        params.mtu_probing = stack.mtu_probing.unwrap_or(params.mtu_probing);
        params.dupthresh = stack.dupthresh.unwrap_or(params.dupthresh);
        params.limited_transmit = stack.limited_transmit.unwrap_or(params.limited_transmit);
        params.prr = stack.prr.unwrap_or(params.prr);
        params.hystart = stack.hystart.unwrap_or(params.hystart);
        params.restart_after_idle = stack.restart_after_idle.unwrap_or(params.restart_after_idle);
        params.nagle = stack.nagle.unwrap_or(params.nagle);
        params.vegas = Arc::new(VegasParams {
            alpha: stack.vegas_alpha.unwrap_or(params.vegas.alpha),
            beta: stack.vegas_beta.unwrap_or(params.vegas.beta),
            gamma: stack.vegas_gamma.unwrap_or(params.vegas.gamma),
            initial_window: params.initial_window,
        });
        params.medx = MedxParams {
            alpha: stack.medx_alpha.unwrap_or(params.medx.alpha),
            beta: stack.medx_beta.unwrap_or(params.medx.beta),
            buffer: stack.medx_buffer.unwrap_or(params.medx.buffer),
            classifier: stack.medx_classifier.unwrap_or_default(),
        };
        if params.congestion_control == CongestionControlAlgorithm::Medx {
            params.report_delays();
        }
        params
    }

    fn take_windows(&mut self, stack: &Stack) {
        let mss = self.mss;
        let window = |size: WindowSize| u32::try_from(size.in_bytes(mss)).unwrap_or(u32::MAX);
        let (receive, initial, ssthresh) = super::windows(stack.profile, self);
        self.receive_window = stack.receive_window.map_or(receive, window);
        self.initial_window = stack.initial_window.map_or(initial, window);
        let ssthresh = ssthresh.unwrap_or(self.receive_window);
        self.initial_ssthresh = stack.initial_ssthresh.map_or(ssthresh, window);
        self.fixed_window = stack.fixed_window.map_or(self.receive_window, window);
    }

    fn take_timers(&mut self, stack: &Stack) {
        self.delayed_ack = stack.delayed_ack.unwrap_or(self.delayed_ack);
        self.delayed_ack_max = stack.delayed_ack.unwrap_or(self.delayed_ack_max);
        self.rto_initial = stack.rto_initial.unwrap_or(self.rto_initial);
        self.rto_min = stack.rto_min.unwrap_or(self.rto_min);
        self.rto_max = stack.rto_max.unwrap_or(self.rto_max);
        self.clock_granularity = stack.clock_granularity.unwrap_or(self.clock_granularity);
        self.clock_phase = stack.clock_phase;
    }

    /// Paper `medx`, section 2: the receiver reports the delay of every segment, and "acknowledges
    /// every incoming packet" without delay. Scenario validation rejects a stack with other
    /// settings.
    fn report_delays(&mut self) {
        self.one_way_delay = true;
        self.timestamps = false;
        self.delayed_ack = Duration::ZERO;
        self.delayed_ack_max = Duration::ZERO;
    }
}

fn clamp_bytes(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(u32::MAX)
}
