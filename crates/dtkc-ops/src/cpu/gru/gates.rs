//! The gates of a step, elementwise on one vector register.

use crate::cpu::isa::fma;

/// `e^x` to about one unit in the last place, for -87 to 87; what lies beyond counts as the end of that range. Not a number
/// stays so.
///
/// `x = n ln 2 + r`, `|r| <= ln 2 / 2`: a polynomial in `r`, and `n` put into the exponent's bits.
#[inline(always)]
fn exp<const FMA: bool>(x: f32) -> f32 {
    /// Added and taken away again, it leaves the nearest whole number.
    const ROUND: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Written so that a comparison with "not a number" keeps it.
    let x = if x > 87.0 { 87.0 } else { x };
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = fma::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fma::<FMA>(n, -LN2_HIGH, x);
    let r = fma::<FMA>(n, -LN2_LOW, r);
    let p = 1.987_569_1e-4;
    let p = fma::<FMA>(p, r, 1.398_199_9e-3);
    let p = fma::<FMA>(p, r, 8.333_452e-3);
    let p = fma::<FMA>(p, r, 4.166_579_6e-2);
    let p = fma::<FMA>(p, r, 1.666_666_6e-1);
    let p = fma::<FMA>(p, r, 0.5);
    let p = fma::<FMA>(p * r, r, r + 1.0);
    p * f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000))
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(super) fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    1.0 / (1.0 + exp::<FMA>(-x))
}

/// The hyperbolic tangent, as `2 sigmoid(2 x) - 1`: right to about 1e-7, not relative to its own size.
#[inline(always)]
pub(super) fn tanh<const FMA: bool>(x: f32) -> f32 {
    fma::<FMA>(2.0, sigmoid::<FMA>(x + x), -1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_agree_with_those_in_f64() {
        for i in -400_000..=400_000 {
            let x = i as f32 * 2.5e-4;
            let wide = f64::from(x);
            let exact = wide.clamp(-87.0, 87.0).exp();
            for found in [exp::<true>(x), exp::<false>(x)] {
                assert!((f64::from(found) / exact - 1.0).abs() < 3e-7, "exp({x}) is {found}");
            }
            let exact = 1.0 / (1.0 + (-wide).exp());
            assert!((f64::from(sigmoid::<true>(x)) - exact).abs() < 1.5e-7, "sigmoid({x})");
            assert!((f64::from(tanh::<true>(x)) - wide.tanh()).abs() < 3e-7, "tanh({x})");
        }
    }

    #[test]
    fn extremes_have_their_limits_and_not_a_number_stays() {
        for far in [1e4, f32::MAX, f32::INFINITY] {
            assert_eq!((sigmoid::<true>(far), tanh::<true>(far), tanh::<true>(-far)), (1.0, 1.0, -1.0));
            assert!(sigmoid::<true>(-far) < 1e-37);
        }
        assert!(sigmoid::<true>(f32::NAN).is_nan() && tanh::<false>(f32::NAN).is_nan());
    }
}
