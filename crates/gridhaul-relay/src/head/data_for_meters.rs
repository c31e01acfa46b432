//! Data of servers on its way to meters, until the collector has confirmed it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gridhaul_core::coverage_mark::mark;

use super::machine::Head;
use crate::protocol::{Close, DOWN_ENDED, DOWN_MAX, Frame, ResetCause};

/// Identifies a meter at a head: epoch of the collector and number of the meter.
pub type MeterKey = (u64, u64);

/// Data of servers for all meters.
#[derive(Debug, Default)]
pub(super) struct DownStreams {
    meters: BTreeMap<MeterKey, DownStream>,
    /// Meters with something to send, by epoch and shard.
    unsent: BTreeSet<(u64, u16, u64)>,
    /// Confirmed positions that the caller has not read yet.
    confirmed: BTreeMap<MeterKey, u64>,
}

/// Data of a server for one meter. The sender limits it to
/// [`DOWN_WINDOW`](crate::protocol::DOWN_WINDOW).
#[derive(Debug)]
struct DownStream {
    shard: u16,
    /// Position of the first byte that the collector has not confirmed, and of the next one to
    /// send.
    base: u64,
    next: u64,
    bytes: VecDeque<u8>,
    close: Option<End>,
    is_close_sent: bool,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Fin,
    Reset(ResetCause),
}

impl DownStreams {
    fn entry(&mut self, (epoch, meter): MeterKey, shard: u16) -> &mut DownStream {
        self.unsent.insert((epoch, shard, meter));
        self.meters.entry((epoch, meter)).or_insert_with(|| DownStream {
            shard,
            base: 0,
            next: 0,
            bytes: VecDeque::new(),
            close: None,
            is_close_sent: false,
        })
    }

    pub(super) fn push(&mut self, key: MeterKey, shard: u16, bytes: &[u8]) {
        self.entry(key, shard).bytes.extend(bytes);
    }

    pub(super) fn finish(&mut self, key: MeterKey, shard: u16) {
        // A reset that came first is not withdrawn: the stream of the server is incomplete.
        self.entry(key, shard).close.get_or_insert(End::Fin);
    }

    /// Data that was not sent is dropped: RST does not wait for it.
    pub(super) fn reset(&mut self, key: MeterKey, shard: u16, cause: ResetCause) {
        let stream = self.entry(key, shard);
        mark!(head_reset_overtakes_data_for_a_meter if !stream.bytes.is_empty());
        stream.close = Some(End::Reset(cause));
        // FIN may have been sent before: RST follows it.
        stream.is_close_sent = false;
        stream.bytes.truncate((stream.next - stream.base) as usize);
    }

    /// The collector has confirmed data, or does not know the meter any more.
    pub(super) fn handle_ack(&mut self, key: MeterKey, offset: u64) {
        let Some(stream) = self.meters.get_mut(&key) else { return };
        if offset == DOWN_ENDED {
            self.unsent.remove(&(key.0, stream.shard, key.1));
            self.meters.remove(&key);
            self.confirmed.insert(key, DOWN_ENDED);
            return;
        }
        // A collector cannot confirm what was not sent to it.
        mark!(head_limits_a_confirmation_to_sent_data if offset > stream.next);
        let confirmed = offset.min(stream.next);
        if confirmed > stream.base {
            stream.bytes.drain(..(confirmed - stream.base) as usize);
            stream.base = confirmed;
            self.confirmed.insert(key, confirmed);
        }
    }

    /// The connection of a shard begins anew: what was not confirmed is retransmitted.
    pub(super) fn rewind(&mut self, epoch: u64, shard: u16) {
        let all = self.meters.range_mut((epoch, 0)..=(epoch, u64::MAX));
        for (&(_, meter), stream) in all.filter(|(_, stream)| stream.shard == shard) {
            mark!(head_repeats_unconfirmed_data_for_meters if stream.next > stream.base);
            stream.next = stream.base;
            stream.is_close_sent = false;
            self.unsent.insert((epoch, shard, meter));
        }
    }

