//! The messages of test 8: values of a random walk, as the signal generator of VILLASnode makes
//! them.

use gridhaul_core::random::RandomStream;
use gridhaul_protocols::payload::{self, Sample, Schema, Timestamp, Width};

use super::{Encoding, MESSAGES};

/// Standard deviation of a step of the walk, the default of VILLASnode's signal generator.
const STEP: f64 = 0.2;

/// Time of the first message, since 1970: 2018, in which the report was written. Its nanoseconds
/// are arbitrary.
const FIRST: Timestamp = Timestamp { seconds: 1_534_000_000, nanoseconds: 123_456_789 };

/// Nanoseconds between two messages: 100 messages/s.
const INTERVAL: u64 = 10_000_000;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// Random changes of the times, in nanoseconds: a program is not woken up at the same time in each
/// period.
const LATENESS: u64 = 100_000;

/// Encoded messages of this number of values. They are all messages of the test, with sequence
/// numbers from 0, or evenly spread ones of them: later numbers and values have more digits.
#[must_use]
pub fn test_messages(encoding: Encoding, values: usize, count: u64, seed: u64) -> Vec<Vec<u8>> {
    let mut random = RandomStream::named(seed, 0, "test 8", 0, "values");
    let mut walk = vec![0.0; values];
    let encoding = encoding.of_payload();
    let message = |sequence: u64| {
        walk.iter_mut().for_each(|value| *value += STEP * random.normal());
        let elapsed = u64::from(FIRST.nanoseconds) + sequence * INTERVAL + random.below(LATENESS);
        let origin = Timestamp {
            seconds: FIRST.seconds + (elapsed / SECOND) as u32,
            nanoseconds: (elapsed % SECOND) as u32,
        };
        encoding.encode(&Sample {
            origin: Some(origin),
            received: None,
            sequence: Some(sequence),
            values: walk.clone(),
        })
    };
    let all = MESSAGES as u64;
    let step = (all / count.max(1)).max(1) as usize;
    (0..all.max(count)).map(message).step_by(step).take(count as usize).collect()
}

impl Encoding {
    /// The encoding of the messages. The sums of Table 5 fit the Protobuf schema with 64-bit floats
    /// only.
    const fn of_payload(self) -> payload::Encoding {
        match self {
            Self::Float => payload::Encoding::Raw(Width::Float32),
            Self::Json => payload::Encoding::Json,
            Self::Protobuf => payload::Encoding::Protobuf(Schema::Float64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_size_of_the_report_with_protobuf_and_are_shorter_with_json() {
        let mean = |encoding| {
            let messages = test_messages(encoding, 10, 10_000, 1);
            messages.iter().map(Vec::len).sum::<usize>() as f64 / 10_000.0
        };
        assert_eq!(mean(Encoding::Float), 40.0);
        // The sums of Table 5 give 131.5 to 132.0 B with Protobuf, and 295.5 to 296.5 B with JSON:
        // the length of a number in JSON depends on its value, which the report does not state.
        let [protobuf, json] = [Encoding::Protobuf, Encoding::Json].map(mean);
        assert!((131.5..132.0).contains(&protobuf), "{protobuf}");
        assert!((275.0..285.0).contains(&json), "{json}");
    }

    #[test]
    fn messages_are_the_same_for_the_same_seed() {
        let messages = |seed| test_messages(Encoding::Json, 3, 5, seed);
        assert_eq!(messages(1), messages(1));
        assert_ne!(messages(1), messages(2));
        let sample = payload::Encoding::Json.decode(&messages(1)[4]).unwrap();
        assert_eq!((sample.sequence, sample.values.len()), (Some(8_000), 3));
    }
}
