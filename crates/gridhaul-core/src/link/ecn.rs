//! The ECN field of the IP header (RFC 3168, section 5).

/// A code point of the ECN field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum EcnCodePoint {
    /// The ends of the transport do not understand marks.
    #[default]
    NotEct = 0,
    /// ECN-capable transport, the second code point.
    Ect1 = 1,
    /// ECN-capable transport.
    Ect0 = 2,
    /// Congestion experienced: a queue has marked the packet.
    Ce = 3,
}

impl EcnCodePoint {
    /// The code point of the two low bits of a traffic class.
    #[inline]
    #[must_use]
    pub const fn of_traffic_class(octet: u8) -> Self {
        match octet & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The bits as encoded in the header.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Whether a queue may mark the packet instead of dropping it.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_are_the_two_low_bits_of_the_traffic_class() {
        for bits in 0..4 {
            assert_eq!(EcnCodePoint::of_traffic_class(0xb8 | bits).bits(), bits);
        }
        assert!(!EcnCodePoint::of_traffic_class(0xfc).is_capable());
        assert!(EcnCodePoint::Ce.is_capable());
    }
}
