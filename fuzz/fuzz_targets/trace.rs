//! Arbitrary bytes as a trace in CSV: reading terminates without panic, and rows are in order and
//! within their limits.

#![no_main]

use std::io::Cursor;

use gridhaul_data::trace::{TraceLimits, TraceReader};
use gridhaul_scenario::units::Duration;
use libfuzzer_sys::fuzz_target;

const LIMITS: TraceLimits = TraceLimits { members: 5, bytes_max: 65_507 };

fuzz_target!(|bytes: &[u8]| {
    let text = Box::new(Cursor::new(bytes.to_vec()));
    let mut reader = match TraceReader::from_csv(text, "fuzz.csv", LIMITS) {
        Ok(reader) => reader,
        Err(error) => {
            assert!(error.to_string().contains("help: "));
            return;
        }
    };
    let mut latest = Duration::ZERO;
    while let Ok(Some(row)) = reader.next_row() {
        assert!(row.at >= latest);
        assert!((1..=LIMITS.bytes_max).contains(&row.bytes));
        assert!(row.member.is_none_or(|member| member < LIMITS.members));
        latest = row.at;
    }
});
