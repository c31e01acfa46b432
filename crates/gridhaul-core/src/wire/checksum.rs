//! The checksum of IP, TCP and UDP (RFC 1071).

use etherparse::checksum::Sum16BitWords;

use super::Addresses;

/// The ones' complement of the ones' complement sum of 16-bit words in network order; an odd last
/// byte is padded with zero. `start` is added to the sum: that of a pseudo header, or 0.
#[must_use]
#[inline]
pub fn internet(start: u32, bytes: &[u8]) -> u16 {
    let mut sum = Sum16BitWords::new().add_slice(bytes);
    sum.add_4bytes(start.to_be_bytes()).ones_complement().to_be()
}

/// A checksum after a change of one word covered by it (RFC 1624, equation 3).
#[must_use]
#[inline]
pub fn adjusted(checksum: u16, before: u16, after: u16) -> u16 {
    !folded(u32::from(!checksum) + u32::from(!before) + u32::from(after))
}

/// The sum of the pseudo header of TCP and UDP (RFC 9293, section 3.1; RFC 8200, section 8.1).
/// `length` is that of the transport header and its payload.
#[must_use]
#[inline]
pub fn pseudo_header(addresses: &Addresses, protocol: u8, length: u32) -> u32 {
    let mut sum = Sum16BitWords::new();
    sum = match addresses {
        Addresses::V4 { source, destination } => {
            sum.add_4bytes(source.octets()).add_4bytes(destination.octets())
        }
        Addresses::V6 { source, destination } => {
            sum.add_16bytes(source.octets()).add_16bytes(destination.octets())
        }
    };
    let sum = sum.add_4bytes(length.to_be_bytes()).add_2bytes([0, protocol]);
    u32::from(!sum.ones_complement().to_be())
}

fn folded(mut sum: u32) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc_has_its_checksum() {
        // RFC 1071, section 3: the words 0001 f203 f4f5 f6f7 add up to ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(internet(0, &bytes), !0xddf2);
    }

    #[test]
    fn an_adjusted_checksum_equals_that_of_the_changed_bytes() {
        // RFC 1624, section 4: the word 5555 becomes 3285, and the checksum dd2f becomes 0000.
        assert_eq!(adjusted(0xdd2f, 0x5555, 0x3285), 0);
        let (before, after) = ([0x12, 0x34, 0xab, 0xcd, 0x01], [0x12, 0x34, 0xab, 0xdd, 0x01]);
        assert_eq!(adjusted(internet(0, &before), 0xabcd, 0xabdd), internet(0, &after));
    }

    #[test]
    fn the_pseudo_header_counts_like_its_bytes() {
        let bytes = [10, 0, 0, 1, 192, 168, 255, 254, 0, 6, 0x12, 0x34];
        let addresses = Addresses::V4 {
            source: [10, 0, 0, 1].into(),
            destination: [192, 168, 255, 254].into(),
        };
        assert_eq!(internet(pseudo_header(&addresses, 6, 0x1234), &[]), internet(0, &bytes));
    }
}
