//! Division of work between a proxy in user space and the kernel's bridge, such that the bridge
//! takes over when the proxy ends or hangs.
//!
//! A proxy receives the TCP packets of two bridged devices over packet sockets and sends them over
//! the other device. A program of traffic control (`bpf/lease.bpf.c`) withholds the same packets
//! from the bridge, as long as the proxy renews its lease. Its attachment ends with the process; if
//! the process hangs, the lease expires. In both cases the bridge forwards, as it always does with
//! packets that are not TCP.
//!
//! A second program resets connections for which the proxy has acknowledged data that it had not
//! delivered. It stays attached when the process is killed, and does nothing for connections that
//! are not [protected](Lease::protect).

mod devices;
mod error;
mod flow;
mod hand_over;
mod probe;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::PacketSocket;
use crate::bpf::{
    self, BpfError, EntryTypes, HashMap, Loader, MapKind, Object, TrafficDirection, map_lookup,
    map_update,
};

pub use error::LeaseError;
pub use flow::ProtectedFlow;
pub use hand_over::LeaseHandOver;
pub use probe::Probe;

use devices::Devices;
use flow::{KEY_LEN, VALUE_LEN};

/// The program, compiled by `cargo xtask bpf`.
const PROGRAM: &[u8] = include_bytes!("../../bpf/compiled/lease.o");

/// A lease on the TCP packets between two devices of a bridge. It ends when this is dropped.
#[derive(Debug)]
pub struct Lease {
    devices: Devices,
    lease: OwnedFd,
    counters: OwnedFd,
    flows: HashMap<KEY_LEN, VALUE_LEN>,
    filter: OwnedFd,
    resetting: OwnedFd,
    /// Attachments of the program that withholds packets.
    links: Vec<OwnedFd>,
    owner: u64,
    /// End of the lease by the monotonic clock; 0 before it has begun.
    until_ns: u64,
    /// When the connections of earlier owners are forgotten.
    abandoned_until_ns: u64,
    /// The next version of the program continues the lease.
    is_handed_over: bool,
}

/// Result of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// The lease has begun.
    Begun,
    /// The lease did not expire since the last renewal.
    Held,
    /// The lease has expired, and begins again. The bridge has forwarded packets in the meantime:
    /// the state of all connections is outdated, and protected connections are reset.
    Expired,
}

/// Counters of the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeaseCounters {
    /// Packets withheld from the bridge.
    pub withheld: u64,
    /// Packets of abandoned connections that were answered with a reset.
    pub resets: u64,
    /// Fragments of TCP packets, which the bridge forwards.
    pub fragments: u64,
}

impl Lease {
    /// Time after a renewal at which the lease expires.
    pub const DURATION: Duration = Duration::from_millis(900);

    /// Time between renewals: a process that is delayed by less than the difference keeps the
    /// lease.
    pub const INTERVAL: Duration = Duration::from_millis(100);

    /// Largest number of connections that can be protected at the same time.
    pub const PROTECTED_MAX: u32 = 131_072;

    /// Whether two devices in the namespace of the calling thread can have a lease.
    ///
    /// # Errors
    /// They are not the two ports of a bridge, or the kernel is too old.
    pub fn check(interfaces: [&str; 2]) -> Result<(), LeaseError> {
        EarlierPrograms::find(&Devices::find(interfaces)?).map(drop)
    }

    /// Attaches the programs to two devices in the namespace of the calling thread. The lease
    /// begins with the first [renewal](Self::renew).
    ///
    /// # Errors
    /// The devices are not the two ports of a bridge, or the kernel rejects the programs. The error
    /// names the remedy.
    pub fn attach(interfaces: [&str; 2]) -> Result<Self, LeaseError> {
        Self::attach_as(interfaces, None)
    }

