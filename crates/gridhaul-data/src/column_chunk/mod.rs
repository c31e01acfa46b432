//! Column chunks with a dictionary.
//!
//! The writer of the crate `parquet` hashes and compares every value. Here the indices of the
//! dictionary are found with less work, because most values of a recorded series repeat; they are
//! written as the same bytes, which a test compares with those of that writer.

mod entries;
mod hybrid;
mod indices;
mod number_dictionary;
mod pages;

pub(crate) use pages::encode;

#[cfg(test)]
mod tests;
