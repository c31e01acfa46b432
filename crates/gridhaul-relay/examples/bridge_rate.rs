//! Rate and processor time of the bridge for one connection between two network namespaces, by
//! mode, beside the bridge of the kernel. As root:
//! ```text
//! cargo build --release -p gridhaul-relay
//! cargo run --release -p gridhaul-relay --example bridge_rate
//! ```

#![expect(clippy::disallowed_methods, reason = "the bridge runs in real time")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use gridhaul_linux::{Namespace, become_root, disable_offloads, run_batch};
use gridhaul_relay::daemon::query;

const SERVER: &str = "10.78.0.2:7000";
const MANAGEMENT: &str = "127.0.0.1:9180";

/// Bytes of a transfer.
const BYTES: usize = 100_000_000;

fn main() -> Result<()> {
    become_root()?;
    println!("{:>8}  {:>8}  {:>8}  {:>12}", "mode", "offloads", "Mbit/s", "CPU, s/GB");
    for has_offloads in [true, false] {
        for mode in ["kernel", "none", "reflect", "spoof", "snoop", "ack", "split"] {
            let (seconds, processor) = measure(mode, has_offloads)?;
            let rate = BYTES as f64 * 8.0 / seconds / 1e6;
            let processor = processor * 1e9 / BYTES as f64;
            println!("{mode:>8}  {has_offloads:>8}  {rate:>8.0}  {processor:>12.2}");
        }
    }
    Ok(())
}

/// Time of a transfer, and processor time of the bridge.
fn measure(mode: &str, has_offloads: bool) -> Result<(f64, f64)> {
    let [left, right, between] = [Namespace::new()?, Namespace::new()?, Namespace::new()?];
    let path = between.path().display().to_string();
    for (host, device, number) in [(&left, "left", 1), (&right, "right", 2)] {
        let lines = format!(
            "link add eth0 type veth peer name {device} netns {path}\n\
             address add 10.78.0.{number}/24 dev eth0\nlink set eth0 up\n"
        );
        host.enter(|| run_batch("ip", &lines, device))??;
        between.enter(|| run_batch("ip", &format!("link set {device} up\n"), device))??;
        if !has_offloads {
            host.enter(|| disable_offloads("eth0"))??;
            between.enter(|| disable_offloads(device))??;
        }
    }
    between.enter(|| run_batch("ip", "link set lo up\n", "lo"))??;
    let relay = match mode {
        "kernel" => {
            let lines = "link add br0 type bridge\nlink set left master br0\n\
                 link set right master br0\nlink set br0 up\n";
            between.enter(|| run_batch("ip", lines, "br0"))??;
            None
        }
        _ => Some(Relay(between.enter(|| start(mode))??)),
    };
    let before = relay.as_ref().map_or(Ok(0.0), Relay::processor_time)?;
    let seconds = transfer(&left, &right)?;
    let after = relay.as_ref().map_or(Ok(0.0), Relay::processor_time)?;
    Ok((seconds, after - before))
}

/// The relay as a process, which ends with this.
struct Relay(Child);

impl Relay {
    /// User and system time in seconds (proc(5)).
    fn processor_time(&self) -> Result<f64> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let (_, fields) = text.rsplit_once(')').context("a process has a name")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
        let ticks: f64 = ticks.sum::<Result<f64, _>>()?;
        // USER_HZ is 100 on all platforms of Linux.
        Ok(ticks / 100.0)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the relay in the namespace of the calling thread.
fn start(mode: &str) -> Result<Child> {
    let toward = if matches!(mode, "snoop" | "ack") { "toward = \"right\"\n" } else { "" };
    let buffer = if matches!(mode, "ack" | "none") { "" } else { "buffer = \"4 MB\"\n" };
    let text = format!(
        "name = \"rate\"\nmanagement.address = \"{MANAGEMENT}\"\n[bridge]\n\
         interfaces = [\"left\", \"right\"]\nfail_open = false\n\
         [bridge.rule.all]\nmode = \"{mode}\"\n{toward}{buffer}"
    );
    let file = std::env::temp_dir().join(format!("bridge-rate-{}.toml", std::process::id()));
    fs::write(&file, text)?;
    let example = std::env::current_exe()?;
    let folder: PathBuf = example.ancestors().nth(2).context("folder of programs")?.to_owned();
    let mut command = Command::new(folder.join("gridhaul-relay"));
    let child = command.arg("run").arg(&file).stderr(Stdio::null()).spawn();
    let child = child.context("gridhaul-relay is missing: build it first")?;
    let begun = Instant::now();
    while query(MANAGEMENT, "/status").is_err() {
        ensure!(begun.elapsed() < Duration::from_secs(30), "the relay does not start");
        thread::sleep(Duration::from_millis(10));
    }
    fs::remove_file(file)?;
    Ok(child)
}

/// Time of a transfer from left to right.
fn transfer(left: &Namespace, right: &Namespace) -> Result<f64> {
    let listener = right.enter(|| TcpListener::bind(SERVER))??;
    let receive = thread::spawn(move || -> Result<usize> {
        let (mut stream, mut total) = (listener.accept()?.0, 0);
        let mut buffer = vec![0; 1 << 20];
        loop {
            match stream.read(&mut buffer)? {
                0 => return Ok(total),
                count => total += count,
            }
        }
    });
    let mut stream = left.enter(|| TcpStream::connect(SERVER))??;
    let begun = Instant::now();
    stream.write_all(&vec![7; BYTES])?;
    drop(stream);
    let received = receive.join().expect("the receiver does not panic")?;
    ensure!(received == BYTES, "{received} bytes of {BYTES}");
    Ok(begun.elapsed().as_secs_f64())
}
