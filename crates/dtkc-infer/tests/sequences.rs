//! Models that take sequences: against NumPy, in any batch, and what cannot be used.

#![allow(clippy::unwrap_used)]

mod common;

use common::{model, runtime, session};
use dtkc_image::Limits;
use dtkc_infer::{Assignments, ModelFile, Pool, PoolOptions, Prepared, RawItem, SessionOptions, Task, Work, Worker};
use dtkc_item::{ItemShape, Items};
use dtkc_onnx::testing::{Golden, GoldenNetwork, Sample, SequenceSample, forward_sequence, golden};

fn items(dim: usize, sequences: &[Vec<f32>]) -> Items {
    let mut items = Items::empty(ItemShape::Sequence { dim });
    for sequence in sequences {
        let offsets = vec![0, sequence.len() / dim];
        items.append(&Items::Sequences { dim, values: sequence.clone(), offsets });
    }
    items
}

fn sequence_model(sample: &SequenceSample) -> ModelFile {
    let bytes = dtkc_onnx::write(&sample.network(), &sample.metadata(sample.hidden)).unwrap();
    ModelFile::from_bytes("sample", bytes).unwrap()
}

/// Clusters, probabilities and embedding to the last bit.
type Bits = (Vec<i64>, Vec<u32>, Vec<u32>);

fn bits(answers: &Assignments) -> Bits {
    let bits = |values: &ndarray::Array2<f32>| values.iter().map(|value| value.to_bits()).collect();
    (answers.clusters.clone(), bits(&answers.probabilities), bits(&answers.embedding))
}

#[test]
fn answers_are_those_of_numpy() {
    let Golden { sequences, networks } = golden();
    for GoldenNetwork { network, metadata, answers } in networks {
        let outlier = dtkc_onnx::Outlier::sample(answers[0].embedding.len(), false, 8);
        let bytes = dtkc_onnx::with_outlier(&dtkc_onnx::write(&network, &metadata).unwrap(), &outlier).unwrap();
        let model = ModelFile::from_bytes("golden", bytes).unwrap();
        let found = session(&model, 1).run_items(&items(3, &sequences)).unwrap();
        for (row, expected) in answers.iter().enumerate() {
            let probabilities = found.probabilities.row(row).into_iter().zip(&expected.probabilities);
            let embedding = found.embedding.row(row).into_iter().zip(&expected.embedding);
            for (found, expected) in probabilities.chain(embedding) {
                assert!((f64::from(*found) - expected).abs() < 1e-5, "sequence {row}: {found} instead of {expected}");
            }
            assert_eq!(found.clusters[row] as usize, expected.cluster());
            let difference = f64::from(found.outliers[row]) - outlier.evaluate(&expected.embedding);
            assert!(difference.abs() < 1e-4, "sequence {row}: {difference}");
        }
    }
}

#[test]
fn an_answer_does_not_depend_on_the_batch_the_padding_or_the_threads() {
    let lengths: Vec<usize> = (0..67).map(|i| 1 + (i * i * 31) % 150).collect();
    for sample in [SequenceSample::characters(), SequenceSample { dim: 13, clusters: 40, ..SequenceSample::small() }] {
        let (model, sequences) = (sequence_model(&sample), sample.sequences(&lengths));
        let mut alone = session(&model, 1);
        let alone: Vec<_> = sequences
            .iter()
            .map(|one| bits(&alone.run_items(&items(sample.dim, std::slice::from_ref(one))).unwrap()))
            .collect();
        for threads in [1, 2, 3] {
            let mut session = session(&model, threads);
            for batch in [2, 8, 67] {
                for (part, expected) in sequences.chunks(batch).zip(alone.chunks(batch)) {
                    let found = bits(&session.run_items(&items(sample.dim, part)).unwrap());
                    let joined = |of: fn(&Bits) -> &Vec<u32>| {
                        expected.iter().flat_map(|one| of(one).clone()).collect::<Vec<u32>>()
                    };
                    assert!(found.1 == joined(|one| &one.1), "{threads} threads, batches of {batch}");
                    assert!(found.2 == joined(|one| &one.2), "{threads} threads, batches of {batch}");
                }
            }
        }
    }
}

fn worker(model: &ModelFile, max_steps: usize) -> Worker {
    let options = SessionOptions { max_steps, ..SessionOptions::default() };
    Worker::new(&runtime(), model, &options, Limits::default()).unwrap()
}

