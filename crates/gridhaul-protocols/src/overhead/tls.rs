//! TLS 1.3 (RFC 8446).

/// Bytes that a record has besides its contents: the header of type, version and length (section
/// 5.1), the type of the contents (record payload protection), and the authentication tag, which
/// has 16 bytes in all cipher suites in use here (RFC 5116, AEAD algorithms).
pub const RECORD_OVERHEAD: u64 = 5 + 1 + 16;
