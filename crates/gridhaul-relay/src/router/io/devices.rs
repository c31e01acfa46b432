//! Devices of the links of a hybrid router. One that is down or does not exist delays only its own
//! link.

use std::net::IpAddr;

use gridhaul_linux::{Error, interface_index, read_output, read_sysctl};
use gridhaul_scenario::relay::{RouterConfig, RouterLink, network_prefixes};
use gridhaul_scenario::scenario::IpVersion;

use super::plan::{DeviceBefore, Plan, reverse_path_filter_of, versions};
use super::step::Step;
use super::system::{NODE, apply};
use crate::runtime::{Level, RunError, report};

/// Bytes of the Ethernet header.
const ETHERNET: u32 = 14;

/// Segments of a unit of segmentation offload that a new device permits (`GSO_MAX_SEGS`,
/// `<linux/netdevice.h>`).
const GSO_MAX_SEGMENTS: &str = "65535";

/// Makes the changes of each link. The kernel refuses routes over a device that is down, and all
/// changes of a device that does not exist: both follow when the device has carrier.
pub(super) fn apply_links(router: &RouterConfig, plan: &Plan) -> Result<(), Error> {
    apply_steps(router, |link| plan.devices[link].iter().chain(&plan.routes[link]).collect())
}

/// Repeats the changes of each link that the kernel may have undone while no process has observed
/// the devices.
pub(super) fn repeat_links(router: &RouterConfig, plan: &Plan) -> Result<(), Error> {
    apply_steps(router, |link| {
        let device = &router.link[link].device;
        // Only a device that was deleted and created again has lost its shaper.
        let is_set = chosen_disciplines(device).is_ok_and(|found| found.is_some());
        let steps = plan.devices[link].iter();
        let steps = steps.filter(|step| !is_set || matches!(step, Step::Sysctl { .. }));
        steps.chain(&plan.routes[link]).collect()
    })
}

fn apply_steps<'p>(
    router: &RouterConfig,
    steps: impl Fn(usize) -> Vec<&'p Step>,
) -> Result<(), Error> {
    for (number, (name, link)) in router.link.iter().enumerate() {
        if let Err(error) = steps(number).into_iter().try_for_each(apply) {
            if is_up(&link.device) {
                return Err(error);
            }
            let text = format!(
                "link {name}: the device {} is down or does not exist; the link is used when the \
                 device is up",
                link.device
            );
            report(Level::Warning, &text);
        }
    }
    Ok(())
}

/// Whether a device exists and is up, with or without carrier.
fn is_up(device: &str) -> bool {
    let shown = read_output("ip", &["link", "show", "dev", device], NODE).unwrap_or_default();
    let flags = shown.split(['<', '>']).nth(1).unwrap_or_default();
    flags.split(',').any(|flag| flag == "UP")
}

/// A device of the configuration must carry the probes of its link. Returns faults with which the
/// router starts: devices that do not exist.
pub(super) fn check(router: &RouterConfig) -> Result<Vec<String>, RunError> {
    let mut faults = Vec::new();
    for (name, link) in &router.link {
        if interface_index(&link.device).is_err() {
            faults.push(format!(
                "router.link.{name}.device: there is no network device {:?}\n  help: `ip link` \
                 lists the devices; a hybrid router that runs uses the link when the device exists",
                link.device
            ));
            continue;
        }
        if let (Some(size), Some(mtu)) = (link.probe_size, mtu_of(&link.device)?)
            && size.get() > mtu
        {
            return Err(RunError::Invalid(format!(
                "router.link.{name}.probe_size: {} B exceed the MTU of {}, {mtu} B\n  help: write \
                 the MTU of the path, at most \"{mtu} B\"",
                size.get(),
                link.device
            )));
        }
    }
    Ok(faults)
}

