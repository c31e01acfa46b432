//! The hybrid of run lengths and bit packing of Apache Parquet, Encodings.md, "RLE".

/// Values in a group: a run of packed values has whole groups.
const GROUP: usize = 8;

/// Groups in a run of packed values, at most: its header is one byte.
const GROUPS_MAX: usize = 63;

/// Appends values of `width` bits. As the writer of the crate `parquet` does, a run begins where a
/// group has one value only, and then includes the equal values that follow.
pub(super) fn encode(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let (mut packed, mut at) = (0, 0);
    while at < values.len() {
        let group = &values[at..values.len().min(at + GROUP)];
        let is_equal = group.iter().all(|value| *value == group[0]);
        // The last values may be no whole group: they complete a run of packed values.
        if is_equal && (group.len() == GROUP || packed == 0) {
            pack(&values[at - packed..at], width, out);
            packed = 0;
            let equal = values[at..].iter().take_while(|value| **value == group[0]).count();
            run(group[0], equal, width, out);
            at += equal;
        } else {
            packed += group.len();
            at += group.len();
            if packed >= GROUPS_MAX * GROUP {
                pack(&values[at - packed..at], width, out);
                packed = 0;
            }
        }
    }
    pack(&values[at - packed..at], width, out);
}

/// Appends a run of equal values.
fn run(value: u32, length: usize, width: u32, out: &mut Vec<u8>) {
    let mut header = (length as u64) << 1;
    while header >= 0x80 {
        out.push(header as u8 | 0x80);
        header >>= 7;
    }
    out.push(header as u8);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Appends a run of packed values, whose last group is filled with zeros.
fn pack(values: &[u32], width: u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(GROUP);
    out.push((groups << 1 | 1) as u8);
    let end = out.len() + groups * width as usize;
    let (mut bits, mut count) = (0_u64, 0);
    for value in values {
        bits |= u64::from(*value) << count;
        count += width;
        if count >= 32 {
            out.extend_from_slice(&(bits as u32).to_le_bytes());
            bits >>= 32;
            count -= 32;
        }
    }
    out.extend_from_slice(&bits.to_le_bytes());
    out.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_packed_groups_follow_the_specification() {
        let encoded = |values: &[u32], width| {
            let mut out = Vec::new();
            encode(values, width, &mut out);
            out
        };
        // The example of Encodings.md: 0 to 7 in three bits.
        let packed = [0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(encoded(&[0, 1, 2, 3, 4, 5, 6, 7], 3), [&[3][..], &packed].concat());
        assert_eq!(encoded(&[4; 300], 3), [0b1101_1000, 4, 4]);
        assert_eq!(encoded(&[0; 20], 0), [40]);
        // A run of nine values ends a packed run; the last two values are a run of their own.
        let mixed = [&[0, 1, 2, 3, 4, 5, 6, 7][..], &[5; 9], &[6, 6]].concat();
        assert_eq!(encoded(&mixed, 3), [&[3][..], &packed, &[18, 5, 4, 6]].concat());
        assert_eq!(encoded(&[1, 0, 1], 1), [3, 0b101]);
        assert_eq!(encoded(&[], 3), [0; 0]);
    }
}
