//! Urgent data (RFC 9293, section 3.8.5), before which a read ends although more data follows.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use gridhaul_testing::wait_until_stopped;
use rustix::process::{Pid, Signal, kill_process};
use socket2::SockRef;

use crate::proxies::{Kind, Proxy, listen};
use crate::relay;

/// Pipes and copies; copies alone; previews of the receive buffer.
const MEANS: [&str; 3] = ["", "pipes = 0", "pipes = 0\nmemory = \"64 KiB\""];

/// Bytes before and after the urgent byte, which the sockets of the proxy leave out of the stream.
type Parts = [usize; 2];

fn start(keys: &str) -> (Proxy, TcpListener, TcpStream) {
    let server = listen();
    let proxy = Proxy::start(Kind::Split, relay(), server.local_addr().unwrap(), keys);
    let client = TcpStream::connect(proxy.clients).unwrap();
    (proxy, server, client)
}

fn send(client: &mut TcpStream, [before, after]: Parts) {
    client.write_all(&vec![b'a'; before]).unwrap();
    assert_eq!(SockRef::from(&*client).send_out_of_band(b"!").unwrap(), 1);
    client.write_all(&vec![b'b'; after]).unwrap();
}

/// Reads both parts of a stream.
fn expect(server: &mut TcpStream, [before, after]: Parts, keys: &str) {
    server.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut found = vec![0; before + after];
    server.read_exact(&mut found).unwrap_or_else(|error| panic!("{keys:?}: {error}"));
    assert!(found[..before].iter().all(|byte| *byte == b'a'), "{keys:?}");
    assert!(found[before..].iter().all(|byte| *byte == b'b'), "{keys:?}");
}

#[test]
fn bulk_data_around_an_urgent_byte_is_complete() {
    for keys in MEANS {
        for (parts, is_closed) in [([1_000_000, 100_000], true), ([20_000_000, 1_000_000], false)] {
            let (_proxy, server, mut client) = start(keys);
            let sender = thread::spawn(move || {
                send(&mut client, parts);
                if is_closed {
                    client.shutdown(Shutdown::Write).unwrap();
                }
                client
            });
            let mut accepted = server.accept().unwrap().0;
            expect(&mut accepted, parts, keys);
            let _client = sender.join().unwrap();
            if is_closed {
                assert_eq!(accepted.read(&mut [0; 1]).unwrap(), 0, "{keys:?}: FIN");
            }
        }
    }
}

#[test]
fn small_data_that_waits_behind_an_urgent_byte_is_read() {
    for keys in MEANS {
        let (proxy, server, mut client) = start(keys);
        let mut accepted = server.accept().unwrap().0;
        client.write_all(b"a").unwrap();
        expect(&mut accepted, [1, 0], keys);
        let process = Pid::from_child(&proxy.child);
        kill_process(process, Signal::STOP).unwrap();
        wait_until_stopped(proxy.child.id());
        send(&mut client, [1_000, 1_000]);
        kill_process(process, Signal::CONT).unwrap();
        expect(&mut accepted, [1_000, 1_000], keys);
    }
}
