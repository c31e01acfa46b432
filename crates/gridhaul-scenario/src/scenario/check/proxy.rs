//! Checks of proxies.

use super::Report;
use crate::scenario::{Node, Proxy, ProxyMode};
use crate::units::{Bytes, Duration};

/// Smallest buffer of a proxy: two segments of 1,500 bytes, so that it can receive one while it
/// sends another.
const BUFFER_MIN: u64 = 3_000;

impl Report<'_> {
    pub(super) fn proxy(&mut self, name: &str, node: &Node, proxy: &Proxy) {
        let key = format!("node.{name}.proxy");
        let buffered = proxy.mode.acknowledges_data() || proxy.mode == ProxyMode::Snoop;
        if buffered && proxy.buffer.get() < BUFFER_MIN {
            self.refuse(
                format!("{key}.buffer"),
                format!(
                    "a buffer of {} is below {}, two segments of 1,500 B",
                    proxy.buffer,
                    Bytes::new(BUFFER_MIN)
                ),
                "write \"64 KiB\"",
            );
        }
        if u32::try_from(proxy.buffer.get()).is_err() {
            self.refuse(
                format!("{key}.buffer"),
                format!("a buffer of {} is larger than the largest TCP window", proxy.buffer),
                "write \"1 MiB\"",
            );
        }
        if let Some(stack) = &proxy.stack
            && !self.scenario.stack.contains_key(stack)
        {
            self.unknown(&format!("{key}.stack"), "stack", stack, &self.scenario.stack);
        }
        if node.aggregator.is_some() && proxy.mode != ProxyMode::None {
            self.refuse(
                format!("{key}.mode"),
                "an aggregator terminates all connections, so a proxy at the same node has no \
                 effect",
                "remove `aggregator` or `proxy`, or move the proxy to another node",
            );
        }
        for (index, flow) in proxy.flows.iter().flatten().enumerate() {
            if !self.scenario.flow.contains_key(flow) {
                self.unknown(&format!("{key}.flows[{index}]"), "flow", flow, &self.scenario.flow);
            }
        }
        self.crashes(&key, proxy);
    }

    fn crashes(&mut self, key: &str, proxy: &Proxy) {
        let ns = |time: Duration| time.as_nanos();
        let ends = proxy.crash.iter().map(|crash| ns(crash.at).saturating_add(ns(crash.down)));
        for (index, (crash, before)) in proxy.crash.iter().skip(1).zip(ends).enumerate() {
            if ns(crash.at) < before {
                self.refuse(
                    format!("{key}.crash[{}].at", index + 1),
                    "the proxy crashes again before it has restarted",
                    "list the crashes in the order of time, each after the restart from the \
                     previous one",
                );
            }
        }
    }
}
