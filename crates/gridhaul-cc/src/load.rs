//! Gives programs to the kernel.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use gridhaul_linux::bpf::{self, BpfError, Loader, MapKind, Object, Types};

use crate::counters::{CONNECTION_LEN, COUNTERS_LEN, SETTINGS_LEN};
use crate::requirements;
use crate::{
    Algorithm, ConnectionCounters, Counters, Error, LoadedSettings, MedxCounters, Settings,
    VegasCounters, status,
};

mod compiled {
    include!(concat!(env!("OUT_DIR"), "/programs.rs"));
}

/// Algorithms that are registered as long as this lives, and longer if it is [pinned](Self::pin).
///
/// Connections that use an algorithm when it goes keep it until they close; new ones do not get it.
#[derive(Debug)]
pub struct LoadedAlgorithms {
    parts: BTreeMap<Algorithm, Part>,
}

#[derive(Debug)]
struct Part {
    /// Its name in the kernel.
    name: String,
    /// What holds the programs in their places, with names for pins.
    links: Vec<(&'static str, OwnedFd)>,
    counters: OwnedFd,
    /// Memory beside sockets, of MEDX.
    connections: Option<OwnedFd>,
}

impl LoadedAlgorithms {
    /// Loads algorithms: all of them or none.
    ///
    /// # Errors
    /// With all that is missing ([`Error::Missing`]), if one is [registered](Error::Registered) already, or
    /// with what the kernel said.
    pub fn load(algorithms: &[Algorithm], settings: &Settings) -> Result<Self, Error> {
        let missing =
            requirements::missing_requirements_for(algorithms, settings.cgroup.as_deref());
        if !missing.is_empty() {
            return Err(Error::Missing(missing));
        }
        let kernel = Types::of_kernel().map_err(Error::kernel_types)?;
        let mut parts = BTreeMap::new();
        for &algorithm in algorithms {
            let Entry::Vacant(place) = parts.entry(algorithm) else { continue };
            if requirements::is_registered(&settings.name(algorithm)?) {
                return Err(status::registered(algorithm));
            }
            place.insert(Part::load(algorithm, settings, &kernel)?);
        }
        Ok(Self { parts })
    }

    /// Keeps what is loaded beyond the life of this process, until [`unload`](crate::unload).
    ///
    /// # Errors
    /// Without a BPF file system at `/sys/fs/bpf` that can be written; then nothing is kept.
    pub fn pin(self) -> Result<(), Error> {
        status::mount()?;
        let pinned: Result<(), Error> = self.parts.iter().try_for_each(|(algorithm, part)| {
            let folder = status::folder(*algorithm);
            // What a process has left that was killed here: it holds nothing that is registered.
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder)
                .map_err(Error::system(format!("making {}", folder.display())))?;
            part.links.iter().try_for_each(|(name, link)| {
                let path = folder.join(name);
                bpf::pin(link.as_fd(), &path)
                    .map_err(Error::system(format!("pinning {}", path.display())))
            })
        });
        if pinned.is_err() {
            self.parts.keys().for_each(|algorithm| {
                let _ = fs::remove_dir_all(status::folder(*algorithm));
            });
        }
        pinned
    }

    /// The name by which the kernel knows an algorithm that was loaded by this.
    #[must_use]
    pub fn name(&self, algorithm: Algorithm) -> Option<&str> {
        self.parts.get(&algorithm).map(|part| part.name.as_str())
    }

    /// What an algorithm has counted so far; `None` if it was not loaded by this.
    ///
    /// # Errors
    /// If the kernel does not give it.
    pub fn counters(&self, algorithm: Algorithm) -> Result<Option<Counters>, Error> {
        let part = self.parts.get(&algorithm);
        part.map(|part| read_counters(part.counters.as_fd(), algorithm)).transpose()
    }

    /// What MEDX knows of the connection of this socket; `None` if its option has not been seen there, or MEDX
    /// was not loaded by this.
    ///
    /// # Errors
    /// If the kernel does not give it.
    pub fn connection(&self, socket: BorrowedFd<'_>) -> Result<Option<ConnectionCounters>, Error> {
        let part = self.parts.get(&Algorithm::Medx);
        let Some(memory) = part.and_then(|part| part.connections.as_ref()) else { return Ok(None) };
        match bpf::map_lookup(memory.as_fd(), socket.as_raw_fd().cast_unsigned(), CONNECTION_LEN) {
            Ok(bytes) => Ok(Some(ConnectionCounters::read(&bytes))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::system("reading a connection")(error)),
        }
    }
}

/// The compiled file of an algorithm, or why there is none.
pub(crate) fn program(algorithm: Algorithm) -> Result<&'static [u8], &'static str> {
    match algorithm {
        Algorithm::Vegas => compiled::VEGAS,
        Algorithm::Medx => compiled::MEDX,
    }
}

