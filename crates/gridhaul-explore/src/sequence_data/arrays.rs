//! Many numbers in one answer: a head of JSON, then arrays of IEEE 754 numbers, which a page reads
//! without parsing.

use serde::Serialize;

/// An array.
#[derive(Debug)]
pub(crate) struct NamedArray<'a> {
    pub(crate) name: String,
    pub(crate) values: &'a [f64],
}

/// Name and length of an array in the head.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct ArrayInfo {
    name: String,
    length: usize,
}

/// The infos of arrays, in their order.
pub(crate) fn infos(arrays: &[NamedArray<'_>]) -> Vec<ArrayInfo> {
    let info =
        |array: &NamedArray<'_>| ArrayInfo { name: array.name.clone(), length: array.values.len() };
    arrays.iter().map(info).collect()
}

/// The length of the head in four bytes, the head, blanks up to a multiple of eight bytes, and the
/// arrays; numbers are little-endian.
pub(crate) fn encode(head: &impl Serialize, arrays: &[NamedArray<'_>]) -> Vec<u8> {
    // A head consists of numbers and texts, so it always has a JSON form.
    let mut head = serde_json::to_vec(head).unwrap_or_default();
    head.resize((head.len() + 4).next_multiple_of(8) - 4, b' ');
    let numbers: usize = arrays.iter().map(|array| array.values.len()).sum();
    let mut bytes = Vec::with_capacity(4 + head.len() + 8 * numbers);
    bytes.extend((head.len() as u32).to_le_bytes());
    bytes.extend(head);
    for array in arrays {
        array.values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_begin_at_a_multiple_of_eight_bytes() {
        for name in ["a", "ab", "abc", "abcdefgh"] {
            let values = [1.5, -2.0];
            let array = NamedArray { name: name.to_owned(), values: &values };
            let bytes = encode(&infos(std::slice::from_ref(&array)), &[array]);
            let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
            assert_eq!((4 + length) % 8, 0);
            let head: serde_json::Value = serde_json::from_slice(&bytes[4..4 + length]).unwrap();
            assert_eq!(head[0]["length"], 2);
            let last = f64::from_le_bytes(bytes[bytes.len() - 8..].try_into().unwrap());
            assert_eq!(last, -2.0);
        }
    }
}