    /// The same for a lease that the previous version of the program has handed over. The lease
    /// continues at once, and the connections that were protected remain so.
    ///
    /// # Errors
    /// As those of [`Self::attach`].
    pub fn take_over(interfaces: [&str; 2], hand_over: LeaseHandOver) -> Result<Self, LeaseError> {
        let lease = Self::attach_as(interfaces, Some(hand_over.owner));
        // The attachments of the previous program end after those of this one have begun.
        drop(hand_over.links);
        lease
    }

    fn attach_as(interfaces: [&str; 2], owner: Option<u64>) -> Result<Self, LeaseError> {
        let devices = Devices::find(interfaces)?;
        let earlier = EarlierPrograms::find(&devices)?;
        let object = Object::parse(PROGRAM)?;
        let mut loader = Loader::new("gh_lease", &object)?;
        loader.make_map("lease", MapKind::SingleEntry, "lease", "gh_lease")?;
        loader.make_map("counters", MapKind::SingleEntry, "lease_counters", "gh_lease_count")?;
        match earlier.flows()? {
            Some(flows) => loader.use_map("flows", flows),
            None => {
                let entries = EntryTypes { key: "flow", value: "flow_protection" };
                loader.make_hash_map("flows", entries, 2 * Self::PROTECTED_MAX, FLOWS)?;
            }
        }
        let resetting = loader.load_classifier("classifier/reset", RESET)?;
        let filter = loader.load_socket_filter("socket/copy", "gh_lease_copy")?;
        let withhold = |device| {
            let (section, direction) = ("classifier/withhold", TrafficDirection::Ingress);
            loader.attach_classifier(section, "gh_lease_hold", device, direction)
        };
        let links = devices.indexes.into_iter().map(withhold).collect::<Result<_, _>>()?;
        let mut map = |name: &str| {
            loader.take_map(name).ok_or_else(|| BpfError::Object(format!("no map {name}")))
        };
        let (lease, counters) = (map("lease")?, map("counters")?);
        let flows = HashMap::new(map("flows")?).map_err(LeaseError::flows)?;
        let now = now_ns();
        let until_ns = owner.map_or(0, |_| now + Self::DURATION.as_nanos() as u64);
        let (owner, abandoned_until_ns) = (owner.unwrap_or(now), 0);
        let mut lease = Self {
            devices,
            lease,
            counters,
            flows,
            filter,
            resetting,
            links,
            owner,
            until_ns,
            abandoned_until_ns,
            is_handed_over: false,
        };
        if !lease.abandoned()?.is_empty() {
            lease.abandoned_until_ns = now + FORGOTTEN;
        }
        lease.write()?;
        for device in lease.devices.indexes {
            bpf::attach_first(lease.resetting.as_fd(), device).map_err(LeaseError::attaching)?;
        }
        earlier.remove();
        Ok(lease)
    }

