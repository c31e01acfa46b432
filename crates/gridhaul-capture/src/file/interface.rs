//! Interfaces of captures: link type, times, and the point at which both directions were recorded.

use gridhaul_scenario::units::Instant;

/// An interface of a file.
#[derive(Debug, Clone)]
pub(super) struct Interface {
    /// Link type (tcpdump.org/linktypes.html).
    pub(super) link_type: i32,
    /// Units of a timestamp in a second.
    pub(super) units: u64,
    /// Seconds to add to each timestamp (pcapng: if_tsoffset).
    pub(super) offset_secs: i64,
    /// Number of its point in [`Interfaces`].
    pub(super) point: u32,
    /// Largest number of captured bytes of a packet; 0: unlimited.
    pub(super) snapshot: u32,
}

/// The points of all files.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    points: Vec<Point>,
}

/// An interface as a file describes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) file: &'a str,
    /// Name of the device, if it is known.
    pub(super) interface: Option<&'a str>,
    /// Number of the interface in its section.
    pub(super) index: usize,
    pub(super) section: u32,
}

/// A point of the capture.
#[derive(Debug)]
struct Point {
    /// Name in an explanation.
    name: String,
    file: String,
    interface: Option<String>,
    index: usize,
    section: u32,
    /// Unit of its times in nanoseconds.
    resolution: u64,
}

impl Interfaces {
    /// The point of an interface. The directions of a link of gridhaul, such as `feeder.forward`
    /// and `feeder.reverse`, are recorded in two files, and are one point; so is an interface in
    /// all sections of a file, which are captures of consecutive times.
    pub(super) fn add(&mut self, source: &Source<'_>, units: u64) -> u32 {
        let resolution = 1_000_000_000_u64.div_ceil(units.max(1));
        let full = source.interface.unwrap_or(source.file);
        let link = full.strip_suffix(".forward").or_else(|| full.strip_suffix(".reverse"));
        let name = link.unwrap_or(full);
        let is_known = |point: &Point| {
            let is_of_link = link.is_some() && point.name == name;
            let is_of_file = point.file == source.file
                && point.interface.as_deref() == source.interface
                && (point.index, point.section < source.section) == (source.index, true);
            is_of_link || is_of_file
        };
        let index = self.points.iter().position(is_known).unwrap_or_else(|| {
            // Two machines have devices of the same name.
            let is_taken = self.points.iter().any(|point| point.name == name);
            let name = if is_taken { format!("{} ({name})", source.file) } else { name.to_owned() };
            self.points.push(Point {
                name,
                file: source.file.to_owned(),
                interface: source.interface.map(str::to_owned),
                index: source.index,
                section: source.section,
                resolution,
            });
            self.points.len() - 1
        });
        index as u32
    }

    pub(super) fn point(&self, point: u32) -> (&str, u64) {
        self.points.get(point as usize).map_or(("", 1), |point| (&point.name, point.resolution))
    }
}

impl Interface {
    /// The time of a timestamp in units of this interface.
    pub(super) fn time(&self, units: u64) -> Instant {
        let nanos = u128::from(units) * 1_000_000_000 / u128::from(self.units.max(1));
        let offset = i128::from(self.offset_secs) * 1_000_000_000;
        let nanos = (nanos as i128 + offset).clamp(0, i128::from(u64::MAX / 2));
        Instant::from_nanos(nanos as u64)
    }
}
