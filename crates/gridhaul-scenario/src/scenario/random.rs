//! Whether random numbers influence the result of a run.

use super::{
    Aqm, Attack, AttackAction, Burst, ChannelTransitions, DelayAttack, Direction, Flow,
    GilbertElliott, Link, LinkTrace, Load, LoadLatency, Loss, Medium, Node, Noise, OnOff, Periodic,
    Poisson, Profile, Radio, Reorder, Scenario, Shadowing, Stack, Transport,
};
use crate::units::{Duration, Probability};

impl Scenario {
    /// Whether no random number influences a simulated run of this scenario, without its sweep:
    /// then all replications are equal. A key that uses random numbers counts even if they change
    /// nothing in a run, such as a rare loss that does not occur; a key with a certain result, such
    /// as a loss of 0 %, does not count.
    #[must_use]
    pub fn is_deterministic(&self) -> bool {
        let directions = self.link.values().flat_map(|link| [link.forward(), link.reverse()]);
        let shares_queues = self.has_several_connections();
        directions.flatten().all(|direction| !direction.is_random(shares_queues))
            && self.flow.values().all(|flow| !flow.is_random(self.connections(flow)))
            && self.node.values().all(|node| !node.opens_at_random())
            && self.stacks_in_use().all(|stack| !stack.has_random_clock())
            && self.attack.values().all(|attack| !attack.is_random())
            && !self.has_random_timers()
            && !self.has_contention()
            && !self.link.values().any(Link::has_random_handovers)
            // The times of the first probes are random.
            && self.hybrid_routers().next().is_none()
            // The hash of each flow is random.
            && self.ecmp_keys().next().is_none()
    }

    /// Whether nodes contend for a medium: the numbers of slots are random.
    fn has_contention(&self) -> bool {
        let contends = |medium: &Medium| matches!(medium, Medium::CsmaCa(_));
        self.medium.iter().any(|(name, medium)| contends(medium) && self.shares_medium(name))
    }

    /// Whether the phase of a kernel's clock may decide if a retransmission meets the end of an
    /// outage or of an attack: timers of profile `linux` have the precision of the kernel's timer
    /// wheel.
    fn has_random_timers(&self) -> bool {
        let directions = self.link.values().flat_map(|link| [link.forward(), link.reverse()]);
        let has_outages = directions.flatten().any(|direction| !direction.outage.is_empty())
            || self.link.values().any(|link| link.handover.is_some());
        let stack = |name: &Option<String>| name.as_ref().and_then(|name| self.stack.get(name));
        let is_linux =
            |name: &Option<String>| stack(name).is_none_or(|stack| stack.profile == Profile::Linux);
        let mut tcp = self.flow.values().filter(|flow| flow.transport == Transport::Tcp);
        (has_outages || !self.attack.is_empty()) && tcp.any(|flow| is_linux(&flow.stack))
    }

    /// The stacks of TCP flows and of connections that aggregators open.
    fn stacks_in_use(&self) -> impl Iterator<Item = &Stack> {
        let tcp = self.flow.values().filter(|flow| flow.transport == Transport::Tcp);
        let of_flows = tcp.flat_map(|flow| [&flow.stack, &flow.to_stack]);
        let aggregators = self.node.values().filter_map(|node| node.aggregator.as_ref());
        let names = of_flows.chain(aggregators.map(|aggregator| &aggregator.stack)).flatten();
        names.filter_map(|name| self.stack.get(name))
    }

    /// Whether packets of several connections may meet in a queue.
    fn has_several_connections(&self) -> bool {
        let own: u64 = self.flow.values().map(|flow| self.connections(flow)).sum();
        own > 1 || self.node.values().any(|node| node.aggregator.is_some())
    }
}

// The structs are destructured without `..`, so that a new key does not compile until this module
// decides whether the key uses random numbers.

