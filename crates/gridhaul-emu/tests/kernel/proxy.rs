//! Proxies: relay daemons that bridge two links of a run.

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::Backend;
use gridhaul_scenario::scenario::Scenario;

use crate::relay::is_installed;
use crate::{is_trustworthy, mean, run, run_until};

/// A sender, one proxy between two lossy hops, and a receiver.
fn hops(proxy: &str, load: &str) -> String {
    let hop = "both = { rate = '10 Mbit/s', delay = '12.5 ms', loss.bernoulli = '1 %' }";
    format!(
        "title = 'test'\n[node]\nnear = {{}}\nproxy = {{ {proxy} }}\nfar = {{}}\n\
         [link.one]\nfrom = 'near'\nto = 'proxy'\n{hop}\n\
         [link.two]\nfrom = 'proxy'\nto = 'far'\n{hop}\n\
         [stack.reno]\nprofile = 'linux'\ncongestion_control = 'reno'\ntimestamps = false\n\
         [flow.up]\nfrom = 'near'\nto = 'far'\nstack = 'reno'\nload = {load}\n"
    )
}

const TIMES: &str = "duration = '6 s'\nwarmup = '1 s'";

fn goodput(answer: &Answer) -> f64 {
    mean(answer, "up", Metric::Goodput)
}

#[test]
fn a_proxy_repairs_the_losses_of_its_hop() {
    if !is_installed() {
        return;
    }
    let Some(without) = run(TIMES, &hops("", "'bulk'")) else { return };
    // The simulator has gains of 2.8 (`reflect`) and 3.1 (`spoof`), but five seconds have few
    // losses.
    let gain = |answer: &Answer| goodput(answer) / goodput(&without);
    let repeated = |answer: &Answer| mean(answer, "up", Metric::ProxyRetransmissions);
    let is_repaired = |answer: &Answer| gain(answer) > 1.5 && repeated(answer) >= 1.0;
    for mode in ["reflect", "spoof"] {
        let proxy = format!("proxy = {{ mode = '{mode}', buffer = '1 MB' }}");
        let text = format!("{TIMES}\n{}", hops(&proxy, "'bulk'"));
        let Some(answer) = run_until(&text, Emu::default(), is_repaired) else { return };
        assert!(
            is_repaired(&answer) || !is_trustworthy(&answer),
            "{mode}: {} times the goodput without a proxy, {} retransmissions of the proxy",
            gain(&answer),
            repeated(&answer)
        );
    }
}

#[test]
fn every_byte_arrives_through_a_proxy_that_acknowledges_nothing_itself() {
    if !is_installed() {
        return;
    }
    let is_complete = |answer: &Answer| mean(answer, "up", Metric::TransfersFinished) >= 1.0;
    for proxy in ["proxy = { mode = 'snoop', buffer = '1 MB' }", "proxy = { mode = 'ack' }"] {
        let load = "{ transfer = { size = '500 kB' } }";
        // About 2 s at 2 Mbit/s, and several retransmission timeouts. Timestamps make packets
        // larger than the MSS with its headers.
        let hops = hops(proxy, load).replace("timestamps = false\n", "");
        let text = format!("duration = '10 s'\n{hops}");
        let Some(answer) = run_until(&text, Emu::default(), is_complete) else { return };
        assert!(is_complete(&answer) || !is_trustworthy(&answer), "{proxy}: {answer:?}");
    }
}

#[test]
fn a_crash_is_the_end_of_the_process_and_a_restart_another_one() {
    if !is_installed() {
        return;
    }
    let crash = "crash = [{ at = '2 s', down = '1 s' }]";
    let proxy = format!("proxy = {{ mode = 'snoop', buffer = '1 MB', {crash} }}");
    let text = format!("{TIMES}\n{}", hops(&proxy, "'bulk'"));
    // A connection through `snoop` survives the crash: nothing was acknowledged to the sender that
    // the receiver does not have.
    let survives = |answer: &Answer| goodput(answer) > 100_000.0;
    let Some(answer) = run_until(&text, Emu::default(), survives) else { return };
    assert!(survives(&answer), "{answer:?}");
}

#[test]
fn a_killed_proxy_loses_the_bytes_that_it_has_acknowledged() {
    if !is_installed() {
        return;
    }
    // The proxy stores what its slow second hop has not carried yet.
    for (mode, loses) in [("reflect", true), ("split", true), ("snoop", false)] {
        let crash = "crash = [{ at = '2 s' }]";
        let proxy = format!("proxy = {{ mode = '{mode}', buffer = '200 kB', {crash} }}");
        let text = hops(&proxy, "'bulk'").replacen(
            "from = 'proxy'\nto = 'far'\nboth = { rate = '10 Mbit/s'",
            "from = 'proxy'\nto = 'far'\nboth = { rate = '1 Mbit/s'",
            1,
        );
        let Some(answer) = run("duration = '4 s'", &text) else { return };
        let lost = mean(&answer, "up", Metric::LostInCrashes);
        assert_eq!(lost > 50_000.0, loses, "{mode}: {lost} bytes lost");
        assert!(loses || lost == 0.0, "{mode}: {lost} bytes lost");
    }
}

#[test]
fn a_proxy_between_more_than_two_links_is_refused() {
    let keys = |proxy: &str, rest: &str| -> Vec<String> {
        let text = format!("duration = '1 s'\n{}{rest}", hops(proxy, "'bulk'"));
        let scenario = Scenario::from_toml(&text, "test.toml").expect("a scenario");
        let unsupported = Emu::default().supports(&scenario).err().unwrap_or_default();
        unsupported.into_iter().map(|unsupported| unsupported.key).collect()
    };
    let proxy = "proxy = { mode = 'reflect' }";
    assert_eq!(keys(proxy, ""), [""; 0]);
    let third = "[link.three]\nfrom = 'proxy'\nto = 'far'\nboth = { rate = '1 Mbit/s' }\n";
    assert_eq!(keys(proxy, third), ["node.proxy.proxy"]);
    let own = "[flow.own]\nfrom = 'proxy'\nto = 'far'\nstack = 'reno'\nload = 'bulk'\n";
    assert_eq!(keys(proxy, own), ["node.proxy.proxy"]);
    let buffer = "proxy = { mode = 'reflect', buffer = '1.2 GB' }";
    assert_eq!(keys(buffer, ""), ["node.proxy.proxy.buffer"]);
    let delay = "proxy = { mode = 'ack', max_ack_delay = '300 ms' }";
    assert_eq!(keys(delay, ""), ["node.proxy.proxy.max_ack_delay"]);
    let stack = "[stack.slow]\nprofile = 'linux'\ndelayed_ack = '0 s'\nrto_min = '1 s'\n";
    let proxy = "proxy = { mode = 'reflect', stack = 'slow' }";
    assert_eq!(keys(proxy, stack), ["stack.slow.rto_min"]);
}
