//! States within a message, as values with which another process can continue.

/// State of a framing within the current message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramingProgress {
    /// A framing without state.
    Stateless,
    /// State of a length field before the message.
    LengthPrefix(PrefixProgress),
    /// State of a length field in a header.
    LengthField {
        /// Bytes up to the end of the length field that have arrived.
        arrived: u16,
        /// Value of the length field so far; after the field, bytes of the message that are
        /// missing.
        number: u32,
    },
    /// State of a message that ends with a byte.
    Delimiter {
        /// Bytes of the message that have arrived.
        arrived: u32,
    },
    /// State of a message with a header of fixed length.
    Header(HeaderProgress),
}

/// State within a message that begins with its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefixProgress {
    /// In the length field.
    Prefix {
        /// Value of the field so far.
        value: u32,
        /// Bytes of the field so far.
        arrived: u8,
    },
    /// After the length field.
    Body {
        /// Bytes of the message that have not arrived.
        missing: u32,
    },
}

/// State within a message that begins with a header of fixed length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderProgress {
    /// In the header.
    Header {
        /// The bytes of the header that have arrived; the others have no meaning.
        bytes: [u8; 8],
        /// Their number.
        arrived: u8,
    },
    /// After the header.
    Body {
        /// Bytes of the message that have not arrived.
        missing: u32,
    },
}
