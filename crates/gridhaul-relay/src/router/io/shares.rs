//! Guaranteed rates of the shapers of a hybrid router, probes included.

use gridhaul_scenario::relay::RouterConfig;
use gridhaul_scenario::units::BitRate;

use super::plan::probe_rate;
use crate::runtime::RunError;

/// The guarantees of a shaper must not exceed its rate: `sch_htb` lets a class send at its
/// guaranteed rate whatever the others send.
pub(super) fn check(router: &RouterConfig) -> Result<(), RunError> {
    for (name, link) in &router.link {
        let Some(shaper) = &link.shaper else { continue };
        let probes = probe_rate(router, link);
        let shares = shaper.share.values().map(|share| share.guarantee.as_bits_per_sec());
        let guaranteed = BitRate::from_bits_per_sec(shares.sum());
        if probes.as_bits_per_sec() + guaranteed.as_bits_per_sec() > shaper.rate.as_bits_per_sec() {
            return Err(RunError::Invalid(format!(
                "router.link.{name}.shaper: the share of the probes, {probes}, and the guarantees, \
                 {guaranteed}, exceed the rate of {}\n  help: decrease a guarantee or \
                 `probe_size`, or increase the rate or `probe_interval`; the share is twice the \
                 rate of the probes",
                shaper.rate
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(gprs: &str) -> Result<(), String> {
        let text = format!(
            "name = \"a\"\n[router]\naddress = \"10.9.0.1\"\npeer = \"10.9.0.2\"\n\
             destinations = [\"10.9.0.2\"]\nlink.dvbt.device = \"dvbt0\"\n\
             [router.link.gprs]\ndevice = \"gprs0\"\n{gprs}"
        );
        let config = gridhaul_scenario::RelayConfig::from_toml(&text, "r.toml").unwrap();
        check(&config.router.unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn probes_and_guarantees_must_fit_the_rate() {
        let shaper = |guarantee| {
            format!(
                "shaper.rate = \"22 kbit/s\"\nshaper.share.x = {{ packets = {{ protocol = \
                 \"udp\" }}, guarantee = \"{guarantee}\" }}\n"
            )
        };
        // 94 B each 200 ms, twice, are 7.52 kbit/s.
        assert_eq!(checked(&shaper("14 kbit/s")), Ok(()));
        let error = checked(&shaper("15 kbit/s")).unwrap_err();
        let expected = "router.link.gprs.shaper: the share of the probes, 7.52 kbit/s, and the \
                        guarantees, 15 kbit/s, exceed the rate of 22 kbit/s";
        assert!(error.contains(expected), "{error}");
        // Large probes alone exceed it.
        let large = "probe_size = \"1500 B\"\nshaper.rate = \"22 kbit/s\"\n";
        assert!(checked(large).unwrap_err().contains("exceed the rate of 22 kbit/s"));
    }
}
