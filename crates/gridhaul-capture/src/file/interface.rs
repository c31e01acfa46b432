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
    /// Name, and unit of its times in nanoseconds.
    points: Vec<(String, u64)>,
}

impl Interfaces {
    /// The point of an interface. The directions of a link of gridhaul, such as `feeder.forward`
    /// and `feeder.reverse`, are recorded in two files, and are one point.
    pub(super) fn add(&mut self, name: &str, units: u64) -> u32 {
        let resolution = 1_000_000_000_u64.div_ceil(units.max(1));
        let link = name.strip_suffix(".forward").or_else(|| name.strip_suffix(".reverse"));
        let known = link.and_then(|link| self.points.iter().position(|(point, _)| point == link));
        let index = known.unwrap_or_else(|| {
            self.points.push((link.unwrap_or(name).to_owned(), resolution));
            self.points.len() - 1
        });
        index as u32
    }

    pub(super) fn point(&self, point: u32) -> (&str, u64) {
        self.points.get(point as usize).map_or(("", 1), |(name, resolution)| (name, *resolution))
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
