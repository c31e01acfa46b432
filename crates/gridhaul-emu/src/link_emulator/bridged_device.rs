//! Devices that a relay daemon bridges: they carry Ethernet frames, whereas links carry IP packets.

use std::sync::atomic::{AtomicU8, Ordering};

use gridhaul_core::wire::{EtherType, EthernetFrame, EthernetHeader};
use gridhaul_scenario::scenario::PacketsWhileDown;

/// Whether the daemon of each proxy runs. The thread that stops and starts the daemons writes it,
/// the emulator reads it.
#[derive(Debug)]
pub(crate) struct BridgeStates(Vec<AtomicU8>);

/// Values of [`BridgeStates`].
const RUNS: u8 = 0;
const IS_BYPASSED: u8 = 1;
const BLOCKS: u8 = 2;

impl BridgeStates {
    /// All daemons run.
    pub(crate) fn running(proxies: usize) -> Self {
        Self((0..proxies).map(|_| AtomicU8::new(RUNS)).collect())
    }

    /// The daemon of a proxy runs, or is down, with this treatment of packets.
    pub(crate) fn set_down(&self, proxy: usize, packets: Option<PacketsWhileDown>) {
        let value = match packets {
            None => RUNS,
            Some(PacketsWhileDown::Forward) => IS_BYPASSED,
            Some(PacketsWhileDown::Drop) => BLOCKS,
        };
        self.0[proxy].store(value, Ordering::Relaxed);
    }

    /// The treatment of packets at a proxy that is down; `None` if it runs.
    pub(super) fn down(&self, proxy: usize) -> Option<PacketsWhileDown> {
        match self.0.get(proxy)?.load(Ordering::Relaxed) {
            IS_BYPASSED => Some(PacketsWhileDown::Forward),
            BLOCKS => Some(PacketsWhileDown::Drop),
            _ => None,
        }
    }
}

/// The frame of a packet that arrives at a bridge, through its first or its second device. The
/// addresses are those of two hosts, not of the devices, so that the node's kernel ignores it.
pub(super) fn frame_of(packet: &[u8], from_first: bool) -> Vec<u8> {
    let [source, destination] = if from_first { HOSTS } else { [HOSTS[1], HOSTS[0]] };
    let is_v6 = packet.first().is_some_and(|first| first >> 4 == 6);
    let ether_type = if is_v6 { EtherType::IPV6 } else { EtherType::IPV4 };
    let mut frame = Vec::with_capacity(14 + packet.len());
    EthernetHeader { destination, source, tags: [None; 2], ether_type }.write(&mut frame);
    frame.extend_from_slice(packet);
    frame
}

/// The IP packet of a frame; `None` for the kernel's own frames.
pub(super) fn packet_of(frame: &[u8]) -> Option<&[u8]> {
    let EthernetFrame { header, payload } = EthernetFrame::parse(frame).ok()?;
    matches!(header.ether_type, EtherType::IPV4 | EtherType::IPV6).then_some(payload)
}

/// Locally administered addresses (IEEE 802, section 8.4) of the hosts on both sides.
const HOSTS: [[u8; 6]; 2] = [[0x02, 0x67, 0x68, 0, 0, 1], [0x02, 0x67, 0x68, 0, 0, 2]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_either_version_returns_from_its_frame() {
        for first in [0x45, 0x60] {
            let packet = [first, 1, 2, 3];
            let frames = [true, false].map(|from_first| frame_of(&packet, from_first));
            assert_eq!(frames[0][..6], frames[1][6..12], "opposite directions");
            for frame in &frames {
                assert_eq!(packet_of(frame), Some(&packet[..]));
            }
        }
        assert_eq!(packet_of(&[0; 13]), None);
        assert_eq!(packet_of(&[&[0; 12][..], &[0x08, 0x06, 1]].concat()), None, "ARP");
    }

    #[test]
    fn a_bridge_that_is_down_has_a_treatment_of_packets() {
        let states = BridgeStates::running(2);
        states.set_down(1, Some(PacketsWhileDown::Drop));
        assert_eq!([0, 1].map(|proxy| states.down(proxy)), [None, Some(PacketsWhileDown::Drop)]);
        states.set_down(1, None);
        assert_eq!(states.down(1), None);
    }
}
