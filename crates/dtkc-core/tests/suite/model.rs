//! The model as a whole: seeds, state, statistics, frozen form, a few steps of training.

use crate::support::{assert_close, device, losses, noise, read};
use burn::module::Module;
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Tensor};
use dtkc_core::{
    BlockConfig, Model, ModelConfig, Moment, NetworkConfig, Objective, Padding, StateError, StatisticsPass, Tap,
    ValidModel, Values, Views, scale_images, scale_pixels,
};
use dtkc_item::ImageShape;
use dtkc_onnx::Layer;

const SIZE: ImageShape = ImageShape { height: 20, width: 24, channels: 3 };

fn valid() -> ValidModel {
    ModelConfig::new(SIZE, 5).check().unwrap()
}

fn images(n: usize, seed: u64) -> Vec<u8> {
    noise(n * SIZE.len(), seed).iter().map(|v| (v * 127.0 + 128.0) as u8).collect()
}

fn input(n: usize, seed: u64, device: &Device) -> Tensor<4> {
    scale_images(&images(n, seed), SIZE, device)
}

#[test]
fn the_seed_decides_the_weights() {
    let state = |seed| valid().init(&device(), seed).state();
    assert_eq!(state(3), state(3));
    assert_ne!(state(3), state(4));
    // With gradients or without, the bits are the same.
    let plain = valid().init(&Device::flex(), 3).state();
    assert_eq!(plain, state(3));
}

#[test]
fn weights_have_the_papers_scale() {
    let state = valid().init(&device(), 0).state();
    let array = |name: &str| state.iter().find(|a| a.name == name).unwrap();
    let limit = |name: &str| array(name).values.weights().iter().fold(0.0f32, |m, v| m.max(v.abs()));
    for (name, fan) in [("blocks.0.convs.0.weight", 75.0), ("blocks.1.convs.1.weight", 288.0), ("output.weight", 105.0)]
    {
        let bound = (6.0f32 / fan).sqrt();
        assert!(limit(name) <= bound && limit(name) > 0.97 * bound, "{name}: {} {bound}", limit(name));
    }
    assert_eq!(array("blocks.1.convs.0.weight").shape, [3, 3, 32, 32]);
    assert!(state.iter().filter(|a| a.name.ends_with("bias")).all(|a| a.values.weights().iter().all(|v| *v == 0.0)));
    assert!(array("hidden_norm.variance").values.weights().iter().all(|v| *v == 1.0));
}

#[test]
fn state_goes_out_and_in() {
    let mut trained = valid().init(&device(), 1);
    let output = trained.forward_train(input(6, 1, &device()));
    trained.update_running(&output, 0.5);
    let state = trained.state();
    let mut other = valid().init(&device(), 2);
    let mut shuffled = state.clone();
    shuffled.reverse();
    other.load_state(&shuffled).unwrap();
    assert_eq!(other.state(), state);
    let run = |model: &Model| read(model.forward_eval(input(4, 9, &device())).membership);
    assert_eq!(run(&other), run(&trained));
    // A loaded model still trains.
    let loss = other.forward_train(input(4, 1, &device())).membership.square().sum();
    assert_eq!(GradientsParams::from_grads(loss.backward(), &other).len(), 18);
}

#[test]
fn a_state_that_does_not_fit_changes_nothing() {
    let mut model = valid().init(&device(), 1);
    let before = model.state();
    let other = valid().init(&device(), 2).state();
    assert_eq!(model.load_state(&other[1..]), Err(StateError::Missing("blocks.0.convs.0.weight".into())));
    let mut wrong = other.clone();
    wrong[3].shape = vec![1, 2];
    assert!(matches!(model.load_state(&wrong), Err(StateError::Shape { name, .. }) if name == other[3].name));
    let mut more = other.clone();
    more.push(dtkc_core::NamedArray { name: "stranger".into(), shape: vec![1], values: Values::F32(vec![0.0]) });
    assert_eq!(model.load_state(&more), Err(StateError::Unknown("stranger".into())));
    assert_eq!(model.state(), before);
}

#[test]
fn running_statistics_move_and_clones_keep_theirs() {
    let mut model = valid().init(&device(), 1);
    let kept = model.clone();
    let output = model.forward_train(input(6, 1, &device()));
    model.update_running(&output, 0.9);
    let find = |model: &Model, name: &str| model.state().into_iter().find(|a| a.name == name).unwrap().values;
    let batch = read(output.statistics[1].variance.clone());
    let expected: Vec<f64> = batch.iter().map(|v| 0.9 + 0.1 * v).collect();
    let found: Vec<f64> = find(&model, "blocks.1.norm.variance").weights().iter().map(|&v| f64::from(v)).collect();
    assert_close("running variance", &found, &expected, 1e-6);
    assert!(find(&kept, "blocks.1.norm.variance").weights().iter().all(|v| *v == 1.0));
}

