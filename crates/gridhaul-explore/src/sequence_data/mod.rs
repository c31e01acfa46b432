//! A time-sequence diagram as a page needs it: a head of JSON, and the packets as arrays of
//! numbers.

mod arrays;
mod events;

use gridhaul_capture::{Ranges, Sequence};

pub(crate) use arrays::{ArrayInfo, NamedArray, encode, infos};
pub(crate) use events::Event;

/// The columns of a sequence, whose names begin with a prefix.
pub(crate) fn arrays<'a>(prefix: &str, sequence: &'a Sequence) -> Vec<NamedArray<'a>> {
    let Sequence { first_transmissions, retransmissions, acknowledgements, sack, .. } = sequence;
    let all = [
        ("first_transmissions", first_transmissions),
        ("retransmissions", retransmissions),
        ("acknowledgements", acknowledgements),
        ("sack", sack),
    ];
    let columns = all.into_iter().flat_map(|(name, ranges)| {
        let Ranges { time_s, start, end } = ranges;
        [("time_s", time_s), ("start", start), ("end", end)]
            .map(|(column, values)| NamedArray { name: format!("{prefix}{name}.{column}"), values })
    });
    columns.collect()
}
