//! Validity of certificates (RFC 5280, section 4.1.2.5), and times for messages about it.

use std::fmt;

use rustls::CertificateError;
use rustls::pki_types::{CertificateDer, UnixTime};

/// A time in seconds since 1970, shown as date and time in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Utc(pub i64);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.0.div_euclid(DAY), self.0.rem_euclid(DAY));
        let (year, month, day) = date_of(days);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
    }
}

/// Why a certificate is not valid at a time; `None` if it is, or if its validity cannot be read.
pub(crate) fn fault(certificate: &CertificateDer<'_>, now: Utc) -> Option<String> {
    let (from, until) = period(certificate)?;
    if now > until {
        Some(format!("the certificate has expired: it was valid until {until}"))
    } else if now < from {
        Some(format!("the certificate is not valid before {from}; it is {now} on this machine"))
    } else {
        None
    }
}

/// The system's time.
pub(crate) fn now() -> Utc {
    Utc(UnixTime::now().as_secs().cast_signed())
}

/// Text of an error of TLS, with times of certificates in UTC.
pub(crate) fn explain(error: &rustls::Error) -> String {
    let time = |time: &UnixTime| Utc(time.as_secs().cast_signed());
    match error {
        rustls::Error::InvalidCertificate(CertificateError::ExpiredContext {
            not_after, ..
        }) => format!(
            "the certificate of the peer has expired: it was valid until {}",
            time(not_after)
        ),
        rustls::Error::InvalidCertificate(CertificateError::NotValidYetContext {
            time: now,
            not_before,
        }) => format!(
            "the certificate of the peer is not valid before {}; it is {} on this machine",
            time(not_before),
            time(now)
        ),
        other => other.to_string(),
    }
}

/// First and last second of the validity of a certificate.
fn period(certificate: &[u8]) -> Option<(Utc, Utc)> {
    let (certificate, _) = expect(certificate, SEQUENCE)?;
    let (mut fields, _) = expect(certificate, SEQUENCE)?;
    // The version is optional; serial number, algorithm and issuer follow.
    if let Some((_, rest)) = expect(fields, VERSION) {
        fields = rest;
    }
    for _ in 0..3 {
        fields = element(fields)?.2;
    }
    let (validity, _) = expect(fields, SEQUENCE)?;
    let (tag, from, rest) = element(validity)?;
    let (until_tag, until, _) = element(rest)?;
    Some((time_of(tag, from)?, time_of(until_tag, until)?))
}

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Tag and content of the first element in DER (X.690), and the bytes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [tag, first, rest @ ..] = bytes else { return None };
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

fn expect(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    element(bytes).filter(|element| element.0 == tag).map(|element| (element.1, element.2))
}

/// A time such as `491231235959Z`, or with four digits of the year in the general form.
fn time_of(tag: u8, text: &[u8]) -> Option<Utc> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let digits = if tag == GENERALIZED_TIME { 4 } else { 2 };
    if !matches!(tag, UTC_TIME | GENERALIZED_TIME) || text.len() != digits + 10 {
        return None;
    }
    let number = |at: usize, count: usize| text.get(at..at + count)?.parse::<i64>().ok();
    let year = match (tag, number(0, digits)?) {
        (UTC_TIME, year @ 50..) => 1_900 + year,
        (UTC_TIME, year) => 2_000 + year,
        (_, year) => year,
    };
    let [month, day, hour, minute, second] = [0, 2, 4, 6, 8].map(|at| number(digits + at, 2));
    let seconds = hour? * 3_600 + minute? * 60 + second?;
    Some(Utc(days_of(year, month?, day?) * DAY + seconds))
}

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Days of 400 years, after which the Gregorian calendar repeats.
const DAYS_OF_400_YEARS: i64 = 146_097;

/// Days from 0000-03-01 to 1970-01-01. Years that begin in March end with the leap day.
const MARCH_0_TO_1970: i64 = 719_468;

/// Days since 1970 of a date in the Gregorian calendar.
const fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let in_period = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let of_period = in_period * 365 + in_period / 4 - in_period / 100 + of_year;
    year.div_euclid(400) * DAYS_OF_400_YEARS + of_period - MARCH_0_TO_1970
}

/// Year, month and day of a number of days since 1970.
const fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + MARCH_0_TO_1970;
    let (period, day) = (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + period * 400 + (month <= 2) as i64;
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_dates() {
        // Seconds as of `date -u -d`.
        let cases = [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_764_104_018, "2025-11-25 20:53:38 UTC"),
            (4_102_444_800, "2100-01-01 00:00:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
            (-1, "1969-12-31 23:59:59 UTC"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(Utc(seconds).to_string(), expected);
        }
        for days in (-800_000..2_000_000).step_by(13) {
            let (year, month, day) = date_of(days);
            assert_eq!(days_of(year, month, day), days);
        }
    }

    #[test]
    fn times_of_both_forms_are_read() {
        let time = |tag, text: &str| time_of(tag, text.as_bytes()).map(|time| time.to_string());
        let expected = Some("2049-12-31 23:59:59 UTC".to_owned());
        assert_eq!(time(UTC_TIME, "491231235959Z"), expected);
        assert_eq!(time(GENERALIZED_TIME, "20491231235959Z"), expected);
        assert_eq!(time(UTC_TIME, "500101000000Z").unwrap(), "1950-01-01 00:00:00 UTC");
        assert_eq!(time(UTC_TIME, "491231235959"), None);
        assert_eq!(time(0x16, "491231235959Z"), None);
        assert_eq!(period(b""), None);
        assert_eq!(period(&[SEQUENCE, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }

    #[test]
    fn an_expired_certificate_is_found() {
        let mut parameters = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        parameters.not_before = rcgen::date_time_ymd(2_000, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(2_060, 1, 2);
        let certificate = parameters.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let fault = |text: &str| {
            fault(certificate.der(), time_of(GENERALIZED_TIME, text.as_bytes()).unwrap())
        };
        assert_eq!(fault("20100101000000Z"), None);
        let expired = fault("20600102000001Z").unwrap();
        assert_eq!(
            expired,
            "the certificate has expired: it was valid until 2060-01-02 00:00:00 UTC"
        );
        assert!(fault("19991231235959Z").unwrap().contains("not valid before 2000-01-01"));
    }
}
