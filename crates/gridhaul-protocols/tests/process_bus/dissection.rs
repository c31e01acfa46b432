//! Frames as tshark dissects them: without a warning, and with the encoded values.

use std::process::Command;

use gridhaul_core::wire::VlanTag;
use gridhaul_protocols::goose::Data;
use gridhaul_protocols::iec61850::UtcTime;
use gridhaul_protocols::process_bus::{Frame, Pdu};
use gridhaul_protocols::sampled_values::{
    LIGHT_EDITION_CHANNELS, LightEditionChannel, SampleMode, Synchronisation, write_float_values,
    write_light_edition,
};
use gridhaul_testing::has_program;

use crate::{asdu, encoded, goose, sampled_values};

/// The fields that tshark prints for a frame: first those of errors, then those to compare.
const FIELDS: [&str; 24] = [
    "_ws.malformed",
    "_ws.expert.message",
    "frame.protocols",
    "vlan.id",
    "vlan.priority",
    "sv.appid",
    "sv.length",
    "sv.noASDU",
    "sv.svID",
    "sv.datSet",
    "sv.smpCnt",
    "sv.confRev",
    "sv.smpSynch",
    "sv.smpRate",
    "sv.smpMod",
    "goose.appid",
    "goose.gocbRef",
    "goose.timeAllowedtoLive",
    "goose.stNum",
    "goose.sqNum",
    "goose.confRev",
    "goose.numDatSetEntries",
    "goose.integer",
    "goose.visible_string",
];

#[test]
fn tshark_dissects_all_frames() {
    if !has_program("tshark") {
        return;
    }
    let frames = frames();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("frames.pcap");
    std::fs::write(&path, pcap(&frames)).expect("the capture is written");
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-n", "-T", "fields"]);
    FIELDS.iter().for_each(|field| {
        tshark.args(["-e", field]);
    });
    let output = tshark.output().expect("tshark starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("tshark prints UTF-8");
    assert_eq!(text.lines().count(), frames.len());
    for (line, frame) in text.lines().zip(&frames) {
        let read: Vec<_> = line.split('\t').collect();
        assert_eq!(read[..2], ["", ""], "{line} {frame:?}");
        assert_eq!(read[2..], expected(frame), "{line}");
    }
}

fn frames() -> Vec<Frame> {
    let mut frames = Vec::new();
    for tag in [None, Some(VlanTag { id: 7, priority: 4, ..VlanTag::default() })] {
        for values in [0, 1, 10, 22, 56, 100, 300] {
            let mut samples = Vec::new();
            write_float_values(&mut samples, &vec![230.5; values]);
            frames.push(sampled_values(tag, vec![asdu("1234", Some("node"), samples)]));
        }
        let mut samples = Vec::new();
        let channel = LightEditionChannel { value: -70_711, quality: 0x800 };
        write_light_edition(&mut samples, &[channel; LIGHT_EDITION_CHANNELS]);
        let mut full = asdu("gridhaulMU01", None, samples);
        full.refresh_time = Some(UtcTime::from_unix_nanos(1_534_000_000_123_456_789, 0x0a));
        full.sample_rate = Some(4_800);
        full.sample_mode = Some(SampleMode::PerSecond);
        let asdus = [(1, Synchronisation::None), (65_535, Synchronisation::Global)];
        let asdus = asdus.map(|(sample_count, synchronisation)| {
            let mut asdu = full.clone();
            (asdu.sample_count, asdu.synchronisation) = (sample_count, synchronisation);
            asdu
        });
        frames.push(sampled_values(tag, asdus.to_vec()));
        frames.push(sampled_values(tag, vec![full.clone(); 8]));
        frames.push(goose(tag, false, vec![]));
        frames.push(goose(tag, true, values()));
    }
    frames
}

/// A value of each type.
fn values() -> Vec<Data> {
    let quality = Data::BitString(3, vec![0x40, 0x08]);
    vec![
        Data::Boolean(true),
        quality.clone(),
        Data::Integer(-129),
        Data::Unsigned(u32::MAX),
        Data::Float(49.98),
        Data::OctetString(vec![1, 2, 3]),
        Data::VisibleString("open".into()),
        Data::UtcTime(UtcTime { seconds: 1_534_000_000, fraction: 0, quality: 0x0a }),
        Data::Structure(vec![Data::Boolean(false), Data::Structure(vec![quality])]),
    ]
}

/// The fields from `frame.protocols` on.
fn expected(frame: &Frame) -> Vec<String> {
    let vlan = frame.address.vlan;
    let protocol = if matches!(frame.pdu, Pdu::Goose(_)) { "goose" } else { "sv" };
    let tag = if vlan.is_some() { ":vlan" } else { "" };
    let mut fields =
        vec![format!("eth:ethertype{tag}{}:{protocol}", tag.replace(":vlan", ":ethertype"))];
    fields.push(vlan.map_or_else(String::new, |tag| tag.id.to_string()));
    fields.push(vlan.map_or_else(String::new, |tag| tag.priority.to_string()));
    let application = format!("0x{:04x}", frame.application.id);
    match &frame.pdu {
        Pdu::SampledValues(samples) => {
            let asdus = &samples.asdus;
            let length = encoded(frame).len() - 14 - if vlan.is_some() { 4 } else { 0 };
            fields.extend([application, length.to_string(), asdus.len().to_string()]);
            let join = |text: Vec<Option<String>>| {
                text.into_iter().flatten().collect::<Vec<_>>().join(",")
            };
            fields.push(join(asdus.iter().map(|asdu| Some(asdu.id.clone())).collect()));
            fields.push(join(asdus.iter().map(|asdu| asdu.data_set.clone()).collect()));
            fields
                .push(join(asdus.iter().map(|asdu| Some(asdu.sample_count.to_string())).collect()));
            fields.push(join(asdus.iter().map(|asdu| Some(asdu.revision.to_string())).collect()));
            let synchronised =
                |source: Synchronisation| if source == Synchronisation::Global { 2 } else { 0 };
            let sources =
                asdus.iter().map(|asdu| Some(synchronised(asdu.synchronisation).to_string()));
            fields.push(join(sources.collect()));
            let rate = |number: u16| number.to_string();
            fields.push(join(asdus.iter().map(|asdu| asdu.sample_rate.map(rate)).collect()));
            let mode = |_| String::from("1");
            fields.push(join(asdus.iter().map(|asdu| asdu.sample_mode.map(mode)).collect()));
            fields.extend(vec![String::new(); 9]);
        }
        Pdu::Goose(goose) => {
            fields.extend(vec![String::new(); 10]);
            fields.extend([application, goose.control_block.clone()]);
            let numbers = [
                i64::from(goose.time_allowed_to_live_ms),
                i64::from(goose.state_number),
                i64::from(goose.sequence_number),
                // tshark prints this element with sign.
                i64::from(goose.revision.cast_signed()),
                goose.values.len() as i64,
            ];
            fields.extend(numbers.map(|number| number.to_string()));
            let has_values = !goose.values.is_empty();
            fields.extend(if has_values { ["-129", "open"] } else { [""; 2] }.map(String::from));
        }
    }
    fields
}

/// A capture of Ethernet frames (libpcap format, link type 1).
fn pcap(frames: &[Frame]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 1_u32] {
        file.extend(word.to_le_bytes());
    }
    for (number, frame) in frames.iter().enumerate() {
        let bytes = encoded(frame);
        for word in [number as u32, 0, bytes.len() as u32, bytes.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(bytes);
    }
    file
}
