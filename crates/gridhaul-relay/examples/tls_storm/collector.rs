//! A collector as a process in another namespace.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::certificates::Authority;

pub(crate) const PORT: u16 = 4059;

/// A running collector, and what meters need to connect.
pub(crate) struct Collector {
    process: Child,
    pub client: Arc<ClientConfig>,
    /// Size of its certificate.
    pub certificate_byte: usize,
    _folder: tempfile::TempDir,
}

impl Collector {
    /// Starts a collector with the default limits on handshakes. Its head is absent: with tier
    /// `memory` a report is stored all the same.
    pub(crate) fn start(relay: &str, namespace: &str, address: Ipv4Addr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Authority::new(folder.path(), "authority").issue("relay", "relay");
        // A handshake over a link that is full takes longer than the default limit.
        let text = format!(
            "name = \"collector\"\n[collector]\ntier = \"memory\"\nupstream = \"127.0.0.1:9\"\n\
             handshake_limit = \"10 min\"\n[collector.listener.meters]\n\
             address = \"{address}:{PORT}\"\n\
             tls.certificate = \"relay.pem\"\ntls.key = \"relay.key\"\n"
        );
        let file = folder.path().join("collector.toml");
        fs::write(&file, text).unwrap();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, relay, "run"]).arg(&file);
        let mut process =
            command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("ip(8) exists");
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut seen = String::new();
        loop {
            match lines.next() {
                Some(Ok(line)) if line.contains("is ready") => break,
                Some(Ok(line)) => seen += &(line + "\n"),
                _ => panic!("the collector has not started:\n{seen}"),
            }
        }
        // The pipe must not fill.
        thread::spawn(move || lines.map_while(Result::ok).count());
        let pem = |name: &str| CertificateDer::from_pem_file(folder.path().join(name)).unwrap();
        let certificate_byte = pem("relay.pem").len();
        let mut roots = RootCertStore::empty();
        roots.add(pem("authority.pem")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots);
        // Each storm needs full handshakes.
        let mut client = client.with_no_client_auth();
        client.resumption = rustls::client::Resumption::disabled();
        Self { process, client: Arc::new(client), certificate_byte, _folder: folder }
    }

    /// CPU time of its process in seconds, with the resolution of the scheduler.
    pub(crate) fn cpu_s(&self) -> f64 {
        let threads = fs::read_dir(format!("/proc/{}/task", self.process.id())).unwrap();
        let time = |thread: fs::DirEntry| {
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<f64>().ok()
        };
        threads.filter_map(Result::ok).filter_map(time).sum::<f64>() / 1e9
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // `ip netns exec` has become the relay.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
