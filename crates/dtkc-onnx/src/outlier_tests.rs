#![allow(clippy::unwrap_used)]

use super::*;
use crate::proto::Entry;
use crate::testing::{Sample, SequenceSample};
use crate::{read_metadata, read_network, with_metadata, write};

fn files() -> Vec<(Vec<u8>, usize)> {
    let (sample, sequences) = (Sample::small(), SequenceSample::small());
    let images = write(&sample.network(), &sample.metadata()).unwrap();
    let students = write(&sample.student_t(), &sample.metadata()).unwrap();
    let sequences = write(&sequences.network(), &sequences.metadata(1)).unwrap();
    [images, students, sequences].map(|file| (file.clone(), read_metadata(&file).unwrap().embedding_size)).into()
}

fn image_file() -> Vec<u8> {
    with_outlier(&files()[0].0, &Outlier::sample(7, false, 1)).unwrap()
}

#[test]
fn what_was_added_can_be_taken_away_to_the_same_bytes() {
    for (file, width) in files() {
        let [first, second] = [1, 2].map(|seed| with_outlier(&file, &Outlier::sample(width, seed == 2, seed)).unwrap());
        let info = OutlierInfo { threshold: 0.99, items: 100 };
        assert_eq!(read_metadata(&first).unwrap().outlier, Some(info));
        assert_eq!(without_outlier(&first).unwrap(), file);
        assert_eq!(without_outlier(&file).unwrap(), file, "nothing to take away");
        let again = with_outlier(&first, &Outlier::sample(width, true, 2)).unwrap();
        assert_eq!(again, second, "the new one replaces the old one");
    }
}

#[test]
fn layers_are_read_back_as_if_it_were_not_there() {
    for (file, width) in files().into_iter().take(2) {
        let with = with_outlier(&file, &Outlier::sample(width, false, 1)).unwrap();
        assert_eq!(read_network(&with).unwrap().0, read_network(&file).unwrap().0);
    }
}

#[test]
fn distances_that_cannot_be_are_refused() {
    let (file, _) = &files()[0];
    let refusal = |change: fn(&mut Outlier)| {
        let mut outlier = Outlier::sample(7, false, 1);
        change(&mut outlier);
        with_outlier(file, &outlier).unwrap_err().to_string()
    };
    for change in [
        |o: &mut Outlier| o.shift.truncate(3),
        |o: &mut Outlier| o.points.shape = vec![7, 9],
        |o: &mut Outlier| o.points.data.truncate(9),
        |o: &mut Outlier| o.scaling.shape = vec![49],
    ] {
        assert!(refusal(change).ends_with("are not those of an embedding of 7 values"), "{}", refusal(change));
    }
    assert!(refusal(|o| o.points.data[3] = f32::NAN).ends_with("hold something that is no number"));
    assert!(refusal(|o| o.knots[2] = o.knots[1]).ends_with("do not rise from 0"));
    assert!(refusal(|o| o.knots.truncate(1)).ends_with("do not rise from 0"));
}

fn entry(value: Option<&str>) -> Vec<u8> {
    let mut model = Model::decode(&*image_file()).unwrap();
    model.metadata_props.retain(|entry| entry.key != "dtkc.graph_sha256" && entry.key != "dtkc.outlier");
    model.metadata_props.extend(value.map(|value| Entry { key: "dtkc.outlier".into(), value: value.into() }));
    model.encode_to_vec()
}

#[test]
fn metadata_that_says_something_else_is_refused_in_one_sentence() {
    let refusal = |value: Option<&str>| read_metadata(&entry(value)).unwrap_err().to_string();
    assert!(refusal(None).contains("has an output `outlier` and the metadata no threshold"), "{}", refusal(None));
    for (value, reason) in [
        (r#"{"threshold": NaN, "items": 3}"#, "cannot be read"),
        (r#"{"threshold": null, "items": 3}"#, "cannot be read"),
        (r#"{"threshold": [0.9, 0.9], "items": 3}"#, "cannot be read"),
        (r#"{"threshold": 0.5, "items": -3}"#, "cannot be read"),
        (r#"{"threshold": 1e39, "items": 3}"#, "cannot be read"),
        (r#"{"threshold": 1.5, "items": 3}"#, "has the threshold 1.5, not one between 0 and 1"),
        (r#"{"threshold": -0.5, "items": 3}"#, "has the threshold -0.5, not one between 0 and 1"),
        (r#"{"threshold": 0, "items": 3}"#, "has the threshold 0, not one between 0 and 1"),
    ] {
        let text = refusal(Some(value));
        assert!(text.starts_with("the model's metadata entry `dtkc.outlier`") && text.contains(reason), "{text}");
        assert!(!text.contains('\n'));
    }
    assert_eq!(read_metadata(&entry(Some(r#"{"threshold": 1, "items": 3}"#))).unwrap().outlier.unwrap().threshold, 1.0);
    let mut metadata = read_metadata(&image_file()).unwrap();
    metadata.outlier = Some(OutlierInfo { threshold: f32::NAN, items: 1 });
    assert!(with_metadata(&image_file(), &metadata).unwrap_err().to_string().contains("has the threshold NaN"));
}

#[test]
fn an_output_that_is_missing_or_of_another_shape_is_refused() {
    let changed = |change: fn(&mut Graph)| {
        let mut model = Model::decode(&*entry(Some(r#"{"threshold": 0.99, "items": 3}"#))).unwrap();
        change(model.graph.as_mut().unwrap());
        read_metadata(&model.encode_to_vec()).unwrap_err().to_string()
    };
    let missing = changed(|graph| graph.output.retain(|output| output.name != OUTLIER));
    assert!(missing.contains("the graph has no output `outlier`"), "{missing}");
    let other = changed(|graph| {
        let width = graph.output.iter().find(|output| output.name == "embedding").unwrap().r#type.clone();
        graph.output.iter_mut().find(|output| output.name == OUTLIER).unwrap().r#type = width;
    });
    assert!(other.contains("output `outlier` has shape [batch, 7] and the metadata says [batch]"), "{other}");
}

#[test]
fn the_value_is_the_share_of_nearer_items_and_goes_on_rising() {
    let outlier = Outlier {
        scaling: Weights::new([1], vec![1.0]),
        shift: vec![0.0],
        points: Weights::new([2, 1], vec![0.0, 100.0]),
        knots: vec![0.0, 1.0, 4.0],
        items: 9,
    };
    // By hand.
    for (at, expected) in
        [(0.0, 0.0), (0.5, 0.2475), (1.0, 0.495), (2.5, 0.7425), (4.0, 0.99), (8.0, 0.995), (104.0, 0.99)]
    {
        assert!((outlier.evaluate(&[at]) - expected).abs() < 1e-12, "{at}");
    }
    assert!(outlier.evaluate(&[1e6]) < outlier.evaluate(&[1e7]) && outlier.evaluate(&[1e7]) < 1.0);
}
