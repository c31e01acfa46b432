//! Classes of packets, and shares of a shaper.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;

use crate::network::{Network, Side, is_possible};

/// Acknowledgements of what the terminal sends return over GPRS; those of its downloads and all
/// data of connections that the centre has opened do not.
const CENTRE: &str = "[router.class.upload_acks]\nlinks = [\"gprs\"]\n\
                      packets = { opened_by = \"peer\", acknowledgements = true }\n\
                      [router.link.gprs.shaper]\nrate = \"10 Mbit/s\"\n\
                      [router.link.gprs.shaper.share.acks]\nguarantee = \"1 Mbit/s\"\n\
                      packets = { acknowledgements = true }\n";

/// Bytes of a transfer: with segmentation offload, at least 244 packets of 64 KiB.
const SIZE: usize = 16_000_000;

/// Largest receive buffer of a transfer. A busy receiver acknowledges much at once, but not more
/// than its window, which is smaller than the buffer (Linux doubles it: 128 KiB).
const BUFFER: usize = 65_536;

/// Fewest acknowledgements of a transfer: one for each window.
const FEWEST: u64 = (SIZE / (2 * BUFFER)) as u64;

/// Transfers data over a connection that the terminal has opened.
fn transfer(network: &Network, from: Side, opener: Side) {
    let [terminal, centre] = network.connect(opener, 4060);
    let (mut from, mut to) =
        if from == Side::Terminal { (terminal, centre) } else { (centre, terminal) };
    socket2::SockRef::from(&to).set_recv_buffer_size(BUFFER).unwrap();
    let sender = thread::spawn(move || {
        from.write_all(&vec![7; SIZE]).unwrap();
        from.shutdown(Shutdown::Write).unwrap();
        assert_eq!(from.read(&mut [0]).unwrap(), 0);
    });
    let mut received = Vec::new();
    to.read_to_end(&mut received).unwrap();
    assert_eq!(received.len(), SIZE);
    drop(to);
    sender.join().unwrap();
}

#[test]
fn acknowledgements_of_an_upload_use_the_link_of_their_class() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new(["", CENTRE]);
    network.start_both();
    let sent = |network: &Network| network.sent_packets(Side::Centre, "gprs0");
    let before = sent(&network);
    transfer(&network, Side::Terminal, Side::Terminal);
    let of_upload = sent(&network) - before;
    assert!(of_upload >= FEWEST, "acknowledgements over GPRS: {of_upload}");
    let class = network.run(Side::Centre, "tc -s class show dev gprs0 classid 1:11");
    let packets = class.split("Sent").nth(1).unwrap().split_whitespace().nth(2).unwrap();
    let in_share: u64 = packets.parse().unwrap();
    assert!(in_share >= FEWEST && in_share <= of_upload, "the share has {in_share} packets");

    let before = sent(&network);
    transfer(&network, Side::Terminal, Side::Centre);
    let of_download = sent(&network) - before;
    assert!(of_download < of_upload / 2, "the centre has opened it: {of_download}");
    let before = sent(&network);
    transfer(&network, Side::Centre, Side::Terminal);
    let of_data = sent(&network) - before;
    assert!(of_data < of_upload / 2, "data is no acknowledgement: {of_data}");
}