    /// An epoch has ended, and its meters with it.
    pub(super) fn end(&mut self, epoch: u64) {
        let ended = self.meters.range((epoch, 0)..=(epoch, u64::MAX));
        let ended: Vec<MeterKey> = ended.map(|(key, _)| *key).collect();
        for key in ended {
            self.handle_ack(key, DOWN_ENDED);
        }
    }

    /// Nothing more comes for a meter. Data that was not confirmed is kept.
    pub(super) fn forget(&mut self, key: MeterKey) {
        if self.meters.get(&key).is_some_and(|data| data.bytes.is_empty() && data.close.is_none()) {
            self.meters.remove(&key);
        }
    }

    /// Data for a meter is dropped.
    pub(super) fn discard(&mut self, key: MeterKey) {
        self.meters.remove(&key);
        self.confirmed.insert(key, DOWN_ENDED);
    }

    /// Epochs and shards with something to send.
    pub(super) fn unsent_shards(&self) -> Vec<(u64, u16)> {
        let mut shards: Vec<_> =
            self.unsent.iter().map(|(epoch, shard, _)| (*epoch, *shard)).collect();
        shards.dedup();
        shards
    }

    /// Appends everything that was not sent to the output of the shard's connection.
    pub(super) fn write(&mut self, epoch: u64, shard: u16, out: &mut Vec<u8>) {
        let all = self.unsent.range((epoch, shard, 0)..=(epoch, shard, u64::MAX));
        let meters: Vec<u64> = all.map(|(_, _, meter)| *meter).collect();
        for meter in meters {
            self.unsent.remove(&(epoch, shard, meter));
            if let Some(stream) = self.meters.get_mut(&(epoch, meter)) {
                stream.write(meter, out);
            }
        }
    }

    /// A meter whose data was confirmed, and up to which position.
    pub(super) fn poll_confirmed(&mut self) -> Option<(MeterKey, u64)> {
        self.confirmed.pop_first()
    }
}

impl DownStream {
    fn write(&mut self, meter: u64, out: &mut Vec<u8>) {
        let start = (self.next - self.base) as usize;
        let unsent = &self.bytes.make_contiguous()[start..];
        for bytes in unsent.chunks(DOWN_MAX) {
            Frame::Down { meter, offset: self.next, bytes }.write(out);
            self.next += bytes.len() as u64;
        }
        if let Some(end) = self.close.filter(|_| !self.is_close_sent) {
            let close = match end {
                End::Fin => Close::Fin { offset: self.next },
                End::Reset(cause) => Close::Reset { cause },
            };
            Frame::Close { meter, close }.write(out);
            self.is_close_sent = true;
        }
    }
}

impl Head {
    /// A server has sent data for a meter. The caller leaves at most [`DOWN_WINDOW`] bytes of a
    /// meter unconfirmed.
    ///
    /// [`DOWN_WINDOW`]: crate::protocol::DOWN_WINDOW
    pub fn handle_server_data(&mut self, meter: MeterKey, shard: u16, bytes: &[u8]) {
        if self.without_replies.contains(&meter.0) {
            self.down.discard(meter);
        } else {
            self.down.push(meter, shard, bytes);
        }
    }

    /// A server has closed its direction of the connection of a meter (FIN).
    pub fn handle_server_fin(&mut self, meter: MeterKey, shard: u16) {
        if !self.without_replies.contains(&meter.0) {
            self.down.finish(meter, shard);
        }
    }

    /// The connection of a meter to its server has failed. Meters that expect no replies are not
    /// concerned: their data is delivered over a new connection.
    pub fn handle_server_reset(&mut self, meter: MeterKey, shard: u16) {
        if !self.without_replies.contains(&meter.0) {
            self.down.reset(meter, shard, ResetCause::Server);
        }
    }

    /// The server does not receive further data of a meter, because some before it is lost by
    /// damage of a log: the meter is reset, so that it does not take FIN for success.
    pub fn handle_incomplete(&mut self, meter: MeterKey, shard: u16) {
        self.down.reset(meter, shard, ResetCause::Damage);
    }

