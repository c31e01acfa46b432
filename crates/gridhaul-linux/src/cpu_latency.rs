//! The limit of the time that processors need to leave an idle state
//! (Documentation/power/pm_qos_interface.rst).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::time::Duration;

/// Device through which a process holds a limit.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// A limit for all processors, which ends when this value is dropped or the process ends.
#[derive(Debug)]
pub struct CpuLatencyLimit {
    /// The kernel removes the limit when the device is closed.
    _device: File,
}

impl CpuLatencyLimit {
    /// Keeps the processors out of idle states that they need longer than `limit` to leave. With
    /// zero they poll, and use more energy.
    ///
    /// # Errors
    /// The device is missing, or the caller may not write to it: it belongs to root.
    pub fn hold(limit: Duration) -> io::Result<Self> {
        let micros = i32::try_from(limit.as_micros()).unwrap_or(i32::MAX);
        let mut device = OpenOptions::new().write(true).open(DEVICE)?;
        // Four bytes are a binary number in the byte order of the machine.
        device.write_all(&micros.to_ne_bytes())?;
        Ok(Self { _device: device })
    }
}
