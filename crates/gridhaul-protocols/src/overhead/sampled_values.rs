//! Sampled Values (IEC 61850-9-2): a frame with one ASDU without optional elements except the name
//! of the data set.

use crate::iec61850::APPLICATION_HEADER_BYTES;

/// Names in an ASDU, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// `svID`.
    pub id: u64,
    /// `datSet`; `None` if the element is absent.
    pub data_set: Option<u64>,
}

impl Names {
    /// Bytes that the frame has after its EtherType besides the samples.
    #[must_use]
    pub fn overhead(&self, samples: u64) -> u64 {
        // smpCnt (2 bytes), confRev (4) and smpSynch (1), each with tag and length (IEC 61850-9-2,
        // table of the ASDU).
        let fixed = (2 + 2) + (2 + 4) + (2 + 1);
        let names = element(self.id) + self.data_set.map_or(0, element);
        let asdu = element(names + fixed + element(samples));
        // noASDU with tag, length and the value 1.
        let number = 2 + 1;
        let pdu = element(number + element(asdu));
        APPLICATION_HEADER_BYTES as u64 + pdu - samples
    }
}

/// Bytes of an element with a tag of one byte and the shortest length (ITU-T X.690, section 8.1.3).
const fn element(contents: u64) -> u64 {
    let length = match contents {
        0..=127 => 1,
        128..=255 => 2,
        _ => 3,
    };
    1 + length + contents
}

#[cfg(test)]
mod tests {
    use crate::iec61850::Application;
    use crate::process_bus::{Frame, FrameAddress, Pdu};
    use crate::sampled_values::{Asdu, SampledValues, Synchronisation};

    use super::*;

    #[test]
    fn the_formula_is_the_length_of_an_encoded_frame() {
        let names = Names { id: 4, data_set: Some(4) };
        for samples in (0..1_400).step_by(4) {
            let asdu = Asdu {
                id: "1234".into(),
                data_set: Some("node".into()),
                sample_count: 0,
                revision: 1,
                refresh_time: None,
                synchronisation: Synchronisation::None,
                sample_rate: None,
                samples: vec![0; samples],
                sample_mode: None,
            };
            let frame = Frame {
                address: FrameAddress::default(),
                application: Application::default(),
                pdu: Pdu::SampledValues(SampledValues { asdus: vec![asdu] }),
            };
            let mut bytes = Vec::new();
            frame.encode(&mut bytes).unwrap();
            let found = bytes.len() - 14 - samples;
            assert_eq!(names.overhead(samples as u64), found as u64, "{samples} bytes");
        }
        assert_eq!((names.overhead(40), names.overhead(400)), (44, 52));
    }
}
