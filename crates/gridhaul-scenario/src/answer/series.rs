//! Series: columns over time, written as Parquet.

/// A table of columns of equal length.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name of the table, which becomes the file name: `windows`, `queues`, `delays`.
    pub name: String,
    /// Columns, the first being time.
    pub columns: Vec<Column>,
}

/// A named column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name, `<quantity>_<unit>`.
    pub name: String,
    /// Values.
    pub data: ColumnData,
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnData {
    /// Real numbers; NaN where there is no value (written as null).
    Real(Vec<f64>),
    /// Whole numbers.
    Whole(Vec<u64>),
    /// Texts, each an index into a list of distinct ones.
    Text {
        /// Distinct texts.
        words: Vec<String>,
        /// For each row, which word.
        rows: Vec<u32>,
    },
}

impl ColumnData {
    /// Number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Real(values) => values.len(),
            Self::Whole(values) => values.len(),
            Self::Text { rows, .. } => rows.len(),
        }
    }
    /// Whether there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
