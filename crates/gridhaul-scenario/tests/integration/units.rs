//! Quantities are read and written exactly, in integers.

use std::fmt::Display;
use std::str::FromStr;

use gridhaul_scenario::units::{
    BitRate, Bytes, Decibel, Distance, Duration, Probability, QueueLimit, UnitError, WindowSize,
};
use proptest::prelude::*;

/// Largest number of base units that is read: 2^63 - 1.
const LARGEST: u64 = i64::MAX as u64;

fn written_and_read<T: Display + FromStr<Err = UnitError>>(value: &T) -> T {
    value.to_string().parse().unwrap()
}

proptest! {
    #[test]
    fn times_read_back(nanos in 0..=LARGEST) {
        let time = Duration::from_nanos(nanos);
        prop_assert_eq!(written_and_read(&time), time);
    }

    #[test]
    fn round_times_read_back(count in 0_u64..100_000, scale in 0..7_usize) {
        let nanos = [1, 1_000, 1_000_000, 1_000_000_000, 60_000_000_000, 3_600_000_000_000,
            86_400_000_000_000];
        let time = Duration::from_nanos(count * nanos[scale]);
        prop_assert_eq!(written_and_read(&time), time);
        prop_assert!(time.to_string().len() < 16, "{}", time);
    }

    #[test]
    fn rates_read_back(bits in 0..=LARGEST) {
        let rate = BitRate::from_bits_per_sec(bits);
        prop_assert_eq!(written_and_read(&rate), rate);
    }

    #[test]
    fn sizes_read_back(bytes in 0..=LARGEST) {
        let size = Bytes::new(bytes);
        prop_assert_eq!(written_and_read(&size), size);
        prop_assert_eq!(written_and_read(&QueueLimit::Bytes(size)), QueueLimit::Bytes(size));
        prop_assert_eq!(written_and_read(&WindowSize::Bytes(size)), WindowSize::Bytes(size));
    }

    #[test]
    fn distances_read_back(millimetres in 0..=LARGEST) {
        let distance = Distance::from_millimetres(millimetres);
        prop_assert_eq!(written_and_read(&distance), distance);
    }

    #[test]
    fn decibels_read_back(thousandths in -1_000_000..=1_000_000_i32) {
        let ratio = Decibel::from_thousandths(thousandths);
        prop_assert_eq!(written_and_read(&ratio), ratio);
    }

    #[test]
    fn counts_read_back(count: u32) {
        prop_assert_eq!(written_and_read(&QueueLimit::Packets(count)), QueueLimit::Packets(count));
        prop_assert_eq!(written_and_read(&WindowSize::Segments(count)),
            WindowSize::Segments(count));
    }

    #[test]
    fn probabilities_read_back(ratio in 0.0..=1.0_f64, exponent in 0..320_i32) {
        for ratio in [ratio, ratio * 10_f64.powi(-exponent)] {
            let probability = Probability::new(ratio).unwrap();
            prop_assert_eq!(written_and_read(&probability), probability);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(
        text in "\\PC*",
        number in "[0-9._eE+-]{0,12}",
        unit in " ?[a-zA-Z%/]{0,6}",
    ) {
        for text in [text, format!("{number}{unit}")] {
            let _ = text.parse::<Duration>();
            let _ = text.parse::<BitRate>();
            let _ = text.parse::<Probability>();
            let _ = text.parse::<Distance>();
            let _ = text.parse::<Decibel>();
            let _ = text.parse::<QueueLimit>();
            let _ = text.parse::<WindowSize>();
        }
    }
}

#[test]
fn odd_numbers_keep_every_digit() {
    for nanos in [1, 999, 1_001, 123_456_789_123, 9_007_199_254_740_993, LARGEST - 1, LARGEST] {
        let time = Duration::from_nanos(nanos);
        assert_eq!(written_and_read(&time).as_nanos(), nanos);
    }
    assert_eq!(Duration::from_nanos(123_456_789_123).to_string(), "123456789.123 us");
    assert_eq!(Duration::from_millis(90_000).to_string(), "1.5 min");
    assert_eq!(Bytes::new(65_536).to_string(), "64 KiB");
    assert_eq!(Bytes::new(1_500).to_string(), "1.5 kB");
    assert_eq!(BitRate::from_bits_per_sec(9_600).to_string(), "9.6 kbit/s");
}

#[test]
fn numbers_are_read_as_people_write_them() {
    let nanos = |text: &str| text.parse().map(Duration::as_nanos);
    assert_eq!(nanos("3.0e2 ms"), Ok(300_000_000));
    assert_eq!(nanos("  25ms "), Ok(25_000_000));
    assert_eq!(nanos("0.1 us"), Ok(100));
    assert_eq!(nanos("1E-3 s"), Ok(1_000_000));
    assert_eq!("1_000 B".parse().map(Bytes::get), Ok(1_000));
    assert_eq!("0.3 %".parse().map(Probability::ratio), Ok(0.003));
    assert_eq!("unlimited".parse(), Ok(QueueLimit::Unlimited));
    assert_eq!("2.5 km".parse().map(Distance::as_millimetres), Ok(2_500_000));
    assert_eq!("-3.25 dB".parse().map(Decibel::as_thousandths), Ok(-3_250));
    assert_eq!("1e3 dB".parse(), Ok(Decibel::MAX));
}

#[test]
fn the_error_of_an_invalid_quantity_states_the_reason() {
    let time = |text: &str| text.parse::<Duration>().unwrap_err().reason.into_owned();
    let rate = |text: &str| text.parse::<BitRate>().unwrap_err().reason.into_owned();
    let ratio = |text: &str| text.parse::<Decibel>().unwrap_err().reason.into_owned();
    assert_eq!(ratio("3 dBm"), "this is a ratio of powers, not a power: write \"dB\"");
    assert_eq!(ratio("-1000.001 dB"), "it must be from -1000 dB to 1000 dB");
    assert_eq!(ratio("0.0001 dB"), "it is smaller than the smallest step");
    assert_eq!(ratio("20"), "the unit is missing; use dB");
    let far = "2 miles".parse::<Distance>().unwrap_err().reason.into_owned();
    assert!(far.ends_with("distances are metric: 1 mile is \"1609.344 m\""), "{far}");
    assert_eq!(time("-1 ms"), "it must not be negative");
    assert_eq!(time("NaN s"), "it must be a finite number");
    assert_eq!(time("1e400 s"), "it is too large");
    assert_eq!(time("9223372036854775808 ns"), "it is too large");
    assert_eq!(time("1e-400 s"), "it is smaller than the smallest step");
    assert_eq!(time("1,5 s"), "write a decimal point, not a comma: \"1.5 s\"");
    assert_eq!(time("s"), "write a number, a space and a unit");
    assert_eq!(time(""), "write a number, a space and a unit");
    assert_eq!(
        rate("10 TB/s"),
        "unknown unit \"TB/s\"; rates are in bits: 10 TB/s is \"80000 Gbit/s\""
    );
    assert_eq!(
        rate("5 Ebit/s"),
        "unknown unit \"Ebit/s\"; use one of Gbit/s, Mbit/s, kbit/s, bit/s"
    );
}