    /// Nothing more comes from the server of a meter.
    pub fn handle_server_end(&mut self, meter: MeterKey) {
        self.down.forget(meter);
    }

    /// A meter to whose socket the collector has passed the data of the server up to this position;
    /// [`DOWN_ENDED`](crate::protocol::DOWN_ENDED) if it accepts nothing more.
    pub fn poll_down_confirmed(&mut self) -> Option<(MeterKey, u64)> {
        self.down.poll_confirmed()
    }

    /// Moves the data of servers to the outputs of the connections.
    pub(super) fn write_down(&mut self) {
        for (epoch, shard) in self.down.unsent_shards() {
            let source = Some((epoch, shard));
            let found = self.connections.iter_mut().find(|(_, known)| known.source == source);
            if let Some((number, known)) = found {
                self.down.write(epoch, shard, &mut known.out);
                self.outputs.insert(*number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_core::coverage_mark::covers;

    use super::*;
    use crate::protocol::FrameReader;

    const KEY: MeterKey = (7, 3);

    /// Frames that are sent for shard 1, as text.
    fn sent(streams: &mut DownStreams) -> Vec<String> {
        let mut out = Vec::new();
        streams.write(7, 1, &mut out);
        let mut reader = FrameReader::default();
        reader.push(&out);
        let mut frames = Vec::new();
        while let Some(frame) = reader.next_frame().unwrap() {
            frames.push(match frame {
                Frame::Down { meter, offset, bytes } => {
                    format!("{meter} {offset} {}", String::from_utf8_lossy(bytes))
                }
                Frame::Close { meter, close } => format!("{meter} {close:?}"),
                other => format!("{other:?}"),
            });
        }
        frames
    }

    #[test]
    fn unconfirmed_data_is_repeated_after_a_reconnection() {
        covers!(head_repeats_unconfirmed_data_for_meters);
        let mut streams = DownStreams::default();
        streams.push(KEY, 1, b"abc");
        assert_eq!(streams.unsent_shards(), [(7, 1)]);
        assert_eq!(sent(&mut streams), ["3 0 abc"]);
        streams.push(KEY, 1, b"def");
        streams.finish(KEY, 1);
        assert_eq!(sent(&mut streams), ["3 3 def", "3 Fin { offset: 6 }"]);
        assert_eq!(sent(&mut streams), [""; 0], "everything was sent");
        streams.handle_ack(KEY, 2);
        assert_eq!(streams.poll_confirmed(), Some((KEY, 2)));
        streams.rewind(7, 1);
        assert_eq!(sent(&mut streams), ["3 2 cdef", "3 Fin { offset: 6 }"]);
        streams.handle_ack(KEY, DOWN_ENDED);
        assert_eq!(streams.poll_confirmed(), Some((KEY, DOWN_ENDED)));
        streams.rewind(7, 1);
        assert_eq!(sent(&mut streams), [""; 0], "the collector has closed the connection");
    }

    #[test]
    fn a_reset_drops_unsent_data() {
        covers!(head_reset_overtakes_data_for_a_meter);
        let mut streams = DownStreams::default();
        streams.push(KEY, 1, b"abc");
        streams.reset(KEY, 1, ResetCause::Server);
        assert_eq!(sent(&mut streams), ["3 Reset { cause: Server }"]);
    }

    #[test]
    fn a_confirmation_beyond_the_sent_data_is_limited() {
        covers!(head_limits_a_confirmation_to_sent_data);
        let mut streams = DownStreams::default();
        streams.push(KEY, 1, b"abc");
        streams.handle_ack(KEY, 9);
        assert_eq!(streams.poll_confirmed(), None);
        assert_eq!(sent(&mut streams), ["3 0 abc"]);
        streams.handle_ack(KEY, 9);
        assert_eq!(streams.poll_confirmed(), Some((KEY, 3)));
    }
}
