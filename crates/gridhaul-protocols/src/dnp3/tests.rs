//! Requests of masters of other makers, and what a device answers.

use super::*;

/// Sends a fragment of a master, and returns the fragments of the outstation.
fn ask(outstation: &mut Station, fragment: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    link::write(&mut frames, fragment, true, &mut 0);
    outstation.handle_input(&frames, Instant::ZERO).unwrap();
    answers(outstation)
}

fn answers(outstation: &mut Station) -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    outstation.poll_output(&mut bytes);
    let (mut reassembly, mut rest) = (link::Reassembly::default(), &bytes[..]);
    let mut fragments = Vec::new();
    while let Some(length) = link::frame_length(rest).unwrap() {
        let frame;
        (frame, rest) = rest.split_at(length);
        fragments.extend(reassembly.read(frame, true).unwrap().fragment);
    }
    fragments
}

fn started() -> Station {
    let mut outstation = Station::new(Role::Outstation);
    outstation.open(Instant::ZERO);
    // An empty unsolicited response, with the indication of a restart.
    assert_eq!(answers(&mut outstation), [[0xf0, 130, 0x80, 0]]);
    outstation
}

#[test]
fn the_usual_start_of_a_master_is_answered_as_by_a_device() {
    let mut outstation = started();
    let classes = [60, 2, 6, 60, 3, 6, 60, 4, 6];
    let disable = [&[0xc0, DISABLE_UNSOLICITED], &classes[..]].concat();
    assert_eq!(ask(&mut outstation, &disable), [[0xc0, 129, 0x80, 0]]);
    // The indication remains until the master clears it.
    let integrity = [&[0xc1, READ], &classes[..], &[60, 1, 6]].concat();
    assert_eq!(ask(&mut outstation, &integrity), [[0xc1, 129, 0x80, 0]]);
    let clear = [&[0xc2, WRITE], &request::CLEAR_RESTART[..]].concat();
    assert_eq!(ask(&mut outstation, &clear), [[0xc2, 129, 0, 0]]);
    // Events wait for a poll of their class; static data are polled without them.
    outstation.publish(b"one", Instant::ZERO).unwrap();
    assert_eq!(answers(&mut outstation).len(), 0);
    assert_eq!(ask(&mut outstation, &[0xc3, READ, 60, 1, 6]), [[0xc3, 129, 0x02, 0]]);
    let event = [111, 4, 0x17, 1, 0, 1, b'o', b'n', b'e'];
    let poll = ask(&mut outstation, &[0xc4, READ, 60, 2, 6]);
    assert_eq!(poll, [[&[0xe4, 129, 0, 0], &event[..]].concat()]);
    assert_eq!(ask(&mut outstation, &[0xc4, CONFIRM]).len(), 0);
    let enable = [&[0xc5, ENABLE_UNSOLICITED], &classes[..]].concat();
    assert_eq!(ask(&mut outstation, &enable), [[0xc5, 129, 0, 0]]);
    outstation.publish(b"one", Instant::ZERO).unwrap();
    let unsolicited = answers(&mut outstation);
    assert_eq!(unsolicited, [[&[0xf1, 130, 0, 0], &event[..]].concat()]);
    // A connection after this one is no start of the device.
    outstation.open(Instant::ZERO);
    assert_eq!(answers(&mut outstation), [[0xf0, 130, 0, 0]]);
}

#[test]
fn functions_and_objects_that_are_not_supported_are_answered_with_their_indication() {
    let mut outstation = started();
    // SELECT, OPERATE, DIRECT OPERATE, freezing, restarts, applications, time, files and
    // authentication.
    for function in [3, 4, 5, 7, 9, 11, 13, 14, 15, 16, 17, 18, 19, 22, 23, 24, 25, 30, 32, 70] {
        let answer = ask(&mut outstation, &[0xc0, function]);
        assert_eq!(answer, [[0xc0, 129, 0x80, 0x01]], "function {function}");
    }
    for function in WITHOUT_RESPONSE.into_iter().chain([RESPONSE, UNSOLICITED_RESPONSE, 131]) {
        assert_eq!(ask(&mut outstation, &[0xc0, function]).len(), 0, "function {function}");
    }
    // The time (group 50), binary inputs, and a class with a range.
    let time = [0xc0, WRITE, 50, 1, 7, 1, 0, 0, 0, 0, 0, 0];
    assert_eq!(ask(&mut outstation, &time), [[0xc0, 129, 0x80, 0x02]]);
    assert_eq!(ask(&mut outstation, &[0xc0, READ, 1, 2, 0, 0, 9]), [[0xc0, 129, 0x80, 0x02]]);
    assert_eq!(ask(&mut outstation, &[0xc0, READ, 60, 2, 0, 0, 9]), [[0xc0, 129, 0x80, 0x04]]);
}

#[test]
fn requests_of_the_link_layer_are_answered() {
    let mut outstation = started();
    let answer = |outstation: &mut Station, control: u8| {
        let mut frame = Vec::new();
        link::write_answer(&mut frame, control, true);
        outstation.handle_input(&frame, Instant::ZERO).unwrap();
        let mut bytes = Vec::new();
        outstation.poll_output(&mut bytes);
        bytes.get(3).copied()
    };
    // RESET LINK STATES, TEST LINK STATES, REQUEST LINK STATUS, an unknown function, and an answer.
    for (control, expected) in
        [(0x40, Some(0)), (0x72, Some(0)), (0x49, Some(0x0b)), (0x47, Some(0x0f)), (0x0b, None)]
    {
        assert_eq!(answer(&mut outstation, control), expected, "{control:#04x}");
    }
}

#[test]
fn a_master_clears_the_indication_of_a_restart_once() {
    let mut master = Station::new(Role::Master { poll: None });
    master.open(Instant::ZERO);
    let mut functions = Vec::new();
    // An outstation that does not support the request, and whose responses keep the indication.
    for (control, function) in [(0xf0, 130), (0xc0, 129), (0xc1, 129), (0xf1, 130)] {
        let mut frames = Vec::new();
        link::write(&mut frames, &[control, function, 0x80, 0], false, &mut 0);
        master.handle_input(&frames, Instant::ZERO).unwrap();
        let mut bytes = Vec::new();
        master.poll_output(&mut bytes);
        let (mut reassembly, mut rest) = (link::Reassembly::default(), &bytes[..]);
        while let Some(length) = link::frame_length(rest).unwrap() {
            let frame;
            (frame, rest) = rest.split_at(length);
            let fragment = reassembly.read(frame, false).unwrap().fragment;
            functions.extend(fragment.map(|bytes| bytes[1]));
        }
    }
    assert_eq!(functions, [CONFIRM, WRITE, ENABLE_UNSOLICITED, CONFIRM]);
    assert!(master.is_ready());
}
