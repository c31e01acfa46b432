//! Proxies that enhance performance (RFC 3135): what stands on the way of a connection and does
//! more than forward packets.

pub mod aggregate;
