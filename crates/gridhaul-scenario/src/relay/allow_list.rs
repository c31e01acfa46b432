//! The addresses from which a listener accepts connections.

use std::net::IpAddr;

use super::{AddressPrefix, MeterListener};

impl MeterListener {
    /// Whether connections of an address are accepted. Prefixes that are not valid are refused when
    /// the configuration is read.
    #[must_use]
    pub fn is_allowed(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let mut prefixes = self.allow.iter().filter_map(|text| AddressPrefix::parse(text));
        self.allow.is_empty() || prefixes.any(|prefix| prefix.contains(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::{Acknowledgement, MeterFraming};

    #[test]
    fn an_allow_list_compares_prefixes() {
        let allow = |text: &str, address: &str| {
            let allow = vec![text.to_owned()];
            let listener = MeterListener {
                address: String::new(),
                framing: MeterFraming::Stream,
                tls: None,
                proxy_protocol: false,
                allow,
                ack: Acknowledgement::Received,
            };
            listener.is_allowed(address.parse().unwrap())
        };
        assert!(allow("10.0.0.0/8", "10.255.1.1") && !allow("10.0.0.0/8", "11.0.0.1"));
        assert!(allow("192.0.2.7", "192.0.2.7") && !allow("192.0.2.7", "192.0.2.6"));
        assert!(allow("192.0.2.0/31", "::ffff:192.0.2.1"), "a mapped address");
        assert!(
            allow("::ffff:127.0.0.0/104", "127.9.9.9")
                && !allow("::ffff:127.0.0.0/104", "128.0.0.1")
        );
        assert!(allow("::ffff:192.0.2.7", "192.0.2.7") && allow("::ffff:0:0/96", "192.0.2.7"));
        assert!(
            allow("2001:db8::/33", "2001:db8:7fff::1")
                && !allow("2001:db8::/33", "2001:db8:8000::1")
        );
        assert!(allow("0.0.0.0/0", "1.2.3.4") && !allow("0.0.0.0/0", "2001:db8::1"));
    }
}
