//! Sending of Ethernet frames over packet sockets, in batches and with metadata.

use std::io;
use std::os::fd::AsRawFd;
use std::slice;

use crate::PacketSocket;
use crate::frame_batch::{frame_count, message, part};
use crate::frame_metadata::{self, FrameMetadata, OutgoingFrame, VlanTag};

/// Result of [`PacketSocket::send_frames`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendResult {
    /// The kernel has taken this many frames, which are the first of them.
    pub sent: usize,
    /// The next frame was dropped for this reason. Without a reason the send buffer is full, and
    /// the remaining frames can be sent later.
    pub rejected: Option<SendRejection>,
}

/// Why a frame was dropped instead of sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendRejection {
    /// The queueing discipline of the device has dropped the frame.
    QueueFull,
    /// The frame is longer than the MTU, and not to be segmented.
    TooLong,
    /// Metadata and bytes contradict each other, or there is no complete Ethernet header.
    Malformed,
    /// The device is down.
    InterfaceDown,
}

impl PacketSocket {
    /// Sends frames with one call into the kernel. Returns how many it took, which are the first of
    /// them; 0 if the device's queue is full.
    ///
    /// # Errors
    /// The first frame was rejected: longer than the MTU allows, or the device is down.
    #[expect(unsafe_code, reason = "sendmmsg, which no crate in use wraps")]
    pub fn send(&self, frames: &[&[u8]]) -> io::Result<usize> {
        if self.with_metadata {
            let frames: Vec<_> = frames
                .iter()
                .map(|bytes| OutgoingFrame { bytes, metadata: FrameMetadata::default() })
                .collect();
            return frame_count(self.send_with_headers(&frames));
        }
        let mut parts: Vec<_> =
            frames.iter().map(|frame| part(frame.as_ptr(), frame.len())).collect();
        let mut messages: Vec<_> =
            parts.iter_mut().map(|part| message(slice::from_mut(part), &mut [])).collect();
        // SAFETY: the kernel reads `messages` and the frames that they point to, which outlive the
        // call.
        let sent = unsafe {
            let count = messages.len() as libc::c_uint;
            libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), count, 0)
        };
        frame_count(sent)
    }

    /// Sends frames with their metadata, with one call into the kernel unless it fails. The socket
    /// was opened [with metadata](Self::open_with_metadata).
    ///
    /// # Errors
    /// The device was deleted, or the socket was opened without metadata.
    pub fn send_frames(&self, frames: &[OutgoingFrame<'_>]) -> io::Result<SendResult> {
        if !self.with_metadata {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "a socket without metadata"));
        }
        let mut sent = 0;
        // The first EINVAL may report a received frame without metadata (`recvmmsg` stores it).
        let mut repeated = false;
        while sent < frames.len() {
            let result = self.send_with_headers(&frames[sent..]);
            if result > 0 {
                sent += result as usize;
                continue;
            }
            let error = io::Error::last_os_error();
            if error.raw_os_error() == Some(libc::EINVAL) && !repeated {
                repeated = true;
                continue;
            }
            let rejected = rejection(error)?;
            return Ok(SendResult { sent, rejected });
        }
        Ok(SendResult { sent, rejected: None })
    }

    /// The result of `sendmmsg`. The tag of a frame is inserted after the two addresses.
    #[expect(unsafe_code, reason = "sendmmsg, which no crate in use wraps")]
    fn send_with_headers(&self, frames: &[OutgoingFrame<'_>]) -> i32 {
        let prefixes: Vec<_> = frames
            .iter()
            .map(|frame| (frame_metadata::encode(&frame.metadata), tag(frame.metadata.vlan)))
            .collect();
        let mut parts: Vec<_> = frames
            .iter()
            .zip(&prefixes)
            .map(|(frame, (header, tag))| {
                // A frame that is too short for two addresses is rejected by the kernel.
                let tagged = frame.metadata.vlan.is_some();
                let at = if tagged { ADDRESSES.min(frame.bytes.len()) } else { 0 };
                let (addresses, rest) = frame.bytes.split_at(at);
                let tag = if tagged { &tag[..] } else { &[] };
                [&header[..], addresses, tag, rest].map(|bytes| part(bytes.as_ptr(), bytes.len()))
            })
            .collect();
        let mut messages: Vec<_> = parts.iter_mut().map(|parts| message(parts, &mut [])).collect();
        // SAFETY: the kernel reads `messages`, and the headers, tags and frames that they point
        // to, which outlive the call.
        unsafe {
            let count = messages.len() as libc::c_uint;
            libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), count, 0)
        }
    }
}

/// Why the kernel has dropped the frame; `None` if it has not taken it, and may take it later.
fn rejection(error: io::Error) -> io::Result<Option<SendRejection>> {
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EINTR) => Ok(None),
        Some(libc::ENOBUFS) => Ok(Some(SendRejection::QueueFull)),
        Some(libc::EMSGSIZE) => Ok(Some(SendRejection::TooLong)),
        Some(libc::EINVAL | libc::EPROTONOSUPPORT) => Ok(Some(SendRejection::Malformed)),
        Some(libc::ENETDOWN) => Ok(Some(SendRejection::InterfaceDown)),
        _ => Err(error),
    }
}

/// A tag as it is in a frame; zero without a tag.
fn tag(tag: Option<VlanTag>) -> [u8; 4] {
    let [a, b] = tag.map_or(0, |tag| tag.protocol).to_be_bytes();
    let [c, d] = tag.map_or(0, |tag| tag.control).to_be_bytes();
    [a, b, c, d]
}

/// Bytes of the addresses of destination and source.
const ADDRESSES: usize = 12;
