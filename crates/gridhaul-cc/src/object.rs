//! What a compiler has written: programs with what they refer to.

use std::collections::BTreeMap;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object as _, ObjectSection, ObjectSymbol, RelocationTarget};

use crate::btf::{Types, read};

/// A compiled file of `bpf/`.
pub(crate) struct Object {
    /// By section, as `struct_ops/ssthresh`.
    pub(crate) programs: BTreeMap<String, Program>,
    pub(crate) types: Types,
    /// Types with the places of variables filled in, as the kernel wants them.
    pub(crate) linked_types: Vec<u8>,
}

/// One program.
#[derive(Default)]
pub(crate) struct Program {
    /// Eight bytes each.
    pub(crate) instructions: Vec<u8>,
    /// Which maps instructions load, by the instruction's place in bytes.
    pub(crate) maps: Vec<(usize, String)>,
    pub(crate) functions: Table,
    pub(crate) lines: Table,
    /// Accesses to structures of the kernel, whose offsets it fills in itself.
    pub(crate) relocations: Table,
}

/// Records of equal size that speak of instructions.
#[derive(Default, Clone)]
pub(crate) struct Table {
    pub(crate) bytes: Vec<u8>,
    pub(crate) size: u32,
}

const PROGRAM_PREFIXES: [&str; 2] = ["struct_ops/", "sockops/"];

impl Object {
    /// Reads a compiled file.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let file = ElfFile64::<LittleEndian>::parse(bytes).map_err(|error| error.to_string())?;
        let data = |name: &str| {
            let section = file.section_by_name(name).ok_or_else(|| format!("no section {name}"))?;
            section.data().map_err(|error| error.to_string())
        };
        let types = Types::parse(data(".BTF")?.to_vec()).ok_or("type information is damaged")?;
        let mut programs = BTreeMap::new();
        for section in file.sections() {
            let name = section.name().unwrap_or_default();
            if PROGRAM_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
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

/// Where a program has a table.
type Place = fn(&mut Program) -> &mut Table;

/// Distributes the tables of `.BTF.ext` to the programs (header of seven words and more: where each of
/// functions, lines and accesses begins and how long it is).
fn annotate(programs: &mut BTreeMap<String, Program>, bytes: &[u8], types: &Types) -> Option<()> {
    let base = read(bytes, 4)? as usize;
    // The kernel counts functions and lines in instructions, accesses in bytes, the compiler all in bytes.
    let tables: [(usize, u32, Place); 3] = [
        (8, 8, |program| &mut program.functions),
        (16, 8, |program| &mut program.lines),
        (24, 1, |program| &mut program.relocations),
    ];
    for (header, unit, table) in tables {
        let begin = base + read(bytes, header)? as usize;
        let end = begin + read(bytes, header + 4)? as usize;
        if begin == end {
            continue;
        }
        let size = read(bytes, begin)?;
        let mut at = begin + 4;
        while at < end {
            let name = types.text(read(bytes, at)?);
            let len = size as usize * read(bytes, at + 4)? as usize;
            let mut records = bytes.get(at + 8..at + 8 + len)?.to_vec();
            for record in records.chunks_exact_mut(size as usize) {
                let place = read(record, 0)? / unit;
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
