//! The file that states which segments a log has, so that a missing first or last segment is
//! noticed, and which gaps between segments were reported.
//!
//! The file is a text: epoch, position of the first and of the last segment; a line for each gap;
//! CRC32C of these lines.

use std::fmt::Write as _;
use std::io;

use gridhaul_core::coverage_mark::mark;

use super::format::segment_name;
use super::{LogError, Storage, StorageFile};

/// Name of the file, and of the one that replaces it.
const NAME: &str = "segments";
const NEW: &str = "segments.new";

/// Largest length of the file that is read.
const LENGTH_MAX: usize = 1 << 20;

/// The segments of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Extent {
    pub epoch: u64,
    /// Position of the oldest segment that is needed. Older files are the rest of a removal that
    /// failed.
    pub first: u64,
    /// Position of a segment that existed; newer ones may exist.
    pub last: u64,
    /// Regions whose entries are lost, and which no filler replaces. One that ends where it begins
    /// has an unknown length: the last segments of the log were missing.
    pub gaps: Vec<(u64, u64)>,
}

impl Extent {
    /// Reads the file. `None` if there is none, as in logs of version 1, or if it is damaged.
    pub(super) fn read<S: Storage>(storage: &S) -> Result<Option<Self>, LogError> {
        let failed = || LogError::storage("reading", NAME);
        let file = match storage.open(NAME) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed()(error)),
        };
        let length = file.length().map_err(failed())? as usize;
        let mut bytes = vec![0; length.min(LENGTH_MAX)];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], filled as u64).map_err(failed())? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(std::str::from_utf8(&bytes[..filled]).ok().and_then(Self::parse))
    }

    fn parse(text: &str) -> Option<Self> {
        let (lines, crc) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        if u32::from_str_radix(crc, 16).ok()? != crc32c::crc32c(lines.as_bytes()) {
            return None;
        }
        let mut lines = lines.lines();
        let mut fields = lines.next()?.split(' ');
        let epoch = u64::from_str_radix(fields.next()?, 16).ok()?;
        let (first, last) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let gap = |line: &str| {
            let (from, to) = line.strip_prefix("gap ")?.split_once(' ')?;
            Some((from.parse().ok()?, to.parse().ok()?))
        };
        let gaps = lines.map(gap).collect::<Option<Vec<_>>>()?;
        Some(Self { epoch, first, last, gaps })
    }

    fn text(&self) -> String {
        // Numbers of a fixed width: a file that is overwritten does not become longer.
        let mut text = format!("{:016x} {:020} {:020}", self.epoch, self.first, self.last);
        for (from, to) in &self.gaps {
            let _ = write!(text, "\ngap {from} {to}");
        }
        let crc = crc32c::crc32c(text.as_bytes());
        let _ = writeln!(text, "\n{crc:08x}");
        text
    }

    /// Replaces the file durably. On a full disk, the file is overwritten, which needs no space:
    /// the removal of segments, which makes space, must not wait for it. A file that is torn by a
    /// power failure is ignored.
    pub(super) fn write<S: Storage>(&self, storage: &S) -> Result<(), LogError> {
        match self.replace(storage) {
            Err(error) if error.is_full() => {
                mark!(log_removal_needs_no_space);
                self.overwrite(storage)
            }
            done => done,
        }
    }

    fn overwrite<S: Storage>(&self, storage: &S) -> Result<(), LogError> {
        let failed = || LogError::storage("writing", NAME);
        let _ = storage.remove(NEW);
        let file = storage.open(NAME).map_err(failed())?;
        let text = self.text();
        file.write_at(text.as_bytes(), 0)
            .and_then(|()| file.resize(text.len() as u64))
            .and_then(|()| file.sync())
            .map_err(failed())
    }

    fn replace<S: Storage>(&self, storage: &S) -> Result<(), LogError> {
        let failed = || LogError::storage("writing", NAME);
        let _ = storage.remove(NEW);
        let file = storage.create(NEW).map_err(failed())?;
        file.write_at(self.text().as_bytes(), 0).and_then(|()| file.sync()).map_err(failed())?;
        storage.rename(NEW, NAME).and_then(|()| storage.sync_names()).map_err(failed())
    }

    /// Forgets gaps before the first segment.
    pub(super) fn set_first(&mut self, first: u64) {
        self.first = first;
        self.gaps.retain(|(_, to)| *to >= first);
    }

    /// File name of the last segment.
    pub(super) fn last_name(&self) -> String {
        segment_name(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::disk::ModelDisk;
    use super::*;

    #[test]
    fn the_file_is_read_again_and_a_damaged_one_is_ignored() {
        let disk = ModelDisk::default();
        assert_eq!(Extent::read(&disk).unwrap(), None);
        let extent = Extent { epoch: 7, first: 100, last: 900, gaps: vec![(200, 300), (500, 500)] };
        extent.write(&disk).unwrap();
        assert_eq!(Extent::read(&disk).unwrap(), Some(extent));
        for at in 0..disk.files()[0].1 {
            disk.corrupt(NAME, |bytes| bytes[at] ^= 1);
            assert_eq!(Extent::read(&disk).unwrap(), None, "{at}");
            disk.corrupt(NAME, |bytes| bytes[at] ^= 1);
        }
    }

    #[test]
    fn gaps_before_the_first_segment_are_forgotten() {
        let mut extent = Extent { epoch: 7, first: 0, last: 9, gaps: vec![(2, 3), (5, 5), (6, 8)] };
        extent.set_first(5);
        assert_eq!(extent.gaps, [(5, 5), (6, 8)], "reported with the entry at 5");
        extent.set_first(6);
        assert_eq!(extent.gaps, [(6, 8)]);
    }
}
