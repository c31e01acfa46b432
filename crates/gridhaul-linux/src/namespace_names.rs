//! Names of network namespaces, by which `ip netns exec` finds them (ip-netns(8)).
//!
//! A name is a mount at `/run/netns/<name>`. Mounts outlive the process that made them, so every
//! process lists its names in `/run/gridhaul/namespaces/<pid>`; names in the list of a process that
//! has ended are stale. `/run/gridhaul` itself has files of others, such as the records of hybrid
//! routers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, mount_bind, unmount};

use crate::{Error, Namespace};

/// Largest number of bytes in the name of a namespace: names are files (`NAME_MAX`,
/// `<linux/limits.h>`).
pub const NAMESPACE_NAME_MAX: usize = 255;

const NETNS: &str = "/run/netns";
const LISTS: &str = "/run/gridhaul/namespaces";

/// Names of network namespaces, which are removed when this is dropped.
#[derive(Debug)]
pub struct NamespaceNames {
    list: PathBuf,
    names: Vec<String>,
}

impl NamespaceNames {
    /// Assigns a name to each namespace. A process has at most one set of names at a time.
    ///
    /// # Errors
    /// A name is in use ([`Error::NamespaceExists`]), and then no name is assigned; or this process
    /// may not mount.
    pub fn assign<'a>(
        namespaces: impl IntoIterator<Item = (String, &'a Namespace)>,
    ) -> Result<Self, Error> {
        let namespaces: Vec<_> = namespaces.into_iter().collect();
        let mut names = namespaces.iter().map(|(name, _)| name);
        if let Some(name) = names.find(|name| path_of(name).exists()) {
            return Err(Error::NamespaceExists { name: name.clone() });
        }
        let operation = "naming namespaces in /run/netns";
        for folder in [NETNS, LISTS] {
            fs::create_dir_all(folder).map_err(Error::call(operation))?;
        }
        let list = Path::new(LISTS).join(std::process::id().to_string());
        let names: Vec<&str> = namespaces.iter().map(|(name, _)| name.as_str()).collect();
        // The list is written before the first mount, so that no mount can be left without an
        // entry.
        fs::write(&list, names.join("\n")).map_err(Error::call(operation))?;
        let mut assigned = Self { list, names: Vec::new() };
        for (name, namespace) in &namespaces {
            let path = path_of(name);
            fs::File::create_new(&path).map_err(Error::call(operation))?;
            assigned.names.push(name.clone());
            mount_bind(namespace.path(), &path).map_err(Error::call(operation))?;
        }
        Ok(assigned)
    }
}

impl Drop for NamespaceNames {
    fn drop(&mut self) {
        for name in &self.names {
            // Another process may have removed the name already, for example `ip netns del`.
            let _ = remove(name);
        }
        let _ = fs::remove_file(&self.list);
    }
}

/// Removes the names, and thereby the namespaces, that ended processes of gridhaul did not remove.
/// Returns these names.
///
/// # Errors
/// A name or a list of names could not be removed.
pub fn remove_stale_namespaces() -> Result<Vec<String>, Error> {
    remove_listed_in(Path::new(LISTS))
}

fn remove_listed_in(folder: &Path) -> Result<Vec<String>, Error> {
    let mut removed = Vec::new();
    let Ok(files) = fs::read_dir(folder) else { return Ok(removed) };
    for list in files.flatten().filter(is_stale_list) {
        for name in fs::read_to_string(list.path()).unwrap_or_default().lines() {
            match remove(name) {
                Ok(()) => removed.push(name.to_owned()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::call(format!("removing namespace {name}"))(error)),
            }
        }
        fs::remove_file(list.path()).map_err(Error::call("removing a list of namespaces"))?;
    }
    Ok(removed)
}

fn path_of(name: &str) -> PathBuf {
    Path::new(NETNS).join(name)
}

fn remove(name: &str) -> io::Result<()> {
    let path = path_of(name);
    // If the process was killed between the creation of the file and the mount, there is no mount;
    // the file is removed anyway.
    let _ = unmount(&path, UnmountFlags::DETACH);
    fs::remove_file(path)
}

/// Whether a file is the list of a process that has ended. Files with other names are not ours.
fn is_stale_list(file: &fs::DirEntry) -> bool {
    let name = file.file_name();
    let process = name.to_str().filter(|name| name.parse::<u32>().is_ok());
    process.is_some_and(|process| !is_alive(process))
}

/// Whether the process with this number runs the same program as the calling process. The kernel
/// reuses process numbers, so the existence of a process is not sufficient.
fn is_alive(process: &str) -> bool {
    let program = |process: &str| fs::read_to_string(Path::new("/proc").join(process).join("comm"));
    match (program(process), program("self")) {
        (Ok(other), Ok(own)) => other.trim_end() == own.trim_end(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lists_of_ended_processes_are_removed() {
        let folder = std::env::temp_dir().join(format!("gridhaul-lists-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let own = std::process::id().to_string();
        // Linux has no process numbers above 4,194,304 (`PID_MAX_LIMIT`).
        let names = ["999999999", own.as_str(), "r1.router.json", "r1.router.lock"];
        for name in names {
            fs::write(folder.join(name), "gridhaul-no-such-namespace\n").unwrap();
        }
        assert_eq!(remove_listed_in(&folder).unwrap(), [""; 0]);
        let is_left = names.map(|name| folder.join(name).exists());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(is_left, [false, true, true, true]);
    }
}
