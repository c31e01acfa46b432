//! The programs in the kernel of this machine, in a network of three namespaces. Needs root.
#![expect(clippy::disallowed_methods, reason = "a real kernel sends packets in real time")]

mod network;

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;
use std::time::Duration;

use gridhaul_cc::{
    Algorithm, Counters, Error, LoadedAlgorithms, MedxCounters, MedxSettings, Settings,
    VegasCounters, VegasSettings,
};
use network::{Network, permit};

const RUN: Duration = Duration::from_millis(1500);
/// 10 Mbit/s, and a queue of 100 packets: 120 ms.
const RATE: &str = "10mbit";
const QUEUE: &str = "150000";
/// Number of connections whose random results are counted together.
const CONNECTIONS: u64 = 4;
/// Bytes that 10 Mbit/s carry in this time, without headers and the start.
const BYTES_MIN: u64 = 1_500_000;

#[test]
fn vegas_keeps_a_short_queue_and_reno_fills_it() {
    let Some(_permit) = permit() else { return };
    let reno = undisturbed(|| {
        let sent = Network::new(RATE, QUEUE).send("reno", RUN);
        let late = sent.late;
        (sent, Disturbance { corrected: 0, late })
    });
    let vegas = |alpha, beta| {
        let vegas = VegasSettings { alpha, beta, gamma: 1 };
        let settings = Settings { vegas, ..Settings::default() };
        let loaded = LoadedAlgorithms::load(&[Algorithm::Vegas], &settings).unwrap();
        let sent = Network::new(RATE, QUEUE).send("gh_vegas", RUN);
        let counted = vegas_counters(&loaded);
        let disturbance = Disturbance { corrected: counted.corrected, late: sent.late };
        ((sent, counted), disturbance)
    };
    let (small, counted) = undisturbed(|| vegas(1, 3));
    // Slow start ends early, so the window grows to α by one segment per round trip.
    let (large, grown) = undisturbed(|| vegas(20, 24));
    for sent in [&reno, &small, &large] {
        println!("{sent:?}");
        assert!(sent.bytes > BYTES_MIN, "{sent:?}");
    }
    assert!(reno.queued_packets > 40 && reno.rtt_ms > 40.0, "{reno:?}");
    // One segment is in transmission and one is about to arrive: the sender's estimate exceeds the
    // queue.
    assert!((1..=4).contains(&small.queued_packets) && small.rtt_ms < 8.0, "{small:?}");
    assert!((16..=25).contains(&large.queued_packets) && grown.grown >= 10, "{large:?} {grown:?}");
    assert!(counted.opened == 1 && counted.rounds > 50 && counted.unchanged > 20, "{counted:?}");
}

/// Segments of a unit wait for each other at the bottleneck, and Vegas interprets this delay as a
/// queue.
#[test]
fn vegas_sends_each_segment_as_its_own_unit_at_a_low_rate() {
    let Some(_permit) = permit() else { return };
    let segments_per_unit = |control| {
        let network = Network::new("4mbit", QUEUE);
        network.use_segmentation_offload();
        drop(network.send(control, 2 * RUN));
        network.segments_per_unit()
    };
    let reno = segments_per_unit("reno");
    // A window of more than 20 segments permits longer units.
    let vegas = VegasSettings { alpha: 20, beta: 24, gamma: 1 };
    let settings = Settings { vegas, ..Settings::default() };
    let _loaded = LoadedAlgorithms::load(&[Algorithm::Vegas], &settings).unwrap();
    let vegas = segments_per_unit("gh_vegas");
    println!("reno {reno}, gh_vegas {vegas}");
    assert!(reno > 1.25 && vegas < 1.15, "reno {reno}, gh_vegas {vegas}");
}

