//! A chain of proxies: each hop is a connection of its own, and the slowest decides.
//!
//! Paper `plc`, equation 3, has equal loss on all hops, so that the longest decides. Here each hop
//! has its own loss, buffer and rate; with equal ones it is the paper's equation.

use super::square_root::square_root_rate;

/// One hop between two proxies, or between a proxy and an end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProxyHop {
    /// Round trip of the hop in seconds; above zero.
    pub rtt_s: f64,
    /// Share of the data segments that are lost on the hop.
    pub loss: f64,
    /// Room of the proxy at its end, in segments: the window that it can offer. Infinite: no limit.
    pub buffer: f64,
    /// Segments per second that the link takes. Infinite: no limit.
    pub link: f64,
}

/// Segments per second through the chain, and the index of the hop that decides. `None` for a
/// chain without hops.
///
/// As with the paper, proxies work in the steady state and never run empty by chance.
#[must_use]
pub fn chain_rate(hops: &[ProxyHop], acked_by_each: f64) -> Option<(f64, usize)> {
    let rates = hops.iter().map(|hop| {
        square_root_rate(hop.rtt_s, hop.loss, acked_by_each)
            .min(hop.buffer / hop.rtt_s)
            .min(hop.link)
    });
    rates.zip(0..).min_by(|a, b| a.0.total_cmp(&b.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOP: ProxyHop =
        ProxyHop { rtt_s: 0.025, loss: 0.005, buffer: f64::INFINITY, link: f64::INFINITY };

    #[test]
    fn three_proxies_on_a_line_give_four_times_the_rate() {
        // Paper `plc`, section V: four equal hops of a quarter of the way, "300 %" more.
        let whole = square_root_rate(0.1, 0.005, 1.0);
        let (rate, _) = chain_rate(&[HOP; 4], 1.0).unwrap();
        assert!((rate / whole - 4.0).abs() < 1e-12);
        // In bit/s with the paper's 1500 B: 12,000 / (0.1 s · √(0.01 / 3)) = 2.078 Mbit/s.
        assert!((whole * 12_000.0 - 2.078_461e6).abs() < 10.0);
    }

    #[test]
    fn the_longest_hop_the_lossiest_the_smallest_buffer_or_the_link_decides() {
        let decides = |slow: ProxyHop| chain_rate(&[HOP, HOP, slow, HOP], 1.0).unwrap();
        let longest = ProxyHop { rtt_s: 0.05, ..HOP };
        let (rate, hop) = decides(longest);
        assert_eq!((rate, hop), (square_root_rate(0.05, 0.005, 1.0), 2));
        let lossiest = ProxyHop { loss: 0.02, ..HOP };
        assert_eq!(decides(lossiest).1, 2);
        assert_eq!(decides(ProxyHop { buffer: 2.0, ..HOP }), (80.0, 2));
        assert_eq!(decides(ProxyHop { link: 10.0, ..HOP }), (10.0, 2));
        assert_eq!(chain_rate(&[], 1.0), None);
    }
}
