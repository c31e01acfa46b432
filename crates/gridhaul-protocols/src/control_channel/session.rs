//! The end of an agent of one control channel, without input or output.

use std::collections::VecDeque;

use gridhaul_scenario::units::{Duration, Instant};

use super::framing::{
    FRAME_MAX, FRAME_MAX_UNAUTHENTICATED, FrameReader, write_message, write_preface,
};
use super::message::{ReceiverSpec, Reply, Report, Request, Started};

/// Time for the handshake of TLS and the token.
const AUTHENTICATE_WITHIN: Duration = Duration::from_secs(10);

/// Time without a message after which the controller is gone, unless it requests more.
const SILENCE: Duration = Duration::from_secs(30);

/// A control channel, from the preface to its end.
#[derive(Debug)]
pub struct Session {
    state: State,
    reader: FrameReader,
    output: Vec<u8>,
    actions: VecDeque<Action>,
    silence: Duration,
    deadline: Instant,
    /// Why this connection is refused, whatever its token.
    refusal: Option<String>,
}

/// Task of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Compare the token, and call [`Session::handle_authenticated`].
    Authenticate(String),
    /// Start a receiver in the place of an earlier one, and call [`Session::handle_started`].
    Start(Box<ReceiverSpec>),
    /// Call [`Session::handle_times`], send the output, and call [`Session::handle_report`].
    Exchange(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The token has not arrived.
    Unauthenticated,
    /// The token is being compared.
    Authenticating,
    /// A receiver may be started.
    Ready,
    /// A receiver is being started.
    Starting,
    Running,
    Over,
}

