//! Protobuf in the layout of VILLASnode (package `villas.node`), in three versions of its schema.

use std::fmt::Debug;

use prost::Message as _;

use super::{PayloadError, Sample, Timestamp};

/// Version of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// Until version 0.6.3: 32-bit floats.
    Float32,
    /// Version 0.6.4 to 2024: 64-bit floats.
    Float64,
    /// Since March 2024: times of origin and reception.
    Received,
}

/// A message contains samples.
#[derive(Clone, PartialEq, prost::Message)]
struct Batch<S: prost::Message + Default + Debug> {
    #[prost(message, repeated, tag = "1")]
    samples: Vec<S>,
}

/// `Sample` until version 0.6.3.
#[derive(Clone, PartialEq, prost::Message)]
struct Sample32 {
    #[prost(enumeration = "Kind", required, tag = "1")]
    kind: i32,
    #[prost(uint32, optional, tag = "2")]
    sequence: Option<u32>,
    #[prost(message, optional, tag = "4")]
    origin: Option<Time>,
    #[prost(message, repeated, tag = "5")]
    values: Vec<Value32>,
}

/// `Sample` from version 0.6.4 to 2024.
#[derive(Clone, PartialEq, prost::Message)]
struct Sample64 {
    #[prost(enumeration = "Kind", required, tag = "1")]
    kind: i32,
    #[prost(uint64, optional, tag = "2")]
    sequence: Option<u64>,
    #[prost(message, optional, tag = "4")]
    origin: Option<Time>,
    #[prost(message, repeated, tag = "5")]
    values: Vec<Value64>,
}

/// `Sample` since March 2024.
#[derive(Clone, PartialEq, prost::Message)]
struct SampleReceived {
    #[prost(enumeration = "Kind", required, tag = "1")]
    kind: i32,
    #[prost(uint64, optional, tag = "2")]
    sequence: Option<u64>,
    #[prost(message, optional, tag = "3")]
    origin: Option<Time>,
    #[prost(message, optional, tag = "4")]
    received: Option<Time>,
    #[prost(message, repeated, tag = "100")]
    values: Vec<Value64>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Time {
    #[prost(uint32, required, tag = "1")]
    seconds: u32,
    #[prost(uint32, required, tag = "2")]
    nanoseconds: u32,
}

/// The schema permits integers, Booleans and complex numbers as well; they are not supported.
#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Value32 {
    #[prost(float, optional, tag = "1")]
    float: Option<f32>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Value64 {
    #[prost(double, optional, tag = "1")]
    float: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
enum Kind {
    Data = 1,
    Start = 2,
    Stop = 3,
}

pub(super) fn encode(schema: Schema, sample: &Sample) -> Vec<u8> {
    let kind = Kind::Data.into();
    let origin = sample.origin.map(Time::from);
    let values = || sample.values.iter().map(|value| Value64 { float: Some(*value) }).collect();
    match schema {
        Schema::Float32 => batch(Sample32 {
            kind,
            // The field has 32 bits: the number wraps.
            sequence: sample.sequence.map(|sequence| sequence as u32),
            origin,
            values: sample
                .values
                .iter()
                .map(|value| Value32 { float: Some(*value as f32) })
                .collect(),
        }),
        Schema::Float64 => {
            batch(Sample64 { kind, sequence: sample.sequence, origin, values: values() })
        }
        Schema::Received => batch(SampleReceived {
            kind,
            sequence: sample.sequence,
            origin,
            received: sample.received.map(Time::from),
            values: values(),
        }),
    }
}

pub(super) fn decode(schema: Schema, bytes: &[u8]) -> Result<Sample, PayloadError> {
    Ok(match schema {
        Schema::Float32 => {
            let Sample32 { sequence, origin, values, .. } = single(bytes)?;
            Sample {
                origin: origin.map(Into::into),
                received: None,
                sequence: sequence.map(u64::from),
                values: numbers(values.into_iter().map(|value| value.float.map(f64::from)))?,
            }
        }
        Schema::Float64 => {
            let Sample64 { sequence, origin, values, .. } = single(bytes)?;
            Sample {
                origin: origin.map(Into::into),
                received: None,
                sequence,
                values: numbers(values.into_iter().map(|value| value.float))?,
            }
        }
        Schema::Received => {
            let SampleReceived { sequence, origin, received, values, .. } = single(bytes)?;
            Sample {
                origin: origin.map(Into::into),
                received: received.map(Into::into),
                sequence,
                values: numbers(values.into_iter().map(|value| value.float))?,
            }
        }
    })
}

fn batch<S: prost::Message + Default + Debug>(sample: S) -> Vec<u8> {
    Batch { samples: vec![sample] }.encode_to_vec()
}

fn single<S: prost::Message + Default + Debug>(bytes: &[u8]) -> Result<S, PayloadError> {
    let Batch { samples } = Batch::decode(bytes)?;
    let [sample] =
        <[S; 1]>::try_from(samples).map_err(|samples| PayloadError::Samples(samples.len()))?;
    Ok(sample)
}

fn numbers(values: impl Iterator<Item = Option<f64>>) -> Result<Vec<f64>, PayloadError> {
    let values: Option<Vec<_>> = values.collect();
    values.ok_or(PayloadError::Value("expected floating-point values"))
}

impl From<Timestamp> for Time {
    fn from(Timestamp { seconds, nanoseconds }: Timestamp) -> Self {
        Self { seconds, nanoseconds }
    }
}

impl From<Time> for Timestamp {
    fn from(Time { seconds, nanoseconds }: Time) -> Self {
        Self { seconds, nanoseconds }
    }
}
