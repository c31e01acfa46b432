//! Properties of the machines under any order of events.

use gridhaul_core::coverage_mark::covers;
use gridhaul_scenario::units::{Duration, Instant};
use proptest::prelude::*;

use super::{Direction, Leg, Session, SessionEnd, SplitTimeouts};

#[derive(Debug, Clone, Copy)]
enum Step {
    Read(u32),
    Write(u32),
    End,
    Fin,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1..200_u32).prop_map(Step::Read),
        (1..200_u32).prop_map(Step::Write),
        Just(Step::End),
        Just(Step::Fin),
    ]
}

proptest! {
    #[test]
    fn fin_follows_the_last_byte_and_is_sent_once(steps in prop::collection::vec(step(), 1..200)) {
        let mut direction = Direction::default();
        let (mut read, mut written, mut fins) = (0_u64, 0_u64, 0);
        for step in steps {
            match step {
                Step::Read(length) if direction.may_read() => {
                    direction.handle_read(length, 100);
                    read += u64::from(length);
                }
                Step::Write(length) => {
                    let length = length.min(direction.pending());
                    direction.handle_written(length);
                    written += u64::from(length);
                }
                Step::End => direction.handle_end(),
                Step::Fin if direction.must_send_fin() => {
                    direction.handle_fin_sent();
                    prop_assert!(direction.is_ended());
                    prop_assert_eq!(read, written);
                    fins += 1;
                }
                _ => {}
            }
            prop_assert_eq!(direction.transferred(), written);
            prop_assert_eq!(u64::from(direction.pending()), read - written);
            prop_assert_eq!(direction.is_complete(), fins == 1);
            prop_assert!(fins <= 1);
        }
    }
}

#[test]
fn only_reads_that_fill_the_buffer_are_bulk() {
    let mut direction = Direction::default();
    for _ in 0..100 {
        direction.handle_read(60, 100);
    }
    assert!(!direction.is_bulk());
    for _ in 0..4 {
        direction.handle_read(100, 100);
    }
    assert!(direction.is_bulk());
    for _ in 0..31 {
        direction.handle_read(10, 100);
    }
    assert!(direction.is_bulk(), "a pause of the sender is no change");
    direction.handle_read(10, 100);
    assert!(!direction.is_bulk());
}

const TIMEOUTS: SplitTimeouts = SplitTimeouts {
    connect: Duration::from_secs(1),
    half_close: Duration::from_secs(20),
    idle: None,
};

const fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

#[test]
fn each_state_has_a_time_limit_of_its_own() {
    covers!(split_connection_has_a_time_limit, split_half_closed_session_has_a_time_limit);
    let mut session = Session::new(at(5));
    let with_idle = |idle| SplitTimeouts { idle: Some(Duration::from_secs(idle)), ..TIMEOUTS };
    assert_eq!(session.deadline(&with_idle(0)), Some((at(6), SessionEnd::Connect)));
    session.handle_connected(at(6));
    assert_eq!(session.deadline(&TIMEOUTS), None);
    assert_eq!(session.deadline(&with_idle(30)), Some((at(36), SessionEnd::Idle)));
    session.from_mut(Leg::Server).handle_end();
    session.note_progress(at(10));
    assert!(session.is_half_closed() && !session.is_complete());
    assert_eq!(session.deadline(&with_idle(30)), Some((at(30), SessionEnd::HalfClose)));
    assert_eq!(session.deadline(&with_idle(3)), Some((at(13), SessionEnd::Idle)));
    for leg in Leg::BOTH {
        session.from_mut(leg).handle_end();
        session.from_mut(leg).handle_fin_sent();
    }
    assert!(session.is_complete());
}
