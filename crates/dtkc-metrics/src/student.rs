//! Student's t distribution.

/// Halvings after which no bit of a quantile changes.
const HALVINGS: usize = 2100;
/// Terms of the continued fraction; far fewer are needed.
const TERMS: usize = 10_000;
const TINY: f64 = 1e-300;

/// The value below which Student's t lies with probability `p`, with `df` degrees of freedom (any positive number).
/// `None` where `p` does not lie between 0 and 1, or there is no such distribution.
pub fn t_quantile(p: f64, df: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0 && df > 0.0 && df.is_finite()) {
        return None;
    }
    // By the smaller tail, which keeps its digits: 1 - 1e-20 is 1.
    let tail = p.min(1.0 - p);
    let (mut low, mut high) = (0.0, 1.0);
    while upper_tail(high, df) > tail && high < f64::MAX / 2.0 {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if upper_tail(middle, df) > tail { low = middle } else { high = middle }
    }
    let size = if p == 0.5 { 0.0 } else { f64::midpoint(low, high) };
    Some(if p < 0.5 { -size } else { size })
}

/// The probability of more than `t`, which is not negative.
fn upper_tail(t: f64, df: f64) -> f64 {
    // Beside df, the square of a small t would lose its digits.
    let square = t * t;
    let tail = match square < df {
        true => 1.0 - regularised_beta(square / (df + square), 0.5, df / 2.0),
        false => regularised_beta(df / (df + square), df / 2.0, 0.5),
    };
    tail / 2.0
}

/// The regularised incomplete beta function of `x` between 0 and 1.
fn regularised_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast below the mean of the distribution, and the other side is what is left.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - regularised_beta(1.0 - x, b, a);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    front.exp() * fraction(x, a, b) / a
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for m in 1..TERMS {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            change = c * d;
            result *= change;
        }
        if (change - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    result
}

/// The logarithm of the gamma function of a positive number, by Lanczos' approximation (g = 7, nine terms).
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        // The reflection: the approximation holds for larger numbers.
        return (std::f64::consts::PI / (std::f64::consts::PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let shifted = x + 7.5;
    let sum: f64 = TERMS[1..].iter().zip(1..).map(|(term, i)| term / (x + f64::from(i))).sum();
    (std::f64::consts::TAU.sqrt() * (TERMS[0] + sum)).ln() + (x + 0.5) * shifted.ln() - shifted
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_in_closed_form() {
        // One degree of freedom is Cauchy's distribution: tan(pi (p - 1/2)). Two: (2p - 1) / sqrt(2 p (1 - p)).
        for p in [0.001, 0.2, 0.4999, 0.6, 0.975, 0.9999] {
            let cauchy = (std::f64::consts::PI * (p - 0.5)).tan();
            let two = (2.0 * p - 1.0) / (2.0 * p * (1.0 - p)).sqrt();
            let off = |found: f64, expected: f64| (found - expected).abs() / expected.abs().max(1e-3);
            assert!(off(t_quantile(p, 1.0).unwrap(), cauchy) < 1e-10, "{p}");
            assert!(off(t_quantile(p, 2.0).unwrap(), two) < 1e-10, "{p}");
        }
        assert_eq!(t_quantile(0.5, 7.0), Some(0.0));
    }

    #[test]
    fn nonsense_has_no_quantile() {
        for (p, df) in [(0.0, 3.0), (1.0, 3.0), (-0.1, 3.0), (f64::NAN, 3.0), (0.9, 0.0), (0.9, -1.0), (0.9, f64::NAN)]
        {
            assert_eq!(t_quantile(p, df), None, "{p} {df}");
        }
    }
}
