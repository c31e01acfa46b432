//! Errors in frames of Sampled Values and GOOSE, as a subscriber sees them if the frame check
//! sequence does not protect them.

use crate::goose::{Data, GoosePdu};
use crate::iec61850::{Application, UtcTime};
use crate::process_bus::{Frame, FrameAddress, Pdu};
use crate::sampled_values::{Asdu, SampledValues, Synchronisation, write_float_values};

use super::patterns::ErrorPattern;
use super::{Fate, Fates, fates};

/// Fates of a frame of Sampled Values with 32-bit floats.
#[must_use]
pub fn sampled_values(values: usize, pattern: ErrorPattern, seed: u64) -> Fates {
    let mut samples = Vec::new();
    let floats: Vec<_> = (0..values).map(|number| 230.0 + 0.1 * number as f32).collect();
    write_float_values(&mut samples, &floats);
    let asdu = Asdu {
        id: "gridhaul".into(),
        data_set: None,
        sample_count: 5_555,
        revision: 1,
        refresh_time: Some(TIME),
        synchronisation: Synchronisation::Global,
        sample_rate: None,
        samples,
        sample_mode: None,
    };
    of_frame(0x4000, Pdu::SampledValues(SampledValues { asdus: vec![asdu] }), pattern, seed)
}

/// Fates of a GOOSE frame with 32-bit floats.
#[must_use]
pub fn goose_events(values: usize, pattern: ErrorPattern, seed: u64) -> Fates {
    let pdu = GoosePdu {
        control_block: "gridhaul/LLN0$GO$gcb".into(),
        time_allowed_to_live_ms: 8,
        data_set: "gridhaul/LLN0$set".into(),
        id: None,
        time: TIME,
        state_number: 5_555,
        sequence_number: 0,
        simulation: false,
        revision: 1,
        needs_commissioning: false,
        values: (0..values).map(|number| Data::Float(230.0 + 0.1 * number as f32)).collect(),
    };
    of_frame(0x1000, Pdu::Goose(pdu), pattern, seed)
}

const TIME: UtcTime = UtcTime { seconds: 1_534_000_000, fraction: 0x00ab_cdef, quality: 0 };

/// Fates of a frame. A subscriber knows destination, APPID, name, data set and revision of its
/// stream; a frame with others is not for it, and therefore rejected.
fn of_frame(application: u16, pdu: Pdu, pattern: ErrorPattern, seed: u64) -> Fates {
    let address = FrameAddress {
        destination: [0x01, 0x0c, 0xcd, 0x04, 0x00, 0x01],
        source: [0x02, 0, 0, 0, 0, 1],
        vlan: None,
    };
    let sent =
        Frame { address, application: Application { id: application, simulated: false }, pdu };
    let mut bytes = Vec::new();
    if sent.encode(&mut bytes).is_err() {
        return Fates::default();
    }
    fates(&bytes, pattern, seed, |corrupt| match Frame::decode(corrupt) {
        Err(_) => Fate::Rejected,
        Ok(read) if !is_for_subscriber(&read, &sent) => Fate::Rejected,
        Ok(read) if read.pdu == sent.pdu => Fate::Unchanged,
        Ok(_) => Fate::SilentlyWrong,
    })
}

fn is_for_subscriber(read: &Frame, sent: &Frame) -> bool {
    let addresses =
        |frame: &Frame| (frame.address.destination, frame.address.vlan, frame.application);
    let names = match (&read.pdu, &sent.pdu) {
        (Pdu::SampledValues(read), Pdu::SampledValues(sent)) => {
            let names = |pdu: &SampledValues| {
                let identity = |asdu: &Asdu| {
                    let Asdu { id, data_set, revision, samples, .. } = asdu;
                    (id.clone(), data_set.clone(), *revision, samples.len())
                };
                pdu.asdus.iter().map(identity).collect::<Vec<_>>()
            };
            names(read) == names(sent)
        }
        (Pdu::Goose(read), Pdu::Goose(sent)) => {
            let names = |pdu: &GoosePdu| {
                let GoosePdu { control_block, data_set, id, revision, values, .. } = pdu;
                let kinds: Vec<_> = values.iter().map(std::mem::discriminant).collect();
                (control_block.clone(), data_set.clone(), id.clone(), *revision, kinds)
            };
            names(read) == names(sent)
        }
        _ => false,
    };
    names && addresses(read) == addresses(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_no_protection_of_their_own() {
        for of in [sampled_values, goose_events] {
            let fates = of(10, ErrorPattern::EveryBit, 1);
            // Each bit of the ten values is silently wrong.
            assert!(fates.silently_wrong >= 320 && fates.rejected > 0, "{fates:?}");
            // The source address has no meaning for a subscriber.
            assert!(fates.unchanged >= 48, "{fates:?}");
        }
    }
}