impl Link {
    /// The time of the first of periodic handovers is random.
    fn has_random_handovers(&self) -> bool {
        let Self {
            from: _,
            to: _,
            shared: _,
            medium: _,
            handover,
            power_line: _,
            both: _,
            forward: _,
            reverse: _,
        } = self;
        handover.as_ref().is_some_and(|handover| handover.every.is_some())
    }
}

impl Direction {
    fn is_random(&self, shares_queues: bool) -> bool {
        let Self {
            rate: _,
            rate_change: _,
            trace,
            quality,
            delay: _,
            mtu: _,
            packet_too_big: _,
            mss_clamp: _,
            queue: _,
            aqm,
            scheduler,
            loss,
            shadowing,
            noise,
            jitter,
            reorder,
            route_change: _,
            duplicate,
            corrupt,
            corrupt_undetected,
            outage: _,
            load_latency,
            compression: _,
            drx,
            radio,
            shaper: _,
        } = self;
        let of_packets = [duplicate, corrupt, corrupt_undetected];
        let of_classes = scheduler.iter().flat_map(|scheduler| scheduler.class.values());
        let mut managed = aqm.iter().chain(of_classes.filter_map(|class| class.aqm.as_ref()));
        managed.any(|aqm| aqm.is_random(shares_queues))
            || loss.as_ref().is_some_and(Loss::is_random)
            || quality.is_some()
            || drx.is_some()
            || radio.is_some_and(|radio| radio.is_random())
            // The file may have losses, but is not read here.
            || matches!(trace, Some(LinkTrace::Steps(_)))
            || shadowing.as_ref().is_some_and(Shadowing::is_random)
            || noise.iter().any(Noise::is_random)
            || jitter.is_some_and(|jitter| !jitter.size.is_zero())
            || reorder.as_ref().is_some_and(Reorder::is_random)
            || of_packets.into_iter().flatten().any(|probability| is_uncertain(*probability))
            || load_latency.as_ref().is_some_and(LoadLatency::is_random)
    }
}

impl Attack {
    fn is_random(&self) -> bool {
        let Self { start: _, length: _, every: _, action } = self;
        let packets = match action {
            AttackAction::Delay(DelayAttack { by, .. }) if by.is_zero() => None,
            // The datagrams of a flood have a constant rate.
            action => action.packets(),
        };
        packets.is_some_and(|packets| is_uncertain(packets.probability))
    }
}

impl Aqm {
    const fn is_random(&self, shares_queues: bool) -> bool {
        match self {
            Self::Red(_) | Self::Pie(_) => true,
            Self::Codel(_) => false,
            // The hash that assigns connections to queues is random (RFC 8290, section 4.1).
            Self::FqCodel(keys) => shares_queues && keys.flows > 1,
        }
    }
}

impl Loss {
    fn is_random(&self) -> bool {
        match self {
            Self::Bernoulli(probability) => is_uncertain(*probability),
            Self::GilbertElliott(channel) => channel.is_random(),
            Self::Packets(_) => false,
        }
    }
}

impl GilbertElliott {
    /// The state is irrelevant if the chain never leaves its first state or both states are alike.
    fn is_random(&self) -> bool {
        let Self {
            // Read by `transitions`.
            mean_good: _,
            mean_bad: _,
            good_to_bad: _,
            bad_to_good: _,
            loss_good,
            loss_bad,
            delay_bad,
        } = *self;
        let [to_bad, to_good] = match self.transitions() {
            ChannelTransitions::InTime { .. } => [1.0; 2],
            ChannelTransitions::PerPacket { good_to_bad, bad_to_good } => {
                [good_to_bad, bad_to_good].map(Probability::ratio)
            }
        };
        match (to_bad > 0.0, to_good > 0.0) {
            (false, _) => is_uncertain(loss_good),
            (true, true) if !delay_bad.is_zero() => true,
            (true, false) => is_uncertain(loss_bad),
            (true, true) => {
                is_uncertain(loss_good) || is_uncertain(loss_bad) || loss_good != loss_bad
            }
        }
    }
}

