//! BPF type format (BTF, `Documentation/bpf/btf.rst` of the kernel): the offsets of the members of
//! a structure, and the corrections that a linker makes to a compiler's output.

use std::collections::BTreeMap;

/// Type information, parsed as far as it is used.
#[derive(Debug)]
pub struct Types {
    bytes: Vec<u8>,
    /// Where each type begins; the first has number 1.
    types: Vec<usize>,
    strings: usize,
}

/// A structure.
#[derive(Debug, PartialEq, Eq)]
pub struct Structure {
    /// Number of the type.
    pub id: u32,
    /// Size in bytes.
    pub size: u32,
    /// Position among the members and offset in bytes, by name.
    pub members: BTreeMap<String, (u32, usize)>,
}

const HEADER: usize = 24;
const INT: u32 = 1;
const STRUCT: u32 = 4;
const SECTION: u32 = 15;

impl Types {
    /// Parses type information; `None` if it is none, or not little-endian.
    #[must_use]
    pub fn parse(bytes: Vec<u8>) -> Option<Self> {
        let header: Vec<_> =
            (0..HEADER / 4).map(|word| read_u32(&bytes, 4 * word)).collect::<Option<_>>()?;
        if header[0] & 0xffff != 0xeb9f {
            return None;
        }
        let base = header[1] as usize;
        let (mut at, end) = (base + header[2] as usize, base + (header[2] + header[3]) as usize);
        let strings = base + header[4] as usize;
        let mut types = Vec::new();
        while at < end {
            types.push(at);
            at += len(read_u32(&bytes, at + 4)?)?;
        }
        Some(Self { bytes, types, strings })
    }

    /// The structure of this name.
    #[must_use]
    pub fn structure(&self, name: &str) -> Option<Structure> {
        let (id, at) = self.find(STRUCT, name)?;
        let count = (self.word(at + 4) & 0xffff) as usize;
        let member = |index: usize| {
            let at = at + 12 + 12 * index;
            // A structure with fields of bits keeps their length in the upper byte.
            let bits = self.word(at + 8) & 0x00ff_ffff;
            (self.text(self.word(at)), (index as u32, bits as usize / 8))
        };
        Some(Structure { id, size: self.word(at + 8), members: (0..count).map(member).collect() })
    }

    /// Number of the integer type of this name.
    #[must_use]
    pub fn integer(&self, name: &str) -> Option<u32> {
        self.find(INT, name).map(|(id, _)| id)
    }

    /// The bytes for the kernel: data sections get their size and the offsets of their variables,
    /// which the compiler leaves to the linker.
    pub(super) fn linked(
        &self,
        section_size: impl Fn(&str) -> Option<u32>,
        address: impl Fn(&str) -> Option<u32>,
    ) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let mut write = |at: usize, value: u32| {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        };
        for at in self.types.iter().copied().filter(|at| self.kind(*at) == SECTION) {
            if let Some(size) = section_size(&self.text(self.word(at))) {
                write(at + 8, size);
            }
            let mut variables = Vec::new();
            for entry in 0..(self.word(at + 4) & 0xffff) as usize {
                let entry = at + 12 + 12 * entry;
                let variable = self.types[self.word(entry) as usize - 1];
                let offset = address(&self.text(self.word(variable))).unwrap_or(0);
                variables.push((offset, self.word(entry), self.word(entry + 8)));
            }
            // The kernel requires them in the order of their offsets.
            variables.sort_unstable();
            for (index, (offset, id, size)) in variables.into_iter().enumerate() {
                let entry = at + 12 + 12 * index;
                write(entry, id);
                write(entry + 4, offset);
                write(entry + 8, size);
            }
        }
        bytes
    }

    /// A string by its place.
    pub(super) fn text(&self, offset: u32) -> String {
        let rest = self.bytes.get(self.strings + offset as usize..).unwrap_or(&[]);
        let end = rest.iter().position(|byte| *byte == 0).unwrap_or(0);
        String::from_utf8_lossy(&rest[..end]).into_owned()
    }

    fn find(&self, kind: u32, name: &str) -> Option<(u32, usize)> {
        let same = |at: usize| self.kind(at) == kind && self.is_named(at, name);
        let index = self.types.iter().position(|at| same(*at))?;
        Some((index as u32 + 1, self.types[index]))
    }

    fn is_named(&self, at: usize, name: &str) -> bool {
        let rest = &self.bytes[self.strings + self.word(at) as usize..];
        rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    }

    fn kind(&self, at: usize) -> u32 {
        self.word(at + 4) >> 24 & 0x1f
    }

    fn word(&self, at: usize) -> u32 {
        read_u32(&self.bytes, at).unwrap_or(0)
    }
}

