//! State passed to the next program version in the same process: listening sockets, and connections
//! with their state, which is in a file in memory (memfd_create(2)).
//!
//! The file begins with a header that stays the same in all versions, so that no connection remains
//! open without an owner: magic `GHRH`, version of the state (2 bytes), number of connections (4),
//! and the number of each file (4), in little-endian order.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, RawFd};

use gridhaul_linux::{take_inherited_connection, take_inherited_memory};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use socket2::Socket;

use super::{Level, report};
use crate::protocol::{DecodeError, Decoder};

/// Variables of the environment with the numbers of listening sockets, separated by commas, and of
/// the file in memory.
pub(crate) const LISTENERS: &str = "GRIDHAUL_RELAY_LISTENERS";
const CONNECTIONS: &str = "GRIDHAUL_RELAY_CONNECTIONS";

const MAGIC: &[u8; 4] = b"GHRH";

/// Version of the state.
const VERSION: u16 = 1;

/// ListeningSockets for the next version of the program.
#[derive(Debug, Default)]
pub(crate) struct UpgradeState {
    pub listeners: Vec<Socket>,
    pub connections: Vec<Socket>,
    /// State of the connections.
    pub state: Vec<u8>,
}

/// Connections of the previous version of the program.
#[derive(Debug, Default)]
pub(crate) struct InheritedConnections {
    /// `None`: the file is not a connection.
    pub connections: Vec<Option<Socket>>,
    pub state: Vec<u8>,
}

impl UpgradeState {
    /// Lets the next program inherit the sockets. Returns the file in memory, and variables of its
    /// environment.
    pub(crate) fn prepare(&self) -> io::Result<(File, [(&'static str, String); 2])> {
        for socket in self.listeners.iter().chain(&self.connections) {
            fcntl_setfd(socket, FdFlags::empty())?;
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(self.connections.len() as u32).to_le_bytes());
        for socket in &self.connections {
            bytes.extend_from_slice(&socket.as_raw_fd().to_le_bytes());
        }
        bytes.extend_from_slice(&self.state);
        let mut memory = File::from(memfd_create("gridhaul-relay", MemfdFlags::empty())?);
        memory.write_all(&bytes)?;
        let numbers: Vec<_> =
            self.listeners.iter().map(|listener| listener.as_raw_fd().to_string()).collect();
        let number = memory.as_raw_fd().to_string();
        Ok((memory, [(LISTENERS, numbers.join(",")), (CONNECTIONS, number)]))
    }
}

impl InheritedConnections {
    /// Takes the connections that the previous version of the program has left open in this
    /// process.
    pub(crate) fn from_environment() -> Self {
        let number = std::env::var(CONNECTIONS).ok().and_then(|number| number.parse().ok());
        let Some(number) = number else { return Self::default() };
        Self::read(number).unwrap_or_else(|error| {
            let text = format!("connections cannot be taken over: {error}; they are reset");
            report(Level::Error, &text);
            Self::default()
        })
    }

    fn read(number: RawFd) -> io::Result<Self> {
        let mut memory = File::from(take_inherited_memory(number)?);
        let mut bytes = Vec::new();
        memory.seek(SeekFrom::Start(0))?;
        memory.read_to_end(&mut bytes)?;
        let mut decoder = Decoder::new(&bytes, "state of connections");
        let (version, numbers) = read_header(&mut decoder).map_err(io::Error::other)?;
        let take = |number: &RawFd| take_inherited_connection(*number).ok().map(Socket::from);
        let connections: Vec<_> = numbers.iter().map(take).collect();
        if version != VERSION {
            return Err(io::Error::other(format!("version {version} of their state is not known")));
        }
        Ok(Self { connections, state: decoder.rest().to_vec() })
    }
}

fn read_header(decoder: &mut Decoder<'_>) -> Result<(u16, Vec<RawFd>), DecodeError> {
    if decoder.take(MAGIC.len())? != MAGIC {
        return Err(DecodeError::Undefined("magic of the state"));
    }
    let version = decoder.u16()?;
    let count = decoder.u32()?;
    let numbers = (0..count).map(|_| Ok(decoder.u32()?.cast_signed()));
    Ok((version, numbers.collect::<Result<_, _>>()?))
}