/// Notes about Ethernet links without a next hop. The kernel looks for the host of each packet on
/// such a link, where the peer answers for itself only: its probes arrive, and nothing else does.
pub(crate) fn notes(router: &RouterConfig) -> Vec<String> {
    let peer = router.peer.parse().ok();
    let is_beyond_peer = |version: &IpVersion| {
        let mut networks = network_prefixes(&router.destinations).into_iter();
        networks.any(|(ip, _)| IpVersion::of_address(ip) == *version && Some(ip) != peer)
    };
    let mut notes = Vec::new();
    for (name, link) in router.link.iter().filter(|(_, link)| is_ethernet(&link.device)) {
        let gateways = || link.gateway.iter().filter_map(|ip| ip.parse::<IpAddr>().ok());
        let has_gateway =
            |version: IpVersion| gateways().any(|ip| IpVersion::of_address(ip) == version);
        let mut missing = versions(router).into_iter().filter(|version| !has_gateway(*version));
        if missing.any(|version| is_beyond_peer(&version)) {
            notes.push(format!(
                "router.link.{name}.gateway: {} is an Ethernet device without a next hop, on which \
                 the kernel looks for each destination itself\n  help: write the address of the \
                 peer ({}), unless it answers for the destinations (proxy ARP)",
                link.device, router.peer
            ));
        }
    }
    notes
}

fn is_ethernet(device: &str) -> bool {
    let shown = read_output("ip", &["link", "show", "dev", device], NODE);
    shown.is_ok_and(|text| text.contains("link/ether"))
}

/// The MTU of a device in bytes.
fn mtu_of(device: &str) -> Result<Option<u64>, Error> {
    let text = read_output("ip", &["link", "show", "dev", device], NODE)?;
    let mut words = text.split_whitespace().skip_while(|word| *word != "mtu");
    Ok(words.nth(1).and_then(|mtu| mtu.parse().ok()))
}

/// Nobody else may shape a device whose link has a shaper.
pub(super) fn check_free(router: &RouterConfig) -> Result<(), RunError> {
    for (name, link) in router.link.iter().filter(|(_, link)| link.shaper.is_some()) {
        let device = &link.device;
        if interface_index(device).is_err() {
            continue;
        }
        if let Some(found) = chosen_disciplines(device)? {
            return Err(RunError::Invalid(format!(
                "router.link.{name}.shaper: {device} has a queueing discipline already: {found}\n  \
                 help: remove it (`tc qdisc del dev {device} root`), or the shaper"
            )));
        }
    }
    Ok(())
}

/// The queueing disciplines of a device, unless the kernel has chosen all of them, which have the
/// handle 0.
fn chosen_disciplines(device: &str) -> Result<Option<String>, Error> {
    let found = read_output("tc", &["qdisc", "show", "dev", device, "root"], NODE)?;
    let is_chosen = found.lines().any(|line| !line.contains(" 0: "));
    Ok(is_chosen.then(|| found.trim().to_owned()))
}

/// Bytes below the IP header that a shaper of the device of a link would count: those of Ethernet.
/// A device that does not exist at present is shaped when it does.
pub(super) fn link_header(link: &RouterLink) -> u32 {
    if link.shaper.is_none() {
        return 0;
    }
    if is_ethernet(&link.device) { ETHERNET } else { 0 }
}

/// The settings of the device of a link; for one that does not exist, those that it will have.
pub(super) fn read_before(link: &RouterLink) -> Result<DeviceBefore, Error> {
    let is_absent = interface_index(&link.device).is_err();
    let device = if is_absent { "default" } else { &link.device };
    let reverse_path_filter = read_sysctl(&reverse_path_filter_of(device))?;
    let gso_max_segments = match &link.shaper {
        Some(_) if is_absent => Some(GSO_MAX_SEGMENTS.to_owned()),
        Some(_) => {
            let text = read_output("ip", &["-d", "link", "show", "dev", device], NODE)?;
            let mut words = text.split_whitespace().skip_while(|word| *word != "gso_max_segs");
            words.nth(1).map(str::to_owned)
        }
        None => None,
    };
    Ok(DeviceBefore { reverse_path_filter, gso_max_segments })
}
