//! The cache by example.

use super::*;

/// A segment that has not been sent yet, with 60 bytes of headers.
fn segment(start: u64, len: u32) -> CachedSegment {
    let segment = Segment { seq: start as u32, len, header: 60, ..Segment::default() };
    CachedSegment {
        start,
        end: start + u64::from(len),
        segment,
        sent: false,
        first_transmission: 1,
        latest_transmission: 1,
        outstanding: u64::MAX,
        sent_at: Instant::ZERO,
        retransmitted: false,
        retransmitted_by_sender: false,
        sacked: false,
    }
}

/// A cache of 500 bytes with segments of 100 bytes at these positions, of which the first
/// `sent` were sent over the hop.
fn cache(starts: &[u64], sent: usize) -> Cache {
    let mut cache = Cache::new(500);
    for &start in starts {
        assert_eq!(cache.insert(segment(start, 100)), Insertion::New { sent: false });
    }
    for &start in &starts[..sent] {
        assert_eq!(cache.next_waiting().map(|next| (next.start, next.sent)), Some((start, true)));
    }
    cache
}

/// Whether this number of bytes is free and no more. A segment with a shorter header counts as
/// one of 40 bytes.
fn has_exactly(cache: &Cache, free: u32) -> bool {
    let segment = |size: u32| Segment { len: size - 40, header: 20, ..Segment::default() };
    cache.has_space(&segment(free)) && !cache.has_space(&segment(free + 1))
}

#[test]
fn headers_count_toward_the_limit_and_not_as_payload() {
    let mut cache = cache(&[0, 100], 2);
    assert!(has_exactly(&cache, 500 - 2 * 160));
    assert_eq!(cache.payload(), 200);
    // A part of the first segment, then the rest of it with its header.
    cache.acknowledge(30, |_| panic!("not the whole segment"));
    assert!(has_exactly(&cache, 500 - 290));
    assert_eq!(cache.payload(), 170);
    let mut whole = Vec::new();
    cache.acknowledge(100, |entry| whole.push((entry.start, entry.segment.len)));
    assert_eq!(whole, [(30, 70)]);
    assert!(has_exactly(&cache, 500 - 160));
    assert_eq!(cache.payload(), 100);
    cache.clear();
    assert!(has_exactly(&cache, 500));
    assert_eq!((cache.payload(), cache.outstanding(), cache.is_empty()), (0, 0, true));
}

#[test]
fn a_segment_is_cached_if_the_whole_of_it_fits() {
    let mut cache = cache(&[0, 100], 0);
    assert_eq!(cache.insert(segment(200, 121)), Insertion::NotCached);
    assert_eq!(cache.insert(segment(200, 120)), Insertion::New { sent: false });
    assert!(!cache.has_space(&Segment::default()));
}

#[test]
fn segments_that_were_sent_and_are_not_acknowledged_are_outstanding() {
    let mut cache = cache(&[0, 100, 200], 2);
    assert_eq!((cache.outstanding(), cache.is_waiting()), (2, true));
    cache.sack(&(100..200), |_| ());
    assert_eq!(cache.outstanding(), 1);
    cache.acknowledge(200, |_| ());
    assert_eq!((cache.outstanding(), cache.is_waiting()), (0, true));
    assert_eq!(cache.next_waiting().map(|next| next.start), Some(200));
    assert_eq!((cache.outstanding(), cache.is_waiting()), (1, false));
    assert!(cache.next_waiting().is_none());
}

/// RFC 2018, section 3: a block has "contiguous and isolated" bytes; a segment of which only a
/// part has arrived is not selectively acknowledged.
#[test]
fn only_sent_segments_within_a_block_are_selectively_acknowledged() {
    let marked = |range: Range<u64>| {
        let mut cache = cache(&[0, 100, 200], 2);
        let mut marked = Vec::new();
        cache.sack(&range, |entry| marked.push(entry.start));
        cache.sack(&range, |_| panic!("marked already"));
        marked
    };
    assert_eq!(marked(0..200), [0, 100]);
    assert_eq!(marked(0..199), [0]);
    assert_eq!(marked(1..200), [100]);
    assert_eq!(marked(100..300), [100], "the last one waits");
}

#[test]
fn a_segment_is_found_by_any_of_its_positions() {
    let cache = cache(&[0, 200], 0);
    let start = |position| cache.at(position).map(|entry| entry.start);
    assert_eq!(
        [0, 99, 100, 199, 200, 299, 300].map(start),
        [Some(0), Some(0), None, None, Some(200), Some(200), None]
    );
}

#[test]
fn a_segment_before_one_that_was_sent_is_a_retransmission_and_counts_as_sent() {
    let mut cache = cache(&[0, 200], 2);
    assert_eq!(cache.insert(segment(100, 100)), Insertion::New { sent: true });
    assert_eq!(cache.outstanding(), 3);
    let by_sender: Vec<_> = cache.iter().map(|entry| entry.retransmitted_by_sender).collect();
    assert_eq!(by_sender, [false, true, false]);
}

#[test]
fn a_copy_is_replaced_by_a_retransmission_with_the_same_boundaries_only() {
    let mut cache = cache(&[0, 100], 1);
    let again = |start, len, header| {
        let old = segment(start, len);
        let segment = Segment { header, ..old.segment };
        CachedSegment { segment, latest_transmission: 7, ..old }
    };
    assert_eq!(cache.insert(again(0, 100, 40)), Insertion::AlreadyCached { sent: true });
    assert_eq!(cache.insert(again(100, 100, 80)), Insertion::AlreadyCached { sent: false });
    let latest: Vec<_> = cache.iter().map(|entry| entry.latest_transmission).collect();
    assert_eq!(latest, [7, 7]);
    assert!(has_exactly(&cache, 500 - 140 - 180));
    assert!(cache.iter().all(|entry| entry.retransmitted_by_sender && !entry.was_sent_once()));
    // Half of one segment and half of the next one.
    assert_eq!(cache.insert(again(50, 100, 40)), Insertion::NotCached);
    assert_eq!(cache.insert(again(100, 99, 40)), Insertion::NotCached);
    assert!(has_exactly(&cache, 500 - 140 - 180));
}

#[test]
fn a_copy_with_a_header_that_does_not_fit_is_not_replaced() {
    let mut cache = cache(&[0, 100, 200], 0);
    let longer = |header| {
        let old = segment(0, 100);
        CachedSegment { segment: Segment { header, ..old.segment }, ..old }
    };
    assert_eq!(cache.insert(longer(81)), Insertion::NotCached);
    assert_eq!(cache.insert(longer(80)), Insertion::AlreadyCached { sent: false });
    assert!(!cache.has_space(&Segment::default()));
}

#[test]
fn a_segment_is_trimmed_at_the_acknowledgement() {
    let trimmed = |una| {
        let entry = segment(100, 50).trimmed(una);
        (entry.start, entry.end, entry.segment.seq, entry.segment.len)
    };
    assert_eq!(trimmed(99), (100, 150, 100, 50));
    assert_eq!(trimmed(130), (130, 150, 130, 20));
}

/// Karn's algorithm.
#[test]
fn a_segment_yields_a_round_trip_if_nobody_has_retransmitted_it() {
    let once = segment(0, 1);
    assert!(once.was_sent_once());
    assert!(!CachedSegment { retransmitted: true, ..once }.was_sent_once());
    assert!(!CachedSegment { retransmitted_by_sender: true, ..once }.was_sent_once());
}
