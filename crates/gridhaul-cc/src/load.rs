//! Loads the programs into the kernel.

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
    Algorithm, ConnectionCounters, Counters, Error, LoadedSettings, MedxCounters, MedxSettings,
    Settings, VegasCounters, status,
};

/// Loaded algorithms: registered for the lifetime of this value, or longer if [pinned](Self::pin).
///
/// Connections that use an algorithm when it is unregistered keep it until they close.
#[derive(Debug)]
pub struct LoadedAlgorithms {
    algorithms: BTreeMap<Algorithm, LoadedAlgorithm>,
}

#[derive(Debug)]
struct LoadedAlgorithm {
    /// The kernel's name of the algorithm.
    name: String,
    /// BPF links of the attached programs, with their names for pins.
    links: Vec<(&'static str, OwnedFd)>,
    counters: OwnedFd,
    /// Socket storage of MEDX: state, and settings of single sockets.
    connections: Option<OwnedFd>,
    own_settings: Option<OwnedFd>,
}

impl LoadedAlgorithms {
    /// Loads algorithms: all of them or none.
    ///
    /// # Errors
    /// All missing requirements ([`Error::Missing`]), an algorithm that is already
    /// [registered](Error::Registered), or an error of the kernel.
    pub fn load(algorithms: &[Algorithm], settings: &Settings) -> Result<Self, Error> {
        let missing =
            requirements::missing_requirements_for(algorithms, settings.cgroup.as_deref());
        if !missing.is_empty() {
            return Err(Error::Missing(missing));
        }
        let kernel = Types::of_kernel().map_err(Error::kernel_types)?;
        let mut loaded = BTreeMap::new();
        for &algorithm in algorithms {
            let Entry::Vacant(entry) = loaded.entry(algorithm) else { continue };
            if requirements::is_registered(&settings.name(algorithm)?) {
                return Err(status::already_registered(algorithm));
            }
            entry.insert(LoadedAlgorithm::load(algorithm, settings, &kernel)?);
        }
        Ok(Self { algorithms: loaded })
    }

    /// Pins the algorithms, so that they stay loaded after this process ends, until
    /// [`unload`](crate::unload).
    ///
    /// # Errors
    /// Without a writable BPF file system at `/sys/fs/bpf`; then nothing is pinned.
    pub fn pin(self) -> Result<(), Error> {
        status::mount()?;
        let pinned: Result<(), Error> =
            self.algorithms.iter().try_for_each(|(algorithm, loaded)| {
                let folder = status::folder(*algorithm);
                // Files of a process that was killed at this point: as checked before, nothing is
                // registered.
                let _ = fs::remove_dir_all(&folder);
                fs::create_dir_all(&folder)
                    .map_err(Error::system(format!("creating {}", folder.display())))?;
                loaded.links.iter().try_for_each(|(name, link)| {
                    let path = folder.join(name);
                    bpf::pin(link.as_fd(), &path)
                        .map_err(Error::system(format!("pinning {}", path.display())))
                })
            });
        if pinned.is_err() {
            self.algorithms.keys().for_each(|algorithm| {
                let _ = fs::remove_dir_all(status::folder(*algorithm));
            });
        }
        pinned
    }

    /// The kernel's name of an algorithm loaded by this value.
    #[must_use]
    pub fn name(&self, algorithm: Algorithm) -> Option<&str> {
        self.algorithms.get(&algorithm).map(|loaded| loaded.name.as_str())
    }

    /// The counters of an algorithm; `None` if it was not loaded by this value.
    ///
    /// # Errors
    /// The kernel does not provide them.
    pub fn counters(&self, algorithm: Algorithm) -> Result<Option<Counters>, Error> {
        let loaded = self.algorithms.get(&algorithm);
        loaded.map(|loaded| read_counters(loaded.counters.as_fd(), algorithm)).transpose()
    }

    /// Gives a socket parameters of MEDX of its own, in place of those with which MEDX was loaded.
    /// They apply to its delays and losses from now on, and to the connections that a listening
    /// socket accepts.
    ///
    /// # Errors
    /// MEDX was not loaded by this value, the parameters are invalid, or the kernel rejects them.
    pub fn set_connection(&self, socket: BorrowedFd<'_>, medx: MedxSettings) -> Result<(), Error> {
        let words = Settings { medx, ..Settings::default() }.words(Algorithm::Medx)?;
        let loaded = self.algorithms.get(&Algorithm::Medx);
        let storage = loaded.and_then(|loaded| loaded.own_settings.as_ref());
        let storage = storage.ok_or_else(|| Error::Settings("MEDX is not loaded".to_owned()))?;
        let key = socket.as_raw_fd().cast_unsigned();
        bpf::map_update(storage.as_fd(), key, &to_bytes(&words))
            .map_err(Error::system("setting the parameters of a socket"))
    }

