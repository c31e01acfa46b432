//! Arguments that contradict each other. Without these checks, a run would measure something else than was requested, or nothing.

use anyhow::{bail, ensure};
use gridhaul_measure::protocol::{GOOSE_MESSAGE_MAX, SAMPLED_VALUES_MESSAGE_MAX};
use gridhaul_protocols::{c37_118, dnp3, iec104, modbus};

use super::{ProtocolArgs, ProtocolName};

impl ProtocolArgs {
    /// Checks that the protocol can carry the messages as requested.
    ///
    /// # Errors
    /// The first contradiction, with its remedy.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let name = super::applicable::name(self.protocol);
        let (bytes, most) = (self.message_bytes(), self.protocol.longest_message());
        ensure!(
            bytes <= most,
            "--bytes: {name} carries at most {most} B in a message, and this one has {bytes} B\n  help: choose a shorter message"
        );
        if let Some(scheme) = self.connection.broker.as_ref().and_then(|url| url.scheme()) {
            let expected = self.protocol.scheme();
            ensure!(
                scheme.strip_suffix('s').unwrap_or(scheme) == expected,
                "--broker: {scheme}:// is not a scheme of {name}\n  help: use {expected}://, {expected}s:// with TLS, or HOST:PORT"
            );
        }
        if let Err(expected) = self.connection.iec_104_window().check() {
            bail!("--k, --w: {expected}");
        }
        let frames = &self.frames;
        ensure!(
            frames.retransmit_after <= frames.retransmit_every,
            "--retransmit-after: the first retransmission after {} is later than the longest interval of {}\n  help: choose a shorter \
             time, or a longer --retransmit-every",
            frames.retransmit_after,
            frames.retransmit_every
        );
        Ok(())
    }
}

impl ProtocolName {
    /// Bytes of the longest message.
    const fn longest_message(self) -> usize {
        match self {
            Self::Iec104 => iec104::MESSAGE_MAX,
            Self::Dnp3 => dnp3::MESSAGE_MAX,
            Self::C37118 => c37_118::MESSAGE_MAX,
            Self::ModbusTcp => modbus::MESSAGE_MAX,
            Self::Sv => SAMPLED_VALUES_MESSAGE_MAX,
            Self::Goose => GOOSE_MESSAGE_MAX,
            // The range of --bytes.
            Self::Null | Self::Udp | Self::Mqtt | Self::Mqtt5 | Self::Amqp091 | Self::Amqp10 => {
                usize::MAX
            }
            Self::Xmpp | Self::Zeromq | Self::ZeromqPubSub | Self::Nanomsg => usize::MAX,
        }
    }

    /// Scheme in the URL of a broker, without TLS.
    const fn scheme(self) -> &'static str {
        match self {
            Self::Amqp091 | Self::Amqp10 => "amqp",
            Self::Xmpp => "xmpp",
            _ => "mqtt",
        }
    }
}
