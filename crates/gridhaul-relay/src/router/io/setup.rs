//! Start of a hybrid router.

use std::path::Path;
use std::sync::Arc;

use gridhaul_core::router::{LinkSettings, Machine, Settings, link_number};
use gridhaul_linux::{Clock, Error, EventFlags, LinkEvents, interface_index, replace_mark_rules};
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::{RouterConfig, RouterLink};
use gridhaul_scenario::scenario::IpVersion;
use gridhaul_scenario::units::{Duration, Instant};

use super::Loop;
use super::devices;
use super::plan::is_used;
use super::record::{self, Record, path_of};
use super::ruleset::{self, Selection};
use super::shares;
use super::sockets::ProbeSocket;
use super::system::{self, Changes};
use super::token::RouterToken;
use crate::runtime::event_loop::{Drain, LoopState};
use crate::runtime::listening_sockets::ListeningSockets;
use crate::runtime::local_address::is_local;
use crate::runtime::management::StatusRequests;
use crate::runtime::poll::{Poll, Waker};
use crate::runtime::systemd::Watchdog;
use crate::runtime::{RunError, random};

/// The changes of a hybrid router as lines of a shell.
pub(crate) fn commands(router: &RouterConfig) -> Result<String, RunError> {
    let plan = system::plan(router)?;
    Ok(plan.steps().map(|step| format!("{step}\n")).collect())
}

/// Undoes the changes of a hybrid router that does not run. Returns whether there were any.
pub(crate) fn remove(
    config: &RelayConfig,
    router: &RouterConfig,
    folder: &Path,
) -> Result<bool, RunError> {
    let path = path_of(config, router, folder);
    let has_record = Record::read(&path)?.is_some();
    if !has_record && !system::is_installed() {
        return Ok(false);
    }
    // A router that runs although its record was deleted is refused as well.
    let _lock = record::lock(&path)?;
    if has_record {
        return system::remove(&path);
    }
    let (path, table) = (path.display(), ruleset::TABLE);
    Err(RunError::Invalid(format!(
        "router.state: there is no record {path}, but the packet filter has the table {table} of a \
         hybrid router\n  help: if that router has another `name` or `state`, use its \
         configuration; if its record was deleted, undo by hand the changes that `run --dry-run` \
         lists"
    )))
}

/// Checks a configuration on this machine. Returns faults with which the router starts.
pub(crate) fn validate(router: &RouterConfig) -> Result<Vec<String>, RunError> {
    let names: Vec<_> = router.link.keys().collect();
    for (index, name) in names.iter().enumerate() {
        let equal = names[..index].iter().find(|other| link_number(other) == link_number(name));
        if let Some(other) = equal {
            return Err(RunError::Invalid(format!(
                "router.link.{name}: probes cannot distinguish this name from {other:?}\n  help: \
                 rename the link at both routers"
            )));
        }
    }
    for (name, link) in &router.link {
        let unused = link.gateway.iter().find(|gateway| !is_used(router, gateway));
        if let Some(gateway) = unused {
            return Err(RunError::Invalid(format!(
                "router.link.{name}.gateway: {gateway} is not used, because neither a destination \
                 nor the peer has its version of IP\n  help: write the gateway for the other \
                 version, or remove it"
            )));
        }
    }
    shares::check(router)?;
    if router.address.parse().is_ok_and(|address| !is_local(address)) {
        let address = &router.address;
        return Err(RunError::Invalid(format!(
            "router.address: this machine does not have the address {address}\n  help: assign it, \
             for example to the loopback device: `ip address add {address} dev lo`"
        )));
    }
    devices::check(router)
}

impl Loop {
    pub(super) fn new(
        config: &RelayConfig,
        router: &RouterConfig,
        folder: &Path,
        waker: Arc<Waker>,
        mut sockets: ListeningSockets,
    ) -> Result<Self, RunError> {
        let poll = Poll::new(&waker)?;
        let record = path_of(config, router, folder);
        let lock = record::lock(&record)?;
        let requests = StatusRequests::serve(config, folder, &mut sockets, &waker)?;
        // Everything that may fail comes before the changes.
        let (devices, indices, sockets) = open(router, &poll)?;
        let (changes, copy) = system::install(router, &record)?;
        let clock = Clock::starts_in(Duration::ZERO);
        let machine = match start(router, &clock, &indices) {
            Ok(machine) => machine,
            Err(error) => {
                // Adopted changes stay: packets use them, and `run --remove` undoes them.
                if changes == Changes::Own {
                    system::remove(&record)?;
                }
                return Err(error.into());
            }
        };
        Ok(Self {
            clock,
            poll,
            waker,
            state: LoopState { config: config.clone(), requests },
            record,
            copy,
            _lock: lock,
            machine,
            devices,
            indices,
            sockets,
            retry_at: Instant::NEVER,
            watchdog: Watchdog::from_environment(),
            drain: Drain::default(),
        })
    }
}

/// Events of devices; the number of the device of each link, 0 if there is none; and the socket of
/// each link whose device exists.
type Opened = (LinkEvents, Vec<u32>, Vec<Option<ProbeSocket>>);

fn open(router: &RouterConfig, poll: &Poll<RouterToken>) -> Result<Opened, Error> {
    let devices = LinkEvents::open()?;
    poll.add(&devices, RouterToken::Devices, EventFlags::IN)
        .map_err(Error::call("watching devices"))?;
    let (mut indices, mut sockets) = (Vec::new(), Vec::new());
    for (number, link) in router.link.values().enumerate() {
        let index = interface_index(&link.device).unwrap_or(0);
        indices.push(index);
        let open = || ProbeSocket::open_watched(router, number, poll);
        sockets.push((index > 0).then(open).transpose()?);
    }
    Ok((devices, indices, sockets))
}

/// A machine whose links the classes use from now on. It considers all links up whose device
/// exists: the first events of the devices state which are not.
fn start(router: &RouterConfig, clock: &Clock, indices: &[u32]) -> Result<Machine, Error> {
    let machine = Machine::new(clock.now(), settings(router, indices));
    // Classes may use other links than in a process before this one.
    let selected: Vec<_> = (0..=router.class.len())
        .map(|class| Selection { class, link: machine.selected(class) })
        .collect();
    replace_mark_rules(ruleset::TABLE_NAME, &ruleset::selection(&selected))?;
    Ok(machine)
}

fn settings(router: &RouterConfig, indices: &[u32]) -> Settings {
    let version = router.address.parse().map_or(IpVersion::V4, IpVersion::of_address);
    let headers = version.datagram_headers().get();
    let link = |((name, link), index): ((&String, &RouterLink), &u32)| LinkSettings {
        name: name.clone(),
        probe_interval: link.probe_interval,
        large_probe: link.probe_size.map(|size| size.get().saturating_sub(headers) as usize),
        has_carrier: *index > 0,
    };
    let all = 0..router.link.len();
    let order = |names: &[String]| -> Vec<usize> {
        let first: Vec<_> =
            names.iter().filter_map(|name| router.link.get_index_of(name)).collect();
        let rest = all.clone().filter(|link| !first.contains(link));
        first.iter().copied().chain(rest).collect()
    };
    let classes = router.class.values().map(|class| order(&class.links));
    Settings {
        session: random() as u32 | 1,
        detection_time: router.detection_time,
        hold_time: router.hold_time,
        links: router.link.iter().zip(indices).map(link).collect(),
        classes: classes.chain([order(&[])]).collect(),
    }
}