    /// Lets a packet socket of one of the devices receive only the packets that are withheld from
    /// the bridge, and messages of ICMP about the MTU of paths, which are not withheld.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn filter(&self, socket: &PacketSocket) -> Result<(), LeaseError> {
        socket.set_filter(self.filter.as_fd()).map_err(LeaseError::filter)
    }

    /// Begins the lease, or extends it to [`Self::DURATION`] from now on.
    ///
    /// # Errors
    /// The kernel's error; the lease expires.
    pub fn renew(&mut self) -> Result<Renewal, LeaseError> {
        let now = now_ns();
        let renewal = match self.until_ns {
            0 => Renewal::Begun,
            until if now < until => Renewal::Held,
            _ => Renewal::Expired,
        };
        if renewal == Renewal::Expired {
            // Connections that were protected until now are those of an earlier owner.
            self.owner = now;
            self.abandoned_until_ns = now + FORGOTTEN;
        }
        if self.abandoned_until_ns != 0 && now >= self.abandoned_until_ns {
            self.forget_abandoned()?;
            self.abandoned_until_ns = 0;
        }
        self.until_ns = now + Self::DURATION.as_nanos() as u64;
        self.write()?;
        Ok(renewal)
    }

    /// Ends the part of this process in the lease, which continues for [`Self::DURATION`] until the
    /// next version of the program [takes it over](Self::take_over). `None` if it has expired.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn hand_over(mut self) -> Result<Option<LeaseHandOver>, LeaseError> {
        if self.renew()? != Renewal::Held {
            return Ok(None);
        }
        self.is_handed_over = true;
        Ok(Some(LeaseHandOver { owner: self.owner, links: std::mem::take(&mut self.links) }))
    }

    /// Protects a connection, before data of its hosts is acknowledged that has not been delivered:
    /// if the lease ends before [`Self::unprotect`], the next packet of each host is answered with
    /// a reset.
    ///
    /// # Errors
    /// [`Self::PROTECTED_MAX`] connections are protected.
    pub fn protect(&self, flow: &ProtectedFlow) -> Result<(), LeaseError> {
        for flow in [*flow, flow.reversed()] {
            self.flows
                .insert(&flow.key(), &flow.value(self.owner, self.devices.indexes))
                .map_err(LeaseError::flows)?;
        }
        Ok(())
    }

    /// Ends the protection of a connection: all data that was acknowledged has been delivered.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn unprotect(&self, flow: &ProtectedFlow) -> Result<(), LeaseError> {
        for key in [flow.key(), flow.reversed().key()] {
            self.flows.remove(&key).map_err(LeaseError::flows)?;
        }
        Ok(())
    }

    /// Segments to both hosts of connections that an earlier owner of the lease has protected. A
    /// host answers them, and its answer is answered with a reset. Without them, a host that sends
    /// nothing would wait for lost data.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn probes(&self) -> Result<Vec<Probe>, LeaseError> {
        Ok(self.abandoned()?.iter().map(ProtectedFlow::probe).collect())
    }

    /// Packets of both directions of connections that an earlier owner of the lease has protected.
    fn abandoned(&self) -> Result<Vec<ProtectedFlow>, LeaseError> {
        let mut abandoned = Vec::new();
        for key in self.flows.keys().map_err(LeaseError::flows)? {
            let value = self.flows.get(&key).map_err(LeaseError::flows)?;
            let devices = self.devices.indexes;
            let flow = value.map(|value| ProtectedFlow::parse(&key, &value, devices));
            abandoned.extend(flow.filter(|(owner, _)| *owner != self.owner).map(|(_, flow)| flow));
        }
        Ok(abandoned)
    }

    /// Counters of the programs since they were attached.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn counters(&self) -> Result<LeaseCounters, LeaseError> {
        let bytes = map_lookup(self.counters.as_fd(), 0, 24).map_err(LeaseError::map)?;
        let count = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        Ok(LeaseCounters { withheld: count(0), resets: count(8), fragments: count(16) })
    }

    fn forget_abandoned(&self) -> Result<(), LeaseError> {
        self.abandoned()?
            .iter()
            .try_for_each(|flow| self.flows.remove(&flow.key()).map_err(LeaseError::flows))
    }

    /// Writes `struct lease`.
    fn write(&self) -> Result<(), LeaseError> {
        let mut value = [0_u8; LEASE_LEN];
        value[..8].copy_from_slice(&self.until_ns.to_ne_bytes());
        value[8..16].copy_from_slice(&self.owner.to_ne_bytes());
        value[16..20].copy_from_slice(&self.devices.indexes[0].to_ne_bytes());
        value[20..24].copy_from_slice(&self.devices.indexes[1].to_ne_bytes());
        value[24..28].copy_from_slice(&u32::from(self.abandoned_until_ns != 0).to_ne_bytes());
        value[28..32].copy_from_slice(&(self.devices.addresses.len() as u32).to_ne_bytes());
        for (index, address) in self.devices.addresses.iter().enumerate() {
            value[32 + 8 * index..38 + 8 * index].copy_from_slice(address);
        }
        map_update(self.lease.as_fd(), 0, &value).map_err(LeaseError::map)
    }
}

