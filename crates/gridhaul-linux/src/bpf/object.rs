//! A compiled file: its programs with their relocations and debug information.

use std::collections::BTreeMap;

use object::read::elf::ElfFile64;
use object::{
    LittleEndian, Object as _, ObjectSection, ObjectSymbol, RelocationTarget, SectionKind,
};

use super::BpfError;
use super::btf::{Types, read_u32};

/// A compiled file, made by `clang -target bpf -g`.
#[derive(Debug)]
pub struct Object {
    /// By section, such as `struct_ops/ssthresh`.
    pub(super) programs: BTreeMap<String, Program>,
    pub(super) types: Types,
    /// The type information with the offsets of variables, as the kernel wants it.
    pub(super) linked_types: Vec<u8>,
}

/// A program.
#[derive(Debug, Default)]
pub(super) struct Program {
    /// Eight bytes each.
    pub(super) instructions: Vec<u8>,
    /// Symbols of maps that instructions load, with the offset of the instruction in bytes.
    pub(super) maps: Vec<(usize, String)>,
    pub(super) functions: Table,
    pub(super) lines: Table,
    /// Accesses to structures of the kernel, whose offsets the kernel fills in.
    pub(super) relocations: Table,
}

/// Records of equal size about instructions.
#[derive(Debug, Default, Clone)]
pub(super) struct Table {
    pub(super) bytes: Vec<u8>,
    pub(super) size: u32,
}

impl Object {
    /// Reads a compiled file. Each section with code is a program.
    ///
    /// # Errors
    /// The file is no object file for BPF with debug information (`-g`).
    pub fn parse(bytes: &[u8]) -> Result<Self, BpfError> {
        Self::read(bytes).map_err(BpfError::Object)
    }

    /// Whether the programs use a structure of this name.
    #[must_use]
    pub fn has_structure(&self, name: &str) -> bool {
        self.types.structure(name).is_some()
    }

    /// Whether there is a program in this section.
    #[must_use]
    pub fn has_program(&self, section: &str) -> bool {
        self.programs.contains_key(section)
    }

    fn read(bytes: &[u8]) -> Result<Self, String> {
        let file = ElfFile64::<LittleEndian>::parse(bytes).map_err(|error| error.to_string())?;
        let data = |name: &str| {
            let section = file.section_by_name(name).ok_or_else(|| format!("no section {name}"))?;
            section.data().map_err(|error| error.to_string())
        };
        let types = Types::parse(data(".BTF")?.to_vec()).ok_or("type information is damaged")?;
        let mut programs = BTreeMap::new();
        for section in file.sections() {
            let name = section.name().unwrap_or_default();
            if section.kind() == SectionKind::Text && section.size() > 0 {
                let mut program = Program {
                    instructions: section.data().map_err(|error| error.to_string())?.to_vec(),
                    ..Program::default()
                };
                for (at, relocation) in section.relocations() {
                    let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
                    let symbol = file.symbol_by_index(symbol).map_err(|error| error.to_string())?;
                    let map = symbol.name().unwrap_or_default().to_owned();
                    program.maps.push((at as usize, map));
                }
                programs.insert(name.to_owned(), program);
            }
        }
        annotate(&mut programs, data(".BTF.ext")?, &types).ok_or("debug information is damaged")?;
        let linked_types = types.linked(
            |name| Some(file.section_by_name(name)?.size() as u32),
            |name| Some(file.symbol_by_name(name)?.address() as u32),
        );
        Ok(Self { programs, types, linked_types })
    }
}

/// Selects a table of a program.
type Select = fn(&mut Program) -> &mut Table;

/// Distributes the tables of `.BTF.ext` to the programs. Its header of seven words or more has the
/// offset and length of the tables of functions, lines and relocations.
fn annotate(programs: &mut BTreeMap<String, Program>, bytes: &[u8], types: &Types) -> Option<()> {
    let base = read_u32(bytes, 4)? as usize;
    // The compiler counts in bytes, the kernel in instructions, except for relocations.
    let tables: [(usize, u32, Select); 3] = [
        (8, 8, |program| &mut program.functions),
        (16, 8, |program| &mut program.lines),
        (24, 1, |program| &mut program.relocations),
    ];
    for (header, unit, table) in tables {
        let begin = base + read_u32(bytes, header)? as usize;
        let end = begin + read_u32(bytes, header + 4)? as usize;
        if begin == end {
            continue;
        }
        let size = read_u32(bytes, begin)?;
        let mut at = begin + 4;
        while at < end {
            let name = types.text(read_u32(bytes, at)?);
            let len = size as usize * read_u32(bytes, at + 4)? as usize;
            let mut records = bytes.get(at + 8..at + 8 + len)?.to_vec();
            for record in records.chunks_exact_mut(size as usize) {
                let place = read_u32(record, 0)? / unit;
                record.get_mut(..4)?.copy_from_slice(&place.to_le_bytes());
            }
            if let Some(program) = programs.get_mut(&name) {
                *table(program) = Table { bytes: records, size };
            }
            at += 8 + len;
        }
    }
    Some(())
}
