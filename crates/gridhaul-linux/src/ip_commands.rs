//! Devices, addresses and routes of a network namespace, as commands of `ip`.

use std::fmt::Write;
use std::net::IpAddr;

use gridhaul_scenario::units::Duration;

use crate::{Error, IpPrefix, run_batch};

/// Commands for `ip -batch` (`ip(8)`), which configure the network namespace of the calling thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IpCommands {
    lines: String,
}

/// Attributes of a network device (`ip-link(8)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceAttributes {
    /// Largest IP packet, in bytes.
    pub mtu: u32,
    /// Length of the transmit queue, in packets.
    pub transmit_queue_len: u32,
    /// Largest number of segments that generic segmentation offload passes to the device in one
    /// packet; `None` keeps the kernel's value.
    pub gso_max_segments: Option<u32>,
}

/// A route through a device (`ip-route(8)`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route<'a> {
    /// Addresses that the route leads to.
    pub destination: IpPrefix,
    /// Name of the device.
    pub device: &'a str,
    /// Source address of connections that do not choose one.
    pub source: Option<IpAddr>,
    /// Parameters of TCP connections over the route.
    pub metrics: RouteMetrics<'a>,
}

/// Route metrics that replace the default parameters of TCP connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RouteMetrics<'a> {
    /// Initial congestion window, in segments.
    pub initial_window: Option<u32>,
    /// Whether every segment is acknowledged at once.
    pub quick_ack: bool,
    /// Smallest retransmission timeout; the kernel counts in milliseconds, and fractions are
    /// rounded up.
    pub rto_min: Option<Duration>,
    /// Initial estimate of the round-trip time, which connections do not update (`lock`). Rounded
    /// up to milliseconds.
    pub rtt: Option<Duration>,
    /// Initial slow-start threshold, in segments, which connections do not update (`lock`).
    pub ssthresh: Option<u32>,
    /// Largest MSS that is announced to the peer, in bytes, options included.
    pub advertised_mss: Option<u32>,
    /// Largest receive window that is announced to the peer, in bytes.
    pub window: Option<u32>,
    /// Name of the congestion control algorithm in the kernel.
    pub congestion_control: Option<&'a str>,
}

impl IpCommands {
    /// Brings the loopback device up.
    pub fn set_up_loopback(&mut self) {
        self.lines += "link set lo up\n";
    }

    /// Sets attributes of a device and brings the device up.
    pub fn set_up_device(&mut self, device: &str, attributes: DeviceAttributes) {
        let DeviceAttributes { mtu, transmit_queue_len, gso_max_segments } = attributes;
        let mut line = format!("link set {device} mtu {mtu} txqueuelen {transmit_queue_len}");
        append(&mut line, "gso_max_segs", gso_max_segments);
        self.push(&(line + " up"));
    }

    /// Assigns an address to a device. An IPv6 address is usable at once, without duplicate address
    /// detection (RFC 4862, section 5.4).
    pub fn add_address(&mut self, device: &str, address: IpAddr) {
        let detection = if address.is_ipv6() { " nodad" } else { "" };
        self.push(&format!("address add dev {device} {}{detection}", IpPrefix::host(address)));
    }

    /// Lets this namespace receive packets to all addresses of a prefix.
    pub fn add_local_prefix(&mut self, prefix: IpPrefix) {
        self.push(&format!("route add local {prefix} dev lo"));
    }

    /// Adds a route. Its device must be up, and its source address assigned.
    pub fn add_route(&mut self, route: &Route<'_>) {
        let Route { destination, device, source, metrics } = route;
        let mut line = format!("route add {destination} dev {device}");
        append(&mut line, "src", *source);
        metrics.append_to(&mut line);
        self.push(&line);
    }

    /// Runs the commands in the namespace of the calling thread, which errors call `node`.
    ///
    /// # Errors
    /// `ip` is not installed, or rejects a command.
    pub fn run(&self, node: &str) -> Result<(), Error> {
        run_batch("ip", &self.lines, node)
    }

    fn push(&mut self, line: &str) {
        self.lines += line;
        self.lines.push('\n');
    }
}

impl RouteMetrics<'_> {
    fn append_to(&self, line: &mut String) {
        let milliseconds = |time: Duration| format!("{}ms", time.as_nanos().div_ceil(1_000_000));
        append(line, "initcwnd", self.initial_window);
        append(line, "quickack", self.quick_ack.then_some(1));
        append(line, "rto_min", self.rto_min.map(milliseconds));
        append(line, "rtt lock", self.rtt.map(milliseconds));
        append(line, "ssthresh lock", self.ssthresh);
        append(line, "advmss", self.advertised_mss);
        append(line, "window", self.window);
        append(line, "congctl", self.congestion_control);
    }
}

fn append(line: &mut String, name: &str, value: Option<impl std::fmt::Display>) {
    if let Some(value) = value {
        // Writing to a string does not fail.
        let _ = write!(line, " {name} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_manual_pages() {
        let mut commands = IpCommands::default();
        commands.set_up_loopback();
        let plain = DeviceAttributes { mtu: 1_500, transmit_queue_len: 10, gso_max_segments: None };
        commands.set_up_device("link0", plain);
        commands.set_up_device("link1", DeviceAttributes { gso_max_segments: Some(1), ..plain });
        commands.add_local_prefix(IpPrefix { address: [10, 3, 0, 0].into(), length: 16 });
        commands.add_address("lo", [10, 3, 0, 1].into());
        commands.add_address("lo", "fd00::1".parse().unwrap());
        let expected = "link set lo up\n\
             link set link0 mtu 1500 txqueuelen 10 up\n\
             link set link1 mtu 1500 txqueuelen 10 gso_max_segs 1 up\n\
             route add local 10.3.0.0/16 dev lo\n\
             address add dev lo 10.3.0.1/32\n\
             address add dev lo fd00::1/128 nodad\n";
        assert_eq!(commands.lines, expected);
    }

    #[test]
    fn a_route_has_the_metrics_that_differ_from_the_kernels_own() {
        let mut route = Route {
            destination: IpPrefix { address: [10, 2, 0, 0].into(), length: 16 },
            device: "link0",
            source: None,
            metrics: RouteMetrics::default(),
        };
        let mut commands = IpCommands::default();
        commands.add_route(&route);
        route.source = Some([10, 3, 0, 1].into());
        route.metrics = RouteMetrics {
            initial_window: Some(10),
            quick_ack: true,
            rto_min: Some(Duration::from_micros(50_001)),
            rtt: Some(Duration::from_millis(336)),
            ssthresh: Some(4),
            advertised_mss: Some(512),
            window: Some(8_000),
            congestion_control: Some("reno"),
        };
        commands.add_route(&route);
        let expected = "route add 10.2.0.0/16 dev link0\n\
             route add 10.2.0.0/16 dev link0 src 10.3.0.1 initcwnd 10 quickack 1 rto_min 51ms \
             rtt lock 336ms ssthresh lock 4 advmss 512 window 8000 congctl reno\n";
        assert_eq!(commands.lines, expected);
    }
}
