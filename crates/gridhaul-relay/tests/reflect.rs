//! Runs the example `reflect`: a connection between two kernels through the proxy. Requires root.

#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "the main function of the example")]
#[path = "../examples/reflect.rs"]
mod example;

#[test]
fn every_byte_arrives_although_the_second_hop_drops_packets() {
    let done = example::transfer(1 << 20).expect("the kernel tests run as root");
    for (sent, received) in done.bytes.iter().zip(&done.received) {
        let same =
            sent.iter().zip(received).take_while(|(sent, received)| sent == received).count();
        assert_eq!((sent.len(), sent.len()), (received.len(), same), "equal length and bytes");
    }
    let [_, to_server] = done.statistics.retransmissions;
    assert!(done.lost > 0 && to_server >= u64::from(done.lost), "{:?}", done.statistics);
    // The proxy acknowledges the data of both hosts, and sends it to the other host.
    let full_segments = (1 << 20) / 1_460;
    for side in 0..2 {
        assert!(done.counters.data[side] > full_segments, "{:?}", done.counters);
        assert!(done.counters.acknowledgements[side] > full_segments / 4, "{:?}", done.counters);
    }
    assert_eq!((done.statistics.at_risk, done.statistics.lost), (0, 0));
}
