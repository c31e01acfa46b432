//! Resets that are lost on the hop to a host that only receives.

use gridhaul_scenario::units::{Bytes, Duration, Instant};

use super::coupled::{MODES, Mode};
use super::stack;
use crate::pep::{MssLimit, Proxy, Reflect, Side, Split, Spoof};
use crate::tcp::{Flags, Segment};

const ISNS: [u32; 2] = [99, 899];

/// A proxy of an established connection.
fn established(mode: Mode) -> Box<dyn Proxy> {
    let (params, hosts, buffer) = (stack(100, 1), stack(100, 5_000), Bytes::new(1_000));
    let (next, limit) = ([&*hosts; 2], MssLimit::of_hosts([hosts.mss; 2]));
    match mode {
        Mode::Split => Box::new(Split::established(params, buffer, ISNS, next)),
        Mode::Reflect => Box::new(Reflect::engaged(params, limit, buffer, ISNS, next)),
        Mode::Spoof => Box::new(Spoof::engaged(params, limit, buffer, ISNS, next)),
    }
}

/// Passes a segment of the client through a chain of proxies. Returns the resets that reach the
/// server; segments back to the client are not followed.
fn resets(chain: &mut [Box<dyn Proxy>], now: Instant, segment: Segment) -> Vec<Segment> {
    chain.iter_mut().fold(vec![segment], |arrivals, proxy| {
        let mut toward_server = Vec::new();
        for arrival in arrivals {
            proxy.handle_segment(now, Side::Client, &arrival);
            let sent = std::iter::from_fn(|| proxy.poll_transmit(now));
            let sent = sent.filter(|outgoing| outgoing.to == Side::Server);
            toward_server.extend(sent.map(|outgoing| outgoing.segment));
        }
        toward_server.retain(|segment| segment.flags.has(Flags::RST));
        toward_server
    })
}

/// The client is reset by another program: a probe from its side shows that the proxies have to
/// reset the server once more.
#[test]
fn a_reset_is_repeated_when_a_segment_of_the_opposite_side_arrives() {
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    let rst = Segment { seq: 100, ack: 900, flags: Flags::RST, header: 40, ..Segment::default() };
    let probe = Segment { seq: 77, ack: 0, flags: Flags::ACK, ..rst };
    for mode in MODES {
        for proxies in [1, 3] {
            let mut chain: Vec<_> = (0..proxies).map(|_| established(mode)).collect();
            let lost = resets(&mut chain, at(10), rst);
            assert_eq!(lost.iter().map(|segment| segment.seq).collect::<Vec<_>>(), [100]);
            let repeated = resets(&mut chain, at(1_000), probe);
            assert_eq!(repeated, lost, "{mode:?}, {proxies}");
            // Segments that were in flight together cause one repetition.
            assert_eq!(resets(&mut chain, at(1_001), probe), [], "{mode:?}, {proxies}");
            assert_eq!(resets(&mut chain, at(2_000), rst), lost, "{mode:?}, {proxies}");
        }
    }
}
