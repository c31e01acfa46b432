//! Mean packet loss on power lines from shadowing and bursts of noise.

use gridhaul_scenario::scenario::{Noise, NoiseTiming, Shadowing};

/// Share of the packets whose level is below the threshold on at least one span: 1 − (1 − Q)ⁿ, with
/// the normal tail Q of margin over deviation. `None` if the level is constant for the whole run.
pub(super) fn shadowing_loss(shadowing: &Shadowing) -> Option<f64> {
    shadowing.coherence?;
    let (margin, deviation) = (shadowing.margin.as_decibels(), shadowing.deviation.as_decibels());
    let below = match deviation > 0.0 {
        true => normal_tail(margin / deviation),
        false => f64::from(u8::from(margin < 0.0)),
    };
    let spans = i32::try_from(shadowing.spans).unwrap_or(i32::MAX);
    Some(1.0 - (1.0 - below).powi(spans))
}

/// Share of the packets with a transmission time of `seconds` that the noise destroys.
pub(super) fn noise_loss(noise: &Noise, seconds: f64) -> f64 {
    let (length, gap) = (noise.length.as_secs_f64(), noise.gap.as_secs_f64());
    let survives = 1.0 - noise.loss.ratio();
    match noise.timing {
        NoiseTiming::Random => 1.0 - survival_of_random(length, gap, survives, seconds),
        NoiseTiming::Periodic => {
            // The phase is uniform: the number of bursts is the mean rounded up or down.
            let met = (seconds + length) / (length + gap);
            let minimum = met.floor();
            let more = met - minimum;
            let survival = survives.powf(minimum) * (1.0 - more + more * survives);
            1.0 - survival
        }
    }
}

/// Mean of `survives` to the power of the number of bursts during the packet.
///
/// Bursts begin at the rate a = 1 / gap and end at b = 1 / length. The survival probability from a
/// gap and from a burst obeys v' = M v with M = (−a, a s; b, −b) and v(0) = (1, 1); the packet
/// starts in a gap with probability b / (a + b), and a burst in progress counts.
fn survival_of_random(length: f64, gap: f64, survives: f64, seconds: f64) -> f64 {
    let (a, b) = (1.0 / gap, 1.0 / length);
    // Eigenvalues of M: half of its trace (`half`) plus and minus `root`.
    let half = -(a + b) / 2.0;
    let root = (half * half - a * b * (1.0 - survives)).max(0.0).sqrt();
    // exp(M t) = e^(half t) (cosh(root t) + sinh(root t) / root (M − half)), written so that
    // nothing overflows.
    let slow = ((half + root) * seconds).exp();
    let fast = ((half - root) * seconds).exp();
    let (cosh, sinh) = (f64::midpoint(slow, fast), (slow - fast) / 2.0);
    let over_root = if root > 0.0 { sinh / root } else { seconds * slow };
    let from_gap = cosh + over_root * (-a + a * survives - half);
    let from_burst = cosh - over_root * half;
    let on = a / (a + b);
    (1.0 - on) * from_gap + on * survives * from_burst
}

