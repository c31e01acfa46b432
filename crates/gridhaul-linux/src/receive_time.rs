//! Times at which the kernel received datagrams (`SO_TIMESTAMPNS`, socket(7)).

use std::io;
use std::mem;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Error;
use crate::clock::system_time;
use crate::frame_batch::{part, since_1970};

/// Lets the kernel record the time at which each datagram arrives at a socket.
///
/// # Errors
/// The descriptor is no socket.
#[expect(unsafe_code, reason = "no crate in use wraps this option")]
pub fn enable_receive_times(socket: impl AsFd) -> Result<(), Error> {
    let on: libc::c_int = 1;
    // SAFETY: the kernel reads an int from `on`, which outlives the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    let done = if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    done.map_err(Error::call("requesting receive times of the kernel"))
}

/// Waits until the kernel records receive times. Linux begins some time after the first socket of
/// the machine has requested them, from [`enable_receive_times`] or as a
/// [`PacketSocket`](crate::PacketSocket). Until then it reports the time at which a packet is read,
/// which on a busy machine may be much later.
///
/// Datagrams over the loopback device of the calling thread's namespace show which of both times it
/// reports. Without that device, or after a second, the function returns.
pub fn wait_for_receive_times() {
    let _ = try_wait_for_receive_times();
}

#[expect(clippy::disallowed_methods, reason = "waits for the kernel, in real time")]
fn try_wait_for_receive_times() -> io::Result<()> {
    const LIMIT: Duration = Duration::from_secs(1);
    let socket = socket_to_itself()?;
    socket.set_read_timeout(Some(LIMIT))?;
    let until = Instant::now() + LIMIT;
    loop {
        socket.send(&[0])?;
        // The loopback device has delivered the datagram when the call returns.
        let sent = system_time();
        sleep(Duration::from_millis(1));
        let (_, time) = receive_with_time(&socket, &mut [0])?;
        if time <= Some(sent) || Instant::now() >= until {
            return Ok(());
        }
    }
}

/// A socket with receive times that receives what it sends.
fn socket_to_itself() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(socket.local_addr()?)?;
    enable_receive_times(&socket).map_err(io::Error::other)?;
    Ok(socket)
}

/// Receives a datagram. Returns its length and the time at which the kernel received it, since 1970
/// by the system's clock; `None` if the times are not [enabled](enable_receive_times).
///
/// # Errors
/// The error of recvmsg(2), such as the end of the read timeout.
#[expect(unsafe_code, reason = "recvmsg with this control message, which no crate in use wraps")]
pub fn receive_with_time(
    socket: impl AsFd,
    datagram: &mut [u8],
) -> io::Result<(usize, Option<Duration>)> {
    let mut part = part(datagram.as_mut_ptr(), datagram.len());
    let mut control = Control([0; CONTROL_SIZE]);
    // SAFETY: all bytes zero are a valid `msghdr`.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_SIZE;
    // SAFETY: the kernel writes into `header`, the datagram and the control buffer, all of which
    // outlive the call.
    let length = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut header, 0) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    let mut time = None;
    // SAFETY: the kernel has written the control messages of `header`, whose buffer is still there;
    // the data of a message of this type is a `timespec`, and may be unaligned.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(&raw const header);
        while let Some(found) = control.as_ref() {
            if (found.cmsg_level, found.cmsg_type) == (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) {
                let data = libc::CMSG_DATA(control).cast::<libc::timespec>();
                time = Some(since_1970(data.read_unaligned()));
            }
            control = libc::CMSG_NXTHDR(&raw const header, control);
        }
    }
    Ok((length, time))
}

/// Space for control messages, aligned as the kernel's headers are.
#[repr(C, align(8))]
struct Control([u8; CONTROL_SIZE]);

/// `SO_TIMESTAMPNS` with its header takes 32 bytes.
const CONTROL_SIZE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "compares times of the kernel with the clock")]
    fn times_are_those_of_arrival_after_the_wait() {
        let socket = socket_to_itself().unwrap();
        wait_for_receive_times();
        let before = system_time();
        socket.send(b"datagram").unwrap();
        let after = system_time();
        sleep(Duration::from_millis(1));
        let (length, time) = receive_with_time(&socket, &mut [0; 16]).unwrap();
        assert_eq!(length, 8);
        assert!((before..=after).contains(&time.unwrap()), "{before:?}, {time:?}, {after:?}");
    }
}
