//! The subset of the Basic Encoding Rules (ITU-T X.690) that both protocols use: tags of one byte
//! and definite lengths.

use super::FrameError;

/// Reads elements in sequence. An element consists of tag, length and contents (X.690, section
/// 8.1.1).
#[derive(Debug, Clone, Copy)]
pub(crate) struct BerReader<'a> {
    bytes: &'a [u8],
}

impl<'a> BerReader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Contents of the next element, which must have this tag.
    pub(crate) fn element(
        &mut self,
        tag: u8,
        element: &'static str,
    ) -> Result<&'a [u8], FrameError> {
        match self.bytes.first() {
            Some(&found) if found != tag => Err(FrameError::Tag { element, expected: tag, found }),
            _ => self.any(element).map(|(_, contents)| contents),
        }
    }

    /// Contents of the next element if it has this tag.
    pub(crate) fn optional(
        &mut self,
        tag: u8,
        element: &'static str,
    ) -> Result<Option<&'a [u8]>, FrameError> {
        if self.bytes.first() == Some(&tag) {
            self.element(tag, element).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Contents of the next element, as an array of `N` bytes.
    pub(crate) fn array<const N: usize>(
        &mut self,
        tag: u8,
        element: &'static str,
    ) -> Result<[u8; N], FrameError> {
        to_array(self.element(tag, element)?, element)
    }

    /// As [`BerReader::array`], for an element that may be absent.
    pub(crate) fn optional_array<const N: usize>(
        &mut self,
        tag: u8,
        element: &'static str,
    ) -> Result<Option<[u8; N]>, FrameError> {
        self.optional(tag, element)?.map(|contents| to_array(contents, element)).transpose()
    }

    /// Tag and contents of the next element.
    pub(crate) fn any(&mut self, element: &'static str) -> Result<(u8, &'a [u8]), FrameError> {
        let [tag, length, rest @ ..] = self.bytes else {
            return Err(FrameError::Truncated { element, expected: 2, found: self.bytes.len() });
        };
        // X.690, section 8.1.2.4: tag numbers from 31 take more bytes; neither protocol has such
        // tags.
        if tag & 0x1f == 0x1f {
            return Err(FrameError::value(element, "tags of more than one byte are not supported"));
        }
        let (length, rest) = match length {
            0x00..=0x7f => (usize::from(*length), rest),
            // A frame is shorter than 65,536 bytes; longer forms and the indefinite form (0x80) are
            // refused.
            0x81 | 0x82 => long_length(usize::from(length & 0x7f), rest, element)?,
            _ => return Err(FrameError::value(element, "expected a length of at most 3 bytes")),
        };
        if length > rest.len() {
            let found = rest.len();
            return Err(FrameError::Truncated { element, expected: length, found });
        }
        let (contents, rest) = rest.split_at(length);
        self.bytes = rest;
        Ok((*tag, contents))
    }

    /// Checks that there are no more elements.
    pub(crate) const fn finish(self, element: &'static str) -> Result<(), FrameError> {
        match self.bytes.len() {
            0 => Ok(()),
            count => Err(FrameError::Trailing { element, count }),
        }
    }
}

/// A length in the long form (X.690, section 8.1.3.5), and the bytes after it.
fn long_length<'a>(
    count: usize,
    rest: &'a [u8],
    element: &'static str,
) -> Result<(usize, &'a [u8]), FrameError> {
    let truncated = FrameError::Truncated { element, expected: count, found: rest.len() };
    let (length, rest) = rest.split_at_checked(count).ok_or(truncated)?;
    Ok((length.iter().fold(0, |value, byte| value << 8 | usize::from(*byte)), rest))
}

fn to_array<const N: usize>(contents: &[u8], element: &'static str) -> Result<[u8; N], FrameError> {
    let error = FrameError::value(element, "the contents do not have the length of the type");
    contents.try_into().map_err(|_| error)
}

/// Appends an element with these contents.
pub(crate) fn write(out: &mut Vec<u8>, tag: u8, contents: &[u8]) {
    out.push(tag);
    write_length(out, contents.len());
    out.extend_from_slice(contents);
}

/// Appends an element whose contents are written by `contents`.
pub(crate) fn write_nested<E>(
    out: &mut Vec<u8>,
    tag: u8,
    contents: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let mut nested = Vec::new();
    contents(&mut nested)?;
    write(out, tag, &nested);
    Ok(())
}

/// Appends a length in the shortest form (X.690, section 8.1.3).
fn write_length(out: &mut Vec<u8>, length: usize) {
    let bytes = length.to_be_bytes();
    match length {
        0..=0x7f => out.push(bytes[bytes.len() - 1]),
        0x80..=0xff => out.extend([0x81, bytes[bytes.len() - 1]]),
        _ => out.extend([0x82, bytes[bytes.len() - 2], bytes[bytes.len() - 1]]),
    }
}

