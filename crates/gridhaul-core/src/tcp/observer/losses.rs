//! Segments that are newly marked lost.

/// The segments that were marked lost and awaited their retransmission at the last step.
#[derive(Debug, Clone, Default)]
pub(super) struct LostSegments {
    /// Their positions, in order.
    starts: Vec<u64>,
    previous: Vec<u64>,
}

impl LostSegments {
    /// Compares with `lost`, the start and end of each lost segment in order, and reports the newly
    /// lost ones: for each range without gaps its start and end, and the number of segments.
    pub(super) fn update(
        &mut self,
        lost: impl Iterator<Item = (u64, u64)>,
        mut report: impl FnMut((u64, u64), u64),
    ) {
        std::mem::swap(&mut self.starts, &mut self.previous);
        self.starts.clear();
        let mut range: Option<((u64, u64), u64)> = None;
        for (start, end) in lost {
            self.starts.push(start);
            if self.previous.binary_search(&start).is_ok() {
                continue;
            }
            match &mut range {
                Some(((_, last), segments)) if *last == start => {
                    (*last, *segments) = (end, *segments + 1);
                }
                range => {
                    if let Some((bounds, segments)) = range.replace(((start, end), 1)) {
                        report(bounds, segments);
                    }
                }
            }
        }
        if let Some((bounds, segments)) = range {
            report(bounds, segments);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_range_of_newly_lost_segments_is_reported_once() {
        let mut lost = LostSegments::default();
        let mut update = |segments: &[(u64, u64)]| {
            let mut found = Vec::new();
            lost.update(segments.iter().copied(), |bounds, count| found.push((bounds, count)));
            found
        };
        assert_eq!(update(&[(1, 11), (11, 21), (31, 41)]), [((1, 21), 2), ((31, 41), 1)]);
        assert_eq!(update(&[(11, 21), (31, 41)]), [], "the first was retransmitted");
        assert_eq!(update(&[(1, 11), (11, 21), (31, 41)]), [((1, 11), 1)], "and lost again");
        assert_eq!(update(&[]), []);
    }
}