/// A little-endian number of 32 bits at an offset.
#[must_use]
pub fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(word.try_into().expect("four bytes")))
}

/// Bytes of a type with this second word.
fn len(info: u32) -> Option<usize> {
    let count = (info & 0xffff) as usize;
    let more = match info >> 24 & 0x1f {
        // Pointers, names, functions, floats, tags of types.
        2 | 7..=12 | 16 | 18 => 0,
        // Integers, variables, tags of declarations.
        INT | 14 | 17 => 4,
        // Arrays.
        3 => 12,
        // Structures, unions, sections, enumerations of 64 bits.
        STRUCT | 5 | SECTION | 19 => 12 * count,
        // Enumerations, prototypes.
        6 | 13 => 8 * count,
        _ => return None,
    };
    Some(12 + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `int`, and `struct pair { int a; int b; }`, and a section with two variables in the wrong
    /// order.
    fn types() -> Types {
        let strings = b"\0int\0pair\0a\0b\0.maps\0one\0two\0";
        let place = |name: &str| {
            let name = [b"\0", name.as_bytes(), b"\0"].concat();
            let at = strings.windows(name.len()).position(|window| window == name).unwrap();
            at as u32 + 1
        };
        let types = [
            vec![place("int"), 1 << 24, 4, 32],
            vec![place("pair"), 4 << 24 | 2, 8, place("a"), 1, 0, place("b"), 1, 32],
            vec![place("two"), 14 << 24, 2, 1],
            vec![place("one"), 14 << 24, 2, 1],
            vec![place(".maps"), 15 << 24 | 2, 0, 3, 0, 8, 4, 0, 8],
        ]
        .concat();
        let len = 4 * types.len() as u32;
        let header = [0x0001_eb9f, 24, 0, len, len, strings.len() as u32];
        let words = header.into_iter().chain(types).flat_map(u32::to_le_bytes);
        Types::parse(words.chain(strings.iter().copied()).collect()).unwrap()
    }

    #[test]
    fn members_are_found_by_name() {
        let pair = types().structure("pair").unwrap();
        let members = [("a", (0, 0)), ("b", (1, 4))].map(|(name, place)| (name.to_owned(), place));
        assert_eq!(pair, Structure { id: 2, size: 8, members: members.into() });
        assert_eq!((types().integer("int"), types().structure("int")), (Some(1), None));
    }

    #[test]
    fn sections_get_sizes_and_places_in_order() {
        let address = |name: &str| Some(if name == "one" { 0 } else { 8 });
        let linked = types().linked(|name| (name == ".maps").then_some(16), address);
        let linked = Types::parse(linked).unwrap();
        let at = linked.types[4];
        let words: Vec<_> = (2..9).map(|word| linked.word(at + 4 * word)).collect();
        // Size; then variable 4 ("one") at 0 and variable 3 ("two") at 8.
        assert_eq!(words, [16, 4, 0, 8, 3, 8, 8]);
    }

    #[test]
    fn what_is_no_type_information_is_refused() {
        assert!(Types::parse(Vec::new()).is_none());
        assert!(Types::parse(vec![0; 64]).is_none());
        let cut = types().bytes[..40].to_vec();
        assert!(Types::parse(cut).is_none());
    }
}
