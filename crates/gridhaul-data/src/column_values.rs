//! Values of a column for the writer of Parquet files.

use std::io::Write;

use gridhaul_scenario::answer::ColumnData;
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::ColumnDescPtr;

use crate::repeated_pages::{self, EqualPages};
use crate::series::SeriesError;

/// Values that the writer gets at once: it encodes as many in one go. More of them would be copies
/// that do not fit into the cache of a processor.
const PART: usize = 1024;

/// Parts in a page of a column whose pages repeat. Pages of the writer's own have 20,000 rows: most
/// tables have few of them.
const PARTS_PER_PAGE: usize = 4;

/// Bytes of texts up to which the pages of a column may repeat: far below the limit of a
/// dictionary, after which the writer would begin another page.
const WORDS_MAX: usize = 1 << 16;

/// A column of a file.
pub(crate) struct FileColumn {
    descriptor: ColumnDescPtr,
    /// The properties of the file.
    properties: WriterPropertiesPtr,
}

impl FileColumn {
    /// The columns of a file.
    pub(crate) fn all<W: Write + Send>(file: &SerializedFileWriter<W>) -> Vec<Self> {
        let descriptors = file.schema_descr().columns().iter();
        descriptors
            .map(|descriptor| Self {
                descriptor: descriptor.clone(),
                properties: file.properties().clone(),
            })
            .collect()
    }

    /// Writes this column, which is the next one of a row group. A column with one value has it in
    /// all `rows`.
    pub(crate) fn write<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        values: ColumnData,
        rows: usize,
    ) -> Result<(), SeriesError> {
        match values {
            ColumnData::Real(mut values) => {
                if let [value] = values[..] {
                    values.resize(rows, value);
                }
                self.write_next(group, |writer| {
                    values.chunks(PART).try_for_each(|part| write_numbers(writer, part))
                })
            }
            ColumnData::Whole(values) => {
                // Parquet has signed integers only; the logical type of the column makes readers
                // interpret the bits as unsigned.
                let values: Vec<i64> = values.into_iter().map(u64::cast_signed).collect();
                let page = constant_page(&values, rows, PART);
                match page {
                    Some(page) => {
                        let pages = EqualPages::of_constant(&page, rows);
                        self.append(group, &pages, write_known::<Int64Type>)
                    }
                    None => {
                        self.write_next(group, |writer| write_known::<Int64Type>(writer, &values))
                    }
                }
            }
            ColumnData::Text { words, rows: indices } => {
                self.write_texts(group, &words, &indices, rows)
            }
        }
    }

    fn write_texts<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        words: &[String],
        indices: &[u32],
        rows: usize,
    ) -> Result<(), SeriesError> {
        if indices.iter().any(|index| *index as usize >= words.len()) {
            return Err(SeriesError::Word { column: self.descriptor.name().to_owned() });
        }
        let mut part = TextPart::new(words);
        // Flows and links are sampled in the same order each time: parts of a multiple of their
        // number are equal.
        let length = PART - PART % words.len().clamp(1, PART);
        let write = |writer: &mut ColumnWriterImpl<'_, ByteArrayType>, indices: &[u32]| {
            let mut parts = indices.chunks(length);
            parts.try_for_each(|indices| write_known(writer, part.texts(indices)))
        };
        let page = constant_page(indices, rows, length);
        let pages = match &page {
            Some(page) => EqualPages::of_constant(page, rows),
            None => EqualPages::of(indices, PARTS_PER_PAGE * length),
        };
        let repeats = page.is_some() || pages.iter().any(|run| run.count > 1);
        if repeats && words.iter().map(String::len).sum::<usize>() <= WORDS_MAX {
            return self.append(group, &pages, write);
        }
        let mut write = write;
        self.write_next(group, |writer| {
            let mut pages = pages.iter().flat_map(|run| std::iter::repeat_n(run.rows, run.count));
            pages.try_for_each(|rows| write(writer, rows))
        })
    }

    /// Writes the column as pages of which some are equal.
    fn append<W: Write + Send, T: DataType, R>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        pages: &[EqualPages<'_, R>],
        write: impl FnMut(&mut ColumnWriterImpl<'_, T>, &[R]) -> Result<(), ParquetError>,
    ) -> Result<(), SeriesError> {
        let Self { descriptor, properties } = self;
        Ok(repeated_pages::append_column(group, descriptor, properties, pages, write)?)
    }

    /// Writes the column as pages of the writer's own.
    fn write_next<W: Write + Send, T: DataType>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        write: impl FnOnce(&mut ColumnWriterImpl<'_, T>) -> Result<(), ParquetError>,
    ) -> Result<(), SeriesError> {
        let Some(mut writer) = group.next_column()? else {
            return Err(SeriesError::Schema { column: self.descriptor.name().to_owned() });
        };
        write(writer.typed::<T>())?;
        writer.close()?;
        Ok(())
    }
}

