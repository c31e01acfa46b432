//! Checks of flows.

use super::{FLOWS_MAX, Report};
use crate::scenario::route::Network;
use crate::scenario::{Flow, Load, Transport};
use crate::units::{Bytes, Duration};

impl Report<'_> {
    pub(super) fn flows(&mut self, network: Option<&Network<'_>>) {
        let mut total = 0_u64;
        for (name, flow) in &self.scenario.flow {
            let key = format!("flow.{name}");
            let ends = self.ends(&key, &flow.from, &flow.to);
            self.count_and_start(&key, flow);
            self.load(&format!("{key}.load"), &flow.load);
            self.connections(name, flow);
            self.coap(&key, flow);
            match flow.transport {
                Transport::Tcp => self.chosen_stacks(&key, flow),
                Transport::Datagram | Transport::Echo | Transport::Coap => {
                    self.datagrams(&key, flow);
                }
            }
            if let (true, false, Some(network)) = (ends, self.is_full(), network) {
                let found = network.routes(name, flow).and_then(|routes| {
                    let proxies = self.scenario.proxy_positions_on(
                        name,
                        flow,
                        &routes.forward,
                        &routes.reverse,
                    )?;
                    Ok((self.scenario.split_at_aggregators(name, flow, routes)?, proxies))
                });
                match found {
                    Ok((stages, proxies)) if flow.transport == Transport::Tcp => {
                        self.headers(name, flow, &stages, &proxies);
                    }
                    Ok(_) => {}
                    Err(diagnostic) => self.add(diagnostic),
                }
            }
            total = total.saturating_add(self.scenario.connections(flow));
        }
        if total > FLOWS_MAX {
            self.refuse(
                "flow",
                format!("the scenario has {total} flows"),
                format!("the limit is {FLOWS_MAX}; reduce `count`"),
            );
        }
    }

    fn count_and_start(&mut self, key: &str, flow: &Flow) {
        if flow.count == 0 {
            self.refuse(
                format!("{key}.count"),
                "an entry represents at least one flow",
                "write 1, or remove the flow",
            );
        }
        if flow.deadline.is_some_and(Duration::is_zero) {
            self.refuse(
                format!("{key}.deadline"),
                "the deadline must be above 0",
                "write \"15 s\", or leave it out",
            );
        }
        if flow.deadline.is_some() && flow.load == Load::Bulk {
            self.refuse(
                format!("{key}.deadline"),
                "a deadline applies to messages and transfers, and this load has no end",
                "remove it, or choose a load of messages such as `periodic`, or `transfer`",
            );
        }
        if flow.load == Load::External && flow.start_spread.is_some_and(|spread| !spread.is_zero())
        {
            self.refuse(
                format!("{key}.start_spread"),
                "the program that steps the simulation determines the times of its messages",
                "remove this key",
            );
        }
        if matches!(flow.load, Load::Trace(_))
            && flow.start_spread.is_some_and(|spread| !spread.is_zero())
        {
            self.refuse(
                format!("{key}.start_spread"),
                "a trace determines the times of its messages, so they cannot be spread",
                "remove this key, or use the column `member` to give each member its own rows",
            );
        }
        let is_synchronised = match &flow.load {
            Load::Poisson(load) => load.synchronised,
            Load::OnOff(load) => load.synchronised,
            _ => false,
        };
        if is_synchronised && flow.start_spread.is_some_and(|spread| !spread.is_zero()) {
            self.refuse(
                format!("{key}.start_spread"),
                "`synchronised` opens all connections at the same time, and `start_spread` \
                 spreads them",
                "keep one of the two keys",
            );
        }
        let duration = self.scenario.duration;
        if flow.start >= duration && !duration.is_zero() {
            self.refuse(
                format!("{key}.start"),
                format!("the flow starts at {}, but the run ends at {duration}", flow.start),
                "start the flow earlier, or increase `duration`",
            );
        }
    }

    fn chosen_stacks(&mut self, key: &str, flow: &Flow) {
        let stacks = &self.scenario.stack;
        for (end, name) in [("stack", &flow.stack), ("to_stack", &flow.to_stack)] {
            if let Some(name) = name
                && !stacks.contains_key(name)
            {
                self.unknown(&format!("{key}.{end}"), "stack", name, stacks);
            }
        }
    }

    /// Datagrams have no connection: no stack and no ordering.
    fn datagrams(&mut self, key: &str, flow: &Flow) {
        for (end, name) in [("stack", &flow.stack), ("to_stack", &flow.to_stack)] {
            if name.is_some() {
                self.refuse(
                    format!("{key}.{end}"),
                    "datagrams have no TCP stack",
                    "remove this key, or use transport = \"tcp\"",
                );
            }
        }
        if flow.transport == Transport::Datagram && flow.reverse_route.is_some() {
            self.refuse(
                format!("{key}.reverse_route"),
                "datagrams have no reply, so there is no reverse path",
                "remove this key, or use transport = \"echo\"",
            );
        }
        let load = flow.load.plain();
        let own_name = match &flow.load {
            Load::Application(_) => Some("application"),
            _ => None,
        };
        let size = match &*load {
            Load::Periodic(load) => ("periodic", load.size),
            Load::Poisson(load) => ("poisson", load.size),
            Load::OnOff(load) if load.rate.is_none() => {
                self.refuse(
                    format!("{key}.load.on_off.rate"),
                    "without a transport connection, the rate of a burst must be given",
                    "add a rate such as \"64 kbit/s\", or use transport = \"tcp\"",
                );
                return;
            }
            Load::OnOff(load) => ("on_off", load.size),
            Load::Burst(load) => ("burst", load.size),
            // The trace reader and the session report messages that are too large.
            Load::Application(_) | Load::Trace(_) | Load::External => return,
            Load::Bulk
            | Load::Transfer(_)
            | Load::RequestResponse(_)
            | Load::Exchange(_)
            | Load::Modbus(_)
            | Load::Dlms(_)
            | Load::Iec104(_)
            | Load::Mqtt(_)
            | Load::MqttSubscription(_) => {
                self.refuse(
                    format!("{key}.load"),
                    "datagrams carry only loads of messages; this load requires reliable delivery",
                    "use `periodic`, `poisson`, `on_off`, `burst` or `trace`, or \
                     transport = \"tcp\"",
                );
                return;
            }
        };
        self.datagram_size(
            &format!("{key}.load.{}.size", own_name.unwrap_or(size.0)),
            size.1,
            flow,
        );
    }

    fn datagram_size(&mut self, key: &str, size: Bytes, flow: &Flow) {
        let largest = self.scenario.datagram_payload_max(flow.ip).get();
        let largest = largest.saturating_sub(flow.datagram_overhead());
        if size.get() > largest {
            let (amount, remedy) = match self.scenario.has_mtu() {
                true => ("", "divide the message, or use transport = \"tcp\""),
                false => (
                    " in one packet",
                    "divide the message into several of at most this size, give the links an \
                     `mtu` for datagrams of several fragments, or use transport = \"tcp\"",
                ),
            };
            self.refuse(
                key,
                format!(
                    "a datagram over {} carries at most {largest} B{amount}, not {} B",
                    flow.ip,
                    size.get()
                ),
                remedy,
            );
        }
    }
}
