//! Hash maps, whose keys and values are structures of a program.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::introspection::map_info;
use super::syscall::{MAP_DELETE, MAP_LOOKUP, MAP_NEXT_KEY, MAP_UPDATE, map_element};

/// A hash map with keys of `K` bytes and values of `V` bytes.
#[derive(Debug)]
pub struct HashMap<const K: usize, const V: usize> {
    map: OwnedFd,
}

impl<const K: usize, const V: usize> HashMap<K, V> {
    /// Verifies the sizes of keys and values.
    ///
    /// # Errors
    /// The map has others.
    pub fn new(map: OwnedFd) -> io::Result<Self> {
        let info = map_info(std::os::fd::AsFd::as_fd(&map))?;
        if (info.key_size as usize, info.value_size as usize) != (K, V) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the map is another one"));
        }
        Ok(Self { map })
    }

    /// Inserts an entry, or replaces it.
    ///
    /// # Errors
    /// The map is full.
    pub fn insert(&self, key: &[u8; K], value: &[u8; V]) -> io::Result<()> {
        self.element(MAP_UPDATE, key.as_ptr() as u64, value.as_ptr() as u64)
    }

    /// The value of a key; `None` if there is none.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn get(&self, key: &[u8; K]) -> io::Result<Option<[u8; V]>> {
        let mut value = [0_u8; V];
        found(self.element(MAP_LOOKUP, key.as_ptr() as u64, value.as_mut_ptr() as u64))
            .map(|found| found.map(|()| value))
    }

    /// Removes an entry if it exists.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn remove(&self, key: &[u8; K]) -> io::Result<()> {
        found(self.element(MAP_DELETE, key.as_ptr() as u64, 0)).map(drop)
    }

    /// All keys. Entries that are removed during the call may shorten the list.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn keys(&self) -> io::Result<Vec<[u8; K]>> {
        let mut keys: Vec<[u8; K]> = Vec::new();
        loop {
            let mut next = [0_u8; K];
            let last = keys.last().map_or(0, |key| key.as_ptr() as u64);
            match found(self.element(MAP_NEXT_KEY, last, next.as_mut_ptr() as u64))? {
                Some(()) => keys.push(next),
                None => return Ok(keys),
            }
        }
    }

    /// The map itself.
    pub fn as_map(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.map)
    }

    fn element(&self, command: u32, key: u64, value: u64) -> io::Result<()> {
        map_element(command, self.as_map(), key, value)
    }
}

/// `None` for an entry that does not exist.
fn found(result: io::Result<()>) -> io::Result<Option<()>> {
    match result {
        Ok(()) => Ok(Some(())),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}
