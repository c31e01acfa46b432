//! Columns of which many pages are equal: constants, and the names of flows and links, which are
//! sampled in the same order each time. Such a page is encoded once and written several times.

use std::io::Write;
use std::sync::Arc;
use std::vec;

use bytes::Bytes;
use parquet::basic::{PageType, Type as Physical};
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriterImpl, get_column_writer, get_typed_column_writer};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::OffsetIndexBuilder;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// Consecutive pages with the same rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EqualPages<'a, R> {
    /// The rows of one of the pages.
    pub(crate) rows: &'a [R],
    pub(crate) count: usize,
}

impl<'a, R: PartialEq> EqualPages<'a, R> {
    /// Divides the rows of a column into pages.
    pub(crate) fn of(rows: &'a [R], page_rows: usize) -> Vec<Self> {
        let mut runs: Vec<Self> = Vec::new();
        for rows in rows.chunks(page_rows) {
            match runs.last_mut() {
                Some(last) if last.rows == rows => last.count += 1,
                _ => runs.push(Self { rows, count: 1 }),
            }
        }
        runs
    }

    /// The pages of a column with one value, of which `page` has as many as a page has rows.
    pub(crate) fn of_constant(page: &'a [R], rows: usize) -> Vec<Self> {
        let full = Self { rows: page, count: rows / page.len() };
        let rest = Self { rows: &page[..rows % page.len()], count: 1 };
        let mut runs = vec![full, rest];
        runs.retain(|run| run.count > 0 && !run.rows.is_empty());
        runs
    }
}

/// Appends a column without missing values to a row group. All pages but the last have as many rows
/// as the first one; `write` passes the rows of a page to the writer, in batches that end with it.
pub(crate) fn append_column<W: Write + Send, T: DataType, R>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &ColumnDescPtr,
    properties: &WriterProperties,
    runs: &[EqualPages<'_, R>],
    mut write: impl FnMut(&mut ColumnWriterImpl<'_, T>, &[R]) -> Result<(), ParquetError>,
) -> Result<(), ParquetError> {
    let page_rows = runs.first().map_or(1, |run| run.rows.len());
    let mut chunk = TrackedWrite::new(Vec::new());
    let mut index = OffsetIndexBuilder::new();
    let counts: Vec<usize> = runs.iter().map(|run| run.count).collect();
    let pages = RepeatingPageWriter {
        pages: SerializedPageWriter::new(&mut chunk),
        counts: counts.into_iter(),
        index: &mut index,
    };
    let properties = properties_of::<T>(properties, column, page_rows);
    let writer = get_column_writer(column.clone(), Arc::new(properties), Box::new(pages));
    let mut writer = get_typed_column_writer::<T>(writer);
    for run in runs {
        write(&mut writer, run.rows)?;
    }
    let mut closed = writer.close()?;
    let rows: usize = runs.iter().map(|run| run.rows.len() * run.count).sum();
    assert_eq!(closed.metadata.num_values(), rows as i64, "a page for each run");
    closed.rows_written = rows as u64;
    closed.offset_index = Some(index.build());
    // The writer of the column counted each page once.
    let mut stats = closed.metadata.page_encoding_stats().cloned().unwrap_or_default();
    for pages in stats.iter_mut().filter(|pages| pages.page_type == PageType::DATA_PAGE) {
        pages.count = runs.iter().map(|run| run.count as i32).sum();
    }
    closed.metadata = closed.metadata.into_builder().set_page_encoding_stats(stats).build()?;
    group.append_column(&Bytes::from(chunk.into_inner()?), closed)
}

/// The properties of a column with equal pages. They have no statistics of their own: with those of
/// numbers in the whole chunk, a reader knows as much.
fn properties_of<T: DataType>(
    properties: &WriterProperties,
    column: &ColumnDescPtr,
    page_rows: usize,
) -> WriterProperties {
    let statistics = match T::get_physical_type() {
        Physical::BYTE_ARRAY => EnabledStatistics::None,
        _ => EnabledStatistics::Chunk,
    };
    let path = column.path();
    let builder = properties.clone().into_builder();
    builder
        .set_column_data_page_row_count_limit(path.clone(), page_rows)
        .set_column_statistics_enabled(path.clone(), statistics)
        .build()
}

/// Writes each data page as often as it occurs.
struct RepeatingPageWriter<'a> {
    pages: SerializedPageWriter<'a, Vec<u8>>,
    /// How often the next data pages occur.
    counts: vec::IntoIter<usize>,
    /// The places of all pages.
    index: &'a mut OffsetIndexBuilder,
}

impl PageWriter for RepeatingPageWriter<'_> {
    /// The sizes and the number of values are the sums of all copies of the page.
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec, ParquetError> {
        if page.page_type() != PageType::DATA_PAGE {
            return self.pages.write_page(page);
        }
        let mut sum: Option<PageWriteSpec> = None;
        for _ in 0..self.counts.next().unwrap_or(1) {
            let copy =
                CompressedPage::new(page.compressed_page().clone(), page.uncompressed_size());
            let written = self.pages.write_page(copy)?;
            self.index.append_row_count(written.num_values.into());
            self.index
                .append_offset_and_size(written.offset as i64, written.compressed_size as i32);
            sum = Some(match sum {
                Some(sum) => added(sum, &written),
                None => written,
            });
        }
        Ok(sum.unwrap_or_default())
    }

    fn close(&mut self) -> Result<(), ParquetError> {
        self.pages.close()
    }
}

fn added(mut sum: PageWriteSpec, page: &PageWriteSpec) -> PageWriteSpec {
    sum.uncompressed_size += page.uncompressed_size;
    sum.compressed_size += page.compressed_size;
    sum.num_values += page.num_values;
    sum.bytes_written += page.bytes_written;
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_pages_are_one_run() {
        let run = |rows, count| EqualPages { rows, count };
        let rows = [1, 2, 1, 2, 3, 2, 1, 2, 1];
        let expected = [run(&[1, 2][..], 2), run(&[3, 2], 1), run(&[1, 2], 1), run(&[1], 1)];
        assert_eq!(EqualPages::of(&rows, 2), expected);
        assert_eq!(EqualPages::of_constant(&[5, 5], 5), [run(&[5, 5][..], 2), run(&[5], 1)]);
        assert_eq!(EqualPages::of_constant(&[5, 5], 4), [run(&[5, 5][..], 2)]);
        assert_eq!(EqualPages::of_constant(&[5, 5], 1), [run(&[5][..], 1)]);
    }
}
