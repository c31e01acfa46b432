//! Packets that wait until the link-layer address of a neighbour is known (RFC 826; RFC 4861,
//! section 7.2.2), by rtnetlink(7).

use std::io;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use crate::Error;
use crate::netlink::{attribute, attributes, message, messages, short, word};

/// Discards the packets that wait for the address of a neighbour on a device, and returns the
/// number of neighbours for which packets waited. `index` is the number of the device.
///
/// The kernel keeps such packets for three seconds. Meanwhile its TCP does not retransmit a segment
/// of this machine that waits there, even if the route is another one now: the first transmission
/// has not been sent yet (`LINUX_MIB_TCPSPURIOUS_RTX_HOSTQUEUES`).
///
/// # Errors
/// The caller lacks `CAP_NET_ADMIN`.
pub fn discard_waiting_packets(index: u32) -> Result<usize, Error> {
    let discard = || {
        let unresolved = unresolved(index)?;
        for neighbour in &unresolved {
            let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
            request(&message(libc::RTM_DELNEIGH, flags, neighbour))?;
        }
        Ok::<_, io::Error>(unresolved.len())
    };
    discard().map_err(Error::call("discarding packets that wait for a neighbour"))
}

/// Length of `struct ndmsg`, and the state of a neighbour whose address has been requested.
const NEIGHBOUR: usize = 12;
const INCOMPLETE: u16 = 1;
/// Attribute: address of the neighbour.
const NDA_DST: u16 = 1;

/// The neighbours of a device whose addresses are not known yet, as bodies of messages.
fn unresolved(index: u32) -> io::Result<Vec<Vec<u8>>> {
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut found = Vec::new();
    for datagram in request(&message(libc::RTM_GETNEIGH, flags, &[0; NEIGHBOUR]))? {
        let all = messages(&datagram).filter(|message| message.kind == libc::RTM_NEWNEIGH);
        found.extend(all.filter_map(|message| {
            let is_waiting =
                word(message.body, 4)? == index && short(message.body, 8)? == INCOMPLETE;
            let (header, rest) = message.body.split_at_checked(NEIGHBOUR)?;
            let (_, address) = attributes(rest).find(|(kind, _)| *kind == NDA_DST)?;
            is_waiting.then(|| [header, &attribute(NDA_DST, address)].concat())
        }));
    }
    Ok(found)
}

/// Sends a request, and returns the datagrams of its answer.
fn request(bytes: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Protocol 0 is `NETLINK_ROUTE`.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    send(&socket, bytes, SendFlags::empty())?;
    let mut datagrams = Vec::new();
    loop {
        // The kernel has answered when the call returns; each call continues a dump.
        let mut buffer = vec![0; 1 << 15];
        let (length, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        buffer.truncate(length);
        let mut is_complete = false;
        for message in messages(&buffer) {
            match message.error() {
                Some(code) if code != 0 => return Err(io::Error::from_raw_os_error(code)),
                Some(_) => is_complete = true,
                None => is_complete |= i32::from(message.kind) == libc::NLMSG_DONE,
            }
        }
        datagrams.push(buffer);
        if is_complete {
            return Ok(datagrams);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use gridhaul_testing::{has_program, has_tool};

    use super::*;
    use crate::{Namespace, interface_index, read_output, run_batch};

    #[test]
    fn packets_that_wait_on_one_device_are_discarded() {
        if !has_program("ip")
            || !has_tool(Namespace::new().is_ok(), "the right to create namespaces")
        {
            return;
        }
        let work = || {
            // The kernel sends ARP requests for a minute, instead of three seconds.
            let lines = "link add a0 type veth peer name a1\nlink set a0 up\nlink set a1 up\n\
                         link add b0 type veth peer name b1\nlink set b0 up\nlink set b1 up\n\
                         address add 192.0.2.1/25 dev a0\naddress add 192.0.2.129/25 dev b0\n\
                         ntable change name arp_cache dev a0 mcast_probes 60\n\
                         ntable change name arp_cache dev b0 mcast_probes 60\n";
            run_batch("ip", lines, "test").unwrap();
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            for address in ["192.0.2.7", "192.0.2.8", "192.0.2.137"] {
                socket.send_to(&[0; 100], (address, 9)).unwrap();
            }
            let waiting = || read_output("ip", &["neigh", "show", "nud", "incomplete"], "test");
            assert_eq!(waiting().unwrap().lines().count(), 3);
            let index = interface_index("a0").unwrap();
            assert_eq!(discard_waiting_packets(index).unwrap(), 2);
            let rest = waiting().unwrap();
            assert!(rest.starts_with("192.0.2.137 dev b0"), "{rest}");
            assert_eq!(rest.lines().count(), 1);
            assert_eq!(discard_waiting_packets(index).unwrap(), 0);
        };
        Namespace::new().unwrap().enter(work).unwrap();
    }
}
