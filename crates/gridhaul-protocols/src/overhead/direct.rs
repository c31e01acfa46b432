//! Protocols over TCP without a broker, as this program sends a message in them.

use crate::c37_118::DATA_OVERHEAD;
use crate::nanomsg::HEADER;

/// Modbus/TCP, function 16: header of 7 bytes (MODBUS Messaging on TCP/IP, section 3.1.3),
/// function, address, quantity and byte count (MODBUS Application Protocol V1.1b3, section 6.12), a
/// register for the length, and one byte of padding after an odd length.
#[must_use]
pub const fn modbus(payload: u64) -> u64 {
    7 + 1 + 2 + 2 + 1 + 2 + payload % 2
}

/// IEC 60870-5-104: objects of 15 bytes for four bytes each and for the length; each frame has at
/// most 16 of them after 6 bytes of APCI and 6 bytes of ASDU (sections 5 and 7).
#[must_use]
pub const fn iec104(payload: u64) -> u64 {
    let objects = 1 + payload.div_ceil(4);
    (6 + 6) * objects.div_ceil(16) + 15 * objects - payload
}

/// ZMTP 3.0: flags and length in one byte, or in eight above 255 bytes (RFC 23, section Framing).
#[must_use]
pub const fn zeromq(payload: u64) -> u64 {
    if payload <= 255 { 2 } else { 9 }
}

/// Scalability Protocols: length in eight bytes (`sp-tcp-mapping-01`, section 3).
#[must_use]
pub const fn nanomsg(_payload: u64) -> u64 {
    HEADER as u64
}

/// C37.118.2: a data frame whose phasors have four bytes each (IEEE C37.118.2-2011, table 5).
#[must_use]
pub const fn synchrophasor(payload: u64) -> u64 {
    DATA_OVERHEAD as u64 + 4 * payload.div_ceil(4) - payload
}

/// DNP3: a fragment of 4 bytes and objects of 6 bytes for up to 254 bytes each (IEEE 1815-2012,
/// clause 4.2), in frames of up to 249 bytes with a header of 10 bytes, a transport header of 1
/// byte and a CRC of 2 bytes for each 16 bytes (clauses 8.2 and 9.2). A payload above 1,990 bytes
/// takes more fragments.
#[must_use]
pub const fn dnp3(payload: u64) -> u64 {
    let objects = if payload == 0 { 1 } else { payload.div_ceil(254) };
    let fragment = 4 + 6 * objects + payload;
    let whole = fragment / 249;
    let rest = fragment % 249;
    let last = if rest == 0 { 0 } else { frame(rest) };
    whole * frame(249) + last - payload
}

/// Bytes of a frame with these bytes of the application layer.
const fn frame(segment: u64) -> u64 {
    10 + 1 + segment + 2 * (1 + segment).div_ceil(16)
}
