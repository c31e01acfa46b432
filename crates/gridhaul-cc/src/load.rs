//! Gives programs to the kernel.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::btf::{Structure, Types};
use crate::counters::{CONNECTION_LEN, COUNTERS_LEN, SETTINGS_LEN};
use crate::machine::{self, KERNEL_TYPES};
use crate::object::{Object, Program, Table};
use crate::sys::{self, MapCreate, Records};
use crate::{
    Algorithm, Chosen, ConnectionCounters, Counters, Error, MedxCounters, Settings, VegasCounters,
    status,
};

mod compiled {
    include!(concat!(env!("OUT_DIR"), "/programs.rs"));
}

/// Algorithms that are registered as long as this lives, and longer if it is [pinned](Self::pin).
///
/// Connections that use an algorithm when it goes keep it until they close; new ones do not get it.
#[derive(Debug)]
pub struct Loaded {
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

impl Loaded {
    /// Loads algorithms: all of them or none.
    ///
    /// # Errors
    /// With all that is missing ([`Error::Missing`]), if one is [registered](Error::Registered) already, or
    /// with what the kernel said.
    pub fn load(algorithms: &[Algorithm], settings: &Settings) -> Result<Self, Error> {
        let missing = machine::missing_for(algorithms, settings.cgroup.as_deref());
        if !missing.is_empty() {
            return Err(Error::Missing(missing));
        }
        let kernel =
            fs::read(KERNEL_TYPES).map_err(Error::system(format!("reading {KERNEL_TYPES}")))?;
        let kernel = Types::parse(kernel).ok_or_else(|| no_types("it is damaged"))?;
        let mut parts = BTreeMap::new();
        for &algorithm in algorithms {
            let Entry::Vacant(place) = parts.entry(algorithm) else { continue };
            if machine::is_registered(&settings.name(algorithm)?) {
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
                sys::pin(link.as_fd(), &path)
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
        match sys::map_lookup(memory.as_fd(), socket.as_raw_fd().cast_unsigned(), CONNECTION_LEN) {
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

pub(crate) fn read_settings(map: BorrowedFd<'_>, of: Algorithm) -> Result<Chosen, Error> {
    let bytes = sys::map_lookup(map, 0, SETTINGS_LEN).map_err(Error::system("reading settings"))?;
    let word = |index: usize| crate::btf::read(&bytes, 4 * index).unwrap_or(0);
    Ok(Chosen::read([word(0), word(1), word(2)], of))
}

pub(crate) fn read_counters(map: BorrowedFd<'_>, of: Algorithm) -> Result<Counters, Error> {
    let bytes = sys::map_lookup(map, 0, COUNTERS_LEN).map_err(Error::system("reading counters"))?;
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
        let object = Object::parse(bytes).map_err(|why| unreadable(&why))?;
        let types = sys::types_load(&object.linked_types)
            .map_err(Error::system(format!("type information of {name}")))?;
        let maps = BTreeMap::new();
        let mut loader = Loader { algorithm, name: &name, object: &object, types, maps };
        loader.make_maps(&settings.words(algorithm)?)?;
        let mut links = Vec::new();
        if let Some(program) = object.programs.get("sockops/delays") {
            links.push(("option", loader.attach_to_cgroup(program, settings.cgroup.as_deref())?));
        }
        links.push(("control", loader.register(kernel)?));
        let mut take = |map: &str| loader.maps.remove(map);
        let counters = take("counters").ok_or_else(|| unreadable("no counters"))?;
        let connections = take("connections");
        Ok(Self { name, links, counters, connections })
    }
}

struct Loader<'a> {
    algorithm: Algorithm,
    name: &'a str,
    object: &'a Object,
    types: OwnedFd,
    maps: BTreeMap<String, OwnedFd>,
}

impl Loader<'_> {
    fn make_maps(&mut self, settings: &[u32]) -> Result<(), Error> {
        for name in ["settings", "counters", "connection"] {
            let Some(value) = self.object.types.structure(name) else { continue };
            let is_memory = name == "connection";
            let mut attributes = MapCreate {
                kind: if is_memory { sys::SOCKET_STORAGE } else { sys::ARRAY },
                key_size: 4,
                value_size: value.size,
                max_entries: u32::from(!is_memory),
                flags: if is_memory { sys::NOT_PREALLOCATED } else { 0 },
                name: sys::object_name(&format!("{}_{}", self.name, shortened(name))),
                ..MapCreate::default()
            };
            if is_memory {
                attributes.btf = self.types.as_raw_fd().cast_unsigned();
                attributes.key_type = self.object.types.integer("int").unwrap_or(0);
                attributes.value_type = value.id;
            }
            let map = sys::map_create(&mut attributes)
                .map_err(Error::system(format!("a map for {name} of {}", self.name)))?;
            if name == "settings" {
                let bytes: Vec<u8> = settings.iter().flat_map(|word| word.to_le_bytes()).collect();
                if bytes.len() != value.size as usize {
                    let why = "other settings than expected";
                    return Err(Error::Object(self.algorithm.name(), why.into()));
                }
                sys::map_update(map.as_fd(), 0, &bytes)
                    .map_err(Error::system(format!("writing the settings of {}", self.name)))?;
            }
            let called = if is_memory { "connections" } else { name };
            self.maps.insert(called.to_owned(), map);
        }
        Ok(())
    }

    /// The program for the option, for all connections of a control group.
    fn attach_to_cgroup(&self, program: &Program, chosen: Option<&Path>) -> Result<OwnedFd, Error> {
        let path = chosen.map(PathBuf::from).or_else(machine::cgroup_root).unwrap_or_default();
        let doing = format!("opening the control group {}", path.display());
        let cgroup = File::open(&path).map_err(Error::system(doing))?;
        let program = self.load("delays", program, sys::SOCK_OPS_PROGRAM, (0, 0))?;
        let doing = format!("attaching the option of {} to {}", self.name, path.display());
        sys::link(program.as_fd(), Some(cgroup.as_fd()), sys::TO_SOCK_OPS)
            .map_err(Error::system(doing))
    }

    /// Fills in a `tcp_congestion_ops` of the kernel and registers it.
    fn register(&self, kernel: &Types) -> Result<OwnedFd, Error> {
        let structure = |name: &str| kernel.structure(name).ok_or_else(|| no_types(name));
        let ops = structure("tcp_congestion_ops")?;
        let wrapper = structure("bpf_struct_ops_tcp_congestion_ops")?;
        let member = |of: &Structure, name: &str| {
            of.members
                .get(name)
                .copied()
                .ok_or_else(|| no_types(&format!("tcp_congestion_ops.{name}")))
        };
        let (_, data) = member(&wrapper, "data")?;
        let mut value = vec![0_u8; wrapper.size as usize];
        let mut write = |offset: usize, bytes: &[u8]| {
            value[data + offset..data + offset + bytes.len()].copy_from_slice(bytes);
        };
        write(member(&ops, "name")?.1, self.name.as_bytes());
        // TCP_CONG_NON_RESTRICTED: services without privileges may choose it, and namespaces as default.
        write(member(&ops, "flags")?.1, &1_u32.to_le_bytes());
        let mut programs = Vec::new();
        for (section, program) in &self.object.programs {
            let Some(function) = section.strip_prefix("struct_ops/") else { continue };
            let (index, offset) = member(&ops, function)?;
            let loaded = self.load(function, program, sys::STRUCT_OPS_PROGRAM, (index, ops.id))?;
            write(offset, &u64::from(loaded.as_raw_fd().cast_unsigned()).to_le_bytes());
            programs.push(loaded);
        }
        let map = sys::map_create(&mut MapCreate {
            kind: sys::STRUCT_OPS,
            key_size: 4,
            value_size: wrapper.size,
            max_entries: 1,
            flags: sys::BY_LINK,
            name: sys::object_name(self.name),
            btf: self.types.as_raw_fd().cast_unsigned(),
            kernel_value_type: wrapper.id,
            ..MapCreate::default()
        })
        .map_err(Error::system(format!("a structure for {}", self.name)))?;
        sys::map_update(map.as_fd(), 0, &value)
            .map_err(Error::system(format!("filling in the structure of {}", self.name)))?;
        sys::link(map.as_fd(), None, sys::TO_STRUCT_OPS).map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                return status::registered(self.algorithm);
            }
            Error::system(format!("registering {}", self.name))(error)
        })
    }

