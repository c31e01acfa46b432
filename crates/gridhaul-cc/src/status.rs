//! Status and unloading of the algorithms in the kernel.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use gridhaul_linux::bpf;

use crate::load::{map_name, read_counters, read_settings};
use crate::{Algorithm, Counters, Error, LoadedSettings, requirements};

/// The status of an algorithm in the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Whether new connections can use the algorithm; if not, it was unloaded and only remaining
    /// connections use it.
    pub registered: bool,
    /// Whether the algorithm is pinned, independent of a process (`gridhaul cc load`).
    pub pinned: bool,
    /// Processes that hold the algorithm.
    pub holders: Vec<HolderProcess>,
    /// Parameters of the algorithm; `None` if the kernel does not provide them.
    pub settings: Option<LoadedSettings>,
    /// Counters of the algorithm; `None` if the kernel does not provide them.
    pub counters: Option<Counters>,
}

/// A process that holds an algorithm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderProcess {
    /// Process ID.
    pub pid: u32,
    /// Name of the process.
    pub name: String,
}

/// The status of all algorithms of gridhaul in the kernel, of all processes.
///
/// # Errors
/// Without permission to list BPF links of other processes (CAP_SYS_ADMIN).
pub fn status() -> Result<Vec<Status>, Error> {
    if let Some(missing) = requirements::missing_permission() {
        return Err(Error::Missing(vec![missing]));
    }
    let mut found = Vec::new();
    for link in bpf::links().map_err(Error::system("listing BPF links"))? {
        let Ok(info) = bpf::link_info(link.as_fd()) else { continue };
        if info.kind != bpf::STRUCT_OPS_LINK || info.map == 0 {
            continue;
        }
        let name = bpf::map_by_id(info.map).and_then(|map| bpf::map_info(map.as_fd()));
        let Ok(name) = name.map(|info| info.name()) else { continue };
        let Some(algorithm) = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
        else {
            continue;
        };
        // The descriptor must not count as a holder below.
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
        if counters.is_some() && found.iter().all(|status| status.algorithm != algorithm) {
            let (registered, pinned, holders) = (false, false, Vec::new());
            let settings = newest_settings(algorithm);
            found.push(Status { algorithm, registered, pinned, holders, settings, counters });
        }
    }
    found.sort_by_key(|status| status.algorithm);
    Ok(found)
}

/// Unpins algorithms. Returns those that were pinned.
///
/// # Errors
/// A pin cannot be removed, or an algorithm stays registered because a process holds it.
pub fn unload(algorithms: &[Algorithm]) -> Result<Vec<Algorithm>, Error> {
    let mut ended = Vec::new();
    for &algorithm in algorithms {
        let folder = folder(algorithm);
        if !is_pinned(&folder)? {
            continue;
        }
        fs::remove_dir_all(&folder).map_err(|source| pin_error("removing", &folder, source))?;
        // Fails while other algorithms have pins.
        let _ = fs::remove_dir(Path::new(PINS));
        wait_for_end(algorithm)?;
        ended.push(algorithm);
    }
    Ok(ended)
}

/// Whether an algorithm is pinned. Without permission the result is an error rather than false.
fn is_pinned(folder: &Path) -> Result<bool, Error> {
    folder.try_exists().map_err(|source| pin_error("looking for", folder, source))
}

/// The mount options of the BPF file system decide whether other users may list it; they may not
/// remove pins.
fn pin_error(operation: &str, folder: &Path, source: io::Error) -> Error {
    match requirements::missing_permission() {
        Some(missing) if source.kind() == io::ErrorKind::PermissionDenied => {
            Error::Missing(vec![missing])
        }
        _ => Error::system(format!("{operation} {}", folder.display()))(source),
    }
}

const FILE_SYSTEM: &str = "/sys/fs/bpf";
const PINS: &str = "/sys/fs/bpf/gridhaul";

/// The folder of the pins of an algorithm.
pub(crate) fn folder(algorithm: Algorithm) -> PathBuf {
    Path::new(PINS).join(algorithm.name())
}

/// Mounts a BPF file system for pins, unless there is one.
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

/// The error for an algorithm that is already registered.
pub(crate) fn already_registered(algorithm: Algorithm) -> Error {
    let name = algorithm.name();
    let status = status().unwrap_or_default();
    let status =
        status.into_iter().find(|status| status.algorithm == algorithm && status.registered);
    let by = match status {
        Some(status) if status.pinned => "and pinned: run `gridhaul cc unload` first".into(),
        Some(status) => match status.holders.first() {
            Some(HolderProcess { pid, name }) => {
                format!("by process {pid} ({name}): stop that process first")
            }
            None => "by a process that is not visible here: stop that process first".into(),
        },
        None => "not by gridhaul: unload it first".into(),
    };
    Error::Registered { name, by }
}

/// The kernel removes unpinned links with a delay, and the programs when no connection uses them
/// any more.
#[expect(clippy::disallowed_methods, reason = "waits for the kernel, outside of any simulation")]
fn wait_for_end(algorithm: Algorithm) -> Result<(), Error> {
    for _ in 0..200 {
        let used = newest_counters(algorithm).map(|counters| counters.open());
        if !requirements::is_registered(algorithm.name()) && used != Some(0) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(10));
    }
    if requirements::is_registered(algorithm.name()) {
        Err(already_registered(algorithm))
    } else {
        Ok(())
    }
}

fn pinned_link(algorithm: Algorithm) -> Option<u32> {
    let link = bpf::pinned(&folder(algorithm).join("control")).ok()?;
    Some(bpf::link_info(link.as_fd()).ok()?.id)
}

/// Processes with a descriptor of this BPF link.
fn holders(link: u32) -> Vec<HolderProcess> {
    let link_line = format!("link_id:\t{link}");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holds = |pid: &u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
        files
            .filter_map(|file| fs::read_to_string(file.path()).ok())
            .any(|text| text.lines().any(|line| line == link_line))
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

/// The newest map of an algorithm: maps loaded earlier may still be in use by their connections.
fn newest(algorithm: Algorithm, map: &str) -> Option<OwnedFd> {
    let name = map_name(algorithm, map);
    let maps = bpf::maps().ok()?.into_iter();
    let named = maps.filter_map(|map| {
        let info: io::Result<_> = bpf::map_info(map.as_fd());
        info.ok().filter(|info| info.name() == name).map(|info| (info.id, map))
    });
    named.max_by_key(|(id, _)| *id).map(|(_, newest)| newest)
}