/// A page of a column that has the same value in several rows, with parts of some length.
fn constant_page<T: Copy>(values: &[T], rows: usize, part: usize) -> Option<Vec<T>> {
    match values {
        [value] if rows > 1 => Some(vec![*value; rows.min(PARTS_PER_PAGE * part)]),
        _ => None,
    }
}

fn write_known<T: DataType>(
    writer: &mut ColumnWriterImpl<'_, T>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    writer.write_batch(values, None, None).map(drop)
}

/// Parquet stores only known values; the definition level of a missing one is 0.
fn write_numbers(
    writer: &mut ColumnWriterImpl<'_, DoubleType>,
    part: &[f64],
) -> Result<(), ParquetError> {
    const KNOWN: [i16; PART] = [1; PART];
    // Without a branch for each value, several of them are compared at once.
    if !part.iter().fold(false, |missing, value| missing | value.is_nan()) {
        return writer.write_batch(part, Some(&KNOWN[..part.len()]), None).map(drop);
    }
    let levels: Vec<i16> = part.iter().map(|value| i16::from(!value.is_nan())).collect();
    let known: Vec<f64> = part.iter().copied().filter(|value| !value.is_nan()).collect();
    writer.write_batch(&known, Some(&levels), None).map(drop)
}

/// The texts of the last part of a column. Most places of the next part have the text that they
/// have already: it is not copied again.
struct TextPart {
    words: Vec<ByteArray>,
    indices: Vec<u32>,
    texts: Vec<ByteArray>,
}

impl TextPart {
    fn new(words: &[String]) -> Self {
        let words = words.iter().map(|word| word.as_str().into()).collect();
        Self { words, indices: Vec::new(), texts: Vec::new() }
    }

    /// The texts with some indices, of which all are valid.
    fn texts(&mut self, indices: &[u32]) -> &[ByteArray] {
        let Self { words, indices: last, texts } = self;
        let known = last.len().min(indices.len());
        let places = last.iter_mut().zip(texts.iter_mut());
        for (index, (last, text)) in indices.iter().zip(places) {
            if index != last {
                *last = *index;
                text.clone_from(&words[*index as usize]);
            }
        }
        last.extend_from_slice(&indices[known..]);
        texts.extend(indices[known..].iter().map(|index| words[*index as usize].clone()));
        &texts[..indices.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_part_do_not_depend_on_the_part_before() {
        let mut part = TextPart::new(&["a", "b", "c"].map(String::from));
        let mut texts = |indices: &[u32]| {
            let texts = part.texts(indices).iter();
            texts.map(|text| text.as_utf8().unwrap().to_owned()).collect::<String>()
        };
        assert_eq!(texts(&[0, 1, 0, 1]), "abab");
        assert_eq!(texts(&[1, 1]), "bb");
        assert_eq!(texts(&[2, 1, 0, 0, 2]), "cbaac");
    }
}
