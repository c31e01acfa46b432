//! Captures of the Linux kernel on its loopback device, whose causes are known from the programs.

use std::io::Cursor;

use gridhaul_capture::{CaptureFile, Confidence, Limit, Position, explain};

#[test]
fn causes_of_connections_between_real_kernels_are_found() {
    let captures: [(&str, &[u8], Limit); 3] = [
        // A request is written in two parts; the second waits for a delayed acknowledgement.
        ("nagle", include_bytes!("../kernel/nagle.pcap"), Limit::Nagle),
        // 700 B each 100 ms.
        ("app", include_bytes!("../kernel/app.pcap"), Limit::Application),
        // Requests whose answers take 30 ms.
        ("rr", include_bytes!("../kernel/rr.pcap"), Limit::Application),
    ];
    for (name, bytes, limit) in captures {
        let file = CaptureFile::new(name, Cursor::new(bytes));
        let explanation = explain(vec![file], &mut |_| true).unwrap();
        let connection = &explanation.connections[0];
        let named = (connection.verdict.limit, connection.verdict.confidence);
        assert_eq!(named, (Some(limit), Confidence::High), "{name}: {}", connection.details());
        assert_eq!(connection.position, Position::Sender, "{name}");
    }
}
