//! Pages of a column chunk and their metadata.

use std::cmp::Ordering;
use std::ops::Range;

use bytes::Bytes;
use gridhaul_scenario::answer::ColumnData;
use parquet::basic::{BoundaryOrder, Compression, Encoding, PageType, Type};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, LevelHistogram, OffsetIndexBuilder, PageEncodingStats,
};
use parquet::file::properties::{DEFAULT_DATA_PAGE_ROW_COUNT_LIMIT, DEFAULT_WRITE_BATCH_SIZE};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use snap::raw::Encoder as Snappy;

use super::entries::Extremes;
use super::hybrid;
use super::indices::IndexedColumn;

/// Rows of a page: the crate `parquet` compares with its limit after each batch.
const PAGE_ROWS: usize =
    DEFAULT_DATA_PAGE_ROW_COUNT_LIMIT.next_multiple_of(DEFAULT_WRITE_BATCH_SIZE);

/// An encoded column of a row group.
pub(crate) struct ColumnChunk {
    pub(crate) bytes: Bytes,
    pub(crate) close: ColumnCloseResult,
}

/// Encodes the rows of a column with a dictionary, Snappy and the statistics of each page. `None`
/// for a column that the writer of the crate `parquet` must encode.
pub(crate) fn encode(
    data: &ColumnData,
    descriptor: &ColumnDescPtr,
) -> Result<Option<ColumnChunk>, ParquetError> {
    let column = IndexedColumn::new(data);
    let has_type = |column: &IndexedColumn<'_>| {
        column.entries.physical_type() == descriptor.physical_type()
            && column.levels.is_some() == (descriptor.max_def_level() == 1)
    };
    let Some(column) = column.filter(has_type) else { return Ok(None) };
    let mut sink = TrackedWrite::new(Vec::new());
    let mut chunk = ChunkWriter::new(&column, descriptor, &mut sink)?;
    let mut values = 0;
    for start in (0..column.rows()).step_by(PAGE_ROWS) {
        let rows = start..column.rows().min(start + PAGE_ROWS);
        let known = column.known(&rows);
        chunk.write_page(rows, values..values + known)?;
        values += known;
    }
    let close = chunk.close()?;
    Ok(Some(ColumnChunk { bytes: sink.into_inner()?.into(), close }))
}

/// Writes the dictionary, then the pages of a column.
struct ChunkWriter<'a> {
    column: &'a IndexedColumn<'a>,
    descriptor: &'a ColumnDescPtr,
    writer: SerializedPageWriter<'a, Vec<u8>>,
    snappy: Snappy,
    /// The order of the entries.
    keys: Vec<u64>,
    /// Entries that occur in the pages so far: they determine the width of indices.
    entries: u32,
    sizes: Sizes,
    nulls: u64,
    /// Number of nulls and of known values.
    levels: Option<LevelHistogram>,
    text_bytes: Option<i64>,
    extremes: Option<Extremes>,
    order: PageOrder,
    column_index: ColumnIndexBuilder,
    offset_index: OffsetIndexBuilder,
}

/// Positions and sizes of the pages.
#[derive(Default)]
struct Sizes {
    pages: i32,
    data_offset: i64,
    uncompressed: i64,
    compressed: i64,
}

impl Sizes {
    fn add(&mut self, page: &PageWriteSpec) {
        self.uncompressed += page.uncompressed_size as i64;
        self.compressed += page.compressed_size as i64;
    }
}

/// Whether the extremes of the pages rise or fall.
struct PageOrder {
    rises: bool,
    falls: bool,
    previous: Option<Extremes>,
}

