//! Encoding of the rows of a log.

use std::fs::File;
use std::sync::Arc;

use gridhaul_protocols::capture::CapturePoint;
use gridhaul_scenario::units::Instant;
use parquet::basic::{Compression, Repetition, Type as Physical};
use parquet::data_type::{BoolType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::method::{Message, Phase};
use crate::settings::Settings;

/// A column and how it is read from a row.
enum Column {
    Whole(fn(&Message) -> i64),
    /// Null where the value is unknown.
    Optional(fn(&Message) -> Option<i64>),
    Flag(fn(&Message) -> bool),
}

/// Times are nanoseconds since the start of the run.
const COLUMNS: [(&str, Column); 14] = [
    ("sequence", Column::Whole(|row| row.sequence as i64)),
    ("intended_ns", Column::Whole(|row| nanos(row.intended))),
    ("sent_ns", Column::Optional(|row| row.sent.map(nanos))),
    ("received_ns", Column::Optional(|row| row.received.map(nanos))),
    ("copies", Column::Whole(|row| row.copies.into())),
    ("corrupt_copies", Column::Whole(|row| row.corrupt_copies.into())),
    ("reordered", Column::Flag(|row| row.reordered)),
    ("warm_up", Column::Flag(|row| row.phase == Phase::WarmUp)),
    ("after_reconnection", Column::Flag(|row| row.phase == Phase::AfterReconnection)),
    ("kernel_received_ns", Column::Optional(|row| row.kernel_received.map(nanos))),
    (
        "publisher_departure_ns",
        Column::Optional(|row| row.captured.at(CapturePoint::PublisherDeparture).map(nanos)),
    ),
    (
        "broker_arrival_ns",
        Column::Optional(|row| row.captured.at(CapturePoint::BrokerArrival).map(nanos)),
    ),
    (
        "broker_departure_ns",
        Column::Optional(|row| row.captured.at(CapturePoint::BrokerDeparture).map(nanos)),
    ),
    (
        "subscriber_arrival_ns",
        Column::Optional(|row| row.captured.at(CapturePoint::SubscriberArrival).map(nanos)),
    ),
];

const fn nanos(at: Instant) -> i64 {
    at.as_nanos() as i64
}

/// Writes rows as a complete Parquet file.
pub(super) fn write(
    file: File,
    rows: &[Message],
    properties: &Settings,
) -> Result<(), ParquetError> {
    let entry =
        |(name, value): (&str, &str)| KeyValue::new(format!("gridhaul.{name}"), value.to_owned());
    let settings = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("gridhaul {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(properties.iter().map(entry).collect()))
        .build();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema()?), Arc::new(settings))?;
    let mut group = writer.next_row_group()?;
    for (_, column) in &COLUMNS {
        write_column(&mut group, column, rows)?;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}

fn schema() -> Result<Type, ParquetError> {
    let field = |(name, column): &(&str, Column)| {
        let (physical, repetition) = match column {
            Column::Whole(_) => (Physical::INT64, Repetition::REQUIRED),
            Column::Optional(_) => (Physical::INT64, Repetition::OPTIONAL),
            Column::Flag(_) => (Physical::BOOLEAN, Repetition::REQUIRED),
        };
        let field = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        Ok(Arc::new(field.build()?))
    };
    let fields: Result<Vec<_>, ParquetError> = COLUMNS.iter().map(field).collect();
    Type::group_type_builder("messages").with_fields(fields?).build()
}

fn write_column(
    group: &mut SerializedRowGroupWriter<'_, File>,
    column: &Column,
    rows: &[Message],
) -> Result<(), ParquetError> {
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General("the schema has fewer columns than the log".into()));
    };
    match column {
        Column::Whole(read) => {
            let values: Vec<_> = rows.iter().map(read).collect();
            writer.typed::<Int64Type>().write_batch(&values, None, None)?;
        }
        Column::Optional(read) => {
            let values: Vec<_> = rows.iter().map(read).collect();
            let levels: Vec<_> = values.iter().map(|value| i16::from(value.is_some())).collect();
            let values: Vec<_> = values.into_iter().flatten().collect();
            writer.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
        }
        Column::Flag(read) => {
            let values: Vec<_> = rows.iter().map(read).collect();
            writer.typed::<BoolType>().write_batch(&values, None, None)?;
        }
    }
    writer.close()
}
