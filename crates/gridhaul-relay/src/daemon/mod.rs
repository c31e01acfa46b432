//! The daemon: state machines on sockets, files and the monotonic clock.
//!
//! One thread runs all connections with epoll, one thread writes the record log (group commit), one
//! serves the status page. A sink has a thread of its own.

mod validate;

use std::path::Path;

use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::{Deliver, RouterConfig, ServerIdentity};

use crate::collector::io as collector;
use crate::head::io as head;
use crate::log::{Folder, LogError};
use crate::packet::io as bridge;
use crate::router::io as router;
use crate::runtime::event_loop::End;
use crate::runtime::listening_sockets::ListeningSockets;
use crate::runtime::management;
use crate::runtime::report::report_faults;
use crate::runtime::{Level, report};
use crate::split::io as split;

pub use crate::runtime::RunError;
pub use crate::runtime::management::{StatusError, query};
pub use crate::runtime::program::{Program, Validate};
pub use crate::runtime::tls::TlsError;
pub use validate::{machine_notes, validate};

/// Runs a relay until it is stopped by SIGTERM or SIGINT. After SIGHUP, the relay reads its
/// configuration again; after SIGUSR2, it is replaced by the program that is in the file system
/// then.
///
/// # Errors
/// The daemon cannot start, or the log has failed.
pub fn run(config: &RelayConfig, program: &Program) -> Result<(), RunError> {
    gridhaul_linux::raise_open_file_limit();
    report_faults(&validate(config, program.folder())?);
    for note in machine_notes(config) {
        report(Level::Warning, &note);
    }
    let sockets = open_sockets(config).map_err(|error| {
        // A second process on the same log finds its addresses in use: the log is the better
        // explanation.
        locked_log(config, program.folder()).map_or(error, RunError::Log)
    })?;
    give_up_rights(config)?;
    // From here on there may be several threads.
    program.observe_input();
    match run_role(config, program, sockets)? {
        End::Stopped => Ok(()),
        End::Upgrade(upgrade_state) => Err(program.replace(&upgrade_state)),
    }
}

/// The changes to the system that a hybrid router makes, as lines of a shell.
///
/// # Errors
/// A setting of this machine cannot be read.
pub fn router_commands(config: &RouterConfig) -> Result<String, RunError> {
    router::commands(config)
}

/// Undoes the changes of a hybrid router that does not run, for example because it was killed.
/// Returns whether there were any.
///
/// # Errors
/// The record of the changes cannot be read or removed.
pub fn remove_router(
    config: &RelayConfig,
    router: &RouterConfig,
    folder: &Path,
) -> Result<bool, RunError> {
    router::remove(config, router, folder)
}

/// Runs the role of a configuration, which has exactly one.
fn run_role(
    config: &RelayConfig,
    program: &Program,
    sockets: ListeningSockets,
) -> Result<End, RunError> {
    if let Some(collector) = &config.collector {
        collector::run(config, collector, program, sockets)
    } else if let Some(head) = &config.head {
        head::run(config, head, program, sockets)
    } else if let Some(split) = &config.split {
        split::run(config, split, program, sockets)
    } else if let Some(router) = &config.router {
        router::run(config, router, program, sockets)
    } else if let Some(bridge) = &config.bridge {
        bridge::run(config, bridge, program, sockets)
    } else {
        Ok(End::Stopped)
    }
}

/// Opens all addresses at which the relay listens from the start.
fn open_sockets(config: &RelayConfig) -> Result<ListeningSockets, RunError> {
    let mut sockets = ListeningSockets::inherited()?;
    if let Some(collector) = &config.collector {
        collector::open_listeners(collector, &mut sockets)?;
    }
    if let Some(head) = &config.head {
        sockets.open(head::LISTENER, &head.address)?;
    }
    if let Some(split) = &config.split {
        split::open_listeners(split, &mut sockets)?;
    }
    if let Some(management) = &config.management {
        sockets.open(management::LISTENER, &management.address)?;
        if let Some(tls) = &management.tls {
            sockets.open(management::TLS_LISTENER, &tls.address)?;
        }
    }
    sockets.close_unused();
    Ok(sockets)
}

fn locked_log(config: &RelayConfig, folder: &Path) -> Option<LogError> {
    let path = folder.join(&config.log.as_ref()?.folder);
    Folder::is_locked(&path).then(|| LogError::Locked { folder: path.display().to_string() })
}

/// Continues as the user of the configuration, if there is one.
fn give_up_rights(config: &RelayConfig) -> Result<(), RunError> {
    let Some(user) = &config.user else { return Ok(()) };
    let is_transparent = config
        .split
        .iter()
        .flat_map(|split| &split.listener)
        .any(|(_, listener)| listener.transparent);
    let has_foreign_addresses = config.head.as_ref().is_some_and(|head| match &head.deliver {
        Deliver::Tcp(tcp) => tcp.identity == ServerIdentity::SourceAddress,
        Deliver::File(_) | Deliver::Mqtt(_) => false,
    });
    let keeps_net_admin = is_transparent || has_foreign_addresses;
    gridhaul_linux::become_user(user, config.group.as_deref(), keeps_net_admin)
        .map_err(|source| RunError::User { user: user.clone(), source })
}