#[test]
fn what_cannot_be_used_fails_alone_with_both_numbers() {
    let sample = SequenceSample::small();
    let mut worker = worker(&sequence_model(&sample), 9);
    let good = sample.sequences(&[6, 9]);
    let sequence = |dim: usize, values: Vec<f32>| RawItem::Sequence { dim, values };
    let mut holes = good[0].clone();
    holes[4] = f32::NAN;
    let raw = [
        sequence(3, good[0].clone()),
        sequence(2, vec![0.0; 4]),
        sequence(3, Vec::new()),
        sequence(3, holes),
        sequence(3, vec![0.0; 30]),
        RawItem::Encoded(b"P5 1 1 255\n\x01".to_vec()),
        sequence(3, good[1].clone()),
    ];
    let mut batch = Prepared::new(worker.shape());
    worker.prepare(&raw, &mut batch);
    let told: Vec<(&str, &str)> = batch
        .rows
        .iter()
        .map(|row| row.as_ref().map_or_else(|error| (&*error.code, error.message.as_str()), |_| ("good", "")))
        .collect();
    let codes: Vec<&str> = told.iter().map(|(code, _)| *code).collect();
    let expected = ["good", "other_dimension", "no_steps", "missing_values", "too_long", "not_a_sequence", "good"];
    assert_eq!(codes, expected);
    assert_eq!(told[1].1, "the sequence has 2 values a step and the model takes 3");
    assert!(told[3].1.contains("1 of 18 values is missing") && told[3].1.contains("dimension 2 of step 2"));
    assert!(told[4].1.contains("10 steps, more than the limit of 9"));
    let found = worker.run(&batch).unwrap();
    let network = sample.network();
    for (row, sequence) in good.iter().enumerate() {
        let expected = forward_sequence(&network, sequence);
        let pairs = found.probabilities.row(row).into_iter().zip(&expected.probabilities);
        assert!(pairs.into_iter().all(|(a, b)| (f64::from(*a) - b).abs() < 1e-5));
    }
}

#[test]
fn items_of_the_other_kind_are_refused() {
    let sample = SequenceSample::small();
    let images = Items::Images { shape: Sample::small().shape(), pixels: Sample::small().images(1) };
    let sequences = items(3, &sample.sequences(&[4]));
    let mut takes_sequences = worker(&sequence_model(&sample), 100);
    let mut batch = Prepared::new(takes_sequences.shape());
    let error = takes_sequences.prepare_items(images, &mut batch).unwrap_err().to_string();
    assert_eq!(error, "sample: the model takes sequences, and these are not; give it sequences");
    let error = session(&model(&Sample::small()), 1).run_items(&sequences).unwrap_err().to_string();
    assert_eq!(error, "sample: the model takes images, and these are not; give it images");
    let mut session = session(&sequence_model(&sample), 1);
    assert!(session.run(&[0; 4], 1).is_err());
    for (dim, values, offsets) in
        [(2, 4, &[0, 2][..]), (3, 4, &[0, 1]), (3, 6, &[0, 0, 2]), (3, 6, &[1, 2]), (3, 0, &[])]
    {
        assert!(session.run_sequences(dim, &vec![0.0; values], offsets).is_err(), "{dim} {values} {offsets:?}");
    }
    assert!(session.run_sequences(3, &[], &[0]).unwrap().is_empty());
}

/// A result where there is memory for it, a refusal where not; never anything else.
#[test]
fn a_million_steps_are_a_result_or_a_refusal() {
    let sample = SequenceSample { stacked: 1, ..SequenceSample::small() };
    let model = sequence_model(&sample);
    let long = RawItem::Sequence { dim: 3, values: sample.sequences(&[1_000_000]).remove(0) };
    let mut usual = worker(&model, SessionOptions::default().max_steps);
    let mut batch = Prepared::new(usual.shape());
    usual.prepare([&long], &mut batch);
    assert_eq!(batch.rows[0].as_ref().unwrap_err().code, "too_long");
    assert!(usual.run(&batch).unwrap().is_empty());
    let mut patient = worker(&model, 1_000_000);
    patient.prepare([&long], &mut batch);
    let found = patient.run(&batch).unwrap();
    assert!(found.len() == 1 && found.probabilities.iter().all(|p| p.is_finite()));
    assert!(model.run_bytes(1_000_000) < 1 << 30);
}

#[test]
fn a_pool_answers_in_order_and_keeps_sequences() {
    let sample = SequenceSample::small();
    let (model, sequences) = (sequence_model(&sample), sample.sequences(&[3, 90, 12, 1, 45, 7]));
    let direct = session(&model, 1).run_items(&items(3, &sequences)).unwrap();
    let options = PoolOptions { workers: 2, keep_items: true, ..PoolOptions::default() };
    let tasks = sequences.chunks(2).enumerate().map(|(tag, part)| Task { tag, work: Work::Decoded(items(3, part)) });
    let tasks: Vec<_> = tasks.collect();
    let (mut clusters, mut kept) = (Vec::new(), Items::empty(ItemShape::Sequence { dim: 3 }));
    Pool::start(&runtime(), &model, &options)
        .unwrap()
        .run(tasks.into_iter(), |done| {
            done.outcome.map(|answers| {
                clusters.extend(answers.assignments.clusters);
                kept.append(&answers.items.unwrap());
            })
        })
        .unwrap();
    assert_eq!((clusters, kept), (direct.clusters, items(3, &sequences)));
}

#[cfg(feature = "tract")]
#[test]
fn tract_refuses_models_for_sequences_in_one_sentence() {
    let device: dtkc_infer::Device = "tract".parse().unwrap();
    let runtime = dtkc_infer::Runtime::for_device(device, None).unwrap();
    let options = SessionOptions { device, ..SessionOptions::default() };
    let model = sequence_model(&SequenceSample::small());
    let error = dtkc_infer::Session::new(&runtime, &model, &options).err().unwrap().to_string();
    assert_eq!(
        error,
        "sample: tract cannot load the model: models for sequences need ONNX Runtime, so use --device cpu"
    );
}
