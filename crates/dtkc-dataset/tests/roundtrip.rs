//! What is written is what is read, in every storage form.
#![allow(clippy::unwrap_used)]

use dtkc_dataset::{Batches, DataError, Dataset, LoadOptions, Writer, WriterOptions};
use dtkc_item::{FeatureShape, ImageShape, ItemKind, ItemShape, Items, Resize, TapShape, Taps};
use dtkc_testing::{CHUNK_ROWS, Place, SHAPE, Set, image, sequence, write_sequences};

const GRAY: ImageShape = ImageShape { height: 28, width: 28, channels: 1 };

#[test]
fn images_come_back_by_range_and_by_index() {
    let place = Place::new();
    for set in [Set::new(SHAPE, 50), Set::new(SHAPE, 50).gzip(4), Set::new(GRAY, 700).gzip(1), Set::new(GRAY, 1)] {
        let dataset = Dataset::open(set.write(&place.path("a.h5"))).unwrap();
        assert_eq!((dataset.len(), dataset.image_shape()), (set.count, Some(set.shape)));
        let expected = |indices: &[usize]| indices.iter().flat_map(|&i| image(set.shape, i)).collect::<Vec<u8>>();
        let all: Vec<usize> = (0..set.count).collect();
        assert!(dataset.read_range(0..set.count).unwrap() == expected(&all));
        assert!(dataset.read(&all).unwrap() == expected(&all));
        let mixed: Vec<usize> = (0..set.count * 2).map(|i| i * 7919 % set.count).collect();
        assert!(dataset.read(&mixed).unwrap() == expected(&mixed));
        assert_eq!(dataset.read(&[]).unwrap(), [0u8; 0]);
        assert_eq!(dataset.read_range(1..1).unwrap(), [0u8; 0]);
    }
}

#[test]
fn features_come_back_with_what_lies_inside_their_network() {
    let place = Place::new();
    let maps = TapShape::Maps { channels: 3, height: 2, width: 1 };
    let shapes = [vec![], vec![maps], vec![maps, TapShape::Vector(5)]];
    let mut fingerprints = Vec::new();
    for taps in shapes {
        let shape = FeatureShape { dim: 4, views: 1, taps: Taps::new(&taps).unwrap() };
        let value = |item: usize, place: usize| (item * 100 + place) as f32;
        let path = place.path("a.h5");
        let mut writer = Writer::create(&path, WriterOptions::new(ItemShape::Features(shape), "f", "test")).unwrap();
        let item = |number: usize| (0..shape.len()).map(|place| value(number, place)).collect::<Vec<f32>>();
        (0..30).for_each(|number| writer.push_features(&item(number), None, None).unwrap());
        assert!(writer.push_features(&[0.0; 3], None, None).unwrap_err().to_string().contains("3 values instead of"));
        writer.finish().unwrap();
        let dataset = Dataset::open(&path).unwrap();
        assert_eq!((dataset.shape(), dataset.len()), (ItemShape::Features(shape), 30));
        let all = |numbers: &[usize]| numbers.iter().flat_map(|&number| item(number)).collect::<Vec<f32>>();
        assert_eq!(dataset.items_of(7..10).unwrap(), Items::Features { shape, values: all(&[7, 8, 9]) });
        assert_eq!(dataset.items(&[29, 0, 29]).unwrap(), Items::Features { shape, values: all(&[29, 0, 29]) });
        assert!(dataset.items_of(3..3).unwrap().is_empty());
        fingerprints.push(dataset.fingerprint().unwrap());
        drop(dataset);
        // Other programs see plain arrays.
        if !taps.is_empty() {
            let file = hdf5::File::open(&path).unwrap();
            assert_eq!(file.dataset("taps/0").unwrap().shape(), [30, 3, 2, 1]);
            assert_eq!(file.dataset("taps/0").unwrap().read_raw::<f32>().unwrap()[6], value(1, 8));
        }
    }
    assert!(fingerprints[0] != fingerprints[1] && fingerprints[1] != fingerprints[2]);
}