/// Probability that a standard normal variable is above x.
fn normal_tail(x: f64) -> f64 {
    let density = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if x.abs() < 3.0 {
        // Abramowitz and Stegun 1964, 26.2.11: the terms grow to x^2 / (2 n + 1) < 1 and then fall.
        let terms = (0..60).scan(x, |term, n| {
            let this = *term;
            *term *= x * x / f64::from(2 * n + 3);
            Some(this)
        });
        return 0.5 - density * terms.sum::<f64>();
    }
    // 26.2.14, the continued fraction.
    let size = x.abs();
    let tail = density / (1..60).rev().fold(size, |below, n| size + f64::from(n) / below);
    if x > 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::{PowerLine, PowerLineClass};
    use gridhaul_scenario::units::{Decibel, Distance, Duration, Probability};

    use super::*;

    fn noise(length_us: u64, gap_us: u64, loss: f64, timing: NoiseTiming) -> Noise {
        let [length, gap] = [length_us, gap_us].map(Duration::from_micros);
        Noise { length, gap, loss: Probability::new(loss).unwrap(), timing }
    }

    #[test]
    fn the_normal_tail_agrees_with_published_tables() {
        // Abramowitz and Stegun 1964, tables 26.1 and 26.2.
        let table = [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931),
            (2.5, 0.006_209_665_326),
            (3.0, 1.349_898_032e-3),
            (5.0, 2.866_515_719e-7),
        ];
        for (x, tail) in table {
            assert!((normal_tail(x) / tail - 1.0).abs() < 1e-8, "{x}: {}", normal_tail(x));
            assert!((normal_tail(-x) - (1.0 - tail)).abs() < 1e-9, "{x}");
        }
        assert!((normal_tail(2.999_999) / normal_tail(3.000_001) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn each_span_of_a_line_adds_shadowing_loss() {
        let shadowing = |spans, coherence| Shadowing {
            margin: Decibel::new(10),
            deviation: Decibel::new(4),
            coherence,
            spans,
        };
        let second = Some(Duration::from_secs(1));
        assert!((shadowing_loss(&shadowing(1, second)).unwrap() - 0.006_209_665).abs() < 1e-9);
        assert!((shadowing_loss(&shadowing(13, second)).unwrap() - 0.077_785_4).abs() < 1e-7);
        assert_eq!(shadowing_loss(&shadowing(1, None)), None);
        let flat = Shadowing { deviation: Decibel::ZERO, ..shadowing(5, second) };
        assert_eq!(shadowing_loss(&flat), Some(0.0));
        assert_eq!(shadowing_loss(&Shadowing { margin: Decibel::new(-1), ..flat }), Some(1.0));
    }

    #[test]
    fn power_line_losses_agree_with_the_documentation() {
        // docs/limitations/power-line.md; packets of 1500 B.
        use PowerLineClass::{Broadband, FutureBroadband, Narrowband};
        let table = [
            (Narrowband, 1_000, 0.000_233, 0.009_2),
            (Narrowband, 3_000, 0.006_21, 0.009_2),
            (Narrowband, 12_000, 0.024_6, 0.036_3),
            (Broadband, 300, 0.0, 0.004_1),
            (Broadband, 800, 0.006_21, 0.004_1),
            (Broadband, 10_000, 0.025_2, 0.051_9),
            (FutureBroadband, 10_000, 0.025_2, 0.016_8),
        ];
        for (class, metres, shadowing, noise) in table {
            let line = PowerLine {
                class,
                distance: Some(Distance::from_metres(metres)),
                span: None,
                processing: Duration::ZERO,
                shadowing: true,
                noise: true,
                attenuation_per_km: None,
                budget: None,
            };
            let direction = line.direction();
            let seconds = 12_000.0 / direction.rate.as_bits_per_sec() as f64;
            let shadowing_loss = shadowing_loss(&direction.shadowing.unwrap()).unwrap();
            let noise_loss = noise_loss(&direction.noise[0], seconds);
            assert!(
                (shadowing_loss - shadowing).abs() < 5e-5,
                "{class:?} {metres}: \
                {shadowing_loss}"
            );
            assert!((noise_loss - noise).abs() < 5e-5, "{class:?} {metres}: {noise_loss}");
        }
    }

    #[test]
    fn bursts_that_destroy_every_packet() {
        // 1 - g / (g + l) exp(-T / g).
        let noise = noise(100, 900, 1.0, NoiseTiming::Random);
        for seconds in [0.0, 1e-4, 4e-3, 10.0] {
            let expected = 1.0 - 0.9 * (-seconds / 9e-4_f64).exp();
            assert!((noise_loss(&noise, seconds) - expected).abs() < 1e-12, "{seconds}");
        }
    }

    #[test]
    fn short_bursts_are_a_poisson_process() {
        // Bursts of zero length at the rate 1 / g, each survived with probability s: exp(-(1 - s) T
        // / g).
        let mut short = noise(1, 10_000_000, 0.3, NoiseTiming::Random);
        short.length = Duration::from_nanos(1);
        for seconds in [0.1, 1.0, 30.0] {
            let expected = 1.0 - (-0.3 * seconds / 10.0_f64).exp();
            assert!((noise_loss(&short, seconds) - expected).abs() < 1e-6, "{seconds}");
        }
        // A short packet overlaps at most one burst.
        let long = noise(10_000, 40_000, 0.3, NoiseTiming::Random);
        assert!((noise_loss(&long, 0.0) - 0.2 * 0.3).abs() < 1e-12);
    }

    #[test]
    fn periodic_bursts_by_hand() {
        let mains = noise(1_000, 9_000, 0.5, NoiseTiming::Periodic);
        for (seconds, expected) in [(0.002, 0.15), (0.009, 0.5), (0.012, 0.7 * 0.5 + 0.3 * 0.75)] {
            assert!((noise_loss(&mains, seconds) - expected).abs() < 1e-12, "{seconds}");
        }
    }
}
