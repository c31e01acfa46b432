//! Makes the maps of an object and attaches its programs.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::btf::{Structure, Types};
use super::introspection::map_info;
use super::object::{Object, Program, Table};
use super::syscall::{self as sys, MapCreate, Records};
use super::{BpfError, KERNEL_TYPES};

/// Loads the programs of an object.
#[derive(Debug)]
pub struct Loader<'a> {
    name: &'a str,
    object: &'a Object,
    types: OwnedFd,
    /// By the symbol with which programs refer to them.
    maps: BTreeMap<String, OwnedFd>,
}

/// A kind of map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapKind {
    /// An array with one entry.
    SingleEntry,
    /// An entry for each socket, which exists as long as the socket (`BPF_MAP_TYPE_SK_STORAGE`).
    SocketStorage,
    /// As [`Self::SocketStorage`]; connections that a listening socket accepts copy its entry.
    InheritedSocketStorage,
}

/// Structures of the entries of a hash map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryTypes<'a> {
    /// Name of the structure of keys.
    pub key: &'a str,
    /// Name of the structure of values.
    pub value: &'a str,
}

/// A direction of a network device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrafficDirection {
    /// Packets that the device receives.
    Ingress,
    /// Packets that the device sends.
    Egress,
}

impl<'a> Loader<'a> {
    /// A loader for an object; `name` appears in errors and as a prefix of the names of programs
    /// and maps.
    ///
    /// # Errors
    /// The kernel rejects the type information.
    pub fn new(name: &'a str, object: &'a Object) -> Result<Self, BpfError> {
        let types = sys::types_load(&object.linked_types)
            .map_err(BpfError::call(format!("loading the type information of {name}")))?;
        Ok(Self { name, object, types, maps: BTreeMap::new() })
    }

    /// Makes the map that programs refer to by `symbol`, and registers it in the kernel under
    /// `map_name`, of which the kernel keeps 15 bytes. Its values are of the object's structure
    /// `value_type`, whose size is returned.
    ///
    /// # Errors
    /// The object has no such structure, or the kernel rejects the map.
    pub fn make_map(
        &mut self,
        symbol: &str,
        kind: MapKind,
        value_type: &str,
        map_name: &str,
    ) -> Result<usize, BpfError> {
        let value = self
            .object
            .types
            .structure(value_type)
            .ok_or_else(|| BpfError::Object(format!("no structure {value_type}")))?;
        let mut attributes = MapCreate {
            kind: sys::ARRAY,
            key_size: 4,
            value_size: value.size,
            max_entries: 1,
            name: sys::object_name(map_name),
            ..MapCreate::default()
        };
        if kind != MapKind::SingleEntry {
            attributes.kind = sys::SOCKET_STORAGE;
            attributes.max_entries = 0;
            attributes.flags = sys::NOT_PREALLOCATED;
            if kind == MapKind::InheritedSocketStorage {
                attributes.flags |= sys::CLONED_ON_ACCEPT;
            }
            attributes.btf = self.types.as_raw_fd().cast_unsigned();
            attributes.key_type = self.object.types.integer("int").unwrap_or(0);
            attributes.value_type = value.id;
        }
        let map = sys::map_create(&mut attributes)
            .map_err(BpfError::call(format!("making map {symbol} of {}", self.name)))?;
        self.maps.insert(symbol.to_owned(), map);
        Ok(value.size as usize)
    }

    /// Makes a hash map with at most `entries_max` entries, as [`Self::make_map`]. Its keys and
    /// values are of structures of the object.
    ///
    /// # Errors
    /// The object has no such structures, or the kernel rejects the map.
    pub fn make_hash_map(
        &mut self,
        symbol: &str,
        entries: EntryTypes<'_>,
        entries_max: u32,
        map_name: &str,
    ) -> Result<(), BpfError> {
        let size = |name: &str| {
            let structure = self.object.types.structure(name);
            structure
                .map(|structure| structure.size)
                .ok_or_else(|| BpfError::Object(format!("no structure {name}")))
        };
        let mut attributes = MapCreate {
            kind: sys::HASH,
            key_size: size(entries.key)?,
            value_size: size(entries.value)?,
            max_entries: entries_max,
            flags: sys::NOT_PREALLOCATED,
            name: sys::object_name(map_name),
            ..MapCreate::default()
        };
        let map = sys::map_create(&mut attributes)
            .map_err(BpfError::call(format!("making map {symbol} of {}", self.name)))?;
        self.maps.insert(symbol.to_owned(), map);
        Ok(())
    }

