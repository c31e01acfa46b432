//! Errors of a session.

use gridhaul_scenario::backend::{RunError, Unsupported};
use gridhaul_scenario::units::{Duration, Instant};
use thiserror::Error;

/// The reason why a session cannot be opened, or refuses a call. A refused call changes nothing.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The scenario cannot be stepped.
    #[error("the scenario cannot be stepped:\n{}", RunError::Unsupported(.0.clone()))]
    Unsupported(Vec<Unsupported>),
    /// The scenario is not valid, or the simulation failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// There is no such node.
    #[error("there is no node `{name}`\n  help: choose one of: {}", .known.join(", "))]
    UnknownNode {
        /// The name that was given.
        name: String,
        /// Names of the scenario.
        known: Vec<String>,
    },
    /// A group is named without a member, or a single node with one.
    #[error("{message}\n  help: {help}")]
    Member {
        /// The error.
        message: String,
        /// The remedy.
        help: String,
    },
    /// No flow of load `external` leads from one node to the other.
    #[error(
        "no flow with load = \"external\" leads from `{from}` to `{to}`\n  help: {}",
        flows_to_use(.known)
    )]
    NoFlow {
        /// The sender.
        from: String,
        /// The receiver.
        to: String,
        /// Senders and receivers of the external flows of the scenario.
        known: Vec<String>,
    },
    /// A time before the time of the session.
    #[error(
        "{at} is before the time of the session, {now}: time does not go back\n  help: use a time \
         of {now} or later, or `restore` a snapshot",
        at = seconds(*.at),
        now = seconds(*.now)
    )]
    TimeGoesBack {
        /// The time that was given.
        at: Instant,
        /// The time of the session.
        now: Instant,
    },
    /// A message without bytes, or one that is too large for a datagram.
    #[error("{0}")]
    Size(String),
    /// There is no such link or direction.
    #[error("there is no link `{name}`\n  help: choose one of: {}", .known.join(", "))]
    UnknownLink {
        /// The name that was given.
        name: String,
        /// Names of the scenario.
        known: Vec<String>,
    },
    /// A value that a link cannot have.
    #[error("{0}")]
    LinkValue(String),
    /// The snapshot belongs to another session.
    #[error("the snapshot is of another session\n  help: restore it in the session that took it")]
    ForeignSnapshot,
}

fn flows_to_use(known: &[String]) -> String {
    match known {
        [] => "add a flow with load = \"external\" between them".to_owned(),
        known => format!("the external flows are: {}", known.join(", ")),
    }
}

fn seconds(at: Instant) -> Duration {
    at.since(Instant::ZERO)
}