impl Session {
    /// A connection that was accepted at `now`.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        let mut output = Vec::new();
        write_preface(&mut output);
        Self {
            state: State::Unauthenticated,
            reader: FrameReader::new(FRAME_MAX_UNAUTHENTICATED),
            output,
            actions: VecDeque::new(),
            silence: SILENCE,
            deadline: now + AUTHENTICATE_WITHIN,
            refusal: None,
        }
    }

    /// A connection that was accepted at `now` only to give its peer the reason why it is refused.
    #[must_use]
    pub fn refusing(now: Instant, reason: String) -> Self {
        Self { refusal: Some(reason), ..Self::new(now) }
    }

    /// Handles bytes of the controller.
    pub fn handle_input(&mut self, bytes: &[u8], now: Instant) {
        self.reader.handle_input(bytes);
        while self.state != State::Over {
            match self.reader.poll_message() {
                Ok(Some(request)) => self.handle(request, now),
                Ok(None) => break,
                Err(error) => self.fail(error.to_string()),
            }
        }
    }

    /// Ends the session when the peer presents no token in time, or the controller is silent for
    /// too long. To be called after input as well: bytes that complete no message do not prolong
    /// the session.
    pub fn handle_time(&mut self, now: Instant) {
        if now < self.deadline || self.is_over() {
            return;
        }
        let seconds = |span: Duration| span.as_secs_f64();
        self.fail(match self.state {
            State::Unauthenticated | State::Authenticating => {
                format!("no token within {} s", seconds(AUTHENTICATE_WITHIN))
            }
            _ => format!("no message for {} s", seconds(self.silence)),
        });
    }

    /// The token was compared; the reason of a refusal is for the controller.
    pub fn handle_authenticated(&mut self, result: Result<(), String>, now: Instant) {
        match result {
            Ok(()) => {
                self.state = State::Ready;
                self.reader.set_max(FRAME_MAX);
                self.deadline = now + self.silence;
                write_message(&Reply::Ready, &mut self.output);
            }
            Err(reason) => self.fail(reason),
        }
    }

    /// The receiver is ready, or cannot be started.
    pub fn handle_started(&mut self, result: Result<Started, String>, now: Instant) {
        match result {
            Ok(started) => {
                self.state = State::Running;
                self.deadline = now + self.silence;
                write_message(&Reply::Started(started), &mut self.output);
            }
            Err(reason) => self.fail(reason),
        }
    }

    /// The times of an exchange on the clock of the agent.
    pub fn handle_times(&mut self, number: u64, received: i64, sent: i64) {
        write_message(&Reply::Answer { number, received, sent }, &mut self.output);
    }

    /// Arrivals before the request of an exchange.
    pub fn handle_report(&mut self, report: Report) {
        for part in report.split() {
            write_message(&Reply::Report(part), &mut self.output);
        }
    }

    /// Ends the session with a reason for the controller.
    pub fn fail(&mut self, reason: String) {
        write_message(&Reply::Failed { reason }, &mut self.output);
        self.state = State::Over;
        // Nothing more is started for a controller that has violated the protocol.
        self.actions.clear();
    }

    /// Next task of the caller.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Moves the bytes for the controller to the end of `output`.
    pub fn poll_output(&mut self, output: &mut Vec<u8>) {
        output.append(&mut self.output);
    }

    /// Whether the connection is to be closed after its output.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    fn handle(&mut self, request: Request, now: Instant) {
        let action = match (self.state, request) {
            (State::Unauthenticated, Request::Authenticate { token }) => {
                if let Some(reason) = self.refusal.take() {
                    return self.fail(reason);
                }
                self.state = State::Authenticating;
                Action::Authenticate(token)
            }
            // A search of a rate starts a receiver for each trial in one session.
            (State::Ready | State::Running, Request::Start(spec)) => {
                if let Err(reason) = spec.check() {
                    return self.fail(reason);
                }
                self.silence = spec.silence.max(SILENCE);
                self.state = State::Starting;
                Action::Start(spec)
            }
            (State::Running, Request::Exchange { number }) => {
                self.deadline = now + self.silence;
                Action::Exchange(number)
            }
            (_, Request::End) => {
                self.state = State::Over;
                return;
            }
            _ => return self.fail("a request that is not expected now".into()),
        };
        self.actions.push_back(action);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::control_channel::message::ReceiverProtocol;

    fn frame(request: &Request) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_message(request, &mut bytes);
        bytes
    }

    fn token() -> Vec<u8> {
        let mut bytes = Vec::new();
        write_preface(&mut bytes);
        bytes.extend(frame(&Request::Authenticate { token: "secret".into() }));
        bytes
    }

    fn start() -> Request {
        start_with(Duration::from_secs(10))
    }

    fn start_with(silence: Duration) -> Request {
        let protocol = ReceiverProtocol::Udp { echo: true };
        Request::Start(Box::new(ReceiverSpec { run: 7, address: None, protocol, silence }))
    }

    /// The replies since the last call, without the preface.
    fn replies(session: &mut Session, reader: &mut FrameReader) -> Vec<Reply> {
        let mut bytes = Vec::new();
        session.poll_output(&mut bytes);
        reader.handle_input(&bytes);
        std::iter::from_fn(|| reader.poll_message().unwrap()).collect()
    }

    #[test]
    fn a_session_from_the_token_to_its_end() {
        let (mut session, mut reader) = (Session::new(Instant::ZERO), FrameReader::new(FRAME_MAX));
        session.handle_input(&token(), Instant::ZERO);
        assert_eq!(session.poll_action(), Some(Action::Authenticate("secret".into())));
        session.handle_authenticated(Ok(()), Instant::ZERO);
        assert_eq!(replies(&mut session, &mut reader), [Reply::Ready]);
        session.handle_input(&frame(&start()), Instant::ZERO);
        assert!(matches!(session.poll_action(), Some(Action::Start(_))));
        let started = Started { address: ([127, 0, 0, 1], 9).into(), broker: None };
        session.handle_started(Ok(started.clone()), Instant::ZERO);
        session.handle_input(&frame(&Request::Exchange { number: 0 }), Instant::ZERO);
        assert_eq!(session.poll_action(), Some(Action::Exchange(0)));
        session.handle_times(0, 5, 6);
        session.handle_report(Report { arrivals: vec![(3, 4)], ..Report::default() });
        let expected = [
            Reply::Started(started),
            Reply::Answer { number: 0, received: 5, sent: 6 },
            Reply::Report(Report { arrivals: vec![(3, 4)], ..Report::default() }),
        ];
        assert_eq!(replies(&mut session, &mut reader), expected);
        session.handle_input(&frame(&Request::End), Instant::ZERO);
        assert!(session.is_over());
    }

    #[test]
    fn a_further_run_starts_in_the_same_session() {
        let mut session = Session::new(Instant::ZERO);
        session.handle_input(&token(), Instant::ZERO);
        session.poll_action();
        session.handle_authenticated(Ok(()), Instant::ZERO);
        for _ in 0..2 {
            session.handle_input(&frame(&start()), Instant::ZERO);
            assert!(matches!(session.poll_action(), Some(Action::Start(_))));
            let started = Started { address: ([127, 0, 0, 1], 9).into(), broker: None };
            session.handle_started(Ok(started), Instant::ZERO);
        }
        assert!(!session.is_over());
        // While a receiver starts, no further one is requested.
        session.handle_input(&frame(&start()), Instant::ZERO);
        session.handle_input(&frame(&start()), Instant::ZERO);
        assert!(session.is_over());
    }

    #[test]
    fn nothing_is_started_before_the_token_was_compared() {
        for early in [start(), Request::Exchange { number: 0 }] {
            let mut session = Session::new(Instant::ZERO);
            let mut bytes = token();
            bytes.extend(frame(&early));
            session.handle_input(&bytes, Instant::ZERO);
            assert!(session.is_over() && session.poll_action().is_none(), "{early:?}");
        }
        let mut session = Session::new(Instant::ZERO);
        session.handle_input(&token(), Instant::ZERO);
        session.handle_authenticated(Err("the token is wrong".into()), Instant::ZERO);
        session.handle_input(&frame(&start()), Instant::ZERO);
        session.poll_action();
        assert!(session.is_over() && session.poll_action().is_none());
    }

    #[test]
    fn a_silent_peer_does_not_keep_the_agent() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut session = Session::new(at(0));
        session.handle_time(at(9));
        assert!(!session.is_over());
        session.handle_time(at(10));
        assert!(session.is_over(), "no token within 10 s");
        let mut session = Session::new(at(0));
        session.handle_input(&token(), at(1));
        session.handle_authenticated(Ok(()), at(1));
        session.handle_time(at(30));
        assert!(!session.is_over());
        session.handle_time(at(31));
        assert!(session.is_over(), "no message for 30 s");
        let mut session = Session::new(at(0));
        session.handle_input(&token(), at(1));
        session.poll_action();
        session.handle_authenticated(Ok(()), at(1));
        session.handle_input(&frame(&start_with(Duration::from_secs(100))), at(2));
        let started = Started { address: ([127, 0, 0, 1], 9).into(), broker: None };
        session.handle_started(Ok(started), at(2));
        session.handle_time(at(101));
        assert!(!session.is_over(), "the controller has requested 100 s");
        session.handle_time(at(102));
        assert!(session.is_over());
    }

    #[test]
    fn a_peer_that_sends_bytes_without_a_message_has_no_more_time_than_a_silent_one() {
        let mut session = Session::new(Instant::ZERO);
        let mut reader = FrameReader::new(FRAME_MAX);
        // The preface and a part of a frame, a byte every second.
        for (second, byte) in (1..).zip(&token()[..10]) {
            let now = Instant::ZERO + Duration::from_secs(second);
            session.handle_input(&[*byte], now);
            session.handle_time(now);
            assert_eq!(session.is_over(), second >= 10, "{second}");
        }
        let reason = "no token within 10 s".into();
        assert_eq!(replies(&mut session, &mut reader), [Reply::Failed { reason }]);
    }

    #[test]
    fn a_refused_peer_gets_the_reason_and_no_action() {
        let mut session = Session::refusing(Instant::ZERO, "busy".into());
        session.handle_input(&token(), Instant::ZERO);
        assert!(session.is_over() && session.poll_action().is_none());
        let failed = Reply::Failed { reason: "busy".into() };
        assert_eq!(replies(&mut session, &mut FrameReader::new(FRAME_MAX)), [failed]);
    }

    proptest! {
        #[test]
        fn any_bytes_neither_panic_nor_pass_authentication(bytes: Vec<u8>, with_preface: bool) {
            let mut session = Session::new(Instant::ZERO);
            let mut input = Vec::new();
            if with_preface {
                write_preface(&mut input);
            }
            input.extend(bytes);
            session.handle_input(&input, Instant::ZERO);
            let action = session.poll_action();
            prop_assert!(!matches!(action, Some(Action::Start(_) | Action::Exchange(_))));
        }
    }
}
