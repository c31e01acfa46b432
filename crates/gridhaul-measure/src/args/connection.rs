//! Arguments of brokers and connections.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gridhaul_measure::measurement::{self, BrokerUrl};
use gridhaul_scenario::scenario::CongestionControlAlgorithm;
use gridhaul_scenario::units::{Duration, WindowSize};

use super::value_parsers::{
    congestion_control, poll_interval, positive_duration, whole_seconds, window,
};

/// Whether Nagle's algorithm is off, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Nodelay {
    /// Off at clients and broker
    Both,
    /// Off at the clients, on at the broker
    Clients,
    /// Off at the broker, on at the clients
    Broker,
    /// On at clients and broker
    None,
}

/// A broker of MQTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MqttBroker {
    /// mosquitto
    Mosquitto,
    /// RabbitMQ with its plugin `rabbitmq_mqtt`
    Rabbitmq,
}

/// Settings of brokers and connections. Each protocol uses those that it has.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Brokers and connections")]
pub(crate) struct ConnectionArgs {
    /// Running broker, such as 127.0.0.1:1883, amqp://user:password@127.0.0.1:5672 or
    /// xmpp://user@example.org:password@127.0.0.1:5222; without it, the protocol's broker is
    /// started. mqtts://, amqps:// and xmpps:// (TLS from the first byte) need --ca
    #[arg(long, value_name = "URL", value_parser = broker, conflicts_with = "tls")]
    pub(crate) broker: Option<BrokerUrl>,

    /// PEM file with the certificate of the authority that has signed that of the broker, or with
    /// that of the broker itself
    #[arg(long, value_name = "FILE", requires = "broker")]
    pub(crate) ca: Option<PathBuf>,

    /// MQTT 3.1.1: program of the broker that is started
    #[arg(long, value_enum, default_value = "mosquitto", conflicts_with = "broker")]
    pub(crate) broker_program: MqttBroker,

    /// Encrypt the connections to the broker that is started, with a certificate that is made for
    /// this run
    #[arg(long)]
    pub(crate) tls: bool,

    /// Where TCP_NODELAY is set, which turns Nagle's algorithm off. Without a broker, both ends are
    /// clients
    #[arg(long, value_enum, default_value = "both")]
    pub(crate) nodelay: Nodelay,

    /// Congestion control of the TCP connections at both ends of an emulated network, such as
    /// "cubic", "reno" or "bbr"; without it, that of the scenario
    #[arg(long, value_name = "NAME", value_parser = congestion_control)]
    pub(crate) congestion_control: Option<CongestionControlAlgorithm>,

    /// Largest receive window at both ends of an emulated network, such as "64 kB": it limits the
    /// receive buffers; without it, that of the scenario
    #[arg(long, value_name = "SIZE", value_parser = window)]
    pub(crate) receive_window: Option<WindowSize>,

    /// Port of the end that listens, in protocols without a broker; 0 for a free one
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,

    /// Number of connections to the broker: 2, or 1 for publisher and subscriber together
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) connections: u8,

    /// MQTT: quality of service 0 (at most once) or 1 (at least once)
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(crate) qos: u8,

    /// AMQP: messages that the broker sends ahead of their acknowledgements (0-9-1: 0 for none) or
    /// of link credit (1.0: 0 for 1000)
    #[arg(long, default_value_t = 0)]
    pub(crate) prefetch: u16,

    /// AMQP 0-9-1: store queue and messages on the disk of the broker
    #[arg(long)]
    pub(crate) persistent: bool,

    /// AMQP 1.0: wait for an outcome of each message at the broker, instead of sending messages
    /// settled
    #[arg(long)]
    pub(crate) unsettled: bool,

    /// AMQP 1.0: address of the node at the broker; the default is an address of RabbitMQ
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) node: Option<String>,

    /// DNP3: interval in which the master polls for events, at least 20 ms; without it, they are
    /// reported unsolicited
    #[arg(long, value_name = "INTERVAL", value_parser = poll_interval)]
    pub(crate) poll: Option<Duration>,

    /// IEC 60870-5-104: largest number of frames without an acknowledgement, after which the
    /// controlled station waits
    #[arg(long, default_value_t = 12)]
    pub(crate) k: u16,

    /// IEC 60870-5-104: number of received frames after which the controlling station acknowledges,
    /// at most k
    #[arg(long, default_value_t = 8)]
    pub(crate) w: u16,

    /// Interval of keep-alive packets (MQTT), heartbeats (AMQP 0-9-1) or white space (XMPP), or the
    /// idle timeout (AMQP 1.0), in whole seconds
    #[arg(long, default_value = "60 s", value_parser = whole_seconds)]
    pub(crate) keep_alive: Duration,

    /// Time between a failed connection and the next attempt
    #[arg(long, default_value = "100 ms", value_parser = positive_duration)]
    pub(crate) reconnect_after: Duration,

    /// Do not connect again after a lost connection, as clients without automatic reconnection
    #[arg(long, conflicts_with = "reconnect_after")]
    pub(crate) no_reconnect: bool,

    /// Queue messages without a connection, and do not refuse them
    #[arg(long)]
    pub(crate) queue: bool,
}

impl From<Nodelay> for measurement::Nodelay {
    fn from(nodelay: Nodelay) -> Self {
        match nodelay {
            Nodelay::Both => Self::Both,
            Nodelay::Clients => Self::Clients,
            Nodelay::Broker => Self::Broker,
            Nodelay::None => Self::None,
        }
    }
}

fn broker(text: &str) -> Result<BrokerUrl, String> {
    text.parse()
}
