//! Arbitrary bytes as a frame of Sampled Values or GOOSE: decoding never panics, and a decoded frame is encoded and decoded
//! to the same value.

#![no_main]

use gridhaul_measure::frame::Frame;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(frame) = Frame::decode(bytes) else { return };
    let mut written = Vec::new();
    if let Err(error) = frame.encode(&mut written) {
        // Elements with their default value may be absent, but are written: the frame may become too long.
        assert!(bytes.len() > 1_400, "{error}");
        return;
    }
    // Lengths have the shortest form in a written frame.
    assert!(written.len() <= bytes.len() + 8, "{} {}", written.len(), bytes.len());
    let again = Frame::decode(&written).expect("a written frame is decoded");
    // NaN is not equal to itself: values are compared as text.
    assert_eq!(format!("{again:?}"), format!("{frame:?}"));
});
