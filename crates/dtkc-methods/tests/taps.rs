//! Companion objectives on what lies inside a frozen network, against their definition.
#![allow(clippy::unwrap_used)]

use burn::tensor::{Device, Tensor, TensorData};
use dtkc_core::NamedArray;
use dtkc_core::augment::BatchKey;
use dtkc_item::{Batch, FeatureShape, ItemShape, Items, TapShape, Taps};
use dtkc_methods::learner::{Learner, StepClock, StepPlace};
use dtkc_methods::{Method, MethodSettings, Task};

const ITEMS: usize = 24;
const MAPS: TapShape = TapShape::Maps { channels: 3, height: 4, width: 2 };
const VECTOR: TapShape = TapShape::Vector(7);

fn shape() -> FeatureShape {
    FeatureShape { dim: 6, views: 1, taps: Taps::new(&[MAPS, VECTOR]).unwrap() }
}

fn batch() -> Batch {
    let mut state = 9u32;
    let mut next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as f32 / 65536.0 - 0.5
    };
    let shape = shape();
    let values = (0..ITEMS * shape.len()).map(&mut next).collect();
    Batch { indices: (0..ITEMS).collect(), items: Items::Features { shape, values } }
}

/// `lambda` and the preset; `plus` has two views of each item.
fn learner(preset: &str, lambda: f64) -> (Box<dyn Learner>, MethodSettings) {
    let (_, mut settings, plan) = Method::Dtkc.preset(Some(preset)).unwrap();
    let MethodSettings::Dtkc(table) = &mut settings else { panic!("not its settings") };
    table.loss.lambda = lambda;
    settings.suit(ItemShape::Features(shape()));
    let task = Task {
        input: ItemShape::Features(shape()),
        clusters: 3,
        plan,
        device: Device::flex(),
        pretrained: None,
        length: 0,
        restart: 0,
        common: Default::default(),
    };
    (settings.learner(&task, 5).unwrap(), settings)
}

/// The last epoch, where nothing is learnt any more that comes before clusters.
fn place() -> StepPlace {
    StepPlace { stage: 0, epoch: 3.5, epochs: 4, views: BatchKey { seed: 3, epoch: 3, batch: 1 } }
}

#[test]
fn a_companion_is_the_divergence_of_memberships_by_the_kernel_of_its_tap() {
    for preset in ["authors", "plus"] {
        let (mut learner, settings) = learner(preset, 0.5);
        let batch = batch();
        let Items::Features { values, .. } = &batch.items else { panic!("features") };
        let found = learner.step(&batch, &place(), &mut StepClock::start());
        assert!(found.applied);
        let MethodSettings::Dtkc(table) = &settings else { panic!("not its settings") };
        let companions = table.loss.companions();
        let device = Device::flex();
        let membership = Tensor::<2>::from_data(TensorData::new(found.membership, [ITEMS, 3]), &device);
        let part = |from: usize, len: usize| -> Vec<f32> {
            values.chunks_exact(shape().len()).flat_map(|item| item[from..from + len].to_vec()).collect()
        };
        // Two vectors of six values come first. The kernel unfolds rows, columns and channels, in this order.
        let maps =
            Tensor::<4>::from_data(TensorData::new(part(12, 24), [ITEMS, 3, 4, 2]), &device).permute([0, 2, 3, 1]);
        let vectors = Tensor::<2>::from_data(TensorData::new(part(36, 7), [ITEMS, 7]), &device);
        let expected = [
            companions.objective(maps, membership.clone()).into_scalar::<f32>(),
            companions.objective(vectors, membership).into_scalar::<f32>(),
        ];
        for (name, expected) in ["companion_1", "companion_2"].into_iter().zip(expected) {
            let found =
                found.loss.get(name).unwrap_or_else(|| panic!("{preset}: no {name} among {:?}", found.loss.terms));
            assert!((found - f64::from(expected)).abs() < 1e-5, "{preset}, {name}: {found} and {expected}");
        }
    }
}

fn weights_after(lambda: f64) -> Vec<NamedArray> {
    let (mut learner, _) = learner("authors", lambda);
    assert!(learner.step(&batch(), &place(), &mut StepClock::start()).applied);
    learner.weights()
}

#[test]
fn their_gradient_reaches_the_head() {
    assert_eq!(weights_after(0.01), weights_after(0.01));
    assert_ne!(weights_after(0.01), weights_after(100.0));
}
