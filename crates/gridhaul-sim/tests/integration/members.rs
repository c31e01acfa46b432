//! Metrics of single members (`record.members`), compared with those of their row.

use gridhaul_scenario::answer::{Answer, Metric};

use crate::schedulers::{close, mean, run};

/// 200 meters, each with its own rate and loss.
const METERS: &str = "title = 'members'\nduration = '60 s'\nwarmup = '10 s'\n\
    record = { members = ['reading'], distribution = ['reading'] }\n\
    [node]\nmeter = { count = 200 }\nhead = {}\n\
    [link.radio]\nfrom = 'meter'\nto = 'head'\nreverse = { rate = '1 Mbit/s' }\n\
    [link.radio.forward]\ndelay = '20 ms'\njitter.size = '100 ms'\n\
    quality = { rate = ['20 kbit/s', '200 kbit/s'], loss = ['50 %', '0 %'] }\n\
    [flow.reading]\nfrom = 'meter'\nto = 'head'\n\
    load.periodic = { size = '200 B', every = '1 s' }\n";

/// A metric of all members, in ascending order.
fn sorted(answer: &Answer, metric: Metric) -> Vec<f64> {
    let members = &answer.points[0].members[0];
    let mut values: Vec<f64> = members.metrics[&metric].iter().flatten().copied().collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

#[test]
fn a_distribution_has_the_values_of_its_members() {
    let answer = run(&format!("{METERS}transport = 'datagram'\n"));
    let goodputs = sorted(&answer, Metric::Goodput);
    let delays = sorted(&answer, Metric::DelayMean);
    assert_eq!((goodputs.len(), delays.len()), (200, 200));
    let row = |metric| mean(&answer, "reading", metric);
    // The smallest of which 0, 2, 100, 198 and 200 of 200 members are at most as large.
    let expected = [
        (Metric::MemberGoodputMin, goodputs[0]),
        (Metric::MemberGoodputP1, goodputs[1]),
        (Metric::MemberGoodputMedian, goodputs[99]),
        (Metric::MemberDelayMedian, delays[99]),
        (Metric::MemberDelayP99, delays[197]),
        (Metric::MemberDelayMax, delays[199]),
    ];
    for (metric, value) in expected {
        close(row(metric), value, 1e-9);
    }
    let different = |values: &[f64]| values.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(different(&[goodputs[0], goodputs[99]]) && different(&delays[189..]));
    // The largest delay of a member is that of any of its messages.
    let largest = sorted(&answer, Metric::DelayMax);
    close(largest[199], row(Metric::DelayMax), 1e-9);
    close(goodputs.iter().sum::<f64>(), row(Metric::Goodput), 1e-9);
}

#[test]
fn counters_of_members_begin_with_the_measured_time() {
    let answer = run(METERS);
    for metric in [Metric::SegmentsSent, Metric::Retransmissions, Metric::Timeouts] {
        let sum: f64 = sorted(&answer, metric).iter().sum();
        close(sum, mean(&answer, "reading", metric), 1e-9);
    }
    assert!(mean(&answer, "reading", Metric::Timeouts) > 0.0);
}

#[test]
fn members_of_a_burst_have_the_time_base_of_their_row() {
    let answer = run("title = 'burst'\nduration = '100 s'\n\
        record = { members = ['gasp'], distribution = ['gasp'] }\n\
        [node]\nmeter = { count = 4 }\nhead = {}\n\
        [link.line]\nfrom = 'meter'\nto = 'head'\nshared = true\n\
        both = { rate = '100 kbit/s', delay = '20 ms' }\n\
        [flow.gasp]\nfrom = 'meter'\nto = 'head'\ntransport = 'datagram'\n\
        load.burst = { size = '97 B', at = '10 s' }\n");
    // Four times 97 B in 60 ms.
    let row = mean(&answer, "gasp", Metric::Goodput);
    close(row, 4.0 * 97.0 * 8.0 / 0.06, 1e-9);
    assert_eq!(sorted(&answer, Metric::Goodput), [row / 4.0; 4]);
    close(mean(&answer, "gasp", Metric::MemberGoodputMin), row / 4.0, 1e-9);
}
