//! What the machine must offer, and what it does.

use std::fs;
use std::path::{Path, PathBuf};

use gridhaul_linux::bpf::KERNEL_TYPES;

use crate::Algorithm;
use crate::load::program;

/// Something that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingRequirement {
    /// What.
    pub what: String,
    /// How to get it.
    pub remedy: String,
}

/// What this machine and this build lack to load all algorithms; nothing, if they can be loaded.
#[must_use]
pub fn missing_requirements() -> Vec<MissingRequirement> {
    missing_requirements_for(&Algorithm::ALL, None)
}

/// What lacks for these; with a control group that was chosen none is looked for.
#[must_use]
pub fn missing_requirements_for(
    algorithms: &[Algorithm],
    cgroup: Option<&Path>,
) -> Vec<MissingRequirement> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let uncompiled = algorithms.iter().find_map(|algorithm| program(*algorithm).err());
    let found = [
        uncompiled.map(|why| MissingRequirement {
            what: format!("programs for the kernel: {why}"),
            remedy: "install clang (apt-get install clang) and build gridhaul again".into(),
        }),
        old(&release),
        (!Path::new(KERNEL_TYPES).exists()).then(|| MissingRequirement {
            what: format!("type information of the kernel ({KERNEL_TYPES})"),
            remedy: "a kernel built with CONFIG_DEBUG_INFO_BTF=y, as those of distributions are".into(),
        }),
        missing_permission(),
        (algorithms.contains(&Algorithm::Medx) && cgroup.is_none() && cgroup_root().is_none()).then(|| {
            MissingRequirement {
                what: "control groups, version 2, for the TCP option of gh_medx".into(),
                remedy: "mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified"
                    .into(),
            }
        }),
        cgroup.filter(|_| algorithms.contains(&Algorithm::Medx)).and_then(no_cgroup),
    ];
    found.into_iter().flatten().collect()
}

/// A folder that is no control group of version 2: each of those has a list of controllers.
fn no_cgroup(folder: &Path) -> Option<MissingRequirement> {
    (!folder.join("cgroup.controllers").exists()).then(|| MissingRequirement {
        what: format!("a control group, version 2, at {}", folder.display()),
        remedy: "name a folder below the mount of cgroup2 (`findmnt -t cgroup2`), or make one there with \
                 mkdir"
            .into(),
    })
}

/// Capabilities that this process lacks.
pub(crate) fn missing_permission() -> Option<MissingRequirement> {
    // Who is root in a user namespace alone has no rights over programs of the machine.
    let namespace = fs::read_link("/proc/self/ns/user");
    let own = namespace.is_ok_and(|it| it != Path::new(FIRST_USER_NAMESPACE));
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    unprivileged(if own { "CapEff:\t0" } else { &status })
}

/// `USER_NS_INIT_INO` (linux/nsfs.h): the user namespace that is there when a machine starts.
const FIRST_USER_NAMESPACE: &str = "user:[4026531837]";

/// Where the root of control groups is mounted.
pub(crate) fn cgroup_root() -> Option<PathBuf> {
    mount_of("cgroup2", &fs::read_to_string("/proc/self/mounts").unwrap_or_default())
}

/// The first mount of a kind of file system.
pub(crate) fn mount_of(kind: &str, mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (at, of) = (fields.next()?, fields.next()?);
        (of == kind).then(|| PathBuf::from(at))
    })
}

/// Whether a name is registered in the kernel. The list holds what a namespace without root may see too.
pub(crate) fn is_registered(name: &str) -> bool {
    let list = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    list.is_ok_and(|list| list.split_whitespace().any(|it| it == name))
}

/// Links to registered structures came with Linux 6.4; without them what is loaded outlives who has loaded
/// it, even killed.
const LEAST_RELEASE: (u32, u32) = (6, 4);

fn old(release: &str) -> Option<MissingRequirement> {
    let mut numbers = release.trim().split(['.', '-']).map_while(|part| part.parse().ok());
    let (major, minor) = (numbers.next()?, numbers.next()?);
    let (least_major, least_minor) = LEAST_RELEASE;
    ((major, minor) < LEAST_RELEASE).then(|| MissingRequirement {
        what: "a kernel that takes congestion control for as long as a process lives".into(),
        remedy: format!("Linux {least_major}.{least_minor} or later; this is {}", release.trim()),
    })
}

/// Bits of `CapEff`, from `linux/capability.h`.
const CAPABILITIES: [(&str, u32); 3] =
    [("CAP_NET_ADMIN", 12), ("CAP_PERFMON", 38), ("CAP_BPF", 39)];
const CAP_SYS_ADMIN: u32 = 21;

fn unprivileged(status: &str) -> Option<MissingRequirement> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let held = u64::from_str_radix(line.trim(), 16).ok()?;
    let has = |bit: u32| held >> bit & 1 == 1;
    // CAP_SYS_ADMIN stands for the two that were once part of it.
    let lacks = |(_, bit): &&(&str, u32)| !has(*bit) && (*bit < 32 || !has(CAP_SYS_ADMIN));
    let lacking: Vec<_> = CAPABILITIES.iter().filter(lacks).map(|(name, _)| *name).collect();
    (!lacking.is_empty()).then(|| MissingRequirement {
        what: format!("permission ({})", lacking.join(", ")),
        remedy: "run as root, outside of a container, or with these capabilities".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_kernels_are_named() {
        assert_eq!(old("6.18.44-generic\n"), None);
        assert_eq!(old("6.4.0"), None);
        let remedy = old("6.1.0-38-amd64").unwrap().remedy;
        assert_eq!(remedy, "Linux 6.4 or later; this is 6.1.0-38-amd64");
    }

    #[test]
    fn permissions_are_named() {
        let status = |held: u64| format!("Name:\tx\nCapEff:\t{held:016x}\n");
        assert_eq!(unprivileged(&status(1 << 12 | 1 << 38 | 1 << 39)), None);
        assert_eq!(unprivileged(&status(1 << 12 | 1 << 21)), None);
        let what = |held| unprivileged(&status(held)).unwrap().what;
        assert_eq!(what(0), "permission (CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF)");
        assert_eq!(what(1 << 12 | 1 << 39), "permission (CAP_PERFMON)");
    }

    #[test]
    fn folders_that_are_no_control_groups_are_named() {
        let missing = missing_requirements_for(&[Algorithm::Medx], Some(Path::new("/proc")));
        let what = "a control group, version 2, at /proc";
        assert!(missing.iter().any(|missing| missing.what == what), "{missing:?}");
        let missing = missing_requirements_for(&[Algorithm::Vegas], Some(Path::new("/proc")));
        assert!(missing.iter().all(|missing| missing.what != what), "only MEDX has a use for it");
    }

    #[test]
    fn mounts_are_found_by_kind() {
        let mounts =
            "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(mount_of("cgroup2", mounts), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(mount_of("bpf", mounts), None);
    }
}