#[test]
fn medx_keeps_its_window_at_errors() {
    let Some(_permit) = permit() else { return };
    let lossy = || {
        let network = Network::new(RATE, "600000");
        network.lose_every(50);
        network
    };
    let (loaded, medx, (lost, overflowed), counted) = undisturbed(|| {
        let loaded = LoadedAlgorithms::load(&[Algorithm::Medx], &Settings::default()).unwrap();
        let network = lossy();
        let medx = network.send("gh_medx", RUN);
        let counted = medx_counters(&loaded);
        let disturbance = Disturbance { corrected: counted.corrected, late: medx.late };
        ((loaded, medx, network.lost(), counted), disturbance)
    });
    // The queue did not overflow, so every loss was an error.
    assert!(lost >= 15 && overflowed == 0, "{lost} {overflowed}");
    assert!(counted.error >= 4, "{counted:?}");
    assert!(counted.congestion + counted.unclassified <= counted.error / 4, "{counted:?}");
    // With four SACK blocks there is no space for a delay.
    assert!(counted.delays > 4 * counted.without_delay, "{counted:?}");
    assert_eq!(counted.offset_removed, 0, "both ends use the same clock");

    let reno = lossy().send("reno", RUN);
    println!("{lost} errors; MEDX {medx:?}, {counted:?}; Reno {reno:?}");
    assert!(medx.rtt_ms > 2.0 * reno.rtt_ms, "MEDX {medx:?}, Reno {reno:?}");

    // MEDX adds an option of 12 bytes to each segment, and the receiver measures delays. Reno does
    // not use the option: its segments have 1,460 bytes except for the last of a write.
    assert!(medx.segment <= 1448.0, "{medx:?}");
    let ends = |sent: &network::Sent| {
        sent.ends.each_ref().map(|end| loaded.connection(end.as_fd()).unwrap())
    };
    let [sender, receiver] = ends(&medx).map(Option::unwrap);
    assert_eq!(u64::from(sender.error), counted.error);
    assert!(sender.delays > 500 && sender.own_delay_us.is_none(), "{sender:?}");
    // The queue was at most 600,000 B long: 480 ms.
    assert!(receiver.own_delay_us.is_some_and(|us| us < 500_000), "{receiver:?}");
    assert_eq!(ends(&reno), [None, None]);
    assert_eq!(medx_counters(&loaded).opened, 1);
}

/// The receiver opens this connection, and only the option in the SYN-ACK informs it that delays
/// are to be measured.
#[test]
fn medx_works_over_ipv6_and_after_unloading() {
    let Some(_permit) = permit() else { return };
    let loaded = LoadedAlgorithms::load(&[Algorithm::Medx], &Settings::default()).unwrap();
    let network = Network::new(RATE, QUEUE);
    let [mut server, mut client] = network.serve("gh_medx", 120_000);
    let sender = loaded.connection(server.as_fd()).unwrap().unwrap();
    let receiver = loaded.connection(client.as_fd()).unwrap().unwrap();
    assert!(sender.delays > 30 && sender.without_delay < 3, "{sender:?}");
    assert!(receiver.own_delay_us.is_some_and(|us| us < 200_000), "{receiver:?}");

    drop(loaded);
    let status = gridhaul_cc::status().unwrap();
    assert_eq!((status.len(), status[0].registered), (1, false), "{status:?}");
    assert_eq!(status[0].counters.unwrap().open(), 1);
    server.write_all(&[7; 10_000]).unwrap();
    client.read_exact(&mut [0; 10_000]).unwrap();
    drop((server, client, network));
    assert_nothing_is_left();
}

/// With a threshold below any average and two delays in the list, about half of the losses are
/// classified as congestion, at random. The results of several connections are therefore added up.
#[test]
fn medx_reduces_its_window_at_congestion() {
    let Some(_permit) = permit() else { return };
    let one = |medx: MedxSettings| {
        let settings = Settings { medx, ..Settings::default() };
        let loaded = LoadedAlgorithms::load(&[Algorithm::Medx], &settings).unwrap();
        let network = Network::new(RATE, "30000");
        let late = network.send("gh_medx", RUN).late;
        let counted = medx_counters(&loaded);
        let disturbance = Disturbance { corrected: counted.corrected, late };
        ([network.lost().1, counted.error, counted.congestion], disturbance)
    };
    let all = |medx| -> [u64; 3] {
        let counts: Vec<_> = (0..CONNECTIONS).map(|_| undisturbed(|| one(medx))).collect();
        println!("lost, classified as error, classified as congestion: {counts:?}");
        [0, 1, 2].map(|column| counts.iter().map(|row| row[column]).sum())
    };
    let eager = MedxSettings { beta: 0.001, buffer: 2, ..MedxSettings::default() };
    let blind = MedxSettings { beta: 1000.0, ..MedxSettings::default() };
    let ([few, _, congestion], [many, errors, never]) = (all(eager), all(blind));
    assert!(congestion >= CONNECTIONS, "{congestion}");
    assert!(never == 0 && errors >= CONNECTIONS, "{never} {errors}");
    assert!(many > 2 * few, "windows that are never reduced lose {many}, else {few}");
}