impl Radio {
    /// A block that never fails, or always, needs no random numbers; the phase of scheduling
    /// requests does.
    fn is_random(&self) -> bool {
        let keys = self.parameters();
        keys.request_every.is_some()
            || is_uncertain(keys.block_error)
            || keys.block_error.ratio() > 0.0 && is_uncertain(keys.repetition_error)
    }
}

impl Shadowing {
    const fn is_random(&self) -> bool {
        let Self { margin: _, deviation, coherence: _, spans: _ } = *self;
        deviation.as_thousandths() > 0
    }
}

impl Noise {
    fn is_random(&self) -> bool {
        let Self { length: _, gap: _, loss, timing: _ } = *self;
        loss.ratio() > 0.0
    }
}

impl Reorder {
    fn is_random(&self) -> bool {
        let Self { probability, delay } = *self;
        is_uncertain(probability) && !delay.is_zero()
    }
}

impl LoadLatency {
    /// The phase of the oscillation is random.
    const fn is_random(&self) -> bool {
        !self.oscillation.is_zero() && !self.period.is_zero()
    }
}

impl Flow {
    fn is_random(&self, connections: u64) -> bool {
        let Self {
            from: _,
            to: _,
            count: _,
            transport,
            stack: _,
            to_stack: _,
            load,
            deadline: _,
            start: _,
            start_spread,
            route: _,
            reverse_route: _,
            ip: _,
            dscp: _,
            connection: _,
            fast_open: _,
            tls: _,
            reconnect,
            accept: _,
            nat: _,
            keep_alive: _,
            user_timeout: _,
            local_ports: _,
            coap: _,
            dtls: _,
            acknowledgement: _,
        } = self;
        let load = load.plain();
        let starts_at_random = match (start_spread, &*load) {
            (Some(spread), _) => !spread.is_zero(),
            (
                None,
                Load::Bulk | Load::Transfer(_) | Load::RequestResponse(_) | Load::Exchange(_),
            ) => connections > 1,
            // The connection opens at a random time before the event.
            (None, Load::Burst(burst)) => *transport == Transport::Tcp && !burst.at.is_zero(),
            (None, _) => false,
        };
        let pauses_at_random = reconnect.is_some_and(|keys| keys.jitter != Probability::ZERO);
        let times_out_at_random =
            self.confirmable().is_some_and(|keys| keys.ack_random_factor > 1.0);
        starts_at_random || pauses_at_random || times_out_at_random || load.is_random()
    }
}

impl Stack {
    /// The coarse clock of ns-2 has a random phase unless a key sets it.
    fn has_random_clock(&self) -> bool {
        let is_exact = |granularity: Duration| granularity <= Duration::from_nanos(1);
        self.profile == Profile::Ns2
            && self.clock_phase.is_none()
            && !self.clock_granularity.is_some_and(is_exact)
    }
}

impl Node {
    /// Whether the upstream connections of several aggregators open at random times.
    fn opens_at_random(&self) -> bool {
        let spread = self.aggregator.as_ref().map(|aggregator| aggregator.start_spread);
        self.count > 1 && spread.is_some_and(|spread| !spread.is_some_and(Duration::is_zero))
    }
}

impl Load {
    fn is_random(&self) -> bool {
        match self {
            Self::Bulk
            | Self::Transfer(_)
            | Self::RequestResponse(_)
            | Self::Exchange(_)
            | Self::Modbus(_)
            | Self::Dlms(_)
            | Self::Trace(_)
            | Self::MqttSubscription(_)
            | Self::External => false,
            Self::Iec104(load) => !load.synchronised && load.every > Duration::from_nanos(1),
            Self::Mqtt(load) => !load.synchronised && load.every > Duration::from_nanos(1),
            Self::Periodic(Periodic { size: _, every, jitter, synchronised }) => {
                // A period of one nanosecond has only one phase.
                !jitter.is_zero() || !synchronised && *every > Duration::from_nanos(1)
            }
            Self::Poisson(Poisson { size: _, every: _, synchronised: _ }) => true,
            // A run starts in the stationary state, at a random time within a burst or idle time.
            Self::OnOff(OnOff { on: _, off: _, rate: _, size: _, spread: _, synchronised: _ }) => {
                true
            }
            Self::Burst(Burst { size: _, at: _, spread, count: _, gap: _, every: _, share }) => {
                !spread.is_zero() || is_uncertain(*share)
            }
            Self::Application(application) => application.load().is_random(),
        }
    }
}