#[test]
fn a_pass_over_the_data_gives_the_statistics_of_one_huge_batch() {
    let mut model = valid().init(&device(), 1).valid();
    let plain = Device::flex();
    let all = input(10, 4, &plain);
    let mut pass = StatisticsPass::new();
    for (start, len) in [(0, 4), (4, 5), (9, 1)] {
        pass.add(&model.forward_train(all.clone().narrow(0, start, len)));
    }
    assert_eq!(pass.images(), 10);
    let whole = model.forward_train(all);
    pass.apply(&mut model);
    let find = |name: &str| -> Vec<f64> {
        let array = model.state().into_iter().find(|a| a.name == name).unwrap();
        array.values.weights().iter().map(|&v| f64::from(v)).collect()
    };
    // Exact for the first batch norm; later ones see inputs that were normalised by smaller batches.
    assert_close("mean", &find("blocks.0.norm.mean"), &read(whole.statistics[0].mean.clone()), 1e-5);
    assert_close("variance", &find("blocks.0.norm.variance"), &read(whole.statistics[0].variance.clone()), 1e-5);
    assert!(find("hidden_norm.variance").iter().all(|v| v.is_finite() && *v >= 0.0));

    let before = model.state();
    StatisticsPass::new().apply(&mut model);
    assert_eq!(model.state(), before);
}

#[test]
fn evaluation_does_not_depend_on_the_batch() {
    let mut model = valid().init(&device(), 1);
    let output = model.forward_train(input(8, 1, &device()));
    model.update_running(&output, 0.0);
    let model = model.valid();
    let x = input(5, 2, &Device::flex());
    let together = read(model.forward_eval(x.clone()).membership);
    let alone: Vec<f64> = (0..5).flat_map(|i| read(model.forward_eval(x.clone().narrow(0, i, 1)).membership)).collect();
    assert_close("membership", &alone, &together, 1e-6);
}

#[test]
fn a_few_steps_lower_the_loss_and_repeat_exactly() {
    let run = || {
        let [_, _, (_, loss), _] = losses();
        let objective = Objective::new(&loss).unwrap();
        let mut model = valid().init(&device(), 7);
        let mut optimiser = AdamConfig::new().init();
        let x = input(16, 3, &device());
        let mut totals = Vec::new();
        for _ in 0..6 {
            let output = model.forward_train(x.clone());
            let loss = objective.evaluate(&output, Views::Single, Moment::LATE);
            totals.push(loss.read().total);
            let gradients = GradientsParams::from_grads(loss.total.backward(), &model);
            model = optimiser.step(1e-3, model, gradients);
            model.update_running(&output, 0.99);
        }
        (totals, model.state())
    };
    let (totals, state) = run();
    assert!(totals[5] < totals[0], "{totals:?}");
    assert_eq!(run(), (totals, state));
}

#[test]
fn the_frozen_network_gives_the_same_answers() {
    let blocks = vec![
        BlockConfig { filters: 4, kernel: 4, convs: 2, batch_norm: true, pool: 3, tap: Tap::Unpooled },
        BlockConfig { filters: 5, kernel: 3, convs: 1, batch_norm: false, pool: 1, tap: Tap::Pooled },
    ];
    let plain = NetworkConfig { hidden: 7, ..NetworkConfig::default() };
    let same = NetworkConfig { blocks, padding: Padding::Same, hidden_batch_norm: false, ..plain.clone() };
    let reduced = NetworkConfig { reduce: 2, ..same.clone() };
    for network in [plain, same, reduced] {
        let valid = ModelConfig::new(SIZE, 5).with_network(network).check().unwrap();
        let mut model = valid.init(&device(), 1);
        let output = model.forward_train(valid.input(&images(6, 1), &device()));
        model.update_running(&output, 0.3);
        let frozen = model.to_network();
        let output = model.forward_eval(valid.input(&images(3, 8), &device()));
        let pixels = scale_pixels(&images(3, 8), SIZE);
        for (i, image) in pixels.chunks(SIZE.len()).enumerate() {
            let (embedding, membership) = interpret(&frozen.layers, image);
            let row = |t: &Tensor<2>| read(t.clone().narrow(0, i, 1));
            assert_close("embedding", &embedding, &row(&output.embedding), 2e-5);
            assert_close("membership", &membership, &row(&output.membership), 2e-5);
        }
    }
}

