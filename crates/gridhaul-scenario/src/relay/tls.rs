//! Keys of TLS in a relay configuration. All files are PEM; relative paths begin at the folder of
//! the configuration file, and those with `$CREDENTIALS_DIRECTORY/` at the folder of systemd's
//! `LoadCredential=`.

use serde::{Deserialize, Serialize};

/// TLS 1.3 for the connections of meters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MeterTls {
    /// Certificate of the collector, followed by intermediate certificates.
    pub certificate: String,
    /// Private key of the certificate.
    pub key: String,
    /// Certificates of the authorities that sign client certificates. Absent: meters send no
    /// certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_authorities: Option<String>,
    /// Whether a meter without a certificate is accepted, with `client_authorities`.
    #[serde(default)]
    pub client_certificate_optional: bool,
}

/// Mutual TLS 1.3 for the status page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ManagementTls {
    /// Address and port for other machines, such as `"0.0.0.0:9443"`.
    pub address: String,
    /// Certificate of the relay, followed by intermediate certificates.
    pub certificate: String,
    /// Private key of the certificate.
    pub key: String,
    /// Certificates of the authorities that sign the certificates of clients. Each client with such
    /// a certificate may read everything.
    pub client_authorities: String,
}

/// Mutual TLS 1.3 of a collector with its head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpstreamTls {
    /// Certificate of this collector. Its common name, or one of its DNS names, must be the `name`
    /// of the collector.
    pub certificate: String,
    /// Private key of the certificate.
    pub key: String,
    /// Certificates of the authorities that sign the certificate of the head.
    pub authorities: String,
    /// DNS name or IP address in the certificate of the head. Absent: the host of `upstream`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
}

/// Mutual TLS 1.3 of a head with its collectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HeadTls {
    /// Certificate of the head, followed by intermediate certificates.
    pub certificate: String,
    /// Private key of the certificate.
    pub key: String,
    /// Certificates of the authorities that sign the certificates of collectors. A collector is
    /// accepted only under a name in its certificate.
    pub authorities: String,
}

/// TLS 1.3 of a head with an MQTT broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BrokerTls {
    /// Certificates of the authorities that sign the certificate of the broker.
    pub authorities: String,
    /// Certificate of this head, followed by intermediate certificates. Absent: the head sends no
    /// certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// Private key of the certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// DNS name or IP address in the certificate of the broker. Absent: the host of `broker`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
}
