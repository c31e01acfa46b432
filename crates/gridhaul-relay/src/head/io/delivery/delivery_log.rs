//! Beginning of the log of a head, for a delivery thread.

use crate::head::{Deliveries, Delivery};
use crate::log::{DurableRange, Folder, Lost};
use crate::runtime::RunError;

/// Where the head's log begins.
#[derive(Debug, Clone)]
pub(crate) struct DeliveryLog {
    pub storage: Folder,
    pub epoch: u64,
    pub snapshot: Vec<u8>,
    /// Its entries when the head has started.
    pub range: DurableRange,
}

impl DeliveryLog {
    /// End of the entries when the head has started.
    pub(crate) const fn end(&self) -> u64 {
        self.range.end.position()
    }

    /// Deliveries from a position on. Records before it restore the state of the meters.
    pub(crate) fn deliveries_from(&self, position: u64) -> Result<Deliveries<Folder>, RunError> {
        self.deliveries_after(position, |_| {})
    }

    /// The same; records before the position are passed to `before`.
    pub(crate) fn deliveries_after(
        &self,
        position: u64,
        mut before: impl FnMut(&Delivery<'_>),
    ) -> Result<Deliveries<Folder>, RunError> {
        let mut deliveries =
            Deliveries::new(self.storage.clone(), self.epoch, &self.snapshot, self.range.start);
        if position < self.range.start {
            // The first segments are missing.
            deliveries.note_lost(position, Lost { bytes: Some(self.range.start - position) });
        }
        while deliveries.position() < position
            && deliveries.next(position, |delivery| before(&delivery))?
        {}
        Ok(deliveries)
    }
}
