//! The machines of protocols without a broker: input in pieces of any length, invalid input,
//! windows and timers.

use gridhaul_protocols::endpoint::{Endpoint, EndpointError, NotSent};
use gridhaul_protocols::iec104;
use gridhaul_protocols::settings::{DirectKind, Pattern};
use gridhaul_scenario::units::{Duration, Instant};
use proptest::prelude::*;

use crate::recorder::Segment;

/// Every protocol with machines, for messages of at most 300 bytes.
pub(crate) const KINDS: [DirectKind; 6] = [
    DirectKind::Iec104(iec104::Window::STANDARD),
    DirectKind::ZeroMq(Pattern::Pipeline),
    DirectKind::ZeroMq(Pattern::PublishSubscribe),
    DirectKind::Nanomsg,
    DirectKind::Synchrophasor(300),
    DirectKind::Dnp3 { poll: None },
];

const NOW: Instant = Instant::ZERO;

/// Two ends, and the bytes that passed.
pub(crate) struct Conversation {
    pub(crate) ends: [Box<dyn Endpoint>; 2],
    pub(crate) segments: Vec<Segment>,
    piece: usize,
}

impl Conversation {
    /// Opens both ends and exchanges their handshakes, in pieces of this length.
    pub(crate) fn open(kind: DirectKind, piece: usize) -> Self {
        let mut ends = kind.endpoints();
        ends.iter_mut().for_each(|end| end.open(NOW));
        let mut conversation = Self { ends, segments: Vec::new(), piece };
        conversation.exchange();
        conversation
    }

    /// Passes bytes until both ends are silent.
    pub(crate) fn exchange(&mut self) {
        loop {
            let mut is_silent = true;
            for from in 0..2 {
                let mut bytes = Vec::new();
                self.ends[from].poll_output(&mut bytes);
                for piece in bytes.chunks(self.piece) {
                    self.ends[1 - from].handle_input(piece, NOW).unwrap();
                    is_silent = false;
                }
                if !bytes.is_empty() {
                    self.segments.push(Segment { connection: 0, from_client: from == 1, bytes });
                }
            }
            if is_silent {
                return;
            }
        }
    }