    /// Uses an existing map for the one that programs refer to by `symbol`.
    pub fn use_map(&mut self, symbol: &str, map: OwnedFd) {
        self.maps.insert(symbol.to_owned(), map);
    }

    /// Writes the entry of a map of kind [`MapKind::SingleEntry`], all bytes of it.
    ///
    /// # Errors
    /// There is no such map, or the kernel rejects the value.
    pub fn write_map(&self, symbol: &str, value: &[u8]) -> Result<(), BpfError> {
        let map = self.map(symbol)?;
        let size = map_info(map).map_or(0, |info| info.value_size as usize);
        if size != value.len() {
            let message = format!("values of {symbol} have {size} bytes, not {}", value.len());
            return Err(BpfError::Object(message));
        }
        sys::map_update(map, 0, value)
            .map_err(BpfError::call(format!("writing map {symbol} of {}", self.name)))
    }

    /// A map that the loader has created.
    ///
    /// # Errors
    /// The loader has created no map of this name.
    pub fn map(&self, symbol: &str) -> Result<BorrowedFd<'_>, BpfError> {
        let map = self.maps.get(symbol);
        map.map(AsFd::as_fd).ok_or_else(|| BpfError::Object(format!("no map {symbol}")))
    }

    /// Hands over a map; programs that were loaded keep their reference.
    pub fn take_map(&mut self, symbol: &str) -> Option<OwnedFd> {
        self.maps.remove(symbol)
    }

    /// Attaches the program of a section to the sockets of a control group.
    ///
    /// # Errors
    /// The object has no such section, or the kernel rejects the program.
    pub fn attach_to_cgroup(
        &self,
        section: &str,
        program_name: &str,
        cgroup: BorrowedFd<'_>,
    ) -> Result<OwnedFd, BpfError> {
        let program = self.load(section, program_name, sys::SOCK_OPS_PROGRAM, 0, 0)?;
        sys::link(program.as_fd(), Some(cgroup.as_raw_fd().cast_unsigned()), sys::TO_SOCK_OPS)
            .map_err(BpfError::call(format!("attaching {program_name} to a control group")))
    }

    /// Attaches the program of a section to a network device as a classifier of traffic control
    /// (tcx, Linux 6.6). The program decides about each packet: pass, drop or redirect.
    ///
    /// # Errors
    /// The object has no such section, or the kernel rejects the program or has no tcx.
    pub fn attach_classifier(
        &self,
        section: &str,
        program_name: &str,
        interface: u32,
        direction: TrafficDirection,
    ) -> Result<OwnedFd, BpfError> {
        let attach_type = match direction {
            TrafficDirection::Ingress => sys::TO_TCX_INGRESS,
            TrafficDirection::Egress => sys::TO_TCX_EGRESS,
        };
        let program = self.load(section, program_name, sys::CLASSIFIER_PROGRAM, attach_type, 0)?;
        sys::link(program.as_fd(), Some(interface), attach_type)
            .map_err(BpfError::call(format!("attaching {program_name} to a network device")))
    }

    /// Loads the program of a section as a classifier of traffic control, for
    /// [`attach_first`](super::attach_first).
    ///
    /// # Errors
    /// The object has no such section, or the kernel rejects the program.
    pub fn load_classifier(&self, section: &str, program_name: &str) -> Result<OwnedFd, BpfError> {
        self.load(section, program_name, sys::CLASSIFIER_PROGRAM, sys::TO_TCX_INGRESS, 0)
    }

    /// Loads the program of a section as a filter of sockets, for
    /// [`PacketSocket::set_filter`](crate::PacketSocket::set_filter).
    ///
    /// # Errors
    /// The object has no such section, or the kernel rejects the program.
    pub fn load_socket_filter(
        &self,
        section: &str,
        program_name: &str,
    ) -> Result<OwnedFd, BpfError> {
        self.load(section, program_name, sys::SOCKET_FILTER_PROGRAM, 0, 0)
    }

    /// Registers the programs in the sections `struct_ops/<member>` as an implementation of a
    /// structure of functions of the kernel, such as `tcp_congestion_ops`. `values` are the bytes
    /// of other members.
    ///
    /// # Errors
    /// A member that the kernel's structure does not have, a program that the kernel rejects, or a
    /// name that is registered already (`AlreadyExists` in [`BpfError::Call`]).
    pub fn register_struct_ops(
        &self,
        kernel: &Types,
        structure: &str,
        values: &[(&str, &[u8])],
        program_prefix: &str,
    ) -> Result<OwnedFd, BpfError> {
        let find = |name: &str| {
            kernel.structure(name).ok_or_else(|| BpfError::MissingType(name.to_owned()))
        };
        let ops = find(structure)?;
        let wrapper = find(&format!("bpf_struct_ops_{structure}"))?;
        let (_, data) = member(&wrapper, "data")?;
        let mut value = vec![0_u8; wrapper.size as usize];
        let mut write = |offset: usize, bytes: &[u8]| {
            value[data + offset..data + offset + bytes.len()].copy_from_slice(bytes);
        };
        for (name, bytes) in values {
            write(member(&ops, name)?.1, bytes);
        }
        // The kernel takes its own references when the structure is filled in.
        let mut programs = Vec::new();
        for section in self.object.programs.keys() {
            let Some(function) = section.strip_prefix("struct_ops/") else { continue };
            let (index, offset) = member(&ops, function)?;
            let program_name = format!("{program_prefix}_{function}");
            let program =
                self.load(section, &program_name, sys::STRUCT_OPS_PROGRAM, index, ops.id)?;
            write(offset, &u64::from(program.as_raw_fd().cast_unsigned()).to_le_bytes());
            programs.push(program);
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
        .map_err(BpfError::call(format!("making a structure for {}", self.name)))?;
        sys::map_update(map.as_fd(), 0, &value)
            .map_err(BpfError::call(format!("filling in the structure of {}", self.name)))?;
        sys::link(map.as_fd(), None, sys::TO_STRUCT_OPS)
            .map_err(BpfError::call(format!("registering {}", self.name)))
    }

    fn load(
        &self,
        section: &str,
        program_name: &str,
        kind: u32,
        attach_type: u32,
        attach_to: u32,
    ) -> Result<OwnedFd, BpfError> {
        let program = self
            .object
            .programs
            .get(section)
            .ok_or_else(|| BpfError::Object(format!("no section {section}")))?;
        let instructions = self.with_maps(section, program)?;
        let load = sys::ProgramLoad {
            kind,
            name: program_name,
            instructions: &instructions,
            attach_type,
            attach_to,
            types: Some(self.types.as_fd()),
            functions: records(&program.functions),
            lines: records(&program.lines),
            relocations: records(&program.relocations),
        };
        sys::program_load(&load, None).map_err(|source| {
            // The verifier writes its log only on request.
            let mut log = vec![0_u8; 1 << 20];
            let _ = sys::program_load(&load, Some(&mut log));
            BpfError::Rejected {
                program: format!("{} ({section})", self.name),
                source,
                log: last_lines(&log),
            }
        })
    }

    /// The instructions with the file descriptors of maps in the place of symbols.
    fn with_maps(&self, section: &str, program: &Program) -> Result<Vec<u8>, BpfError> {
        let mut instructions = program.instructions.clone();
        for (at, symbol) in &program.maps {
            let (Some(instruction), Some(map)) =
                (instructions.get_mut(*at..at + 8), self.maps.get(symbol))
            else {
                let message = format!("{section} refers to {symbol}, which is no map");
                return Err(BpfError::Object(message));
            };
            // BPF_PSEUDO_MAP_FD in the source register: the immediate value is a file descriptor.
            instruction[1] = instruction[1] & 0x0f | 0x10;
            instruction[4..].copy_from_slice(&map.as_raw_fd().to_le_bytes());
        }
        Ok(instructions)
    }
}

impl Types {
    /// Reads the kernel's own type information.
    ///
    /// # Errors
    /// The kernel was built without it, or it is damaged.
    pub fn of_kernel() -> Result<Self, BpfError> {
        let bytes = std::fs::read(KERNEL_TYPES)
            .map_err(BpfError::call(format!("reading {KERNEL_TYPES}")))?;
        Self::parse(bytes).ok_or_else(|| BpfError::MissingType("a valid header".to_owned()))
    }
}

fn member(of: &Structure, name: &str) -> Result<(u32, usize), BpfError> {
    of.members.get(name).copied().ok_or_else(|| BpfError::MissingType(format!("member {name}")))
}

fn records(table: &Table) -> Records<'_> {
    Records { bytes: &table.bytes, size: table.size }
}

/// The last lines of the verifier's log.
fn last_lines(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
