//! Frames of Sampled Values and GOOSE: encoded, decoded, corrupted, and dissected by tshark.

mod dissection;
mod round_trip;

use gridhaul_core::wire::VlanTag;
use gridhaul_protocols::goose::{Data, GoosePdu};
use gridhaul_protocols::iec61850::{Application, UtcTime};
use gridhaul_protocols::process_bus::{Frame, FrameAddress, Pdu};
use gridhaul_protocols::sampled_values::{Asdu, SampledValues, Synchronisation};

/// An ASDU with the elements that VILLASnode sends: no optional element except the data set's name.
fn asdu(id: &str, data_set: Option<&str>, samples: Vec<u8>) -> Asdu {
    Asdu {
        id: id.into(),
        data_set: data_set.map(Into::into),
        sample_count: 0,
        revision: 1,
        refresh_time: None,
        synchronisation: Synchronisation::None,
        sample_rate: None,
        samples,
        sample_mode: None,
    }
}

fn sampled_values(vlan: Option<VlanTag>, asdus: Vec<Asdu>) -> Frame {
    Frame {
        address: FrameAddress {
            destination: [0x01, 0x0c, 0xcd, 0x04, 0, 1],
            source: [2, 0, 0, 0, 0, 1],
            vlan,
        },
        application: Application { id: 0x4000, simulated: false },
        pdu: Pdu::SampledValues(SampledValues { asdus }),
    }
}

fn goose(vlan: Option<VlanTag>, simulated: bool, values: Vec<Data>) -> Frame {
    Frame {
        address: FrameAddress {
            destination: [0x01, 0x0c, 0xcd, 0x01, 0, 1],
            source: [2, 0, 0, 0, 0, 1],
            vlan,
        },
        application: Application { id: 0x1000, simulated },
        pdu: Pdu::Goose(GoosePdu {
            control_block: "IED1LD0/LLN0$GO$trip".into(),
            time_allowed_to_live_ms: 2_000,
            data_set: "IED1LD0/LLN0$trip".into(),
            id: Some("trip".into()),
            time: UtcTime { seconds: 1_534_000_000, fraction: 0x20_0000, quality: 0x0a },
            state_number: 7,
            sequence_number: 300,
            simulation: simulated,
            revision: 0x8000_0000,
            needs_commissioning: false,
            values,
        }),
    }
}

fn encoded(frame: &Frame) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes).expect("the frame is permitted");
    bytes
}
