//! `cargo xtask bench relay`: memory and CPU time of the relay, HAProxy, nginx and socat in
//! the same run.
//!
//! A library that the dynamic linker loads first delays fdatasync(2) to 4 ms for one of the
//! measurements.
//!
//! Memory is the proportional set size in user space, CPU time that of all threads of a process.
//! Everything runs on loopback. `--load` measures many connections, `--matrix` compares how
//! programs forward the ends of connections.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::{Measurement, install};
use crate::process::{self, cargo, output, program, root, target};

pub(super) fn run(is_load: bool, is_matrix: bool) -> anyhow::Result<Vec<Measurement>> {
    let has = |path: &str| Path::new(path).is_file();
    // Without the peers, the relay is measured alone, and the missing ones are named.
    let peers = install(&[
        ("haproxy", has("/usr/sbin/haproxy")),
        ("nginx-light", has("/usr/sbin/nginx")),
        ("libnginx-mod-stream", has("/usr/lib/nginx/modules/ngx_stream_module.so")),
        ("socat", has("/usr/bin/socat")),
    ]);
    if let Err(error) = peers {
        println!("{error:#}");
    }
    if is_matrix {
        let test = ["test", "--package", "gridhaul-relay", "--test", "split", "--", "--ignored"];
        process::run(cargo().args(test).arg("--nocapture"))?;
        return Ok(Vec::new());
    }
    measure(if is_load { "load" } else { "idle,idle-tls,messages,bulk" })
}

/// Makes measurements of the example `relay_bench`, and prints their tables.
pub(crate) fn measure(names: &str) -> anyhow::Result<Vec<Measurement>> {
    let build = ["build", "--release", "--package", "gridhaul-relay", "--bin", "gridhaul-relay"];
    process::run(cargo().args(build).args(["--example", "relay_bench"]))?;
    let folder = target().join("release");
    let slow_disk = folder.join("slow_disk.so");
    let source = root().join("bench/relay/slow_disk.c");
    process::run(
        program("cc").args(["-shared", "-fPIC", "-O2", "-o"]).args([&slow_disk, &source]),
    )?;
    let mut bench = program(folder.join("examples/relay_bench").display().to_string());
    bench.env("GRIDHAUL_RELAY", folder.join("gridhaul-relay")).env("GRIDHAUL_SLOW_DISK", slow_disk);
    let printed = output(bench.arg(names))?;
    let results: Vec<Value> = serde_json::from_str(&printed).context("the results are not JSON")?;
    let measurement = |result: &Value| {
        let line = result["line"].as_str().context("a result has no line")?.to_owned();
        Ok(Measurement::verdict(line, result["passed"] == true))
    };
    results.iter().map(measurement).collect()
}
