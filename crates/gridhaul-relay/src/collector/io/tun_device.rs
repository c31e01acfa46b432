//! The TUN device of listeners whose data is acknowledged when it is durable.

use std::io;

use gridhaul_linux::Tun;

use crate::runtime::RunError;
use crate::runtime::listener::{START_ATTEMPTS, pause};

/// Checks the device of `collector.tun`. A relay that runs is attached to it.
pub(crate) fn check_device(name: &str) -> Result<(), RunError> {
    match Tun::attach(name) {
        Err(error) if error.kind() != io::ErrorKind::ResourceBusy => {
            Err(not_attached(name, &error))
        }
        _ => Ok(()),
    }
}

/// Attaches to the device of `collector.tun`. A relay that was killed may be attached for another
/// moment.
pub(super) fn attach(name: &str) -> Result<Tun, RunError> {
    for _ in 0..START_ATTEMPTS {
        match Tun::attach(name) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => pause(),
            done => return done.map_err(|error| not_attached(name, &error)),
        }
    }
    Tun::attach(name).map_err(|error| not_attached(name, &error))
}

fn not_attached(name: &str, error: &io::Error) -> RunError {
    let (reason, remedy) = match error.kind() {
        io::ErrorKind::NotFound => (
            "there is no such persistent TUN device".to_owned(),
            format!("make it: ip tuntap add dev {name} mode tun; ip link set {name} up"),
        ),
        io::ErrorKind::PermissionDenied => (
            "it does not exist, or belongs to another user".to_owned(),
            format!("make it for this user: ip tuntap add dev {name} mode tun user USER"),
        ),
        io::ErrorKind::ResourceBusy => {
            ("another program is attached to it".to_owned(), "stop that program".to_owned())
        }
        _ => (error.to_string(), "the device must be a TUN device with one queue".to_owned()),
    };
    RunError::Invalid(format!("collector.tun: {name}: {reason}\n  help: {remedy}"))
}
