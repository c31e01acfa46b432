//! Files of the configuration with keys and passwords, which a service manager may pass to a
//! service without rights.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

/// Beginning of the name of a file that systemd passes (`LoadCredential=`, systemd.exec(5)).
const PREFIX: &str = "$CREDENTIALS_DIRECTORY/";

/// The path of a file. A relative one begins at `folder`.
pub(crate) fn path_of(folder: &Path, file: &str) -> io::Result<PathBuf> {
    let Some(name) = file.strip_prefix(PREFIX) else { return Ok(folder.join(file)) };
    let text =
        "CREDENTIALS_DIRECTORY is not set: systemd sets it for a service with LoadCredential=";
    let missing = || io::Error::new(io::ErrorKind::NotFound, text);
    env::var_os("CREDENTIALS_DIRECTORY")
        .map(|folder| Path::new(&folder).join(name))
        .ok_or_else(missing)
}