#[test]
fn attributes_labels_names_and_paths_come_back() {
    let place = Place::new();
    let set = Set::new(GRAY, 10).labelled(&["null", "eins", "zwölf"]).with_paths();
    let dataset = Dataset::open(set.write(&place.path("a.h5"))).unwrap();
    assert_eq!(dataset.kind(), ItemKind::Images);
    assert_eq!((dataset.name(), dataset.source()), ("test", "made by a test"));
    assert_eq!(dataset.labels().unwrap().unwrap(), [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]);
    assert_eq!(dataset.label_names().unwrap().unwrap(), ["null", "eins", "zwölf"]);
    assert_eq!(dataset.paths(3..5).unwrap().unwrap(), ["folder/3.png", "folder/4.png"]);

    let bare = Dataset::open(Set::new(GRAY, 10).write(&place.path("b.h5"))).unwrap();
    assert_eq!(bare.labels().unwrap(), None);
    assert_eq!(bare.label_names().unwrap(), None);
    assert_eq!(bare.paths(0..1).unwrap(), None);
}

#[test]
fn negative_labels_need_no_name() {
    let place = Place::new();
    let path = place.path("a.h5");
    let mut writer = Writer::create(&path, WriterOptions::new(GRAY, "x", "")).unwrap();
    for label in [1, -1, 0] {
        writer.push_image(&image(GRAY, 0), Some(label), None).unwrap();
    }
    writer.set_label_names(vec!["cat".into(), "dog".into()]);
    writer.finish().unwrap();
    assert_eq!(Dataset::open(&path).unwrap().labels().unwrap().unwrap(), [1, -1, 0]);
}

#[test]
fn chunks_and_filters_are_as_documented() {
    let place = Place::new();
    let plain = Dataset::open(Set::new(SHAPE, 50).write(&place.path("a.h5"))).unwrap();
    assert_eq!(plain.storage().chunk, Some(vec![CHUNK_ROWS, 64, 64, 3]));
    assert!(plain.storage().filters.is_empty());
    let packed = Dataset::open(Set::new(SHAPE, 50).gzip(6).write(&place.path("b.h5"))).unwrap();
    assert_eq!(packed.storage().filters, ["shuffle", "gzip 6"]);
    assert!(packed.storage().stored_bytes < plain.storage().stored_bytes);
}

#[test]
fn sequences_come_back() {
    let place = Place::new();
    let dataset = Dataset::open(write_sequences(&place.path("s.h5"), 20)).unwrap();
    assert_eq!((dataset.kind(), dataset.len()), (ItemKind::Sequences, 20));
    assert_eq!(dataset.shape(), ItemShape::Sequence { dim: 3 });
    for index in [0, 19, 7] {
        assert_eq!(dataset.read_sequence(index).unwrap(), sequence(index));
    }
    assert_eq!(dataset.sequence_lengths().unwrap()[..8], [1, 2, 3, 4, 5, 6, 7, 1]);
    assert_eq!(dataset.labels().unwrap().unwrap()[..3], [0, 1, 0]);
    let error = dataset.read(&[0]).unwrap_err().to_string();
    assert!(error.ends_with("s.h5 holds sequences, but images are needed here"), "{error}");
    assert!(Batches::new(dataset.path(), LoadOptions::default()).is_ok(), "tests/loader.rs reads them");
}