/// An INTEGER (X.690, section 8.3) in the shortest form.
pub(crate) fn write_integer(out: &mut Vec<u8>, tag: u8, value: i64) {
    let bytes = value.to_be_bytes();
    let is_redundant =
        |pair: &[u8]| pair[0] == 0 && pair[1] & 0x80 == 0 || pair[0] == 0xff && pair[1] & 0x80 != 0;
    let skipped = bytes.windows(2).take_while(|pair| is_redundant(pair)).count();
    write(out, tag, &bytes[skipped..]);
}

/// Value of an INTEGER of at most 8 bytes.
pub(crate) fn integer(contents: &[u8], element: &'static str) -> Result<i64, FrameError> {
    let [first, ..] = contents else {
        return Err(FrameError::value(element, "expected an integer, found no bytes"));
    };
    if contents.len() > 8 {
        return Err(FrameError::value(element, "expected an integer of at most 8 bytes"));
    }
    let sign = if first & 0x80 == 0 { 0 } else { -1 };
    Ok(contents.iter().fold(sign, |value, byte| value << 8 | i64::from(*byte)))
}

/// Value of an INTEGER that the standard limits to 32 bits without sign.
pub(crate) fn unsigned(contents: &[u8], element: &'static str) -> Result<u32, FrameError> {
    let error = FrameError::value(element, "expected an integer from 0 to 4294967295");
    integer(contents, element)?.try_into().map_err(|_| error)
}

/// Value of a BOOLEAN (X.690, section 8.2): any value other than zero is true.
pub(crate) fn boolean(contents: &[u8], element: &'static str) -> Result<bool, FrameError> {
    to_array::<1>(contents, element).map(|[byte]| byte != 0)
}

/// Text of a VisibleString: printable ASCII (X.680, section 41).
pub(crate) fn visible_string(
    contents: &[u8],
    limit: usize,
    element: &'static str,
) -> Result<String, FrameError> {
    if contents.len() > limit {
        return Err(FrameError::value(element, "the text is longer than the standard permits"));
    }
    check_visible(contents, element)?;
    Ok(contents.iter().copied().map(char::from).collect())
}

/// Appends a VisibleString of at most `limit` characters.
pub(crate) fn write_visible_string(
    out: &mut Vec<u8>,
    tag: u8,
    text: &str,
    limit: usize,
    element: &'static str,
) -> Result<(), FrameError> {
    visible_string(text.as_bytes(), limit, element)?;
    write(out, tag, text.as_bytes());
    Ok(())
}

fn check_visible(bytes: &[u8], element: &'static str) -> Result<(), FrameError> {
    let is_visible = |byte: &u8| matches!(byte, b' '..=b'~');
    if bytes.iter().all(is_visible) {
        Ok(())
    } else {
        Err(FrameError::value(element, "expected printable ASCII characters"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_take_one_two_or_three_bytes() {
        for (length, bytes) in
            [(0x7f, vec![0x7f]), (0x80, vec![0x81, 0x80]), (0x100, vec![0x82, 1, 0])]
        {
            let mut out = Vec::new();
            write(&mut out, 0x87, &vec![0; length]);
            assert_eq!(out[1..1 + bytes.len()], bytes);
            let contents = BerReader::new(&out).element(0x87, "seqData").unwrap();
            assert_eq!(contents.len(), length);
        }
    }

    #[test]
    fn integers_have_the_shortest_form() {
        for (value, bytes) in [
            (0, vec![0]),
            (127, vec![127]),
            (128, vec![0, 128]),
            (-1, vec![255]),
            (-129, vec![255, 127]),
        ] {
            let mut out = Vec::new();
            write_integer(&mut out, 0x85, value);
            assert_eq!(out[2..], bytes);
            assert_eq!(integer(&bytes, "value"), Ok(value));
        }
        assert_eq!(unsigned(&[0, 0xff, 0xff, 0xff, 0xff], "stNum"), Ok(u32::MAX));
        assert!(unsigned(&[0xff], "stNum").is_err());
    }

    #[test]
    fn lengths_that_no_frame_has_are_refused() {
        for bytes in
            [&[0x80, 0x80, 0, 0][..], &[0x80, 0x83, 0, 0, 1, 0], &[0x9f, 0x20, 0], &[0x80, 2, 0]]
        {
            assert!(BerReader::new(bytes).any("noASDU").is_err(), "{bytes:x?}");
        }
    }
}
