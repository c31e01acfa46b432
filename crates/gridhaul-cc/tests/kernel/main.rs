//! The programs in the kernel of this machine, between three network namespaces. Needs root.
#![expect(clippy::disallowed_methods, reason = "the packets of a real kernel take their time")]

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
/// Connections that are counted together where chance decides.
const CONNECTIONS: u64 = 4;
/// What 10 Mbit/s carry in this time, less headers and the start.
const LEAST_BYTES: u64 = 1_500_000;

#[test]
fn vegas_holds_its_queue_and_reno_fills_it() {
    let Some(_permit) = permit() else { return };
    let reno = Network::new(RATE, QUEUE).send("reno", RUN);
    let vegas = |alpha, beta| {
        let vegas = VegasSettings { alpha, beta, gamma: 1 };
        let settings = Settings { vegas, ..Settings::default() };
        let loaded = LoadedAlgorithms::load(&[Algorithm::Vegas], &settings).unwrap();
        let sent = Network::new(RATE, QUEUE).send("gh_vegas", RUN);
        let counted = vegas_counters(&loaded);
        ((sent, counted), counted.corrected)
    };
    let (small, counted) = undisturbed(|| vegas(1, 3));
    // Slow start ends early, so the window has to grow to α step by step.
    let (large, grown) = undisturbed(|| vegas(20, 24));
    for sent in [&reno, &small, &large] {
        println!("{sent:?}");
        assert!(sent.bytes > LEAST_BYTES, "{sent:?}");
    }
    assert!(reno.waiting > 40 && reno.rtt_ms > 40.0, "{reno:?}");
    // A segment is on the wire and one is about to come: the sender counts more than the queue.
    assert!((1..=4).contains(&small.waiting) && small.rtt_ms < 8.0, "{small:?}");
    assert!((16..=25).contains(&large.waiting) && grown.grown >= 10, "{large:?} {grown:?}");
    assert!(counted.opened == 1 && counted.rounds > 50 && counted.held > 20, "{counted:?}");
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
        ((loaded, medx, network.lost(), counted), counted.corrected)
    });
    // The queue did not overflow, so every loss was an error.
    assert!(lost >= 15 && overflowed == 0, "{lost} {overflowed}");
    assert!(counted.error >= 4, "{counted:?}");
    assert!(counted.congestion + counted.unclassified <= counted.error / 4, "{counted:?}");
    // Beside four SACK blocks there is no room for a delay.
    assert!(counted.delays > 4 * counted.without_delay, "{counted:?}");
    assert_eq!(counted.offset_removed, 0, "one clock");

    let reno = lossy().send("reno", RUN);
    println!("{lost} errors; MEDX {medx:?}, {counted:?}; Reno {reno:?}");
    assert!(medx.rtt_ms > 2.0 * reno.rtt_ms, "MEDX {medx:?}, Reno {reno:?}");

    // The option: 12 bytes of each segment, a delay at the receiver; and nothing of it with Reno, whose
    // segments are 1,460 bytes but for the last of a write.
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

