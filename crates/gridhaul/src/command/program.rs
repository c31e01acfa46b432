//! Commands that are programs of their own, such as `gridhaul measure`. Their dependencies would
//! slow down the build of this program.

use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::anyhow;

use super::error::CommandError;

/// Replaces this process by the program `name` with these arguments. Signals, standard streams and
/// the exit code are those of the program. The program is searched in the folder of this one, then
/// in `PATH`.
///
/// # Errors
/// The program is not installed, or cannot be executed. Otherwise this function does not return.
pub(crate) fn start_program(name: &str, args: &[OsString]) -> Result<(), CommandError> {
    let program = in_own_folder(name).unwrap_or_else(|| PathBuf::from(name));
    // `exec` returns only if it fails.
    let error = Command::new(&program).args(args).exec();
    Err(CommandError::Input(match error.kind() {
        ErrorKind::NotFound => anyhow!(
            "the program {name} is not installed\n  help: install it with `{}`",
            build_command_of(name)
        ),
        _ => anyhow!("cannot start {}: {error}", program.display()),
    }))
}

/// Whether [`start_program`] would find the program.
pub(crate) fn is_installed(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    in_own_folder(name).is_some()
        || env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// The command that builds or installs the program.
pub(crate) fn build_command_of(name: &str) -> String {
    build_command(name, own_folder().as_deref())
}

/// The program in the folder of this one, if it is there.
fn in_own_folder(name: &str) -> Option<PathBuf> {
    own_folder().map(|folder| folder.join(name)).filter(|path| path.is_file())
}

fn own_folder() -> Option<PathBuf> {
    env::current_exe().ok()?.parent().map(Path::to_owned)
}

/// The command that puts the program where it is found: in the folder of a program that cargo has
/// built, or into the folder of installed programs. The Debian package has all programs.
fn build_command(name: &str, own: Option<&Path>) -> String {
    if own == Some(Path::new("/usr/bin")) {
        return "apt-get install --reinstall gridhaul".to_owned();
    }
    let profile = own.and_then(Path::file_name).and_then(|name| name.to_str());
    match profile {
        Some("debug") => format!("cargo build -p {name}"),
        Some("release") => format!("cargo build --release -p {name}"),
        _ => format!("cargo install --path crates/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_command_follows_from_the_folder_of_this_program() {
        let command = |folder: &str| build_command("gridhaul-relay", Some(Path::new(folder)));
        assert_eq!(command("/src/target/debug"), "cargo build -p gridhaul-relay");
        assert_eq!(command("/src/target/release"), "cargo build --release -p gridhaul-relay");
        assert_eq!(command("/usr/bin"), "apt-get install --reinstall gridhaul");
        assert_eq!(command("/home/me/bin"), "cargo install --path crates/gridhaul-relay");
    }
}
