//! Weights in the order that the loops read them.

use super::Plan;

/// Weights as `[run][block of cout][tap][lane]`, zero beyond the last channel.
pub(crate) fn pack(plan: &Plan, weight: &[f32]) -> Vec<f32> {
    let (cout, lanes, taps) = (plan.geometry.channels_out, plan.isa.lanes(), plan.taps);
    let mut packed = vec![0.0; plan.weight_len()];
    for (run, packed) in packed.chunks_exact_mut(taps * plan.channels_out).enumerate() {
        for tap in 0..taps {
            let row = &weight[plan.source(run, tap) * cout..][..cout];
            for (block, part) in row.chunks(lanes).enumerate() {
                packed[(block * taps + tap) * lanes..][..part.len()].copy_from_slice(part);
            }
        }
    }
    packed
}

/// Weights as `[row][column][block of cin][cout][lane]`, the operand of the gradient to the input.
pub(crate) fn pack_transposed(plan: &Plan, weight: &[f32]) -> Vec<f32> {
    let (cin, cout, lanes) = (plan.geometry.channels_in, plan.geometry.channels_out, plan.isa.lanes());
    let positions = plan.geometry.kernel.0 * plan.geometry.kernel.1;
    let mut packed = vec![0.0; positions * cout * plan.channels_in];
    let pairs = packed.chunks_exact_mut(cout * plan.channels_in).zip(weight.chunks_exact(cin * cout));
    for (packed, weight) in pairs {
        for (i, row) in weight.chunks_exact(cout).enumerate() {
            for (o, value) in row.iter().enumerate() {
                packed[((i / lanes) * cout + o) * lanes + i % lanes] = *value;
            }
        }
    }
    packed
}

/// The gradient `[kh, kw, cin, cout]` from the packed one, the inverse of [`pack`].
pub(crate) fn gradient(plan: &Plan, packed: &[f32]) -> Vec<f32> {
    let (cout, lanes, taps) = (plan.geometry.channels_out, plan.isa.lanes(), plan.taps);
    let mut gradient = vec![0.0; plan.geometry.weight_len()];
    for (run, packed) in packed.chunks_exact(taps * plan.channels_out).enumerate() {
        for tap in 0..taps {
            let row = &mut gradient[plan.source(run, tap) * cout..][..cout];
            for (block, part) in row.chunks_mut(lanes).enumerate() {
                part.copy_from_slice(&packed[(block * taps + tap) * lanes..][..part.len()]);
            }
        }
    }
    gradient
}
