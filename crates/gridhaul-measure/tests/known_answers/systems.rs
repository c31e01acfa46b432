//! The systems on this machine, and messages through them.

use std::net::{SocketAddr, UdpSocket};
use std::time;

use gridhaul_measure::place::Sites;
use gridhaul_measure::systems;

use crate::{on_network, turn};

#[test]
fn datagrams_pass_every_system_in_both_directions() {
    let Some(_turn) = turn(&[]) else { return };
    for name in systems::names() {
        let scenario = systems::scenario(name).unwrap().unwrap();
        on_network(&scenario, systems::FLOW, |sites| echo(name, sites)).unwrap();
    }
}

/// Sends datagrams until the other end has sent one back.
fn echo(name: &str, sites: &Sites<'_>) {
    let open = |site: gridhaul_measure::place::Site<'_>| {
        let socket = site.enter(|| UdpSocket::bind(SocketAddr::new(site.address, 0)).unwrap());
        let socket = socket.unwrap();
        socket.set_read_timeout(Some(time::Duration::from_secs(3))).unwrap();
        socket
    };
    let (near, far) = (open(sites.from), open(sites.to));
    let mut bytes = [0; 8];
    // Each system loses at most a few percent of the datagrams.
    for _ in 0..5 {
        near.send_to(&[7; 8], far.local_addr().unwrap()).unwrap();
        let Ok((_, sender)) = far.recv_from(&mut bytes) else { continue };
        far.send_to(&bytes, sender).unwrap();
        if near.recv(&mut bytes).is_ok() {
            assert_eq!(bytes, [7; 8]);
            return;
        }
    }
    panic!("{name}: no datagram came back");
}
