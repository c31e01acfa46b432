//! Checks of active queue management.

use super::Report;
use crate::scenario::{Aqm, Direction, FqCodel, Pie, Red};
use crate::units::{Duration, QueueLimit};

/// Smallest update interval of PIE.
const UPDATE_MIN: Duration = Duration::from_millis(1);
/// Largest number of queues of FQ-CoDel.
const FLOWS_MAX: u32 = 65_536;

impl Report<'_> {
    pub(super) fn aqm(&mut self, key: &str, direction: &Direction) {
        match &direction.aqm {
            None => {}
            Some(Aqm::Red(red)) => self.red(&format!("{key}.aqm.red"), red, direction.queue),
            Some(Aqm::Codel(codel)) => {
                self.codel(&format!("{key}.aqm.codel"), codel.target, codel.interval);
            }
            Some(Aqm::Pie(pie)) => self.pie(&format!("{key}.aqm.pie"), pie),
            Some(Aqm::FqCodel(fq_codel)) => {
                self.fq_codel(&format!("{key}.aqm.fq_codel"), fq_codel);
            }
        }
    }

    fn red(&mut self, key: &str, red: &Red, queue: QueueLimit) {
        let Some((min, max)) = pair(red.min, red.max) else {
            self.refuse(
                format!("{key}.max"),
                format!("`min` is {} and `max` is {}", red.min, red.max),
                "give both in packets or both as sizes",
            );
            return;
        };
        if min >= max {
            self.refuse(
                format!("{key}.max"),
                format!("`max` ({}) is not above `min` ({})", red.max, red.min),
                "use about three times `min`",
            );
        }
        if pair(red.min, queue).is_some_and(|(min, queue)| queue <= min) {
            self.refuse(
                format!("{key}.min"),
                format!("the queue limit is {queue}: the average never exceeds {}", red.min),
                "increase `queue` or reduce `min`, or leave out `aqm`",
            );
        }
        if !(red.weight > 0.0 && red.weight <= 1.0) {
            self.refuse(
                format!("{key}.weight"),
                "a weight must be above 0 and at most 1",
                "write 0.002, or leave it out",
            );
        }
        if red.packet.get() == 0 {
            self.refuse(
                format!("{key}.packet"),
                "the packet size must be above 0",
                "write \"500 B\", or leave it out",
            );
        }
    }

    pub(super) fn codel(&mut self, key: &str, target: Duration, interval: Duration) {
        if target >= interval {
            self.refuse(
                format!("{key}.target"),
                format!("the target ({target}) is not below the interval ({interval})"),
                "use a twentieth of the interval, or leave out both keys",
            );
        }
    }

    fn pie(&mut self, key: &str, pie: &Pie) {
        if pie.update < UPDATE_MIN {
            self.refuse(
                format!("{key}.update"),
                format!("the update interval must be at least {UPDATE_MIN}"),
                "write \"15 ms\", or leave it out",
            );
        }
        for (name, value) in [("alpha", pie.alpha), ("beta", pie.beta)] {
            if !(value.is_finite() && value >= 0.0) {
                self.refuse(
                    format!("{key}.{name}"),
                    format!("`{name}` must be a number that is not negative"),
                    "leave it out to use the value of RFC 8033",
                );
            }
        }
    }

    pub(super) fn fq_codel(&mut self, key: &str, fq_codel: &FqCodel) {
        self.codel(key, fq_codel.target, fq_codel.interval);
        if fq_codel.quantum.get() == 0 {
            self.refuse(
                format!("{key}.quantum"),
                "the quantum must be above 0",
                "write \"1514 B\", or leave it out",
            );
        }
        if fq_codel.flows == 0 || fq_codel.flows > FLOWS_MAX {
            self.refuse(
                format!("{key}.flows"),
                format!("the number of queues must be from 1 to {FLOWS_MAX}"),
                "write 1024, or leave it out",
            );
        }
    }
}

/// Two limits as numbers in the same unit.
const fn pair(one: QueueLimit, other: QueueLimit) -> Option<(u64, u64)> {
    match (one, other) {
        (QueueLimit::Packets(one), QueueLimit::Packets(other)) => Some((one as u64, other as u64)),
        (QueueLimit::Bytes(one), QueueLimit::Bytes(other)) => Some((one.get(), other.get())),
        _ => None,
    }
}
