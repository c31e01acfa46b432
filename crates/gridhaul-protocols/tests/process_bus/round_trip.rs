//! Encoding and decoding are inverse, and decoding of any bytes ends with a frame or an error.

use gridhaul_core::wire::VlanTag;
use gridhaul_protocols::goose::{Data, GoosePdu};
use gridhaul_protocols::iec61850::{Application, FrameError, UtcTime};
use gridhaul_protocols::process_bus::{Frame, FrameAddress, Pdu};
use gridhaul_protocols::sampled_values::{
    Asdu, SampleMode, SampledValues, Synchronisation, write_float_values,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::{asdu, encoded, goose, sampled_values};

proptest! {
    #[test]
    fn decoding_inverts_encoding(frame in frames(), padding in 0..46_usize) {
        let mut bytes = encoded(&frame);
        prop_assert_eq!(Frame::decode(&bytes), Ok(frame.clone()));
        bytes.resize(bytes.len() + padding, 0);
        prop_assert_eq!(Frame::decode(&bytes), Ok(frame));
    }

    #[test]
    fn a_truncated_frame_is_an_error(frame in frames(), place in any::<prop::sample::Index>()) {
        let bytes = encoded(&frame);
        prop_assert!(Frame::decode(&bytes[..place.index(bytes.len())]).is_err());
    }

    #[test]
    fn a_corrupted_frame_is_an_error_or_another_frame(
        frame in frames(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = encoded(&frame);
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        is_rejected_or_stable(&bytes)?;
    }

    #[test]
    fn arbitrary_bytes_are_an_error_or_a_frame(bytes in vec(any::<u8>(), 0..200)) {
        is_rejected_or_stable(&bytes)?;
        let mut frame = vec![0; 12];
        frame.extend([0x88, 0xb8, 0x10, 0, 0, bytes.len() as u8, 0, 0, 0, 0]);
        frame.extend(bytes);
        is_rejected_or_stable(&frame)?;
    }
}

/// A decoded frame is encoded and decoded to the same value. Values are compared as text, since NaN
/// is not equal to itself.
fn is_rejected_or_stable(bytes: &[u8]) -> Result<(), TestCaseError> {
    let Ok(frame) = Frame::decode(bytes) else { return Ok(()) };
    let again = Frame::decode(&encoded(&frame));
    prop_assert_eq!(format!("{:?}", again), format!("{:?}", Ok::<_, FrameError>(frame)));
    Ok(())
}

#[test]
fn lengths_beyond_127_and_255_bytes_are_correct() {
    for (values, bytes) in [(10, 98), (22, 146), (56, 287), (100, 466)] {
        let mut samples = Vec::new();
        write_float_values(&mut samples, &vec![0.5; values]);
        let frame = sampled_values(None, vec![asdu("1234", Some("node"), samples)]);
        let encoded = encoded(&frame);
        assert_eq!(encoded.len(), bytes, "{values} values");
        assert_eq!(Frame::decode(&encoded), Ok(frame));
    }
}

#[test]
fn forbidden_values_are_not_encoded() {
    let long = "x".repeat(130);
    let mut nested = Data::Boolean(true);
    for _ in 0..9 {
        nested = Data::Structure(vec![nested]);
    }
    let cases = [
        (sampled_values(None, vec![]), "noASDU: expected 1 to 65535 ASDUs"),
        (
            sampled_values(None, vec![asdu(&long, None, vec![])]),
            "svID: the text is longer than the standard permits",
        ),
        (
            sampled_values(None, vec![asdu("ä", None, vec![])]),
            "svID: expected printable ASCII characters",
        ),
        (
            sampled_values(None, vec![asdu("1", None, vec![0; 1_500])]),
            "Length: header and PDU are longer than 1500 bytes",
        ),
        (goose(None, false, vec![nested]), "structure: nested more than 8 levels deep"),
        (
            goose(None, false, vec![Data::BitString(8, vec![0])]),
            "bit-string: expected 0 to 7 unused bits",
        ),
    ];
    for (frame, message) in cases {
        let mut out = Vec::new();
        let error = frame.encode(&mut out).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert!(out.is_empty());
    }
}

#[test]
fn wrong_frames_are_reported() {
    let good = encoded(&sampled_values(None, vec![asdu("1234", None, vec![0; 4])]));
    let with = |place: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[place] = value;
        Frame::decode(&bytes).unwrap_err().to_string()
    };
    assert_eq!(
        with(12, 0x08),
        "EtherType 0x08ba: expected 0x88ba (Sampled Values) or 0x88b8 (GOOSE)"
    );
    assert_eq!(with(17, 7), "Length: expected 8 to 1500 bytes");
    assert_eq!(with(22, 0x61), "savPdu: expected tag 0x60, found 0x61");
    assert_eq!(with(26, 2), "noASDU: expected the number of ASDUs, at least 1");
    assert_eq!(with(31, 0x81), "svID: expected tag 0x80, found 0x81");
}

fn frames() -> impl Strategy<Value = Frame> {
    let pdu = prop_oneof![
        vec(asdus(), 1..4).prop_map(|asdus| Pdu::SampledValues(SampledValues { asdus })),
        goose_pdus().prop_map(Pdu::Goose),
    ];
    let address = (any::<[u8; 6]>(), any::<[u8; 6]>(), option::of(tags()));
    (address, any::<(u16, bool)>(), pdu).prop_map(|(address, (id, simulated), pdu)| {
        let (destination, source, vlan) = address;
        let address = FrameAddress { destination, source, vlan };
        Frame { address, application: Application { id, simulated }, pdu }
    })
}

fn tags() -> impl Strategy<Value = VlanTag> {
    (0..4_096_u16, 0..8_u8, any::<bool>(), any::<bool>()).prop_map(
        |(id, priority, drop_eligible, service)| VlanTag { id, priority, drop_eligible, service },
    )
}

fn times() -> impl Strategy<Value = UtcTime> {
    (any::<u32>(), 0..1_u32 << 24, any::<u8>()).prop_map(|(seconds, fraction, quality)| UtcTime {
        seconds,
        fraction,
        quality,
    })
}

fn asdus() -> impl Strategy<Value = Asdu> {
    let synchronisation = prop_oneof![
        Just(Synchronisation::None),
        Just(Synchronisation::Local),
        Just(Synchronisation::Global),
        (5..=254_u8).prop_map(Synchronisation::Clock),
    ];
    let mode = prop_oneof![
        Just(SampleMode::PerPeriod),
        Just(SampleMode::PerSecond),
        Just(SampleMode::SecondsPerSample)
    ];
    (
        ("[ -~]{0,129}", option::of("[ -~]{0,20}"), any::<(u16, u32)>(), option::of(times())),
        (synchronisation, option::of(any::<u16>()), vec(any::<u8>(), 0..280), option::of(mode)),
    )
        .prop_map(|((id, data_set, (sample_count, revision), refresh_time), rest)| {
            let (synchronisation, sample_rate, samples, sample_mode) = rest;
            Asdu {
                id,
                data_set,
                sample_count,
                revision,
                refresh_time,
                synchronisation,
                sample_rate,
                samples,
                sample_mode,
            }
        })
}

fn goose_pdus() -> impl Strategy<Value = GoosePdu> {
    let texts = ("[ -~]{0,129}", "[ -~]{0,129}", option::of("[ -~]{0,129}"));
    (texts, times(), any::<[u32; 4]>(), any::<[bool; 2]>(), vec(data(), 0..6)).prop_map(
        |((control_block, data_set, id), time, numbers, [simulation, needs], values)| GoosePdu {
            control_block,
            time_allowed_to_live_ms: numbers[0],
            data_set,
            id,
            time,
            state_number: numbers[1],
            sequence_number: numbers[2],
            simulation,
            revision: numbers[3],
            needs_commissioning: needs,
            values,
        },
    )
}

fn data() -> impl Strategy<Value = Data> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Data::Boolean),
        (0..8_u8, vec(any::<u8>(), 1..4)).prop_map(|(unused, bits)| Data::BitString(unused, bits)),
        any::<i64>().prop_map(Data::Integer),
        any::<u32>().prop_map(Data::Unsigned),
        any::<f32>().prop_map(Data::Float),
        vec(any::<u8>(), 0..20).prop_map(Data::OctetString),
        "[ -~]{0,30}".prop_map(Data::VisibleString),
        times().prop_map(Data::UtcTime),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| vec(inner, 0..4).prop_map(Data::Structure))
}
