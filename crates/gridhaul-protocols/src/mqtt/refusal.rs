//! Reasons of a broker, as texts.

/// Reason of CONNACK: the return codes of MQTT 3.1.1 (section 3.2.2.3) and the reason codes of MQTT
/// 5.0 (section 3.2.2.2).
pub(super) const fn connection_refusal(code: u8) -> &'static str {
    match code {
        1 => "it does not support MQTT 3.1.1",
        0x84 => "it does not support MQTT 5.0",
        2 | 0x85 => "it does not accept the name of the client",
        3 | 0x88 => "it is not available",
        4 | 0x86 => "user name or password are wrong",
        5 | 0x87 => "the client is not authorised",
        0x8a => "the client is banned",
        0x8c => "it does not accept the method of authentication",
        code => shared(code),
    }
}

/// Reason of SUBACK (section 3.9.3; MQTT 5.0, section 3.9.3). MQTT 3.1.1 has one code, without a
/// reason.
pub(super) const fn subscription_refusal(code: u8) -> &'static str {
    match code {
        0x87 => "the client is not authorised",
        0x8f => "it does not accept the topic",
        0x91 => "the packet identifier is in use",
        0xa1 => "it does not support subscription identifiers",
        0xa2 => "it does not support wildcards",
        code => shared(code),
    }
}

/// Reason of DISCONNECT (MQTT 5.0, section 3.14.2.1).
pub(super) const fn disconnection(code: u8) -> &'static str {
    match code {
        0 => "normal disconnection",
        0x87 => "the client is not authorised",
        0x8b => "it shuts down",
        0x8d => "the client sent nothing within the keep-alive interval",
        0x8e => "another client has the same name",
        0x8f | 0x90 => "it does not accept the topic",
        0x93 => "too many messages are without an acknowledgement",
        0x94 => "the topic alias is invalid",
        0x96 => "the rate of messages is too high",
        0x98 => "an administrator has ended the connection",
        0xa0 => "the connection has lasted too long",
        code => shared(code),
    }
}

/// Reasons that packets share (MQTT 5.0, table 2-6).
const fn shared(code: u8) -> &'static str {
    match code {
        0x81 => "a packet is malformed",
        0x82 => "a packet violates the protocol",
        0x83 => "it does not accept a packet",
        0x89 => "it is busy",
        0x90 => "it does not accept the topic",
        0x95 => "a packet is too large",
        0x97 => "a quota is exceeded",
        0x99 => "the format of the message is invalid",
        0x9a => "it does not support retained messages",
        0x9b => "it does not support the quality of service",
        0x9c | 0x9d => "another broker is to be used",
        0x9e => "it does not support shared subscriptions",
        0x9f => "the rate of connections is too high",
        _ => "the reason is unknown",
    }
}
