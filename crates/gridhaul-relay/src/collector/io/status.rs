//! Status of a collector.

use gridhaul_linux::TcpInfo;
use gridhaul_scenario::units::Duration;
use serde_json::{Value, json};

use super::Loop;
use super::meter_stream::MeterStream;
use super::upstream::Upstream;
use super::user_meters::UserMeters;
use crate::protocol::ResetCause;
use crate::runtime::committer::Committer;

impl Loop {
    /// The document of a path.
    pub(super) fn document(&self, path: &str) -> Value {
        let collector = &self.collector;
        match path {
            "/details" => {
                let meters: Vec<Value> = collector
                    .meters()
                    .map(|meter| {
                        let stream = self.stream(meter.number);
                        json!({
                            "meter": meter.number,
                            "peer": stream.and_then(|stream| self.peer_of(stream)),
                            "unread_byte": stream.and_then(|stream| self.unread(stream)),
                            "received_byte": meter.received,
                            "durable_byte": meter.durable,
                            "is_ended": meter.is_ended,
                        })
                    })
                    .collect();
                json!({ "epoch": format!("{:016x}", collector.epoch()), "meters": meters })
            }
            _ => self.status(),
        }
    }

    /// The connection of a meter.
    fn stream(&self, number: u64) -> Option<&MeterStream> {
        let id = self.collector.find(number)?;
        let meter = self.sockets.get(id.index as usize)?.as_ref()?;
        (meter.id == id).then_some(&meter.stream)
    }

    /// Address of the meter, unless the connection has ended.
    fn peer_of(&self, stream: &MeterStream) -> Option<String> {
        let peer = match stream {
            MeterStream::Kernel(stream) => stream.socket().peer_addr().ok()?.as_socket()?,
            MeterStream::User(connection) => self.user_meters.as_ref()?.tcp.flow(*connection)?.peer,
        };
        Some(peer.to_string())
    }

    /// Bytes that TCP has received and the relay has not read (`SIOCINQ`, tcp(7)).
    pub(super) fn unread(&self, stream: &MeterStream) -> Option<u64> {
        match stream {
            MeterStream::Kernel(stream) => rustix::io::ioctl_fionread(stream.socket()).ok(),
            MeterStream::User(connection) => self.user_meters.as_ref()?.tcp.unread(*connection),
        }
    }

    /// Largest number of bytes that a crash can take although TCP has acknowledged them: what the
    /// relay accepts before it is stored, and what the receive buffers hold (Linux doubles their
    /// size, socket(7)).
    fn bytes_at_risk_limit(&self) -> u64 {
        let settings = self.collector.settings();
        // Data of meters in user space is acknowledged when it is stored.
        let meters = (self.collector.meter_count() - self.user_meter_count()) as u64;
        let accepted = settings.at_risk.min(meters.saturating_mul(settings.at_risk_per_meter));
        let encrypted = if self.listeners.iter().any(|listener| listener.tls.is_some()) {
            TLS_BUFFERS
        } else {
            0
        };
        accepted + meters * (2 * u64::from(self.receive_buffer) + encrypted)
    }

    fn status(&self) -> Value {
        let collector = &self.collector;
        let causes = ResetCause::ALL.iter();
        let resets: serde_json::Map<String, Value> = causes
            .map(|cause| (cause.name().to_owned(), self.counters.resets[*cause as usize].into()))
            .collect();
        let connected = self.upstreams.iter().filter(|upstream| upstream.is_connected()).count();
        let reconnections: u64 = self.upstreams.iter().map(|upstream| upstream.reconnections).sum();
        let tcp: Vec<TcpInfo> = self.upstreams.iter().filter_map(Upstream::tcp_info).collect();
        // The slowest connection: its shard stops the meters that belong to it.
        let round_trip = tcp.iter().map(|tcp_info| tcp_info.srtt).max();
        let sum = |part: fn(&TcpInfo) -> u32| tcp.iter().map(part).sum::<u32>();
        let (batches, compressed) = collector.upstream_bytes();
        let mut status = json!({
            "role": "collector",
            "name": collector.settings().name,
            "tier": collector.settings().tier.name(),
            "meters_count": collector.meter_count(),
            "meters_max_count": self.meters_max,
            "accepted_count": self.counters.accepted,
            "handshaking_count": self.arrivals.len(),
            "refused_count": self.counters.refused_by_cause(),
            "received_byte": self.counters.received,
            "message_parts_count": collector.message_parts(),
            "bytes_at_risk_byte": collector.bytes_at_risk(),
            "bytes_at_risk_limit_byte": self.bytes_at_risk_limit(),
            "receive_buffer_byte": self.receive_buffer,
            "backlog_byte": collector.backlog_size(),
            "backlog_max_byte": collector.settings().backlog,
            "oldest_record_age_s": self.oldest_record_age(),
            "upstreams_count": self.upstreams.len(),
            "upstreams_connected_count": connected,
            "upstream_failures_count": reconnections,
            "upstream_error": self.upstreams.iter().find_map(Upstream::error),
            "upstream_error_age_s": self.upstream_error_age(),
            "upstream_batches_byte": batches,
            "upstream_compressed_byte": compressed,
            "upstream_round_trip_s": round_trip.map(Duration::as_secs_f64),
            "upstream_congestion_window_count": tcp.iter().map(|tcp_info| tcp_info.cwnd).min(),
            "upstream_retransmissions_count": sum(|tcp_info| tcp_info.retransmissions),
            "upstream_unsent_byte": sum(|tcp_info| tcp_info.not_sent),
            "resets_count": resets,
            "clock_synchronised": self.wall_clock.is_synchronised(),
            "log_gaps_count": self.counters.log.gaps,
            "log_lost_byte": self.counters.log.bytes,
            "lost_records_count": self.counters.lost_records,
            "log_error": self.committer.as_ref().and_then(Committer::error),
        });
        if let (Some(user), Value::Object(status)) = (&self.user_meters, &mut status) {
            status.extend(user.status());
        }
        status
    }

    /// Number of meters whose data is acknowledged when it is durable.
    fn user_meter_count(&self) -> usize {
        self.user_meters.as_ref().map_or(0, UserMeters::len)
    }

    /// Seconds for which a connection to the head has failed.
    fn upstream_error_age(&self) -> Option<f64> {
        let first = self.upstreams.iter().filter_map(Upstream::failed_at).min()?;
        Some(self.clock.now().since(first).as_secs_f64())
    }

    /// Age of the oldest record in the log that the head has not confirmed, in seconds; `None`
    /// without a log.
    fn oldest_record_age(&self) -> Option<f64> {
        self.committer.as_ref()?;
        Some(self.unconfirmed.oldest(self.clock.now()))
    }
}

/// Bytes of a TLS connection between the socket and the relay: a record that is incomplete, and one
/// that is decrypted (RFC 8446, record payload protection).
const TLS_BUFFERS: u64 = 2 * (16_384 + 256);
