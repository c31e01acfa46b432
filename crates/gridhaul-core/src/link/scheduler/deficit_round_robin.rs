//! Deficit round robin: Shreedhar and Varghese 1995, "Efficient Fair Queueing Using Deficit Round
//! Robin".

use std::collections::VecDeque;

/// The order in which classes are served by their weights.
///
/// In each round a class may send the bytes of its quantum and those that it has saved because its
/// first packet was larger (its deficit counter). Between two classes that always have packets, the
/// bytes sent in any time, divided by the quantum, differ by less than 1 plus the largest packet
/// divided by each quantum (section 4.2, with one quantum for each class).
#[derive(Debug, Clone)]
pub(in crate::link) struct DeficitRoundRobin {
    /// Bytes per round of each class; 0 for classes with strict priority, which are never served
    /// here.
    quanta: Vec<u64>,
    deficits: Vec<u64>,
    /// Classes with packets, in the order of their turns.
    active: VecDeque<usize>,
    /// Whether the first active class has its quantum of this round already.
    is_credited: bool,
}

/// The first packet of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::link) enum FirstPacket {
    /// There is none.
    None,
    /// The packet may not be sent yet.
    Waits,
    /// A packet of this size may be sent.
    Ready(u32),
}

impl DeficitRoundRobin {
    /// Classes with these quanta in bytes, without packets.
    pub(in crate::link) fn new(quanta: Vec<u64>) -> Self {
        let deficits = vec![0; quanta.len()];
        Self { quanta, deficits, active: VecDeque::new(), is_credited: false }
    }

    /// A class has a packet.
    pub(in crate::link) fn activate(&mut self, class: usize) {
        if self.quanta[class] > 0 && !self.active.contains(&class) {
            self.active.push_back(class);
        }
    }

    /// A class has no packets any more, and loses its credit.
    pub(in crate::link) fn deactivate(&mut self, class: usize) {
        let Some(place) = self.active.iter().position(|active| *active == class) else { return };
        self.active.remove(place);
        self.deficits[class] = 0;
        self.is_credited &= place > 0;
    }

    /// The class whose first packet is sent next, and charges the packet to it; `None` if no class
    /// has a packet that may be sent.
    pub(in crate::link) fn next(
        &mut self,
        mut first_packet: impl FnMut(usize) -> FirstPacket,
    ) -> Option<usize> {
        let mut waiting = 0;
        while waiting < self.active.len() {
            let class = self.active[0];
            match first_packet(class) {
                FirstPacket::None => self.deactivate(class),
                FirstPacket::Waits => {
                    // A class that may not send collects no credit, as one without packets.
                    self.deficits[class] = 0;
                    self.end_turn();
                    waiting += 1;
                }
                FirstPacket::Ready(bytes) => {
                    if !self.is_credited {
                        self.deficits[class] += self.quanta[class];
                        self.is_credited = true;
                    }
                    if self.deficits[class] >= u64::from(bytes) {
                        self.deficits[class] -= u64::from(bytes);
                        return Some(class);
                    }
                    self.end_turn();
                    waiting = 0;
                }
            }
        }
        None
    }

    fn end_turn(&mut self) {
        self.active.rotate_left(1);
        self.is_credited = false;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Serves classes whose packets have these sizes, all of them queued from the start.
    fn serve(quanta: &[u64], queues: &[Vec<u32>]) -> Vec<(usize, u32)> {
        let mut rounds = DeficitRoundRobin::new(quanta.to_vec());
        let mut queues: Vec<VecDeque<u32>> =
            queues.iter().map(|sizes| sizes.iter().copied().collect()).collect();
        (0..quanta.len()).for_each(|class| rounds.activate(class));
        let mut served = Vec::new();
        while let Some(class) = rounds.next(|class| match queues[class].front() {
            Some(bytes) => FirstPacket::Ready(*bytes),
            None => FirstPacket::None,
        }) {
            served.push((class, queues[class].pop_front().unwrap()));
            if queues[class].is_empty() {
                rounds.deactivate(class);
            }
        }
        served
    }

    #[test]
    fn the_example_of_the_paper_is_served_in_its_order() {
        // Figures 2 and 3 of the paper: quantum 500; flow 1 has packets of 200, 750 and 20 B, flow
        // 2 of 500 B twice, in this excerpt.
        let served = serve(&[500, 500], &[vec![200, 750, 20], vec![500, 500]]);
        assert_eq!(served, [(0, 200), (1, 500), (0, 750), (0, 20), (1, 500)]);
    }

    #[test]
    fn shares_are_proportional_to_the_quanta() {
        let served = serve(&[3_000, 1_000], &[vec![500; 600], vec![500; 600]]);
        let first: usize = served[..400].iter().filter(|(class, _)| *class == 0).count();
        assert_eq!(first, 300);
    }

    #[test]
    fn a_class_that_waits_leaves_its_turn_to_the_others() {
        let mut rounds = DeficitRoundRobin::new(vec![1_000, 1_000]);
        [0, 1].into_iter().for_each(|class| rounds.activate(class));
        let served = |rounds: &mut DeficitRoundRobin, waits: usize| {
            rounds.next(|class| match class == waits {
                true => FirstPacket::Waits,
                false => FirstPacket::Ready(800),
            })
        };
        assert_eq!(served(&mut rounds, 0), Some(1));
        assert_eq!(served(&mut rounds, 0), Some(1));
        assert_eq!(served(&mut rounds, 1), Some(0));
        assert_eq!(rounds.next(|_| FirstPacket::Waits), None);
    }

    proptest! {
        #[test]
        fn backlogged_classes_differ_by_less_than_the_bound(
            quanta in prop::collection::vec(1_500_u64..6_000, 2..5),
            sizes in prop::collection::vec(1_u32..1_500, 200),
        ) {
            let queues: Vec<Vec<u32>> =
                (0..quanta.len()).map(|class| {
                    sizes.iter().cycle().skip(class * 7).take(400).copied().collect()
                }).collect();
            let total = |queue: &Vec<u32>| queue.iter().map(|bytes| u64::from(*bytes)).sum::<u64>();
            let mut sent = vec![0_u64; quanta.len()];
            for (class, bytes) in serve(&quanta, &queues) {
                sent[class] += u64::from(bytes);
                if sent[class] == total(&queues[class]) {
                    // From here on the class has no packets.
                    break;
                }
                let share = |class: usize| sent[class] as f64 / quanta[class] as f64;
                for one in 0..quanta.len() {
                    for other in 0..one {
                        let packets: f64 =
                            [one, other].map(|class| 1_500.0 / quanta[class] as f64).iter().sum();
                        prop_assert!((share(one) - share(other)).abs() < 1.0 + packets);
                    }
                }
            }
        }
    }
}