#[test]
fn a_fingerprint_names_the_content_only() {
    let place = Place::new();
    let print = |set: &Set, name: &str| Dataset::open(set.write(&place.path(name))).unwrap().fingerprint().unwrap();
    let set = Set::new(SHAPE, 50).numbered(5);
    let first = print(&set, "a.h5");
    assert_eq!(first.len(), 64);
    assert_eq!(first, print(&set.clone().gzip(2).with_paths(), "b.h5"));
    assert_ne!(first, print(&Set::new(SHAPE, 50), "c.h5"));
    assert_ne!(first, print(&Set::new(SHAPE, 49).numbered(5), "d.h5"));
    // hashlib.sha256(b"dtkc images 1 2x1x1\n\x00\x00") in Python.
    let tiny = Set::new(ImageShape { height: 2, width: 1, channels: 1 }, 1);
    assert_eq!(print(&tiny, "e.h5"), "a27f2a293ee9ff1bcbc87a1d28aa9e6c7055617363e6413f278e3a3a94ae937a");
}

#[test]
fn the_rule_for_resizing_comes_back_and_is_no_content() {
    let place = Place::new();
    let write = |resize| {
        let path = place.path("a.h5");
        let mut writer = Writer::create(&path, WriterOptions { resize, ..WriterOptions::new(GRAY, "x", "") }).unwrap();
        writer.push_image(&image(GRAY, 0), None, None).unwrap();
        writer.finish().unwrap();
        Dataset::open(&path).unwrap()
    };
    let without = write(None);
    assert_eq!(without.resize(), None);
    for rule in [Resize::Fit, Resize::Stretch, Resize::Crop] {
        let dataset = write(Some(rule));
        assert_eq!(dataset.resize(), Some(rule));
        assert_eq!(dataset.fingerprint().unwrap(), without.fingerprint().unwrap());
    }
    let sequences = WriterOptions::new(ItemShape::Sequence { dim: 1 }, "s", "");
    let error = Writer::create(&place.path("s.h5"), WriterOptions { resize: Some(Resize::Crop), ..sequences });
    assert_eq!(error.unwrap_err().to_string(), "only images have a rule for resizing");
}

