//! Format of segment files: a header with a snapshot, then entries. All numbers are little-endian.
//!
//! | segment header | bytes | | entry header | bytes |
//! |---|---|---|---|---|
//! | magic `GHRLOG` | 6 | | magic `GHRE` | 4 |
//! | version | 2 | | length of the payload | 4 |
//! | position of the first entry | 8 | | position of the entry | 8 |
//! | epoch | 8 | | end of the durable part of the log when the entry was appended | 8 |
//! | length of the snapshot | 4 | | CRC32C of the fields above and the payload | 4 |
//! | CRC32C of the fields above and the snapshot | 4 | | payload | |
//! | snapshot | | | | |
//!
//! Magic `GHRREC` instead of `GHRLOG`: the header was damaged, and its snapshot is lost. Entries
//! and position are those that the segment had.
//!
//! A position counts the bytes of entries since the log was created. A filler has magic `GHRF`,
//! occupies a damaged region, and its CRC32C covers only its header. The CRC32C of an entry begins
//! with the epoch, a random number: a search for the next entry after a damaged region must not
//! find one that a meter has put into its data.

/// A version of the format.
#[derive(Debug, Clone, Copy)]
pub struct FormatVersion {
    /// Number in the headers of segments.
    pub number: u16,
    /// Versions of what entries and snapshots contain.
    pub content: &'static str,
}

/// All versions, oldest first; the last one is written, and all are read. A change of anything that
/// is stored (headers, entries, snapshots, batches, records, items) is a new version, with a line
/// here and a log in `tests/log_versions`, which a test reads. Magic, version, lengths and checksum
/// of a segment header stay where they are in all versions.
pub const VERSIONS: [FormatVersion; 2] = [
    FormatVersion {
        number: 1,
        content: "batches of version 1, snapshots and items without a version",
    },
    FormatVersion {
        number: 2,
        content: "batches of version 2 with times, records of gaps, ends of earlier records, \
            snapshots of heads with times",
    },
];

/// The version that is written.
pub(crate) const VERSION: u16 = VERSIONS[VERSIONS.len() - 1].number;

/// Bytes of a segment header without its snapshot.
pub(crate) const SEGMENT_HEADER: usize = 32;

/// Bytes of an entry header.
pub(super) const ENTRY_HEADER: usize = 28;

/// More than the bytes of any segment: the next entry begins a new one. Adding the bytes of entries
/// does not overflow.
pub(crate) const SEGMENT_FULL: u64 = u64::MAX / 2;

/// Largest payload of an entry. A larger length is damage, so that a flipped bit cannot cause a
/// large allocation.
pub const PAYLOAD_MAX: usize = 16 << 20;

/// Largest snapshot: the state of a head with several million open meters. What is read is limited
/// by the length of the file.
pub const SNAPSHOT_MAX: usize = 1 << 30;

const SEGMENT_MAGIC: &[u8; 6] = b"GHRLOG";
const RECOVERED_MAGIC: &[u8; 6] = b"GHRREC";
pub(super) const ENTRY_MAGIC: [u8; 4] = *b"GHRE";
pub(super) const FILLER_MAGIC: [u8; 4] = *b"GHRF";

/// Header of a segment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub position: u64,
    pub epoch: u64,
    pub version: u16,
    /// `None`: the snapshot is lost by damage. The state at this position follows from the segments
    /// before.
    pub snapshot: Option<Vec<u8>>,
}

/// Why a segment header cannot be read. A header with another version is intact: its checksum is
/// correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadHeader {
    Damaged,
    Version(u16),
}

/// Position of an entry, and end of the durable part of the log when it was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub position: u64,
    pub committed: u64,
}

/// Header of an entry or a filler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryHeader {
    pub is_filler: bool,
    pub length: u32,
    pub position: u64,
    pub committed: u64,
    pub crc: u32,
}