/// Release of the running kernel, such as `6.1.0-27-amd64`.
fn kernel_release() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    release.map_or_else(|_| "unknown".to_owned(), |release| release.trim().to_owned())
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.is_handed_over {
            return;
        }
        self.links.clear();
        self.until_ns = 0;
        // Errors are ignored: the lease expires by itself, and connections are reset on their next
        // packet.
        let _ = self.write();
        if self.flows.keys().is_ok_and(|keys| keys.is_empty()) {
            for device in self.devices.indexes {
                let _ = bpf::detach(self.resetting.as_fd(), device);
            }
        }
    }
}

/// Programs for abandoned connections that earlier processes have left on the devices.
struct EarlierPrograms(Vec<(u32, OwnedFd, Vec<u32>)>);

impl EarlierPrograms {
    fn find(devices: &Devices) -> Result<Self, LeaseError> {
        let mut programs = Vec::new();
        for device in devices.indexes {
            let attached = bpf::attached(device).map_err(LeaseError::listing)?;
            let own = attached.into_iter().filter(|(_, info)| info.name == RESET);
            programs.extend(own.map(|(program, info)| (device, program, info.maps)));
        }
        Ok(Self(programs))
    }

    /// Their map of protected connections; `None` if there is none, or one of another version.
    fn flows(&self) -> Result<Option<OwnedFd>, LeaseError> {
        for id in self.0.iter().flat_map(|(_, _, maps)| maps) {
            let map = bpf::map_by_id(*id).map_err(LeaseError::map)?;
            let info = bpf::map_info(map.as_fd()).map_err(LeaseError::map)?;
            let sizes = (info.key_size as usize, info.value_size as usize);
            if info.name() == FLOWS && sizes == (KEY_LEN, VALUE_LEN) {
                return Ok(Some(map));
            }
        }
        Ok(None)
    }

    /// An error means that the program is no longer there.
    fn remove(self) {
        for (device, program, _) in self.0 {
            let _ = bpf::detach(program.as_fd(), device);
        }
    }
}

/// Names of the program that resets connections, and of its map; the kernel keeps 15 bytes.
const RESET: &str = "gh_lease_reset";
const FLOWS: &str = "gh_lease_flows";

/// Bytes of `struct lease`.
const LEASE_LEN: usize = 56;

/// Time after which abandoned connections are forgotten. Hosts retransmit in this time.
const FORGOTTEN: u64 = 120_000_000_000;

/// The clock of the programs: that of bpf_ktime_get_ns.
fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl LeaseError {
    /// The kernel refuses an attach type that it does not know as an invalid argument.
    fn listing(source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::InvalidInput => Self::OldKernel { release: kernel_release() },
            _ => Self::attaching(source),
        }
    }
    fn attaching(source: io::Error) -> Self {
        Self::from(BpfError::Call {
            operation: "attaching the programs of the lease".into(),
            source,
        })
    }
    fn filter(source: io::Error) -> Self {
        Self::from(BpfError::Call { operation: "filtering a packet socket".into(), source })
    }
    fn flows(source: io::Error) -> Self {
        Self::from(BpfError::Call { operation: "protecting a connection".into(), source })
    }
    fn map(source: io::Error) -> Self {
        Self::from(BpfError::Call { operation: "using a map of the lease".into(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_tcx_is_refused_with_the_remedy() {
        // What Linux 6.1 answers to the query that Linux 6.6 knows.
        let error = LeaseError::listing(io::Error::from(rustix::io::Errno::INVAL)).to_string();
        let release = kernel_release();
        assert!(error.starts_with(&format!("Linux {release} has no tcx")), "{error}");
        for part in ["Linux 6.6 or later", "CONFIG_NET_XGRESS", "set `fail_open = false`"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        let error = LeaseError::listing(io::Error::from(rustix::io::Errno::PERM)).to_string();
        assert!(error.contains("CAP_BPF") && !error.contains("6.6"), "{error}");
    }
}
