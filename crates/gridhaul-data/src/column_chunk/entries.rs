//! The entries of a dictionary by the type of their column.

use parquet::basic::Type;
use parquet::data_type::ByteArray;
use parquet::file::statistics::{Statistics, ValueStatistics};

/// The distinct values of a column in the order of their first occurrence.
#[derive(Debug)]
pub(super) enum Entries<'a> {
    /// Real numbers, as their bits.
    Real(Vec<u64>),
    /// Whole numbers.
    Whole(Vec<u64>),
    /// Texts.
    Text(Vec<&'a str>),
}

/// The smallest and the largest value of a page or of a column, as indices of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extremes {
    pub(super) low: u32,
    pub(super) high: u32,
}

impl Entries<'_> {
    pub(super) const fn len(&self) -> usize {
        match self {
            Self::Real(entries) | Self::Whole(entries) => entries.len(),
            Self::Text(entries) => entries.len(),
        }
    }

    pub(super) const fn physical_type(&self) -> Type {
        match self {
            Self::Real(_) => Type::DOUBLE,
            Self::Whole(_) => Type::INT64,
            Self::Text(_) => Type::BYTE_ARRAY,
        }
    }

    /// Bytes of all entries in the encoding PLAIN.
    pub(super) fn plain_len(&self) -> usize {
        match self {
            Self::Real(entries) | Self::Whole(entries) => size_of_val(entries.as_slice()),
            Self::Text(entries) => entries.iter().map(|text| size_of::<u32>() + text.len()).sum(),
        }
    }

    /// Bytes of the texts of some rows; `None` for numbers.
    pub(super) fn text_bytes(&self, indices: &[u32]) -> Option<i64> {
        let Self::Text(entries) = self else { return None };
        Some(indices.iter().map(|index| entries[*index as usize].len() as i64).sum())
    }

    /// An entry as statistics store it.
    pub(super) fn bytes(&self, index: u32) -> Vec<u8> {
        match self {
            Self::Real(entries) | Self::Whole(entries) => {
                entries[index as usize].to_le_bytes().to_vec()
            }
            Self::Text(entries) => entries[index as usize].as_bytes().to_vec(),
        }
    }

    /// All entries in the encoding PLAIN.
    pub(super) fn plain(&self) -> Vec<u8> {
        match self {
            Self::Real(entries) | Self::Whole(entries) => {
                entries.iter().flat_map(|entry| entry.to_le_bytes()).collect()
            }
            Self::Text(entries) => {
                let length = |text: &&str| (text.len() as u32).to_le_bytes();
                let plain =
                    entries.iter().map(|text| [&length(text)[..], text.as_bytes()].concat());
                plain.collect::<Vec<_>>().concat()
            }
        }
    }

    /// A key for each entry; keys have the order of the entries.
    pub(super) fn keys(&self) -> Vec<u64> {
        match self {
            // The total order of IEEE 754: negative numbers are in the reverse order of their bits.
            Self::Real(entries) => {
                let sign = 1 << 63;
                let key = |bits: &u64| if bits & sign == 0 { bits | sign } else { !bits };
                entries.iter().map(key).collect()
            }
            Self::Whole(entries) => entries.clone(),
            Self::Text(entries) => {
                let mut sorted = entries.clone();
                sorted.sort_unstable();
                let rank = |text: &&str| sorted.partition_point(|other| other < text) as u64;
                entries.iter().map(rank).collect()
            }
        }
    }

    /// Statistics of the column; `is_signed` is the order of its values.
    pub(super) fn statistics(
        &self,
        extremes: Option<Extremes>,
        nulls: u64,
        is_signed: bool,
    ) -> Statistics {
        let known = |number: fn(&Extremes) -> u32| extremes.as_ref().map(number);
        let (low, high) = (known(|extremes| extremes.low), known(|extremes| extremes.high));
        match self {
            Self::Real(entries) => {
                let value = |index: u32| f64::from_bits(entries[index as usize]);
                let (low, high) = (low.map(value), high.map(value));
                // A value that is not known is null, so that there is no NaN.
                let nans = extremes.map(|_| 0);
                ValueStatistics::new(low, high, None, Some(nulls), is_signed)
                    .with_nan_count(nans)
                    .into()
            }
            Self::Whole(entries) => {
                let value = |index: u32| entries[index as usize].cast_signed();
                let (low, high) = (low.map(value), high.map(value));
                ValueStatistics::new(low, high, None, Some(nulls), is_signed).into()
            }
            Self::Text(entries) => {
                let value = |index: u32| ByteArray::from(entries[index as usize]);
                let (low, high) = (low.map(value), high.map(value));
                ValueStatistics::new(low, high, None, Some(nulls), is_signed).into()
            }
        }
    }
}