impl SegmentHeader {
    /// The bytes of a header of `size` bytes, which is that of the snapshot unless the snapshot is
    /// lost.
    pub(super) fn write(&self, size: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(size);
        let is_lost = self.snapshot.is_none();
        bytes.extend_from_slice(if is_lost { RECOVERED_MAGIC } else { SEGMENT_MAGIC });
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&self.position.to_le_bytes());
        bytes.extend_from_slice(&self.epoch.to_le_bytes());
        bytes.extend_from_slice(&((size - SEGMENT_HEADER) as u32).to_le_bytes());
        // Zeros take the place of a lost snapshot: entries stay where they are in the file.
        let snapshot = self.snapshot.clone().unwrap_or_else(|| vec![0; size - SEGMENT_HEADER]);
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes), &snapshot);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(&snapshot);
        bytes
    }

    /// Length of the snapshot that a header announces, from its first [`SEGMENT_HEADER`] bytes.
    pub(super) fn snapshot_length(header: &[u8]) -> Result<usize, BadHeader> {
        let is_known = header.starts_with(SEGMENT_MAGIC) || header.starts_with(RECOVERED_MAGIC);
        if header.len() < SEGMENT_HEADER || !is_known {
            return Err(BadHeader::Damaged);
        }
        // The header is not verified yet: a damaged length must not cause a large allocation.
        let length = u32_at(header, 24) as usize;
        if length > SNAPSHOT_MAX { Err(BadHeader::Damaged) } else { Ok(length) }
    }

    /// Reads a header with its snapshot.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, BadHeader> {
        let length = Self::snapshot_length(bytes)?;
        let snapshot =
            bytes.get(SEGMENT_HEADER..SEGMENT_HEADER + length).ok_or(BadHeader::Damaged)?;
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..28]), snapshot);
        // The checksum comes before the version: a log of an unknown version is refused as a whole,
        // and a flipped bit of the version must cost one header only.
        if crc != u32_at(bytes, 28) {
            return Err(BadHeader::Damaged);
        }
        let version = u16::from_le_bytes([bytes[6], bytes[7]]);
        if VERSIONS.iter().all(|known| known.number != version) {
            return Err(BadHeader::Version(version));
        }
        Ok(Self {
            position: u64_at(bytes, 8),
            epoch: u64_at(bytes, 16),
            version,
            snapshot: bytes.starts_with(SEGMENT_MAGIC).then(|| snapshot.to_vec()),
        })
    }

    /// The epoch in a header that may be damaged.
    pub(super) fn epoch_field(bytes: &[u8]) -> Option<u64> {
        Some(u64_at(bytes.get(..SEGMENT_HEADER)?, 16))
    }
}

impl EntryHeader {
    /// Appends a complete entry to `bytes`.
    pub(super) fn write_entry(bytes: &mut Vec<u8>, epoch: u64, place: Place, payload: &[u8]) {
        let start = bytes.len();
        bytes.extend_from_slice(&ENTRY_MAGIC);
        bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&place.position.to_le_bytes());
        bytes.extend_from_slice(&place.committed.to_le_bytes());
        let crc = crc32c::crc32c_append(fields_crc(epoch, &bytes[start..]), payload);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(payload);
    }

    /// The header of a filler for a region of at least [`ENTRY_HEADER`] bytes.
    pub(super) fn filler(epoch: u64, position: u64, region: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ENTRY_HEADER);
        bytes.extend_from_slice(&FILLER_MAGIC);
        bytes.extend_from_slice(&((region - ENTRY_HEADER as u64) as u32).to_le_bytes());
        bytes.extend_from_slice(&position.to_le_bytes());
        bytes.extend_from_slice(&0_u64.to_le_bytes());
        bytes.extend_from_slice(&fields_crc(epoch, &bytes).to_le_bytes());
        bytes
    }

    /// Reads the fields; `None` if they cannot be a header at this position.
    pub(super) fn read(bytes: &[u8], position: u64) -> Option<Self> {
        let bytes = bytes.get(..ENTRY_HEADER)?;
        let is_filler = bytes[..4] == FILLER_MAGIC;
        let header = Self {
            is_filler,
            length: u32_at(bytes, 4),
            position: u64_at(bytes, 8),
            committed: u64_at(bytes, 16),
            crc: u32_at(bytes, 24),
        };
        let is_known = is_filler || bytes[..4] == ENTRY_MAGIC;
        // A filler replaces a damaged region, which may be as long as the segment.
        let fits = is_filler || header.length as usize <= PAYLOAD_MAX;
        (is_known && fits && header.position == position).then_some(header)
    }

    /// The position that the bytes of an entry or filler state.
    pub(super) fn position_field(bytes: &[u8]) -> Option<u64> {
        let bytes = bytes.get(..ENTRY_HEADER)?;
        let is_known = bytes[..4] == ENTRY_MAGIC || bytes[..4] == FILLER_MAGIC;
        is_known.then(|| u64_at(bytes, 8))
    }

    /// Bytes of the entry with its header.
    pub(super) const fn size(&self) -> u64 {
        ENTRY_HEADER as u64 + self.length as u64
    }

    /// Whether the checksum is correct. `entry` begins with the header; a filler needs nothing
    /// else.
    pub(super) fn verify(&self, epoch: u64, entry: &[u8]) -> bool {
        let fields = fields_crc(epoch, &entry[..24]);
        if self.is_filler {
            return fields == self.crc;
        }
        let payload = entry.get(ENTRY_HEADER..ENTRY_HEADER + self.length as usize);
        payload.is_some_and(|payload| crc32c::crc32c_append(fields, payload) == self.crc)
    }
}

/// Checksum of the fields of an entry header.
fn fields_crc(epoch: u64, fields: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&epoch.to_le_bytes()), fields)
}

/// File name of the segment whose first entry has this position.
pub(super) fn segment_name(position: u64) -> String {
    format!("{position:016x}.segment")
}

/// Position in the name of a segment file; `None` for other files.
pub(super) fn segment_position(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".segment").filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