/// Name of a map of an algorithm that is kept, `settings` or `counters`, by which any process finds it.
pub(crate) fn map_name(algorithm: Algorithm, map: &str) -> String {
    format!("{}_{}", algorithm.name(), shortened(map))
}

/// The kernel keeps 15 letters of a name.
fn shortened(map: &str) -> &str {
    if map == "connection" { "conn" } else { &map[..map.len().min(5)] }
}

pub(crate) fn read_settings(map: BorrowedFd<'_>, of: Algorithm) -> Result<LoadedSettings, Error> {
    let bytes = bpf::map_lookup(map, 0, SETTINGS_LEN).map_err(Error::system("reading settings"))?;
    let word = |index: usize| bpf::read_u32(&bytes, 4 * index).unwrap_or(0);
    Ok(LoadedSettings::read([word(0), word(1), word(2)], of))
}

pub(crate) fn read_counters(map: BorrowedFd<'_>, of: Algorithm) -> Result<Counters, Error> {
    let bytes = bpf::map_lookup(map, 0, COUNTERS_LEN).map_err(Error::system("reading counters"))?;
    Ok(match of {
        Algorithm::Vegas => Counters::Vegas(VegasCounters::read(&bytes)),
        Algorithm::Medx => Counters::Medx(MedxCounters::read(&bytes)),
    })
}

impl Part {
    fn load(algorithm: Algorithm, settings: &Settings, kernel: &Types) -> Result<Self, Error> {
        let name = settings.name(algorithm)?;
        let unreadable = |why: &str| Error::Object(algorithm.name(), why.to_owned());
        let bytes = program(algorithm).map_err(unreadable)?;
        let object = Object::parse(bytes).map_err(Error::bpf(algorithm))?;
        let mut loader = Loader::new(&name, &object).map_err(Error::bpf(algorithm))?;
        make_maps(&mut loader, &object, algorithm, &name, &settings.words(algorithm)?)?;
        let mut links = Vec::new();
        if object.has_program(OPTION_SECTION) {
            links.push(("option", attach_option(&loader, algorithm, settings.cgroup.as_deref())?));
        }
        links.push(("control", register(&loader, kernel, algorithm, &name)?));
        let counters = loader.take_map("counters").ok_or_else(|| unreadable("no counters"))?;
        let connections = loader.take_map("connections");
        Ok(Self { name, links, counters, connections })
    }
}

/// Makes the maps that the programs of an algorithm use.
fn make_maps(
    loader: &mut Loader<'_>,
    object: &Object,
    algorithm: Algorithm,
    name: &str,
    settings: &[u32],
) -> Result<(), Error> {
    for (symbol, kind, value_type) in [
        ("settings", MapKind::SingleEntry, "settings"),
        ("counters", MapKind::SingleEntry, "counters"),
        ("connections", MapKind::SocketStorage, "connection"),
    ] {
        if !object.has_structure(value_type) {
            continue;
        }
        let map_name = format!("{name}_{}", shortened(value_type));
        loader.make_map(symbol, kind, value_type, &map_name).map_err(Error::bpf(algorithm))?;
    }
    let bytes: Vec<u8> = settings.iter().flat_map(|word| word.to_le_bytes()).collect();
    loader.write_map("settings", &bytes).map_err(Error::bpf(algorithm))
}

/// Attaches the program for MEDX's TCP option to all connections of a control group.
fn attach_option(
    loader: &Loader<'_>,
    algorithm: Algorithm,
    chosen: Option<&Path>,
) -> Result<OwnedFd, Error> {
    let path = chosen.map(PathBuf::from).or_else(requirements::cgroup_root).unwrap_or_default();
    let operation = format!("opening the control group {}", path.display());
    let cgroup = File::open(&path).map_err(Error::system(operation))?;
    let program = format!("{}_delays", prefix(algorithm));
    loader.attach_to_cgroup(OPTION_SECTION, &program, cgroup.as_fd()).map_err(Error::bpf(algorithm))
}

/// Registers the algorithm as a `tcp_congestion_ops` of the kernel.
fn register(
    loader: &Loader<'_>,
    kernel: &Types,
    algorithm: Algorithm,
    name: &str,
) -> Result<OwnedFd, Error> {
    // TCP_CONG_NON_RESTRICTED: services without privileges may choose it, and namespaces as default.
    let flags = 1_u32.to_le_bytes();
    let values = [("name", name.as_bytes()), ("flags", flags.as_slice())];
    let registered =
        loader.register_struct_ops(kernel, "tcp_congestion_ops", &values, prefix(algorithm));
    registered.map_err(|error| match error {
        BpfError::Call { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
            status::registered(algorithm)
        }
        error => Error::bpf(algorithm)(error),
    })
}

/// Section of the program for MEDX's TCP option.
const OPTION_SECTION: &str = "sockops/delays";

/// Prefix of the names of programs, of which the kernel keeps 15 bytes.
fn prefix(algorithm: Algorithm) -> &'static str {
    algorithm.name().trim_start_matches("gh_")
}
