//! Checks of the connections of a flow: policy, TLS, reconnections and limits of the server.

use super::Report;
use crate::scenario::{
    ConnectionPolicy, Flow, Load, Profile, Tls, TlsResumption, TlsVersion, Transport,
};
use crate::units::{Bytes, Duration};

/// Largest size of a message of TLS: the length of a handshake message has 24 bits (RFC 8446,
/// section 4), and certificates of more than 64 kB are typing errors.
const TLS_MESSAGE_MAX: Bytes = Bytes::new(65_536);

/// Largest number of flights of a handshake.
const FLIGHTS_MAX: usize = 16;

impl Report<'_> {
    pub(super) fn connections(&mut self, name: &str, flow: &Flow) {
        let key = format!("flow.{name}");
        if flow.local_ports.is_some() && !flow.manages_connections() {
            self.refuse(
                format!("{key}.local_ports"),
                "the flow opens one connection, so the number of ports has no effect",
                "remove this key, or set `connection`",
            );
        }
        if flow.fast_open {
            self.fast_open(&format!("{key}.fast_open"), flow);
        }
        let Some(managed) = flow.connection_key() else { return };
        let managed = format!("{key}.{managed}");
        if flow.transport != Transport::Tcp {
            self.refuse(
                managed,
                "datagrams have no connection",
                "remove this key, or use transport = \"tcp\"",
            );
            return;
        }
        self.load_of_connections(&managed, flow);
        self.connection_of_exchange(&key, flow);
        self.acknowledgement(&key, flow);
        self.mqtt_flow(&key, flow);
        self.connection_without_handshake(&managed, flow);
        if self.scenario.record.events.iter().any(|logged| logged == name) {
            self.refuse(
                "record.events",
                format!("the log describes one connection, and flow {name} opens several"),
                "remove the flow from the list",
            );
        }
        if flow.connection == ConnectionPolicy::IdleTimeout(Duration::ZERO) {
            self.refuse(
                format!("{key}.connection.idle_timeout"),
                "the time must be above 0",
                "write \"30 s\", or connection = \"per_message\"",
            );
        }
        if flow.local_ports == Some(0) {
            self.refuse(
                format!("{key}.local_ports"),
                "a connection needs a local port",
                "write a number from 1, or leave it out",
            );
        }
        if let Some(tls) = &flow.tls {
            self.tls(&format!("{key}.tls"), tls);
        }
        self.attempts(&key, flow);
    }

    fn fast_open(&mut self, key: &str, flow: &Flow) {
        let refusals = [
            (
                flow.connection == ConnectionPolicy::Persistent,
                "the flow opens one connection, and the first one obtains the cookie",
                "add connection = \"per_message\", or remove `fast_open`",
            ),
            (
                flow.tls.is_some(),
                "a ClientHello is not sent with SYN",
                "remove `tls` or `fast_open`; `tls.early_data` saves a round trip of TLS",
            ),
            (
                flow.has_session(),
                "the applications of this load write when the connection is open",
                "use `periodic`, `poisson` or `request_response` without `acknowledgement`, or \
                 remove `fast_open`",
            ),
        ];
        for (_, message, remedy) in refusals.into_iter().filter(|(applies, ..)| *applies) {
            self.refuse(key, message, remedy);
        }
    }

    fn attempts(&mut self, key: &str, flow: &Flow) {
        if let Some(reconnect) = &flow.reconnect {
            for (name, is_zero, usual) in [
                ("timeout", reconnect.timeout.is_some_and(|timeout| timeout.is_zero()), "\"10 s\""),
                ("pause", reconnect.pause.is_zero(), "\"10 s\""),
                ("factor", reconnect.factor == 0, "2"),
            ] {
                if is_zero {
                    self.refuse(
                        format!("{key}.reconnect.{name}"),
                        "the value must be above 0",
                        format!("write {usual}, or leave it out"),
                    );
                }
            }
            if reconnect.pause_max < reconnect.pause {
                self.refuse(
                    format!("{key}.reconnect.pause_max"),
                    format!("{} is below `pause`, {}", reconnect.pause_max, reconnect.pause),
                    "increase `pause_max`, or reduce `pause`",
                );
            }
        }
        let idle = [
            ("nat.idle_timeout", flow.nat.is_some_and(|nat| nat.idle_timeout.is_zero())),
            ("keep_alive.idle", flow.keep_alive.is_some_and(|keys| keys.idle.is_zero())),
            ("keep_alive.interval", flow.keep_alive.is_some_and(|keys| keys.interval.is_zero())),
            ("keep_alive.probes", flow.keep_alive.is_some_and(|keys| keys.probes == 0)),
            ("user_timeout", flow.user_timeout.is_some_and(|timeout| timeout.is_zero())),
        ];
        for (name, _) in idle.into_iter().filter(|(_, is_zero)| *is_zero) {
            self.refuse(
                format!("{key}.{name}"),
                "the value must be above 0",
                "write \"5 min\" for a time or 9 for `probes`, or leave it out",
            );
        }
        if let Some(accept) = &flow.accept {
            let numbers = [
                ("per_second", accept.per_second),
                ("burst", accept.burst),
                ("backlog", accept.backlog),
            ];
            for (name, value) in numbers {
                if value == 0 {
                    self.refuse(
                        format!("{key}.accept.{name}"),
                        "with 0 the server would accept no connection",
                        "write a number from 1, such as 100",
                    );
                }
            }
        }
    }

    fn load_of_connections(&mut self, managed: &str, flow: &Flow) {
        let has_message_times = match &flow.load {
            Load::Periodic(_)
            | Load::Poisson(_)
            | Load::Burst(_)
            | Load::Application(_)
            | Load::RequestResponse(_)
            | Load::Exchange(_)
            | Load::Modbus(_)
            | Load::Dlms(_)
            | Load::Iec104(_)
            | Load::Mqtt(_)
            | Load::MqttSubscription(_) => true,
            Load::OnOff(load) => load.rate.is_some(),
            Load::Bulk | Load::Transfer(_) | Load::Trace(_) | Load::External => false,
        };
        if !has_message_times {
            self.refuse(
                managed,
                "connections can be managed for loads of messages only, whose times do not depend \
                 on the connection",
                "use `periodic`, `poisson`, `burst`, `application`, `request_response`, \
                 `exchange`, or `on_off` with a rate; or remove this key",
            );
        }
    }

    fn connection_without_handshake(&mut self, managed: &str, flow: &Flow) {
        let named = [&flow.stack, &flow.to_stack].into_iter().flatten();
        let mut named = named.filter_map(|name| Some((name, self.scenario.stack.get(name)?)));
        let without = named
            .find(|(_, stack)| stack.handshake == Some(false) || stack.profile == Profile::Ns2);
        let Some((name, _)) = without else { return };
        let message = format!("connections of stack {name} do not open and close by SYN and FIN");
        self.refuse(
            managed,
            message,
            "choose a stack of profile `linux` or `rfc` without `handshake = false`, or remove \
             this key",
        );
    }

    fn tls(&mut self, key: &str, tls: &Tls) {
        if tls.early_data && tls.version != TlsVersion::V1_3 {
            self.refuse(
                format!("{key}.early_data"),
                "TLS 1.2 has no early data",
                "write version = \"1.3\", or remove `early_data`",
            );
        }
        if tls.early_data && tls.resumption == TlsResumption::Never {
            self.refuse(
                format!("{key}.early_data"),
                "only a connection that resumes a session sends early data",
                "add resumption = \"after_first\", or remove `early_data`",
            );
        }
        let flights = tls.flights.iter().flatten();
        let sizes = [("client_hello", tls.client_hello), ("certificate", tls.certificate)];
        let sizes = sizes
            .into_iter()
            .chain(tls.client_certificate.map(|size| ("client_certificate", size)));
        let sizes = sizes.chain([("ticket", tls.ticket)]);
        for (name, size) in sizes.chain(flights.map(|size| ("flights", *size))) {
            if size.get() == 0 || size > TLS_MESSAGE_MAX {
                self.refuse(
                    format!("{key}.{name}"),
                    format!("expected a size from 1 B to {TLS_MESSAGE_MAX}, not {size}"),
                    "write \"1 kB\", or leave it out",
                );
                return;
            }
        }
        if tls.flights.as_ref().is_some_and(|flights| !(1..=FLIGHTS_MAX).contains(&flights.len())) {
            self.refuse(
                format!("{key}.flights"),
                format!("a handshake has from 1 to {FLIGHTS_MAX} flights"),
                "write the bytes of each flight, such as [\"220 B\", \"1.4 kB\", \"70 B\"]",
            );
        }
    }
}
