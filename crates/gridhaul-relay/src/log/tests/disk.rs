//! A disk that can lose power: data and names that were not synchronised may be kept or lost,
//! sector by sector.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;

use super::super::{Storage, StorageFile};

/// Unit of data that is written completely or not at all.
const SECTOR: usize = 512;

#[derive(Debug, Default)]
struct State {
    names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
    files: Vec<FileState>,
    /// Bytes that can still be written before the disk is full; `None`: unlimited.
    free: Option<usize>,
    fail_sync: bool,
    fail_remove: bool,
}

#[derive(Debug, Default, Clone)]
struct FileState {
    bytes: Vec<u8>,
    synced: Vec<u8>,
    dirty: BTreeSet<usize>,
}

/// The disk; clones refer to the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelDisk(Rc<RefCell<State>>);

/// An open file of a [`ModelDisk`].
#[derive(Debug, Clone)]
pub(crate) struct ModelFile(Rc<RefCell<State>>, usize);

impl ModelDisk {
    /// Only so many more bytes can be written.
    pub(crate) fn set_free(&self, free: Option<usize>) {
        self.0.borrow_mut().free = free;
    }

    pub(crate) fn set_fail_sync(&self, fail: bool) {
        self.0.borrow_mut().fail_sync = fail;
    }

    /// No file can be removed.
    pub(crate) fn set_fail_remove(&self, fail: bool) {
        self.0.borrow_mut().fail_remove = fail;
    }

    /// The power fails: `keep` decides for each unsynchronised sector and name whether it was
    /// written.
    pub(crate) fn lose_power(&self, mut keep: impl FnMut() -> bool) {
        let mut state = self.0.borrow_mut();
        state.fail_sync = false;
        state.free = None;
        let now = state.names.clone();
        let before = state.synced_names.clone();
        let all: BTreeSet<&String> = now.keys().chain(before.keys()).collect();
        let mut names = BTreeMap::new();
        for name in all {
            let (new, old) = (now.get(name), before.get(name));
            if let Some(file) = if new == old || keep() { new } else { old } {
                names.insert(name.clone(), *file);
            }
        }
        for file in &mut state.files {
            let mut survived = file.synced.clone();
            if file.bytes.len() != file.synced.len() && keep() {
                survived.resize(file.bytes.len(), 0);
            }
            for sector in std::mem::take(&mut file.dirty) {
                let range = sector * SECTOR..((sector + 1) * SECTOR).min(file.bytes.len());
                if range.start < file.bytes.len() && keep() {
                    if survived.len() < range.end {
                        survived.resize(range.end, 0);
                    }
                    survived[range.clone()].copy_from_slice(&file.bytes[range]);
                }
            }
            file.bytes.clone_from(&survived);
            file.synced = survived;
        }
        state.synced_names.clone_from(&names);
        state.names = names;
    }

    /// Names and sizes of the files.
    pub(crate) fn files(&self) -> Vec<(String, usize)> {
        let state = self.0.borrow();
        state.names.iter().map(|(name, id)| (name.clone(), state.files[*id].bytes.len())).collect()
    }

    /// Changes the durable content of a file.
    pub(crate) fn corrupt(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.0.borrow_mut();
        let id = state.names[name];
        change(&mut state.files[id].bytes);
        state.files[id].synced = state.files[id].bytes.clone();
    }
}

impl Storage for ModelDisk {
    type File = ModelFile;

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.borrow().names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<ModelFile> {
        let mut state = self.0.borrow_mut();
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = state.files.len();
        state.files.push(FileState::default());
        state.names.insert(name.to_owned(), id);
        Ok(ModelFile(Rc::clone(&self.0), id))
    }

    fn open(&self, name: &str) -> io::Result<ModelFile> {
        let id = self.0.borrow().names.get(name).copied().ok_or(io::ErrorKind::NotFound)?;
        Ok(ModelFile(Rc::clone(&self.0), id))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        if self.0.borrow().fail_remove {
            // EACCES
            return Err(io::Error::from_raw_os_error(13));
        }
        let removed = self.0.borrow_mut().names.remove(name);
        removed.map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        let id = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), id);
        Ok(())
    }

    fn is_named(&self, name: &str, file: &ModelFile) -> io::Result<bool> {
        Ok(self.0.borrow().names.get(name) == Some(&file.1))
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        if state.fail_sync {
            return Err(io::Error::from_raw_os_error(5));
        }
        state.synced_names = state.names.clone();
        Ok(())
    }
}

impl StorageFile for ModelFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.0.borrow();
        let bytes = state.files[self.1].bytes.get(offset as usize..).unwrap_or_default();
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        let start = offset as usize;
        // Bytes of a file that are overwritten need no space.
        let is_new = start + bytes.len() > state.files[self.1].bytes.len();
        let free = state.free.filter(|_| is_new);
        let allowed = free.map_or(bytes.len(), |free| free.min(bytes.len()));
        if let (Some(free), true) = (&mut state.free, is_new) {
            *free -= allowed;
        }
        let file = &mut state.files[self.1];
        if file.bytes.len() < start + allowed {
            file.bytes.resize(start + allowed, 0);
        }
        file.bytes[start..start + allowed].copy_from_slice(&bytes[..allowed]);
        file.dirty.extend(start / SECTOR..(start + allowed).div_ceil(SECTOR));
        // ENOSPC
        if allowed < bytes.len() { Err(io::Error::from_raw_os_error(28)) } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        let fail = state.fail_sync;
        let file = &mut state.files[self.1];
        // The kernel marks the pages as clean even if writing them has failed.
        file.dirty.clear();
        if fail {
            // EIO
            return Err(io::Error::from_raw_os_error(5));
        }
        file.synced = file.bytes.clone();
        Ok(())
    }

    fn resize(&self, length: u64) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.files[self.1].bytes.resize(length as usize, 0);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.borrow().files[self.1].bytes.len() as u64)
    }
}
