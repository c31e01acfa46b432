//! Messages of netlink(7): header, body, attributes.

/// Length of `struct nlmsghdr`.
pub(crate) const HEADER: usize = 16;

/// Length of the header of an attribute (`struct rtattr`, `struct nlattr`).
const ATTRIBUTE: usize = 4;

/// A message of the kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    pub(crate) body: &'a [u8],
}

impl Message<'_> {
    /// The error number of `NLMSG_ERROR`, 0 for an acknowledgement; absent for other messages.
    pub(crate) fn error(&self) -> Option<i32> {
        let is_error = i32::from(self.kind) == libc::NLMSG_ERROR;
        let code = word(self.body, 0).filter(|_| is_error)?;
        Some(-i32::from_ne_bytes(code.to_ne_bytes()))
    }
}

/// The messages of a datagram of the kernel. A truncated one ends them.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = word(bytes, 0)? as usize;
        let body = bytes.get(HEADER..length)?;
        let kind = short(bytes, 4)?;
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some(Message { kind, body })
    })
}

/// Kinds and values of attributes. A truncated one ends them.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(short(bytes, 0)?);
        let kind = short(bytes, 2)?;
        let value = bytes.get(ATTRIBUTE..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// A message. Sequence number and port are 0: each request has a socket of its own.
pub(crate) fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend_from_slice(&((HEADER + body.len()) as u32).to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = (ATTRIBUTE + value.len()) as u16;
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend_from_slice(value);
    bytes.resize(aligned(bytes.len()), 0);
    bytes
}

/// Messages and attributes begin at multiples of four bytes.
const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

pub(crate) fn short(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}
