//! A message as an element of a stanza: `Octets ::= OCTET STRING` in XML Encoding Rules (basic XER,
//! ITU-T X.693), two hexadecimal digits for each byte.
//!
//! The namespace is of XMPP: an extension of a stanza has one of its own (RFC 6120, section 8.4).

use super::xml::Element;

/// Name of the type, and of the element.
const NAME: &str = "Octets";

/// Namespace of the element.
const NAMESPACE: &str = "urn:gridhaul:measure";

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// Appends the element.
pub(super) fn write(message: &[u8], output: &mut Vec<u8>) {
    output.extend(format!("<{NAME} xmlns='{NAMESPACE}'>").bytes());
    for byte in message {
        output.extend([byte >> 4, byte & 0xf].map(|digit| DIGITS[usize::from(digit)]));
    }
    output.extend(format!("</{NAME}>").bytes());
}

/// The message in a stanza; `None` in a stanza of another application.
pub(super) fn read(stanza: &Element) -> Option<Vec<u8>> {
    let element =
        stanza.child(NAME).filter(|element| element.attribute("xmlns") == Some(NAMESPACE))?;
    // White space between the digits has no meaning (ITU-T X.680, xmlhstring).
    let digits = element.text.chars().filter(|digit| !digit.is_ascii_whitespace());
    let digits: Option<Vec<u8>> =
        digits.map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
    let pairs = digits?;
    let (pairs, rest) = pairs.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}