#[test]
fn the_same_input_gives_the_same_file() {
    let place = Place::new();
    let set = Set::new(GRAY, 500).labelled(&["a", "b"]).with_paths();
    let one = std::fs::read(set.write(&place.path("a.h5"))).unwrap();
    // HDF5 counts seconds: the clock must have moved on for a difference to show.
    let second = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let start = second();
    while second() == start {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let two = std::fs::read(set.write(&place.path("b.h5"))).unwrap();
    assert!(one == two);
}

#[test]
fn indices_beyond_the_end_are_refused() {
    let place = Place::new();
    let dataset = Dataset::open(Set::new(GRAY, 10).write(&place.path("a.h5"))).unwrap();
    let text = dataset.read(&[3, 10]).unwrap_err().to_string();
    assert!(text.ends_with("a.h5 has 10 items, so there is no item 10"), "{text}");
    assert!(matches!(dataset.read_range(5..11), Err(DataError::OutOfRange { index: 10, .. })));
    assert!(matches!(dataset.paths(5..11), Err(DataError::OutOfRange { .. })));
    #[allow(clippy::reversed_empty_ranges)]
    let backwards = dataset.read_range(5..4).unwrap_err().to_string();
    assert!(backwards.contains("backwards"), "{backwards}");
}

#[test]
fn mistakes_of_the_caller_are_told() {
    let place = Place::new();
    let path = place.path("a.h5");
    let start = |paths| Writer::create(&path, WriterOptions { paths, ..WriterOptions::new(GRAY, "x", "") }).unwrap();
    let good = image(GRAY, 0);
    let mut writer = start(false);
    let text = writer.push_image(&good[1..], None, None).unwrap_err().to_string();
    assert_eq!(text, "image 0 has 783 bytes instead of 784 (28x28x1)");
    writer.push_image(&good, Some(1), None).unwrap();
    let text = writer.push_image(&good, None, None).unwrap_err().to_string();
    assert_eq!(text, "item 1 has no label, but the items before it have one");
    writer.set_label_names(vec!["only".into()]);
    let text = writer.finish().unwrap_err().to_string();
    assert_eq!(text, "label 1 has no name: there are 1 label names");
    let text = start(true).push_image(&good, None, None).unwrap_err().to_string();
    assert_eq!(text, "item 0 has no path, but the set has paths");
    let text = start(false).finish().unwrap_err().to_string();
    assert!(text.ends_with("a.h5: there is nothing to write into it"), "{text}");
    let bad = ImageShape { height: 3, width: 3, channels: 2 };
    assert!(Writer::create(&path, WriterOptions::new(bad, "x", "")).is_err());
    let none = ItemShape::Sequence { dim: 0 };
    assert!(Writer::create(&path, WriterOptions::new(none, "s", "")).is_err());
    let mut sequences = Writer::create(&path, WriterOptions::new(ItemShape::Sequence { dim: 3 }, "s", "")).unwrap();
    assert!(sequences.push_sequence(&[1.0, 2.0], None, None).is_err());
    assert!(sequences.push_sequence(&[], None, None).is_err());
    let text = sequences.push_image(&good, None, None).unwrap_err().to_string();
    assert_eq!(text, "images cannot be written to a set of sequences");
    drop(sequences);
    // Nothing of all this has left a file.
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn an_old_file_stays_until_the_new_one_is_complete() {
    let place = Place::new();
    let path = Set::new(GRAY, 3).write(&place.path("a.h5"));
    let mut writer = Writer::create(&path, WriterOptions::new(GRAY, "x", "")).unwrap();
    writer.push_image(&image(GRAY, 0), None, None).unwrap();
    assert_eq!(Dataset::open(&path).unwrap().len(), 3);
    drop(writer);
    assert_eq!(Dataset::open(&path).unwrap().len(), 3);
    assert_eq!(place.names(), ["a.h5"]);
}

#[test]
fn files_of_other_writers_are_read() {
    use hdf5::types::{FixedAscii, FixedUnicode, VarLenAscii};
    let place = Place::new();
    let path = place.path("other.h5");
    let file = hdf5::File::create(&path).unwrap();
    // What h5py makes of plain Python: contiguous data, small integers, fixed-length or ASCII strings.
    file.new_attr::<u8>().create("dtkc_schema").unwrap().write_scalar(&1).unwrap();
    let kind = FixedAscii::<6>::from_ascii("images").unwrap();
    file.new_attr::<FixedAscii<6>>().create("kind").unwrap().write_scalar(&kind).unwrap();
    let pixels: Vec<u8> = (0..3).flat_map(|i| image(GRAY, i)).collect();
    let view = ndarray::ArrayView4::from_shape((3, 28, 28, 1), &pixels).unwrap();
    file.new_dataset_builder().with_data(view).create("images").unwrap();
    file.new_dataset_builder().with_data(&[2i16, 0, 1]).create("labels").unwrap();
    let names: Vec<FixedUnicode<8>> = ["ä", "b", "c"].iter().map(|n| n.parse().unwrap()).collect();
    file.new_dataset_builder().with_data(&names).create("label_names").unwrap();
    let paths: Vec<VarLenAscii> = ["x", "y", "z"].iter().map(|n| VarLenAscii::from_ascii(n).unwrap()).collect();
    file.new_dataset_builder().with_data(&paths).create("paths").unwrap();
    file.close().unwrap();
    let dataset = Dataset::open(&path).unwrap();
    assert_eq!((dataset.name(), dataset.source(), dataset.storage().chunk.clone()), ("other", "", None));
    assert!(dataset.read(&[2, 0]).unwrap() == [image(GRAY, 2), image(GRAY, 0)].concat());
    assert_eq!(dataset.labels().unwrap().unwrap(), [2, 0, 1]);
    assert_eq!(dataset.label_names().unwrap().unwrap(), ["ä", "b", "c"]);
    assert_eq!(dataset.paths(1..3).unwrap().unwrap(), ["y", "z"]);
    assert_eq!(Batches::over(dataset, LoadOptions::default()).unwrap().epoch(0).count(), 1);
}
