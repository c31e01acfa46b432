//! Memory of an idle TLS connection: the difference of user-space memory, after one message on each
//! connection.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::Result;
use crate::aggregation::{Aggregation, Options};
use crate::certificates::Authority;
use crate::messages::MESSAGE;
use crate::process::pss_byte;
use crate::proxies::{Kind, Proxy, listen};
use crate::{peers, relay};

const CONNECTIONS: usize = 2_000;

/// A meter with TLS.
type Meter = StreamOwned<ClientConnection, TcpStream>;

/// Certificate and key of the relay, and what meters need to verify them.
struct Tls {
    certificate: String,
    key: String,
    /// Certificate and key in one file.
    both: String,
    client: Arc<ClientConfig>,
}

pub(crate) fn run() -> Vec<Result> {
    eprintln!(
        "\nuser-space memory of an idle connection with TLS 1.3, after a message of 200 bytes"
    );
    let folder = tempfile::tempdir().unwrap();
    let tls = Tls::new(folder.path());
    let own = collector(&tls);
    eprintln!("  {:<20}{own:>10.0} B", "collector, memory");
    for kind in peers().into_iter().filter(|kind| *kind != Kind::Socat) {
        let bytes = proxy(kind, &tls);
        eprintln!("  {:<20}{bytes:>10.0} B  {:.1} times collector", kind.name(), bytes / own);
    }
    vec![Result { name: "idle-tls".to_owned(), value: own, unit: "B", limit: 9_000.0 }]
}

impl Tls {
    fn new(folder: &Path) -> Self {
        Authority::new(folder, "authority").issue("relay", "relay");
        let path = |name: &str| folder.join(name).display().to_string();
        let [certificate, key, both] = ["relay.pem", "relay.key", "both.pem"].map(path);
        let text = fs::read_to_string(&certificate).unwrap() + &fs::read_to_string(&key).unwrap();
        fs::write(&both, text).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(folder.join("authority.pem")).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { certificate, key, both, client: Arc::new(client) }
    }

    /// Connects and sends a message.
    fn connect(&self, address: SocketAddr) -> Meter {
        let name = "127.0.0.1".try_into().unwrap();
        // The certificate is for one address of the loopback network; the relay uses another.
        let connection = ClientConnection::new(Arc::clone(&self.client), name).unwrap();
        let mut meter = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
        meter.write_all(&MESSAGE).unwrap();
        meter.flush().unwrap();
        meter
    }
}

fn collector(tls: &Tls) -> f64 {
    let Tls { certificate, key, .. } = tls;
    let listener = format!("tls.certificate = \"{certificate}\"\ntls.key = \"{key}\"");
    let keys = "handshakes_per_second = 100000";
    let options = Options { keys, listener: &listener, ..Options::default() };
    let relay = Aggregation::start("memory", options);
    let wait = |meters: usize| {
        relay.wait("received_byte", (MESSAGE.len() * meters) as u64);
        relay.wait("backlog_byte", 0);
    };
    let _one = tls.connect(relay.meters);
    wait(1);
    let before = pss_byte(relay.collector.id());
    let meters: Vec<_> = (0..CONNECTIONS).map(|_| tls.connect(relay.meters)).collect();
    wait(meters.len() + 1);
    (pss_byte(relay.collector.id()) - before) / meters.len() as f64
}

/// A peer that decrypts, and forwards each connection.
fn proxy(kind: Kind, tls: &Tls) -> f64 {
    let Tls { certificate, key, both, .. } = tls;
    let listener = match kind {
        Kind::Haproxy => format!("ssl crt {both}"),
        // Debian's nginx permits TLS 1.2 at most, unless it is told otherwise.
        _ => format!(
            "ssl; ssl_protocols TLSv1.3; ssl_certificate {certificate}; ssl_certificate_key {key}"
        ),
    };
    let server = listen();
    let proxy = Proxy::start_with(kind, &relay(), &listener, server.local_addr().unwrap(), "");
    let connect = || {
        let meter = tls.connect(proxy.clients);
        let (mut accepted, _) = server.accept().unwrap();
        accepted.read_exact(&mut MESSAGE.clone()).unwrap();
        (meter, accepted)
    };
    let _one = connect();
    let before = pss_byte(proxy.child.id());
    let connections: Vec<_> = (0..CONNECTIONS).map(|_| connect()).collect();
    (pss_byte(proxy.child.id()) - before) / connections.len() as f64
}
