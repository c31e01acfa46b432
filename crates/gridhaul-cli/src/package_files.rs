//! Files of a package that are made from the command line of its program.

use std::path::Path;
use std::{fs, io};

use clap::{Args, Command};
use clap_complete::{Shell, generate_to};

/// Arguments of the hidden command `package-files`, which packagers call.
#[derive(Debug, Clone, Args)]
pub struct PackageFilesArgs {
    /// Folder that gets the manual pages, in `man`, and the completions, in `completions`
    pub folder: std::path::PathBuf,
}

/// Writes manual pages (section 1) to `man` and completions of bash, zsh and fish to `completions`
/// in the folder `folder`. Programs of one package write to one folder.
///
/// # Errors
/// If a file cannot be written.
pub fn write_package_files(command: &Command, folder: &Path) -> io::Result<()> {
    let (pages, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&pages)?;
    fs::create_dir_all(&completions)?;
    // The name of a page has the names of all commands above: `gridhaul-run.1`.
    let program = command.get_name().to_owned();
    let named = command.clone().bin_name(&program);
    clap_mangen::generate_to(named.clone(), &pages)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut named.clone(), &program, &completions)?;
    }
    Ok(())
}