#[test]
fn the_first_timeout_is_classified_and_the_next_collapses_the_window() {
    let Some(_permit) = permit() else { return };
    let loaded = LoadedAlgorithms::load(&[Algorithm::Medx], &Settings::default()).unwrap();
    let network = Network::new(RATE, QUEUE);
    let sent = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            network.lose_every(1);
            thread::sleep(Duration::from_millis(2000));
            network.stop_loss();
        });
        network.send("gh_medx", Duration::from_secs(5))
    });
    let counted = medx_counters(&loaded);
    // No acknowledgements arrive, so the second timeout has no delay for its classification.
    let classified = counted.error + counted.congestion;
    assert!(counted.timeouts >= 2 && classified >= 1 && counted.unclassified >= 1, "{counted:?}");
    assert!(sent.bytes > BYTES_MIN, "the transfer continues afterwards: {sent:?}");
}

#[test]
fn algorithms_that_are_not_pinned_are_unloaded_with_their_holder() {
    let Some(_permit) = permit() else { return };
    let loaded = LoadedAlgorithms::load(&Algorithm::ALL, &Settings::default()).unwrap();
    let status = gridhaul_cc::status().unwrap();
    let seen: Vec<_> =
        status.iter().map(|status| (status.algorithm, status.registered, status.pinned)).collect();
    assert_eq!(seen, [(Algorithm::Vegas, true, false), (Algorithm::Medx, true, false)]);
    assert_eq!(status[0].holders[0].pid, std::process::id());

    let again = LoadedAlgorithms::load(&[Algorithm::Vegas], &Settings::default()).unwrap_err();
    assert!(matches!(again, Error::Registered { .. }), "{again}");
    let text = again.to_string();
    let expected = format!("gh_vegas is already loaded, by process {}", std::process::id());
    assert!(text.starts_with(&expected) && text.ends_with("stop that process first"), "{text}");
    drop(loaded);
    assert_nothing_is_left();
}

#[test]
fn pinned_algorithms_stay_until_they_are_unloaded() {
    let Some(_permit) = permit() else { return };
    LoadedAlgorithms::load(&Algorithm::ALL, &Settings::default()).unwrap().pin().unwrap();
    let status = gridhaul_cc::status().unwrap();
    assert!(
        status.iter().all(|status| status.registered && status.pinned && status.holders.is_empty()),
        "{status:?}"
    );
    let again =
        LoadedAlgorithms::load(&Algorithm::ALL, &Settings::default()).unwrap_err().to_string();
    assert_eq!(again, "gh_vegas is already loaded, and pinned: run `gridhaul cc unload` first");
    assert_eq!(gridhaul_cc::unload(&Algorithm::ALL).unwrap(), Algorithm::ALL);
    assert_nothing_is_left();
    assert_eq!(gridhaul_cc::unload(&Algorithm::ALL).unwrap(), []);
}

/// Reason why a run does not show the behaviour of an algorithm.
#[derive(Debug, Clone, Copy)]
struct Disturbance {
    /// Corrections because the kernel did not call the programs. Some kernels do not call them when
    /// a packet is processed in an interrupt of process 1 (docs/limitations/kernel.md).
    corrected: u64,
    /// Lateness of this process: other processes used the processor.
    late: Duration,
}

/// A process of an idle machine is woken much earlier.
const MAX_LATENESS: Duration = Duration::from_millis(2);

/// Repeats a run until it was not disturbed, twelve times at most. From the fifth run on, this
/// process may be late: the kernel sends and queues packets by itself. A run is dropped before the
/// next, because only one process can have an algorithm loaded.
fn undisturbed<T>(send: impl Fn() -> (T, Disturbance)) -> T {
    for run in 1..=12 {
        let (sent, disturbance) = send();
        if disturbance.corrected == 0 && (disturbance.late <= MAX_LATENESS || run >= 5) {
            return sent;
        }
        println!("{disturbance:?}: run repeated");
    }
    panic!("the kernel failed to call the programs in each of twelve runs");
}

/// The kernel frees unused objects with a delay.
fn assert_nothing_is_left() {
    for _ in 0..1_000 {
        if gridhaul_cc::status().unwrap().is_empty() {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(gridhaul_cc::status().unwrap(), []);
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    // Concurrent emulations use names with a suffix.
    let ours = |name: &str| Algorithm::ALL.iter().any(|algorithm| algorithm.name() == name);
    assert!(!names.split_whitespace().any(ours), "{names}");
    assert!(!Path::new("/sys/fs/bpf/gridhaul").exists());
}

fn vegas_counters(loaded: &LoadedAlgorithms) -> VegasCounters {
    match loaded.counters(Algorithm::Vegas).unwrap() {
        Some(Counters::Vegas(counters)) => counters,
        other => panic!("{other:?}"),
    }
}

fn medx_counters(loaded: &LoadedAlgorithms) -> MedxCounters {
    match loaded.counters(Algorithm::Medx).unwrap() {
        Some(Counters::Medx(counters)) => counters,
        other => panic!("{other:?}"),
    }
}