impl<'a> ChunkWriter<'a> {
    fn new(
        column: &'a IndexedColumn<'a>,
        descriptor: &'a ColumnDescPtr,
        sink: &'a mut TrackedWrite<Vec<u8>>,
    ) -> Result<Self, ParquetError> {
        let mut chunk = Self {
            column,
            descriptor,
            writer: SerializedPageWriter::new(sink),
            snappy: Snappy::new(),
            keys: column.entries.keys(),
            entries: 0,
            sizes: Sizes::default(),
            nulls: 0,
            levels: LevelHistogram::try_new(descriptor.max_def_level()),
            text_bytes: column.entries.text_bytes(&[]),
            extremes: None,
            order: PageOrder { rises: true, falls: true, previous: None },
            column_index: ColumnIndexBuilder::new(descriptor.physical_type()),
            offset_index: OffsetIndexBuilder::new(),
        };
        let plain = column.entries.plain();
        let page = Page::DictionaryPage {
            buf: chunk.snappy.compress_vec(&plain)?.into(),
            num_values: column.entries.len() as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let written = chunk.writer.write_page(CompressedPage::new(page, plain.len()))?;
        chunk.sizes.add(&written);
        chunk.sizes.data_offset = written.bytes_written as i64;
        Ok(chunk)
    }

    /// Writes a page of rows, whose known values are a range of the indices.
    fn write_page(&mut self, rows: Range<usize>, known: Range<usize>) -> Result<(), ParquetError> {
        let indices = &self.column.indices[known];
        if (self.entries as usize) < self.keys.len() {
            let highest = indices.iter().fold(0, |highest, index| highest.max(index + 1));
            self.entries = self.entries.max(highest);
        }
        self.add_statistics(rows.len(), indices);
        let mut plain = Vec::new();
        if let Some(levels) = &self.column.levels {
            plain.extend_from_slice(&[0; size_of::<u32>()]);
            hybrid::encode(&levels[rows.clone()], 1, &mut plain);
            let length = (plain.len() - size_of::<u32>()) as u32;
            plain[..size_of::<u32>()].copy_from_slice(&length.to_le_bytes());
        }
        let width = u32::BITS - self.entries.saturating_sub(1).leading_zeros();
        plain.push(width as u8);
        hybrid::encode(indices, width, &mut plain);
        let page = Page::DataPage {
            buf: self.snappy.compress_vec(&plain)?.into(),
            num_values: rows.len() as u32,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let written = self.writer.write_page(CompressedPage::new(page, plain.len()))?;
        self.sizes.add(&written);
        self.sizes.pages += 1;
        self.offset_index
            .append_offset_and_size(written.offset as i64, written.compressed_size as i32);
        Ok(())
    }

    /// Adds a page to the statistics of the column, and to the index of its pages.
    fn add_statistics(&mut self, rows: usize, indices: &[u32]) {
        let nulls = rows - indices.len();
        self.nulls += nulls as u64;
        let page_levels =
            LevelHistogram::try_new(self.descriptor.max_def_level()).map(|mut page| {
                page.increment_by(0, nulls as i64);
                page.increment_by(1, indices.len() as i64);
                page
            });
        if let (Some(all), Some(page)) = (&mut self.levels, &page_levels) {
            all.add(page);
        }
        let extremes = self.extremes_of(indices);
        if let Some(page) = extremes {
            let all = self.extremes.unwrap_or(page);
            self.extremes = self.extremes_of(&[all.low, page.low, all.high, page.high]);
            self.order.add(page, &self.keys);
        }
        let entries = &self.column.entries;
        let bytes = |index: Option<u32>| index.map_or_else(Vec::new, |index| entries.bytes(index));
        // The count of NaN is written for real numbers only.
        let nans = (self.descriptor.physical_type() == Type::DOUBLE).then_some(0);
        self.column_index.append(
            extremes.is_none(),
            bytes(extremes.map(|extremes| extremes.low)),
            bytes(extremes.map(|extremes| extremes.high)),
            nulls as i64,
            nans,
        );
        self.column_index.append_histograms(&None, &page_levels);
        let text_bytes = entries.text_bytes(indices);
        self.text_bytes = self.text_bytes.zip(text_bytes).map(|(all, page)| all + page);
        self.offset_index.append_row_count(rows as i64);
        self.offset_index.append_unencoded_byte_array_data_bytes(text_bytes);
    }

    /// The extremes of some values.
    fn extremes_of(&self, indices: &[u32]) -> Option<Extremes> {
        let first = *indices.first()?;
        if self.keys.len() == 1 {
            return Some(Extremes { low: first, high: first });
        }
        let (mut low, mut high) = (first, first);
        let (mut low_key, mut high_key) = (self.keys[first as usize], self.keys[first as usize]);
        for index in indices {
            let key = self.keys[*index as usize];
            if key < low_key {
                (low, low_key) = (*index, key);
            }
            if key > high_key {
                (high, high_key) = (*index, key);
            }
        }
        Some(Extremes { low, high })
    }

    fn close(mut self) -> Result<ColumnCloseResult, ParquetError> {
        let rows = self.column.rows();
        self.writer.close()?;
        self.column_index.set_boundary_order(self.order.boundary());
        let page = |page_type, encoding, count| PageEncodingStats { page_type, encoding, count };
        let is_signed = self.descriptor.sort_order().is_signed();
        let metadata = ColumnChunkMetaData::builder(self.descriptor.clone())
            .set_compression(Compression::SNAPPY)
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_page_encoding_stats(vec![
                page(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1),
                page(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY, self.sizes.pages),
            ])
            .set_total_compressed_size(self.sizes.compressed)
            .set_total_uncompressed_size(self.sizes.uncompressed)
            .set_num_values(rows as i64)
            .set_data_page_offset(self.sizes.data_offset)
            .set_dictionary_page_offset(Some(0))
            .set_statistics(self.column.entries.statistics(self.extremes, self.nulls, is_signed))
            .set_unencoded_byte_array_data_bytes(self.text_bytes)
            .set_definition_level_histogram(self.levels)
            .build()?;
        Ok(ColumnCloseResult {
            bytes_written: self.sizes.compressed as u64,
            rows_written: rows as u64,
            metadata,
            bloom_filter: None,
            column_index: Some(self.column_index.build()?),
            offset_index: Some(self.offset_index.build()),
        })
    }
}

impl PageOrder {
    fn add(&mut self, page: Extremes, keys: &[u64]) {
        if let Some(previous) = self.previous.replace(page) {
            let compared = |index: u32, other: u32| keys[index as usize].cmp(&keys[other as usize]);
            let both = [compared(previous.low, page.low), compared(previous.high, page.high)];
            self.rises &= !both.contains(&Ordering::Greater);
            self.falls &= !both.contains(&Ordering::Less);
        }
    }

    const fn boundary(&self) -> BoundaryOrder {
        match (self.rises, self.falls) {
            (true, _) => BoundaryOrder::ASCENDING,
            (false, true) => BoundaryOrder::DESCENDING,
            (false, false) => BoundaryOrder::UNORDERED,
        }
    }
}