/// Whether a Bernoulli trial with this probability has two possible results.
fn is_uncertain(probability: Probability) -> bool {
    probability.ratio() > 0.0 && probability.ratio() < 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_deterministic(direction: &str, flow: &str) -> bool {
        let text = format!(
            "title = 'random'\nduration = '10 s'\n[node]\na = {{}}\nb = {{}}\n\
             [link.l]\nfrom = 'a'\n\
             to = 'b'\nboth = {{ rate = '1 Mbit/s', {direction} }}\n\
             [flow.f]\nfrom = 'a'\nto = 'b'\n{flow}\n"
        );
        Scenario::from_toml(&text, "random.toml").expect("a scenario").is_deterministic()
    }

    #[test]
    fn keys_of_links_that_use_random_numbers() {
        let bulk = |direction| is_deterministic(direction, "load = 'bulk'");
        for certain in [
            "queue = '3 packets'",
            "loss = { bernoulli = '0 %' }",
            "loss = { bernoulli = '100 %' }",
            "loss = { packets = [3, 7] }",
            "loss = { gilbert_elliott = { good_to_bad = '0 %', bad_to_good = '5 %' } }",
            "shadowing = { margin = '3 dB', deviation = '0 dB' }",
            "noise = [{ length = '1 ms', gap = '99 ms', loss = '0 %' }]",
            "jitter = { size = '0 s' }",
            "reorder = { probability = '5 %', delay = '0 s' }",
            "duplicate = '0 %', corrupt = '0 %', corrupt_undetected = '0 %'",
            "aqm = { codel = {} }",
            "radio = { standard = 'lte', block_error = '0 %' }",
            // A single connection has its own queue, for any hash.
            "aqm = { fq_codel = {} }",
            "load_latency = { oscillation = '0 s' }",
        ] {
            assert!(bulk(certain), "{certain}");
        }
        for random in [
            "loss = { bernoulli = '0.0001 %' }",
            "loss = { gilbert_elliott = { good_to_bad = '1 %', bad_to_good = '5 %' } }",
            "loss = { gilbert_elliott = { mean_good = '1 s', mean_bad = '1 ms' } }",
            "loss.gilbert_elliott = { mean_good = '1 s', mean_bad = '1 ms', loss_bad = '0 %', \
             delay_bad = '1 ms' }",
            "radio = { standard = 'lte' }",
            "radio = { standard = 'nr', block_error = '0 %', request_every = '10 ms' }",
            "quality = { loss = ['1 %', '2 %'] }",
            // The default stack is that of a kernel, whose timers have a random phase.
            "outage = [{ start = '1 s', length = '1 s' }]",
            "shadowing = { margin = '60 dB', deviation = '1 dB' }",
            "noise = [{ length = '1 ms', gap = '9 ms', timing = 'periodic' }]",
            "jitter = { size = '1 us' }",
            "reorder = { probability = '5 %', delay = '1 ms' }",
            "duplicate = '1 %'",
            "corrupt = '1 %'",
            "corrupt_undetected = '1 %'",
            "aqm = { red = {} }",
            "aqm = { pie = {} }",
            "load_latency = {}",
        ] {
            assert!(!bulk(random), "{random}");
        }
        let outage = "outage = [{ start = '1 s', length = '1 s' }]";
        assert!(is_deterministic(outage, "stack = 's'\nload = 'bulk'\n[stack.s]\nprofile = 'rfc'"));
    }

    #[test]
    fn keys_of_flows_that_use_random_numbers() {
        for certain in [
            "load = 'bulk'",
            "load = 'bulk'\ncount = 3\nstart_spread = '0 s'",
            "load.transfer.size = '1 MB'",
            "load.request_response = { request = '1 kB', response = '1 kB' }",
            "load.modbus = { registers = 10, every = '1 s' }",
            "load.iec_104 = { values = 4, every = '1 s', synchronised = true }",
            "load.periodic = { size = '1 kB', every = '1 s', synchronised = true }",
            "load.burst = { size = '1 kB', at = '0 s' }",
            "load.burst = { size = '1 kB', at = '1 s' }\ntransport = 'datagram'",
            "load.burst = { size = '1 kB', at = '1 s' }\nstart_spread = '0 s'",
            "load.application = { profile = 'pricing', synchronised = true }",
        ] {
            assert!(is_deterministic("", certain), "{certain}");
        }
        for random in [
            "load = 'bulk'\nstart_spread = '1 s'",
            "load = 'bulk'\ncount = 3",
            "load.transfer.size = '1 MB'\ncount = 3",
            "load.request_response = { request = '1 kB', response = '1 kB' }\ncount = 2",
            "load.modbus = { registers = 10, every = '1 s' }\ncount = 2",
            "load.iec_104 = { values = 4, every = '1 s' }",
            "load.burst = { size = '1 kB', at = '1 s' }",
            "load.periodic = { size = '1 kB', every = '1 s' }",
            "load.periodic = { size = '1 kB', every = '1 s', jitter = '1 ms', \
             synchronised = true }",
            "load.poisson = { size = '1 kB', every = '1 s' }",
            "load.on_off = { on = '1 s', off = '1 s', size = '1 kB', spread = 'fixed' }",
            "load.burst = { size = '1 kB', at = '1 s', spread = '1 ms' }",
            "load.burst = { size = '1 kB', at = '1 s', share = '50 %' }",
            "load.application = { profile = 'pricing' }",
        ] {
            assert!(!is_deterministic("", random), "{random}");
        }
        let two = "load = 'bulk'\ncount = 2\nstart_spread = '0 s'";
        assert!(is_deterministic("", two) && !is_deterministic("aqm = { fq_codel = {} }", two));
    }

    #[test]
    fn attacks_use_random_numbers_if_they_select_packets() {
        let attack = |action: &str| {
            let flow = format!(
                "stack = 's'\nload = 'bulk'\n[stack.s]\nprofile = 'rfc'\n\
                 [attack.x]\nstart = '1 s'\nlength = '1 s'\n{action}\n"
            );
            is_deterministic("", &flow)
        };
        for certain in [
            "action.drop = { link = 'l' }",
            "action.drop = { link = 'l', probability = '0 %' }",
            "action.delay = { link = 'l', by = '0 s', probability = '5 %' }",
            "action.alter = { link = 'l' }",
            "action.flood = { from = 'a', to = 'b', rate = '1 Mbit/s' }",
        ] {
            assert!(attack(certain), "{certain}");
        }
        for random in [
            "action.drop = { link = 'l', probability = '1 %' }",
            "action.delay = { link = 'l', by = '1 s', probability = '5 %' }",
            "action.alter = { link = 'l', probability = '99 %' }",
        ] {
            assert!(!attack(random), "{random}");
        }
    }

    #[test]
    fn the_coarse_clock_of_ns2_has_a_random_phase() {
        let stack = |keys: &str| {
            let flow = format!("load = 'bulk'\nstack = 's'\n[stack.s]\n{keys}");
            is_deterministic("", &flow)
        };
        assert!(!stack("profile = 'ns2'"));
        assert!(stack("profile = 'ns2'\nclock_phase = '3 ms'"));
        assert!(stack("profile = 'ns2'\nclock_granularity = '0 s'"));
        assert!(stack("profile = 'rfc'"));
    }
}
