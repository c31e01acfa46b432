//! Names for namespaces, so that `ip netns exec` finds them, and what is left of dead runs.
//!
//! A name is a mount at `/run/netns/<name>`, as `ip netns` makes it. Beside it stands
//! `/run/gridhaul/<pid>`, a list of the names that a process holds; whoever finds such a list without
//! its process removes what it names.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, mount_bind, unmount};

use crate::fault::Fault;
use gridhaul_linux::Namespace;

const NETNS: &str = "/run/netns";
/// `NAME_MAX`: names are files. Characters of names are bytes.
const NAME_BYTES: usize = 255;
const LISTS: &str = "/run/gridhaul";

/// Names that are taken away when this is dropped.
#[derive(Debug)]
pub(crate) struct Names {
    list: PathBuf,
    given: Vec<String>,
}

/// Whether namespaces can have the names `<prefix>-<node>`, before any is made.
///
/// # Errors
/// One of them would be too long.
pub(crate) fn check(prefix: &str, nodes: &[String]) -> Result<(), Fault> {
    let Some(longest) = nodes.iter().max_by_key(|node| node.len()) else { return Ok(()) };
    let length = prefix.len() + 1 + longest.len();
    if length > NAME_BYTES {
        return Err(Fault::NameTooLong { node: longest.clone(), length, most: NAME_BYTES });
    }
    Ok(())
}

impl Names {
    /// Gives each namespace its name.
    ///
    /// # Errors
    /// One of the names is taken, and then none is given.
    pub(crate) fn give<'a>(
        named: impl Iterator<Item = (String, &'a Namespace)>,
    ) -> Result<Self, Fault> {
        let named: Vec<_> = named.collect();
        if let Some((name, _)) = named.iter().find(|(name, _)| Path::new(NETNS).join(name).exists())
        {
            return Err(Fault::NameTaken { name: name.clone() });
        }
        let doing = || Fault::call("naming namespaces in /run/netns");
        for folder in [NETNS, LISTS] {
            fs::create_dir_all(folder).map_err(doing())?;
        }
        let list = Path::new(LISTS).join(std::process::id().to_string());
        let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
        // The list comes first: what is killed in between can still be swept.
        fs::write(&list, names.join("\n")).map_err(doing())?;
        let mut made = Self { list, given: Vec::new() };
        for (name, namespace) in &named {
            let place = Path::new(NETNS).join(name);
            fs::File::create_new(&place).map_err(doing())?;
            made.given.push(name.clone());
            let handle = format!("/proc/self/fd/{}", namespace.as_fd().as_raw_fd());
            mount_bind(handle, &place).map_err(Fault::call("naming a namespace"))?;
        }
        Ok(made)
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        for name in &self.given {
            // What somebody else has removed is gone, which is what was wanted.
            let _ = take(name);
        }
        let _ = fs::remove_file(&self.list);
    }
}

/// Removes what dead processes of gridhaul have left; returns the names of their namespaces.
///
/// # Errors
/// What was left could not be removed.
pub fn clean() -> Result<Vec<String>, Fault> {
    let mut removed = Vec::new();
    let Ok(lists) = fs::read_dir(LISTS) else { return Ok(removed) };
    for list in lists.flatten() {
        let process = list.file_name();
        if is_alive(&process.to_string_lossy()) {
            continue;
        }
        for name in fs::read_to_string(list.path()).unwrap_or_default().lines() {
            match take(name) {
                Ok(()) => removed.push(name.to_owned()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Fault::call(format!("removing namespace {name}"))(error)),
            }
        }
        fs::remove_file(list.path()).map_err(Fault::call("removing a list of names"))?;
    }
    Ok(removed)
}

fn take(name: &str) -> io::Result<()> {
    let place = Path::new(NETNS).join(name);
    // Not mounted yet, or not any more: the file goes all the same.
    let _ = unmount(&place, UnmountFlags::DETACH);
    fs::remove_file(place)
}

/// Whether a process of this number runs gridhaul; numbers come again.
fn is_alive(process: &str) -> bool {
    let name = fs::read_to_string(Path::new("/proc").join(process).join("comm"));
    name.is_ok_and(|name| name.trim_end() == own_name())
}

fn own_name() -> String {
    let own = fs::read_to_string("/proc/self/comm").unwrap_or_default();
    own.trim_end().to_owned()
}