/// A value of the interpreter: height, width, channels, channels fastest.
struct Value(usize, usize, usize, Vec<f64>);

/// The plainest reading of a frozen network, in f64.
fn interpret(layers: &[Layer], image: &[f32]) -> (Vec<f64>, Vec<f64>) {
    let mut v = Value(SIZE.height, SIZE.width, SIZE.channels, image.iter().map(|&p| f64::from(p)).collect());
    let mut embedding = Vec::new();
    for layer in layers {
        v = match layer {
            Layer::Conv { weight, bias, padding } => convolve(&v, &weight.shape, &weight.data, bias, *padding),
            Layer::Relu => Value(v.0, v.1, v.2, v.3.iter().map(|x| x.max(0.0)).collect()),
            Layer::BatchNorm { gamma, beta, mean, variance, epsilon } => {
                let normal = |(i, x): (usize, &f64)| {
                    let c = i % v.2;
                    let root = (f64::from(variance[c]) + f64::from(*epsilon)).sqrt();
                    (x - f64::from(mean[c])) / root * f64::from(gamma[c]) + f64::from(beta[c])
                };
                Value(v.0, v.1, v.2, v.3.iter().enumerate().map(normal).collect())
            }
            Layer::MaxPool { size } => pool(&v, *size, |square| square.fold(f64::NEG_INFINITY, f64::max)),
            Layer::AveragePool { size } => pool(&v, *size, |square| square.sum::<f64>() / (size * size) as f64),
            Layer::Flatten => Value(1, 1, v.3.len(), v.3),
            Layer::Dense { weight, bias } => {
                let outputs = weight.shape[1];
                let unit = |o: usize| {
                    let products = v.3.iter().enumerate().map(|(i, x)| x * f64::from(weight.data[i * outputs + o]));
                    products.sum::<f64>() + f64::from(bias[o])
                };
                Value(1, 1, outputs, (0..outputs).map(unit).collect())
            }
            Layer::Embedding => {
                embedding = v.3.clone();
                v
            }
            Layer::Standardize { .. } | Layer::Gru { .. } | Layer::Resample { .. } => unreachable!("of sequences"),
            Layer::Tanh | Layer::StudentT { .. } => unreachable!("dtkc has no such layer"),
            Layer::Softmax => {
                let e: Vec<f64> = v.3.iter().map(|x| x.exp()).collect();
                let sum: f64 = e.iter().sum();
                Value(1, 1, v.2, e.iter().map(|x| x / sum).collect())
            }
        };
    }
    (embedding, v.3)
}

fn convolve(v: &Value, shape: &[usize], weight: &[f32], bias: &[f32], padding: [usize; 4]) -> Value {
    let [outputs, inputs, kh, kw] = shape.try_into().unwrap();
    let [top, left, bottom, right] = padding;
    let (height, width) = (v.0 + top + bottom + 1 - kh, v.1 + left + right + 1 - kw);
    let mut out = Vec::with_capacity(height * width * outputs);
    for y in 0..height {
        for x in 0..width {
            for o in 0..outputs {
                let mut sum = f64::from(bias[o]);
                for (i, dy, dx) in (0..inputs).flat_map(|i| (0..kh * kw).map(move |k| (i, k / kw, k % kw))) {
                    let (Some(sy), Some(sx)) = ((y + dy).checked_sub(top), (x + dx).checked_sub(left)) else {
                        continue;
                    };
                    if sy < v.0 && sx < v.1 {
                        let w = weight[((o * inputs + i) * kh + dy) * kw + dx];
                        sum += v.3[(sy * v.1 + sx) * v.2 + i] * f64::from(w);
                    }
                }
                out.push(sum);
            }
        }
    }
    Value(height, width, outputs, out)
}

fn pool(v: &Value, size: usize, join: impl Fn(&mut dyn Iterator<Item = f64>) -> f64) -> Value {
    let (height, width) = (v.0 / size, v.1 / size);
    let mut out = Vec::with_capacity(height * width * v.2);
    for (y, x, c) in (0..height * width * v.2).map(|at| (at / (width * v.2), at / v.2 % width, at % v.2)) {
        let square = (0..size * size).map(|k| (y * size + k / size, x * size + k % size));
        out.push(join(&mut square.map(|(sy, sx)| v.3[(sy * v.1 + sx) * v.2 + c])));
    }
    Value(height, width, v.2, out)
}
