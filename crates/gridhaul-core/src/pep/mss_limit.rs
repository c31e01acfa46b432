//! The largest segments that both hosts of a connection accept.

use std::sync::Arc;

use crate::tcp::StackParams;

/// Limit of the payload of a segment on a connection between two hosts. A proxy that takes the
/// place of either host must not send larger segments than the other host accepts (RFC 9293,
/// section 3.7.1, MUST-16): it is constructed with this limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MssLimit(u32);

impl MssLimit {
    /// The smaller of the maximum segment sizes that both hosts have stated.
    #[must_use]
    pub const fn of_hosts(mss: [u32; 2]) -> Self {
        let smaller = if mss[0] < mss[1] { mss[0] } else { mss[1] };
        Self(if smaller == 0 { 1 } else { smaller })
    }

    /// The limit in bytes, at least 1.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Parameters whose segments are within the limit. The initial window keeps its number of
    /// segments.
    pub(super) fn apply(self, mut params: Arc<StackParams>) -> Arc<StackParams> {
        if params.mss > self.0 {
            Arc::make_mut(&mut params).lower_mss(self.0);
        }
        params
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::{Profile, Stack};

    use super::*;

    #[test]
    fn segments_are_no_larger_than_the_smaller_mss_of_the_hosts() {
        let stack = Stack { profile: Profile::Linux, ..Stack::default() };
        let params = Arc::new(StackParams::resolve(&stack));
        let limited = MssLimit::of_hosts([1_460, 536]).apply(Arc::clone(&params));
        assert_eq!((limited.mss, limited.initial_window), (536, 5_360));
        let same = MssLimit::of_hosts([8_960, 8_960]).apply(Arc::clone(&params));
        assert!(Arc::ptr_eq(&same, &params));
        assert_eq!(MssLimit::of_hosts([0, 536]).get(), 1);
    }
}
