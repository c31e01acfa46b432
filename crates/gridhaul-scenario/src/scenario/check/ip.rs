//! Checks of the IP version of a flow against the headers of its stacks.

use super::Report;
use crate::scenario::{Flow, IpVersion, PACKET_MAX, ProxyPosition, Scenario, Stack, Stage};

impl Report<'_> {
    /// Checks every stack that sends packets of a flow, those of aggregators and proxies included.
    pub(super) fn headers(
        &mut self,
        name: &str,
        flow: &Flow,
        stages: &[Stage],
        proxies: &[ProxyPosition],
    ) {
        let own = (format!("flow.{name}.ip"), flow.ip);
        let mut senders = vec![(own.clone(), &flow.stack), (own.clone(), &flow.to_stack)];
        for stage in &stages[1..] {
            let key = self.key_of_upstream(&stage.from, name);
            senders.push(((key, stage.ip), &stage.stack));
        }
        for position in proxies {
            let proxy = self.scenario.node[position.node].proxy.as_ref();
            senders.extend(proxy.map(|proxy| (own.clone(), &proxy.stack)));
        }
        for ((key, ip), stack) in senders {
            self.header(&key, ip, stack.as_deref());
        }
    }

    /// The key that determines the IP version of the upstream connection of an aggregator.
    fn key_of_upstream(&self, aggregator: &str, flow: &str) -> String {
        let node = self.scenario.node[aggregator].aggregator.as_ref();
        match node.and_then(|aggregator| aggregator.ip) {
            Some(_) => format!("node.{aggregator}.aggregator.ip"),
            None => format!("flow.{flow}.ip"),
        }
    }

    fn header(&mut self, key: &str, ip: IpVersion, name: Option<&str>) {
        let Some((name, stack)) = named(self.scenario, name) else { return };
        let headers = ip.tcp_headers();
        if let Some(header) = stack.header
            && let Some(other) = IpVersion::of_tcp_headers(header)
            && other != ip
        {
            // The default version is not written in the file, but the header is.
            let location = match ip == IpVersion::default() {
                true => format!("stack.{name}.header"),
                false => key.to_owned(),
            };
            let message = format!(
                "{key} is {}, whose headers take {headers} with TCP, but stack `{name}` has the \
                 {header} of {other}",
                ip.number()
            );
            let remedy = format!(
                "write {key} = {} for {other}, and remove `header` from [stack.{name}]: its size \
                 follows from `ip`",
                other.number()
            );
            self.refuse_once(location, message, remedy);
        } else if let Some(mss) = stack.mss
            && let header = stack.header.unwrap_or(headers)
            // A larger header is an error of its own.
            && header <= Stack::HEADER_MAX
            && mss.get() + header.get() > PACKET_MAX.get()
        {
            let largest = PACKET_MAX.get() - header.get();
            let message = format!(
                "with its headers ({headers} for {ip}) a segment is longer than {} bytes",
                PACKET_MAX.get()
            );
            self.refuse_once(
                format!("stack.{name}.mss"),
                message,
                format!("write \"{largest} B\" or less"),
            );
        }
    }

    /// Reports an error once for all flows that share a stack.
    fn refuse_once(&mut self, key: String, message: String, remedy: String) {
        if !self.diagnostics.iter().any(|known| known.key == key) {
            self.refuse(key, message, remedy);
        }
    }
}

fn named<'s, 'n>(scenario: &'s Scenario, name: Option<&'n str>) -> Option<(&'n str, &'s Stack)> {
    let name = name?;
    scenario.stack.get(name).map(|stack| (name, stack))
}
