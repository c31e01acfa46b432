//! What is loaded on this machine, by whom, and its end.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use gridhaul_linux::bpf;

use crate::load::{map_name, read_counters, read_settings};
use crate::{Algorithm, Counters, Error, LoadedSettings, requirements};

/// An algorithm that is in the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Which.
    pub algorithm: Algorithm,
    /// New connections can have it; if not, it was unloaded, and connections that had it go on with it.
    pub registered: bool,
    /// Kept beyond the process that loaded it (`gridhaul cc load`).
    pub pinned: bool,
    /// Processes that hold it.
    pub holders: Vec<HolderProcess>,
    /// What it was loaded with; `None` if the kernel does not say.
    pub settings: Option<LoadedSettings>,
    /// What it has counted; `None` if the kernel does not say.
    pub counters: Option<Counters>,
}

/// A process that holds an algorithm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderProcess {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// All algorithms of gridhaul that are in the kernel, whoever has loaded them.
///
/// # Errors
/// Without permission to look at other people's links (CAP_SYS_ADMIN).
pub fn status() -> Result<Vec<Status>, Error> {
    if let Some(missing) = requirements::missing_permission() {
        return Err(Error::Missing(vec![missing]));
    }
    let mut found = Vec::new();
    for link in bpf::links().map_err(Error::system("looking for what is loaded"))? {
        let Ok(info) = bpf::link_info(link.as_fd()) else { continue };
        if info.kind != bpf::STRUCT_OPS_LINK || info.map == 0 {
            continue;
        }
        let name = bpf::map_by_id(info.map).and_then(|map| bpf::map_info(map.as_fd()));
        let Ok(name) = name.map(|info| info.name()) else { continue };
        let Some(algorithm) = Algorithm::ALL.into_iter().find(|it| it.name() == name) else {
            continue;
        };
        // Ours for the moment of looking.
        drop(link);
        found.push(Status {
            algorithm,
            registered: true,
            pinned: pinned_link(algorithm) == Some(info.id),
            holders: holders(info.id),
            settings: newest_settings(algorithm),
            counters: newest_counters(algorithm),
        });
    }
    for algorithm in Algorithm::ALL {
        let counters = newest_counters(algorithm);
        if counters.is_some() && found.iter().all(|it| it.algorithm != algorithm) {
            let (registered, pinned, holders) = (false, false, Vec::new());
            let settings = newest_settings(algorithm);
            found.push(Status { algorithm, registered, pinned, holders, settings, counters });
        }
    }
    found.sort_by_key(|status| status.algorithm);
    Ok(found)
}

/// Ends the keeping of algorithms. Returns which of them were pinned.
///
/// # Errors
/// If a pin cannot be removed, or an algorithm stays registered, because a process holds it.
pub fn unload(algorithms: &[Algorithm]) -> Result<Vec<Algorithm>, Error> {
    let mut ended = Vec::new();
    for &algorithm in algorithms {
        let folder = folder(algorithm);
        if !is_there(&folder)? {
            continue;
        }
        fs::remove_dir_all(&folder).map_err(|source| refused("removing", &folder, source))?;
        // With the last of them; other programs may have pins of their own.
        let _ = fs::remove_dir(Path::new(PINS));
        wait_for_end(algorithm)?;
        ended.push(algorithm);
    }
    Ok(ended)
}

/// Whether something is pinned. Those who may not look must not be told that there is nothing.
fn is_there(folder: &Path) -> Result<bool, Error> {
    folder.try_exists().map_err(|source| refused("looking for", folder, source))
}

/// Whether others may look into the file system of BPF is a matter of how it was mounted; they may not remove.
fn refused(doing: &str, folder: &Path, source: io::Error) -> Error {
    match requirements::missing_permission() {
        Some(missing) if source.kind() == io::ErrorKind::PermissionDenied => {
            Error::Missing(vec![missing])
        }
        _ => Error::system(format!("{doing} {}", folder.display()))(source),
    }
}

const FILE_SYSTEM: &str = "/sys/fs/bpf";
const PINS: &str = "/sys/fs/bpf/gridhaul";

/// Where the pins of an algorithm are.
pub(crate) fn folder(algorithm: Algorithm) -> PathBuf {
    Path::new(PINS).join(algorithm.name())
}

/// Sees to it that there is a BPF file system for pins.
pub(crate) fn mount() -> Result<(), Error> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let there = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        fields.next() == Some(FILE_SYSTEM) && fields.next() == Some("bpf")
    };
    if mounts.lines().any(there) {
        return Ok(());
    }
    let path = PathBuf::from(FILE_SYSTEM);
    bpf::mount_bpf(&path).map_err(|source| Error::FileSystem { path, source })
}

/// The error for an algorithm that is there already.
pub(crate) fn registered(algorithm: Algorithm) -> Error {
    let name = algorithm.name();
    let status = status().unwrap_or_default();
    let status = status.into_iter().find(|it| it.algorithm == algorithm && it.registered);
    let by = match status {
        Some(status) if status.pinned => "and kept: `gridhaul cc unload` ends that".into(),
        Some(status) => match status.holders.first() {
            Some(HolderProcess { pid, name }) => {
                format!("by process {pid} ({name}): end that first")
            }
            None => "by a process that cannot be seen from here: end that first".into(),
        },
        None => "by something else than gridhaul: unload that first".into(),
    };
    Error::Registered { name, by }
}

/// The kernel lets go of what has lost its last name a moment later, and of the programs when no connection
/// uses them.
#[expect(clippy::disallowed_methods, reason = "waits for the kernel, outside of any simulation")]
fn wait_for_end(algorithm: Algorithm) -> Result<(), Error> {
    for _ in 0..200 {
        let used = newest_counters(algorithm).map(|counters| counters.open());
        if !requirements::is_registered(algorithm.name()) && used != Some(0) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(10));
    }
    if requirements::is_registered(algorithm.name()) { Err(registered(algorithm)) } else { Ok(()) }
}

fn pinned_link(algorithm: Algorithm) -> Option<u32> {
    let link = bpf::pinned(&folder(algorithm).join("control")).ok()?;
    Some(bpf::link_info(link.as_fd()).ok()?.id)
}

/// Processes with a file that is this link.
fn holders(link: u32) -> Vec<HolderProcess> {
    let mine = format!("link_id:\t{link}");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holds = |pid: &u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
        files
            .filter_map(|file| fs::read_to_string(file.path()).ok())
            .any(|text| text.lines().any(|line| line == mine))
    };
    let mut found: Vec<_> = pids.filter(holds).collect();
    found.sort_unstable();
    let name = |pid| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    found.into_iter().map(|pid| HolderProcess { pid, name: name(pid).trim().to_owned() }).collect()
}

fn newest_counters(algorithm: Algorithm) -> Option<Counters> {
    read_counters(newest(algorithm, "counters")?.as_fd(), algorithm).ok()
}

fn newest_settings(algorithm: Algorithm) -> Option<LoadedSettings> {
    read_settings(newest(algorithm, "settings")?.as_fd(), algorithm).ok()
}

/// A map of the algorithm that was loaded last: those of an earlier one may live on with its connections.
fn newest(algorithm: Algorithm, map: &str) -> Option<OwnedFd> {
    let name = map_name(algorithm, map);
    let maps = bpf::maps().ok()?.into_iter();
    let named = maps.filter_map(|map| {
        let info: io::Result<_> = bpf::map_info(map.as_fd());
        info.ok().filter(|info| info.name() == name).map(|info| (info.id, map))
    });
    named.max_by_key(|(id, _)| *id).map(|(_, newest)| newest)
}
