//! A header that arrives in pieces.

use super::HeaderProgress;

/// A header of `N` bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PartialHeader<const N: usize> {
    bytes: [u8; 8],
    arrived: u8,
}

impl<const N: usize> PartialHeader<N> {
    /// Takes bytes until the header is complete. Returns how many were taken, and the header.
    pub(super) fn take(&mut self, bytes: &[u8]) -> (usize, Option<[u8; N]>) {
        let missing = N - usize::from(self.arrived);
        let taken = missing.min(bytes.len());
        let start = usize::from(self.arrived);
        self.bytes[start..start + taken].copy_from_slice(&bytes[..taken]);
        self.arrived += taken as u8;
        if usize::from(self.arrived) < N {
            return (taken, None);
        }
        self.arrived = 0;
        (taken, Some(self.bytes[..N].try_into().expect("N bytes")))
    }

    /// The state of a message: within the header, or after it if the number of missing bytes is
    /// known.
    pub(super) const fn progress(&self, missing: Option<u32>) -> HeaderProgress {
        match missing {
            Some(missing) => HeaderProgress::Body { missing },
            None => HeaderProgress::Header { bytes: self.bytes, arrived: self.arrived },
        }
    }

    /// Header and missing bytes of a state; `None` if no message with at most `maximum` bytes after
    /// its header has this state.
    pub(super) fn resumed(progress: HeaderProgress, maximum: u32) -> Option<(Self, Option<u32>)> {
        match progress {
            HeaderProgress::Body { missing } if missing <= maximum => {
                Some((Self::default(), Some(missing)))
            }
            HeaderProgress::Header { bytes, arrived } if usize::from(arrived) < N => {
                Some((Self { bytes, arrived }, None))
            }
            _ => None,
        }
    }
}