    pub(crate) fn publish(&mut self, message: &[u8]) -> Result<(), NotSent> {
        self.ends[0].publish(message, NOW)?;
        self.exchange();
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn messages_arrive_through_pieces_of_every_length(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..30),
        piece in 1_usize..400,
    ) {
        for kind in KINDS {
            let mut conversation = Conversation::open(kind, piece);
            prop_assert!(conversation.ends.iter().all(|end| end.is_ready()), "{kind:?}");
            for message in &messages {
                conversation.publish(message).unwrap();
            }
            for message in &messages {
                let received = conversation.ends[1].poll_message();
                prop_assert_eq!(received.as_ref(), Some(message), "{:?}", kind);
            }
            prop_assert_eq!(conversation.ends[1].poll_message(), None);
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes: Vec<u8>, at in 0_usize..40, piece in 1_usize..64) {
        for kind in KINDS {
            for end in 0..2 {
                // After the handshake, with arbitrary bytes after a valid start.
                let mut conversation = Conversation::open(kind, 1_000);
                conversation.ends[0].publish(&[7; 20], NOW).unwrap();
                let mut input = Vec::new();
                conversation.ends[0].poll_output(&mut input);
                input.truncate(at);
                input.extend(&bytes);
                for piece in input.chunks(piece) {
                    if conversation.ends[end].handle_input(piece, NOW).is_err() {
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn no_message_passes_before_the_handshake() {
    for kind in KINDS {
        let mut ends = kind.endpoints();
        ends[0].open(NOW);
        assert_eq!(ends[0].publish(&[1], NOW), Err(NotSent::NotReady), "{kind:?}");
    }
}

#[test]
fn a_controlled_station_sends_k_frames_without_an_acknowledgement() {
    for window in [iec104::Window::STANDARD, iec104::Window { k: 5, w: 3 }] {
        let iec104::Window { k, w } = window;
        let mut ends = Conversation::open(DirectKind::Iec104(window), 1_000).ends;
        for _ in 0..20 {
            ends[0].publish(&[0; 16], NOW).unwrap();
        }
        let mut bytes = Vec::new();
        ends[0].poll_output(&mut bytes);
        // Five objects of 15 bytes after 12 bytes.
        assert_eq!(bytes.len(), usize::from(k) * (12 + 5 * 15));
        // The receiver acknowledges after w frames, so that w more are sent.
        ends[1].handle_input(&bytes, NOW).unwrap();
        let mut acknowledgement = Vec::new();
        ends[1].poll_output(&mut acknowledgement);
        assert_eq!(acknowledgement, [0x68, 4, 1, 0, 2 * w as u8, 0]);
        ends[0].handle_input(&acknowledgement, NOW).unwrap();
        bytes.clear();
        ends[0].poll_output(&mut bytes);
        assert_eq!(bytes.len(), usize::from(w) * (12 + 5 * 15));
    }
}

#[test]
fn stations_keep_the_timers_of_the_standard() {
    let at = |seconds| NOW + Duration::from_secs(seconds);
    let mut ends = Conversation::open(DirectKind::Iec104(iec104::Window::STANDARD), 1_000).ends;
    ends[0].publish(&[0; 16], NOW).unwrap();
    let mut bytes = Vec::new();
    ends[0].poll_output(&mut bytes);
    ends[1].handle_input(&bytes, NOW).unwrap();
    let mut answer = Vec::new();
    // t2: one frame is acknowledged after 10 s.
    ends[1].handle_time(at(9)).unwrap();
    ends[1].poll_output(&mut answer);
    assert!(answer.is_empty(), "{answer:?}");
    ends[1].handle_time(at(10)).unwrap();
    ends[1].poll_output(&mut answer);
    assert_eq!(answer, [0x68, 4, 1, 0, 2, 0]);
    // t3: a test frame after 20 s without a frame of the peer.
    answer.clear();
    ends[1].handle_time(at(20)).unwrap();
    ends[1].poll_output(&mut answer);
    assert_eq!(answer, [0x68, 4, 0x43, 0, 0, 0]);
    // t1: neither the I frame nor the test frame is answered within 15 s.
    ends[0].handle_time(at(14)).unwrap();
    for (end, seconds) in [(0, 15), (1, 35)] {
        let error = ends[end].handle_time(at(seconds)).unwrap_err();
        assert!(matches!(error, EndpointError::Timeout { timer: "t1", .. }), "{error}");
    }
}

#[test]
fn an_acknowledgement_of_frames_that_were_not_sent_is_an_error() {
    let mut ends = Conversation::open(DirectKind::Iec104(iec104::Window::STANDARD), 1_000).ends;
    let error = ends[0].handle_input(&[0x68, 4, 1, 0, 2, 0], NOW).unwrap_err();
    assert!(error.to_string().contains("was not sent"), "{error}");
}

#[test]
fn a_master_polls_for_events_in_its_interval() {
    let interval = Duration::from_millis(100);
    let mut conversation = Conversation::open(DirectKind::Dnp3 { poll: Some(interval) }, 1_000);
    let count = conversation.segments.len();
    conversation.publish(b"event").unwrap();
    assert_eq!(conversation.segments.len(), count, "an outstation that is polled is silent");
    let master = |conversation: &mut Conversation, at: Duration| {
        conversation.ends[1].handle_time(NOW + at).unwrap();
        conversation.exchange();
        conversation.ends[1].poll_message()
    };
    assert_eq!(master(&mut conversation, Duration::from_millis(99)), None);
    assert_eq!(master(&mut conversation, interval), Some(b"event".to_vec()));
}

#[test]
fn an_outstation_sends_no_events_before_the_confirmation_of_earlier_ones() {
    let mut ends = Conversation::open(DirectKind::Dnp3 { poll: None }, 1_000).ends;
    let mut first = Vec::new();
    for event in [b"one", b"two"] {
        ends[0].publish(event, NOW).unwrap();
        ends[0].poll_output(&mut first);
    }
    ends[1].handle_input(&first, NOW).unwrap();
    assert_eq!(ends[1].poll_message(), Some(b"one".to_vec()));
    assert_eq!(ends[1].poll_message(), None);
    let mut confirmation = Vec::new();
    ends[1].poll_output(&mut confirmation);
    ends[0].handle_input(&confirmation, NOW).unwrap();
    let mut second = Vec::new();
    ends[0].poll_output(&mut second);
    ends[1].handle_input(&second, NOW).unwrap();
    assert_eq!(ends[1].poll_message(), Some(b"two".to_vec()));
    let error = ends[0].handle_time(NOW + Duration::from_secs(15)).unwrap_err();
    assert!(matches!(error, EndpointError::Timeout { .. }), "{error}");
}