    fn load(
        &self,
        function: &str,
        program: &Program,
        kind: u32,
        (attach_type, attach_to): (u32, u32),
    ) -> Result<OwnedFd, Error> {
        let mut instructions = program.instructions.clone();
        for (at, name) in &program.maps {
            let (Some(instruction), Some(map)) =
                (instructions.get_mut(*at..at + 8), self.maps.get(name))
            else {
                let why = format!("{function} refers to {name}");
                return Err(Error::Object(self.algorithm.name(), why));
            };
            // BPF_PSEUDO_MAP_FD in the upper half of the registers: the number is a file descriptor.
            instruction[1] = instruction[1] & 0x0f | 0x10;
            instruction[4..].copy_from_slice(&map.as_raw_fd().to_le_bytes());
        }
        let called = format!("{}_{function}", self.algorithm.name().trim_start_matches("gh_"));
        let given = sys::Program {
            kind,
            name: &called,
            instructions: &instructions,
            attach_type,
            attach_to,
            types: Some(self.types.as_fd()),
            functions: records(&program.functions),
            lines: records(&program.lines),
            relocations: records(&program.relocations),
        };
        sys::program_load(&given, None).map_err(|source| {
            let mut log = vec![0_u8; 1 << 20];
            let _ = sys::program_load(&given, Some(&mut log));
            Error::Refused {
                program: format!("{} ({function})", self.name),
                source,
                log: tail(&log),
            }
        })
    }
}

fn records(table: &Table) -> Records<'_> {
    Records { bytes: &table.bytes, size: table.size }
}

/// The last lines of what the kernel explains.
fn tail(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

fn no_types(what: &str) -> Error {
    Error::Missing(vec![crate::Missing {
        what: format!("{what} in the type information of the kernel ({KERNEL_TYPES})"),
        remedy: "a kernel built with CONFIG_DEBUG_INFO_BTF=y and CONFIG_BPF_JIT=y".into(),
    }])
}
