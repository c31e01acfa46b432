//! Listening sockets: opened before rights are given up, or taken over from a service manager
//! (socket activation) or from the version of the program that this one replaces (upgrade).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use gridhaul_linux::{Error, take_inherited_listeners};
use socket2::Socket;

use super::listener::START_ATTEMPTS;
use super::upgrade::{InheritedConnections, LISTENERS};
use super::{Level, RunError, listener, report};

/// Variables of the environment by which a service manager passes sockets.
pub(crate) const SERVICE_MANAGER: [&str; 2] = ["LISTEN_FDS", "LISTEN_PID"];

/// Number of the first file of a service manager (sd_listen_fds(3)).
const ACTIVATED: RawFd = 3;

/// The listening sockets of a configuration, by key.
#[derive(Debug)]
pub(crate) struct ListeningSockets {
    open: BTreeMap<String, Socket>,
    inherited: Vec<Socket>,
    /// Connections of meters, which a collector takes over.
    connections: InheritedConnections,
}

impl ListeningSockets {
    /// Takes over the sockets that were passed to this process.
    pub(crate) fn inherited() -> Result<Self, RunError> {
        let files = take_inherited_listeners(&inherited_numbers())
            .map_err(Error::call("taking over the sockets of LISTEN_FDS"))?;
        Ok(Self {
            open: BTreeMap::new(),
            inherited: files.into_iter().map(Socket::from).collect(),
            connections: InheritedConnections::from_environment(),
        })
    }

    /// Opens the address of a key.
    pub(crate) fn open(&mut self, key: &str, address: &str) -> Result<(), RunError> {
        self.open_with(key, address, |_, _| Ok(()))
    }

    /// The same, with options that are set before the socket is bound.
    pub(crate) fn open_with(
        &mut self,
        key: &str,
        address: &str,
        configure: impl FnOnce(&Socket, SocketAddr) -> Result<(), Error>,
    ) -> Result<(), RunError> {
        let wanted: Option<SocketAddr> = address.parse().ok();
        let bound =
            |socket: &Socket| socket.local_addr().ok().and_then(|address| address.as_socket());
        let row =
            self.inherited.iter().position(|socket| wanted.is_some() && bound(socket) == wanted);
        let socket = match row.zip(wanted) {
            None => listener::listen_with(key, address, START_ATTEMPTS, configure)?,
            Some((row, address)) => {
                let socket = self.inherited.remove(row);
                socket.set_nonblocking(true).map_err(Error::call("configuring a listener"))?;
                configure(&socket, address)?;
                socket
            }
        };
        self.open.insert(key.to_owned(), socket);
        Ok(())
    }

    /// Closes sockets that were passed to this process and that no key names: connections there
    /// would wait for ever.
    pub(crate) fn close_unused(&mut self) {
        for socket in self.inherited.drain(..) {
            let address = socket.local_addr().ok().and_then(|address| address.as_socket());
            let address =
                address.map_or("an unknown address".to_owned(), |address| address.to_string());
            let text = format!(
                "a socket of the service manager at {address} is closed: no key of the \
                 configuration names this address"
            );
            report(Level::Warning, &text);
        }
    }

    /// Connections of the previous version of the program.
    pub(crate) fn take_connections(&mut self) -> InheritedConnections {
        std::mem::take(&mut self.connections)
    }

    /// The socket of a key, if it was opened.
    pub(crate) fn take(&mut self, key: &str) -> Option<Socket> {
        self.open.remove(key)
    }
}

/// Numbers of the sockets that were passed to this process.
fn inherited_numbers() -> Vec<RawFd> {
    let variable = |name: &str| std::env::var(name).ok();
    if let Some(list) = variable(LISTENERS) {
        return list.split(',').filter_map(|number| number.parse().ok()).collect();
    }
    let number = |name: &str| variable(name)?.parse::<RawFd>().ok();
    let [count, process] = SERVICE_MANAGER.map(number);
    let is_addressed = process == i32::try_from(std::process::id()).ok();
    let count = count.filter(|_| is_addressed).unwrap_or(0);
    (ACTIVATED..ACTIVATED.saturating_add(count)).collect()
}
