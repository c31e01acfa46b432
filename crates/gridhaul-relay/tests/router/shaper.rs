//! The bytes that a shaper counts.

use crate::network::{Network, Side, is_possible};

const SHAPER: &str = "link.gprs.shaper.rate = \"10 Mbit/s\"\n\
                      link.gprs.shaper.share.ping = { guarantee = \"1 Mbit/s\", \
                      packets = { protocol = \"icmp\" } }\n\
                      class.ping = { links = [\"gprs\"], packets = { protocol = \"icmp\" } }\n";

#[test]
fn a_shaper_counts_ip_packets_without_the_ethernet_header() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new([SHAPER, ""]);
    network.start_both();
    network.run(Side::Terminal, "ping -c 5 -i 0.2 -s 100 10.9.0.1");
    let class = network.run(Side::Terminal, "tc -s class show dev gprs0 classid 1:11");
    let mut words = class.split("Sent").nth(1).unwrap().split_whitespace();
    let bytes: u64 = words.next().unwrap().parse().unwrap();
    let packets: u64 = words.nth(1).unwrap().parse().unwrap();
    assert!(packets >= 5, "{class}");
    assert_eq!(bytes, packets * (20 + 8 + 100), "{class}");
}
