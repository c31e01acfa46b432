//! Messages that some members have delivered and others forward: the broker of MQTT.

use gridhaul_core::load::Publication;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Instant;

use super::{Member, Traffic};
use crate::traffic::connection::Observer;

/// A member that forwards the messages of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subscription {
    /// Row of the publications.
    publications: usize,
    row: usize,
    member: usize,
}

impl Traffic<'_> {
    /// Finds the subscriptions, once all members are known.
    pub(super) fn open_subscriptions(&mut self, scenario: &Scenario) {
        for (row, flow) in scenario.flow.values().enumerate() {
            if let Some((publications, _)) = scenario.publications_of(flow) {
                let member = self.first[row];
                self.subscriptions.push(Subscription { publications, row, member });
                self.rows[publications].published = Some(Vec::new());
            }
        }
    }

    /// A member has acted: passes on the messages that it has published and delivered.
    pub(super) fn forward_publications(&mut self, index: usize, now: Instant) {
        let row = self.members[index].row();
        let Some(published) = self.rows[row].published.as_mut().map(std::mem::take) else { return };
        let Member::Managed(publisher) = &mut self.members[index] else { return };
        let arrived: Vec<Publication> =
            std::iter::from_fn(|| publisher.application.poll_publication()).collect();
        for number in 0..self.subscriptions.len() {
            let subscription = self.subscriptions[number];
            if subscription.publications != row {
                continue;
            }
            for ready in &published {
                self.rows[subscription.row].on_ready(*ready);
            }
            if let Member::Managed(subscriber) = &mut self.members[subscription.member]
                && !arrived.is_empty()
            {
                for publication in &arrived {
                    subscriber.application.forward(now, index, *publication);
                }
                self.schedule(subscription.member);
            }
        }
    }

    /// The run has ended: messages that have not reached a broker have not reached its subscribers.
    pub(super) fn finish_subscriptions(&mut self, end: Instant) {
        for subscription in &self.subscriptions {
            for member in &self.members {
                if let Member::Managed(publisher) = member
                    && member.row() == subscription.publications
                {
                    self.rows[subscription.row].finish_messages(publisher.undelivered(), end);
                }
            }
        }
    }
}