    /// The counters of MEDX for the connection of this socket; `None` if the connection has not
    /// used its option, or if MEDX was not loaded by this value.
    ///
    /// # Errors
    /// The kernel does not provide them.
    pub fn connection(&self, socket: BorrowedFd<'_>) -> Result<Option<ConnectionCounters>, Error> {
        let loaded = self.algorithms.get(&Algorithm::Medx);
        let Some(storage) = loaded.and_then(|loaded| loaded.connections.as_ref()) else {
            return Ok(None);
        };
        match bpf::map_lookup(storage.as_fd(), socket.as_raw_fd().cast_unsigned(), CONNECTION_LEN) {
            Ok(bytes) => Ok(Some(ConnectionCounters::read(&bytes))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::system("reading a connection")(error)),
        }
    }
}

/// The program of an algorithm, compiled by `cargo xtask bpf`.
const fn program(algorithm: Algorithm) -> &'static [u8] {
    match algorithm {
        Algorithm::Vegas => include_bytes!("../bpf/compiled/vegas.o"),
        Algorithm::Medx => include_bytes!("../bpf/compiled/medx.o"),
    }
}

/// The name of a map of a pinned algorithm, `settings` or `counters`, by which any process finds
/// it.
pub(crate) fn map_name(algorithm: Algorithm, map: &str) -> String {
    format!("{}_{}", algorithm.name(), shortened(map))
}

/// Shortens a map name, because the kernel limits names to 15 bytes.
fn shortened(map: &str) -> &str {
    match map {
        "connection" => "conn",
        "socket_settings" => "own",
        map => &map[..map.len().min(5)],
    }
}

pub(crate) fn read_settings(map: BorrowedFd<'_>, of: Algorithm) -> Result<LoadedSettings, Error> {
    let bytes = bpf::map_lookup(map, 0, SETTINGS_LEN).map_err(Error::system("reading settings"))?;
    let word = |index: usize| bpf::read_u32(&bytes, 4 * index).unwrap_or(0);
    Ok(LoadedSettings::read([word(0), word(1), word(2), word(3)], of))
}

pub(crate) fn read_counters(map: BorrowedFd<'_>, of: Algorithm) -> Result<Counters, Error> {
    let bytes = bpf::map_lookup(map, 0, COUNTERS_LEN).map_err(Error::system("reading counters"))?;
    Ok(match of {
        Algorithm::Vegas => Counters::Vegas(VegasCounters::read(&bytes)),
        Algorithm::Medx => Counters::Medx(MedxCounters::read(&bytes)),
    })
}

impl LoadedAlgorithm {
    fn load(algorithm: Algorithm, settings: &Settings, kernel: &Types) -> Result<Self, Error> {
        let name = settings.name(algorithm)?;
        let unreadable = |why: &str| Error::Object(algorithm.name(), why.to_owned());
        let object = Object::parse(program(algorithm)).map_err(Error::bpf(algorithm))?;
        let mut loader = Loader::new(&name, &object).map_err(Error::bpf(algorithm))?;
        make_maps(&mut loader, &object, algorithm, &name, &settings.words(algorithm)?)?;
        let mut links = Vec::new();
        if object.has_program(OPTION_SECTION) {
            links.push(("option", attach_option(&loader, algorithm, settings.cgroup.as_deref())?));
        }
        links.push(("control", register(&loader, kernel, algorithm, &name)?));
        let counters = loader.take_map("counters").ok_or_else(|| unreadable("no counters"))?;
        let connections = loader.take_map("connections");
        let own_settings = loader.take_map("own_settings");
        Ok(Self { name, links, counters, connections, own_settings })
    }
}

/// Creates the maps of the programs of an algorithm.
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
        ("own_settings", MapKind::InheritedSocketStorage, "socket_settings"),
    ] {
        if !object.has_structure(value_type) {
            continue;
        }
        let map_name = format!("{name}_{}", shortened(value_type));
        loader.make_map(symbol, kind, value_type, &map_name).map_err(Error::bpf(algorithm))?;
    }
    loader.write_map("settings", &to_bytes(settings)).map_err(Error::bpf(algorithm))
}

/// Words in the byte order of the kernel: only little-endian machines are supported.
fn to_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
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
    // TCP_CONG_NON_RESTRICTED: unprivileged processes may select it, and namespaces may use it as
    // default.
    let flags = 1_u32.to_le_bytes();
    let values = [("name", name.as_bytes()), ("flags", flags.as_slice())];
    let registered =
        loader.register_struct_ops(kernel, "tcp_congestion_ops", &values, prefix(algorithm));
    registered.map_err(|error| match error {
        BpfError::Call { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
            status::already_registered(algorithm)
        }
        error => Error::bpf(algorithm)(error),
    })
}

/// Section of the program for MEDX's TCP option.
const OPTION_SECTION: &str = "sockops/delays";

/// Prefix of the names of programs, which the kernel limits to 15 bytes.
fn prefix(algorithm: Algorithm) -> &'static str {
    algorithm.name().trim_start_matches("gh_")
}
