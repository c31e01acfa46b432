//! XMPP (RFC 6120): the message stanza of [`crate::xmpp`], with the payload as OCTET STRING in XML
//! Encoding Rules.

/// Names in a stanza, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stanza {
    /// Full address of the receiver.
    pub to: u64,
    /// Full address of the sender, which the server adds (RFC 6120, section 8.1.2).
    pub from: u64,
    /// Language of the sender's stream, which a server adds (RFC 6120, section 8.1.5); prosody:
    /// `en`, 2 bytes.
    pub language: u64,
}

impl Stanza {
    /// Bytes that the stanza of the sender has besides the payload. Two hexadecimal digits stand
    /// for a byte.
    #[must_use]
    pub const fn publish_overhead(&self, payload: u64) -> u64 {
        const MESSAGE: &str = "<message to=''></message>";
        const OCTETS: &str = "<Octets xmlns='urn:gridhaul:measure'></Octets>";
        MESSAGE.len() as u64 + self.to + OCTETS.len() as u64 + payload
    }

    /// Bytes that the stanza of the server has besides the payload.
    #[must_use]
    pub const fn deliver_overhead(&self, payload: u64) -> u64 {
        const ADDED: &str = " from='' xml:lang=''";
        self.publish_overhead(payload) + ADDED.len() as u64 + self.from + self.language
    }
}