/// The receiver has made the connection here, and nothing but the option in the answer to it tells it that
/// delays are wanted.
#[test]
fn medx_serves_over_ipv6_and_outlives_its_unloading() {
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

/// Below any average, and with two delays in the list, about half of the losses pass for congestion: a coin is
/// thrown at each. So several connections are counted together, each begun anew.
#[test]
fn medx_reduces_its_window_at_congestion() {
    let Some(_permit) = permit() else { return };
    let one = |medx: MedxSettings| {
        let settings = Settings { medx, ..Settings::default() };
        let loaded = LoadedAlgorithms::load(&[Algorithm::Medx], &settings).unwrap();
        let network = Network::new(RATE, "30000");
        network.send("gh_medx", RUN);
        let counted = medx_counters(&loaded);
        ([network.lost().1, counted.error, counted.congestion], counted.corrected)
    };
    let all = |medx| -> [u64; 3] {
        let counts: Vec<_> = (0..CONNECTIONS).map(|_| undisturbed(|| one(medx))).collect();
        println!("lost, called error, called congestion: {counts:?}");
        [0, 1, 2].map(|column| counts.iter().map(|row| row[column]).sum())
    };
    let eager = MedxSettings { beta: 0.001, buffer: 2, ..MedxSettings::default() };
    let blind = MedxSettings { beta: 1000.0, ..MedxSettings::default() };
    let ([few, _, called], [many, errors, never]) = (all(eager), all(blind));
    assert!(called >= CONNECTIONS, "{called}");
    assert!(never == 0 && errors >= CONNECTIONS, "{never} {errors}");
    assert!(many > 2 * few, "windows that are never reduced lose {many}, else {few}");
}

#[test]
fn a_timeout_is_judged_once_and_then_collapses_the_window() {
    let Some(_permit) = permit() else { return };
    let loaded = LoadedAlgorithms::load(&[Algorithm::Medx], &Settings::default()).unwrap();
    let network = Network::new(RATE, QUEUE);
    let sent = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            network.lose_every(1);
            thread::sleep(Duration::from_millis(2000));
            network.heal();
        });
        network.send("gh_medx", Duration::from_secs(5))
    });
    let counted = medx_counters(&loaded);
    // Nothing comes back, so the second timeout has no delay to be judged by.
    let judged = counted.error + counted.congestion;
    assert!(counted.timeouts >= 2 && judged >= 1 && counted.unclassified >= 1, "{counted:?}");
    assert!(sent.bytes > LEAST_BYTES, "it goes on afterwards: {sent:?}");
}

#[test]
fn what_is_not_kept_ends_with_its_holder() {
    let Some(_permit) = permit() else { return };
    let loaded = LoadedAlgorithms::load(&Algorithm::ALL, &Settings::default()).unwrap();
    let status = gridhaul_cc::status().unwrap();
    let seen: Vec<_> = status.iter().map(|it| (it.algorithm, it.registered, it.pinned)).collect();
    assert_eq!(seen, [(Algorithm::Vegas, true, false), (Algorithm::Medx, true, false)]);
    assert_eq!(status[0].holders[0].pid, std::process::id());

    let again = LoadedAlgorithms::load(&[Algorithm::Vegas], &Settings::default()).unwrap_err();
    assert!(matches!(again, Error::Registered { .. }), "{again}");
    let text = again.to_string();
    let expected = format!("gh_vegas is loaded already, by process {}", std::process::id());
    assert!(text.starts_with(&expected) && text.ends_with("end that first"), "{text}");
    drop(loaded);
    assert_nothing_is_left();
}

#[test]
fn what_is_kept_stays_until_it_is_unloaded() {
    let Some(_permit) = permit() else { return };
    LoadedAlgorithms::load(&Algorithm::ALL, &Settings::default()).unwrap().pin().unwrap();
    let status = gridhaul_cc::status().unwrap();
    assert!(
        status.iter().all(|it| it.registered && it.pinned && it.holders.is_empty()),
        "{status:?}"
    );
    let again =
        LoadedAlgorithms::load(&Algorithm::ALL, &Settings::default()).unwrap_err().to_string();
    assert_eq!(again, "gh_vegas is loaded already, and kept: `gridhaul cc unload` ends that");
    assert_eq!(gridhaul_cc::unload(&Algorithm::ALL).unwrap(), Algorithm::ALL);
    assert_nothing_is_left();
    assert_eq!(gridhaul_cc::unload(&Algorithm::ALL).unwrap(), []);
}

/// Sends until the kernel has run the programs all the time. One that runs none in the context of process 1
/// leaves them out whenever it handles a packet while it interrupts that (docs/limitations/kernel.md).
fn undisturbed<T>(send: impl Fn() -> (T, u64)) -> T {
    for _ in 0..5 {
        let (sent, corrected) = send();
        if corrected == 0 {
            return sent;
        }
        println!("the kernel has not run its programs, corrected {corrected} times: once more");
    }
    panic!("this kernel does not run its programs: five times of five");
}

/// The kernel frees what nobody uses a moment later.
fn assert_nothing_is_left() {
    for _ in 0..100 {
        if gridhaul_cc::status().unwrap().is_empty() {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(gridhaul_cc::status().unwrap(), []);
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    // Emulated runs beside this one have theirs under names of their own.
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
