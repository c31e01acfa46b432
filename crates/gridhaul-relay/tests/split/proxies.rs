//! Proxies as processes: the relay, and the programs that it is compared with.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use gridhaul_testing::{free_address, listen};
use rustix::process::{Pid, Signal, kill_process};

/// A program that forwards each connection over a connection of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Split,
    Haproxy,
    Nginx,
    /// With `proxy_half_close on`, which is not the default.
    NginxHalfClose,
    Socat,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Haproxy => "HAProxy",
            Self::Nginx => "nginx",
            Self::NginxHalfClose => "nginx, half-close on",
            Self::Socat => "socat",
        }
    }

    /// The program of a peer, if it is installed.
    fn path(self) -> Option<PathBuf> {
        let name = match self {
            Self::Split => return None,
            Self::Haproxy => "haproxy",
            Self::Nginx | Self::NginxHalfClose => "nginx",
            Self::Socat => "socat",
        };
        let folders = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
        folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
    }

    pub(crate) fn is_installed(self) -> bool {
        self == Self::Split || self.path().is_some()
    }
}

/// A running proxy.
pub(crate) struct Proxy {
    pub clients: SocketAddr,
    pub management: SocketAddr,
    pub child: Child,
    folder: tempfile::TempDir,
}

impl Proxy {
    /// Starts a proxy to `server`, and waits until it listens. `relay` is the program of the relay,
    /// `keys` are further keys of the table `split`.
    pub(crate) fn start(kind: Kind, relay: &Path, server: SocketAddr, keys: &str) -> Self {
        let upstream = format!("upstream = \"{server}\"");
        let listener = if kind == Kind::Split { &upstream } else { "" };
        Self::start_with(kind, relay, listener, server, keys)
    }

    /// The same with the keys of the listener or, in the configuration of a peer, the options of
    /// its address.
    pub(crate) fn start_with(
        kind: Kind,
        relay: &Path,
        listener: &str,
        server: SocketAddr,
        keys: &str,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (clients, management) = (free_address(), free_address());
        let file = folder.path().join("config");
        let half_close = if kind == Kind::NginxHalfClose { "proxy_half_close on;" } else { "" };
        let text = match kind {
            Kind::Split => format!(
                "name = \"split\"\nmanagement.address = \"{management}\"\n[split]\n{keys}\n\
                 [split.listener.meters]\naddress = \"{clients}\"\n{listener}\n"
            ),
            Kind::Haproxy => format!(
                "global\n maxconn 9000\ndefaults\n mode tcp\n timeout connect 5s\n timeout client \
                 60s\n \
                 timeout server 60s\n maxconn 9000\nlisten meters\n bind {clients} {listener}\n \
                 server upstream {server}\n"
            ),
            Kind::Nginx | Kind::NginxHalfClose => format!(
                "load_module /usr/lib/nginx/modules/ngx_stream_module.so;\ndaemon \
                 off;\nmaster_process off;\n\
                 pid {0}/pid;\nerror_log {0}/error crit;\nworker_rlimit_nofile 20000;\n\
                 events {{ worker_connections 19900; }}\n\
                 stream {{ server {{ listen {clients} backlog=4096 {listener}; proxy_pass \
                 {server}; {half_close} }} }}\n",
                folder.path().display()
            ),
            Kind::Socat => String::new(),
        };
        fs::write(&file, text).unwrap();
        let mut command = Command::new(kind.path().unwrap_or_else(|| relay.to_owned()));
        match kind {
            Kind::Split => command.arg("run").arg(&file),
            Kind::Haproxy => command.arg("-q").arg("-db").arg("-f").arg(&file),
            Kind::Nginx | Kind::NginxHalfClose => command.arg("-c").arg(&file),
            Kind::Socat => {
                let listen =
                    format!("TCP-LISTEN:{},bind={},fork,reuseaddr", clients.port(), clients.ip());
                command.args(["-b", "65536"]).arg(listen).arg(format!("TCP:{server}"))
            }
        };
        let errors = folder.path().join("errors");
        let stderr = fs::File::create(&errors).unwrap();
        // A group of its own, because some peers have processes of their own.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).process_group(0);
        let child = command.spawn().unwrap();
        let mut proxy = Self { clients, management, child, folder };
        let begun = Instant::now();
        while !listener.contains("connect_first") && !is_listening(clients) {
            let ended = proxy.child.try_wait().unwrap();
            if ended.is_some() || begun.elapsed() > Duration::from_secs(30) {
                let text = fs::read_to_string(&errors).unwrap();
                panic!("{} does not listen at {clients}, {ended:?}: {text}", kind.name());
            }
            thread::sleep(Duration::from_millis(5));
        }
        proxy
    }
}

impl Proxy {
    /// Replaces a text in the configuration and lets the proxy read it again.
    pub(crate) fn reload(&self, old: &str, new: &str) {
        let file = self.folder.path().join("config");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(old), "{text}");
        fs::write(&file, text.replace(old, new)).unwrap();
        kill_process(Pid::from_child(&self.child), Signal::HUP).unwrap();
    }

    /// Waits until the proxy has reported a text.
    pub(crate) fn wait_for_report(&self, text: &str) {
        wait_until(text, || self.reports().contains(text));
    }

    /// Everything that the proxy has reported.
    pub(crate) fn reports(&self) -> String {
        fs::read_to_string(self.folder.path().join("errors")).unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

/// Whether a socket listens at an address, without a connection, which the server would see.
pub(crate) fn is_listening(address: SocketAddr) -> bool {
    const LISTEN: &str = "0A";
    let IpAddr::V4(ip) = address.ip() else { return false };
    // Network byte order, read as a number of this machine.
    let local = format!("{:08X}:{:04X}", u32::from_ne_bytes(ip.octets()), address.port());
    let sockets = fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
    sockets.lines().any(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        fields.len() > 3 && fields[1] == local && fields[3] == LISTEN
    })
}

/// Waits until a condition holds.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(30), "waiting until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
