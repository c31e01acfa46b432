//! The values of a column as indices of its dictionary.

use std::ops::Range;

use gridhaul_scenario::answer::ColumnData;
use parquet::file::properties::{
    DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT, DEFAULT_STATISTICS_TRUNCATE_LENGTH,
};

use super::entries::Entries;
use super::number_dictionary::NumberDictionary;

/// A column with its dictionary.
pub(super) struct IndexedColumn<'a> {
    pub(super) entries: Entries<'a>,
    /// For each known value, the index of its entry.
    pub(super) indices: Vec<u32>,
    /// For each row, whether its value is known (1) or null (0): the definition levels. `None` if
    /// the column has no nulls by its type.
    pub(super) levels: Option<Vec<u32>>,
}

impl<'a> IndexedColumn<'a> {
    /// `None` for columns that need more than a dictionary (too many distinct values), whose
    /// statistics are truncated (long texts), or that are invalid or empty.
    pub(super) fn new(data: &'a ColumnData) -> Option<Self> {
        let column = match data {
            ColumnData::Real(values) => {
                let levels = values.iter().map(|value| u32::from(!value.is_nan())).collect();
                let known = values.iter().filter(|value| !value.is_nan());
                let (entries, indices) = numbers(known.map(|value| value.to_bits()));
                Self { entries: Entries::Real(entries), indices, levels: Some(levels) }
            }
            ColumnData::Whole(values) => {
                let (entries, indices) = numbers(values.iter().copied());
                Self { entries: Entries::Whole(entries), indices, levels: None }
            }
            ColumnData::Text { words, rows } => Self::of_texts(words, rows)?,
        };
        let fits = column.entries.plain_len() < DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT;
        (fits && column.rows() > 0).then_some(column)
    }

    fn of_texts(words: &'a [String], rows: &[u32]) -> Option<Self> {
        if words.iter().any(|word| Some(word.len()) > DEFAULT_STATISTICS_TRUNCATE_LENGTH) {
            return None;
        }
        let mut entries: Vec<&str> = Vec::new();
        // The index of the entry of each word, once the word has occurred.
        let mut known: Vec<Option<u32>> = vec![None; words.len()];
        let mut indices = Vec::with_capacity(rows.len());
        for row in rows {
            let known = known.get_mut(*row as usize)?;
            let index = known.unwrap_or_else(|| {
                let word = words[*row as usize].as_str();
                let found = entries.iter().position(|entry| *entry == word);
                found.unwrap_or_else(|| {
                    entries.push(word);
                    entries.len() - 1
                }) as u32
            });
            *known = Some(index);
            indices.push(index);
        }
        Some(Self { entries: Entries::Text(entries), indices, levels: None })
    }

    /// Number of known values in some rows.
    pub(super) fn known(&self, rows: &Range<usize>) -> usize {
        let levels = self.levels.as_ref();
        levels.map_or(rows.len(), |levels| levels[rows.clone()].iter().sum::<u32>() as usize)
    }

    pub(super) fn rows(&self) -> usize {
        self.levels.as_ref().map_or(self.indices.len(), Vec::len)
    }
}

/// The distinct numbers, and the index of each number.
fn numbers(values: impl Iterator<Item = u64>) -> (Vec<u64>, Vec<u32>) {
    let mut dictionary = NumberDictionary::default();
    let indices = values.map(|value| dictionary.index(value)).collect();
    (dictionary.into_entries(), indices)
}
