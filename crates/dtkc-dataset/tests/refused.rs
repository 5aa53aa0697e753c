//! Files that cannot be trusted are refused with one sentence, and quickly.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use dtkc_dataset::{DataError, Dataset};
use dtkc_item::ImageShape;
use dtkc_testing::{Place, SHAPE, Set, write_sequences};
use hdf5::types::{VarLenArray, VarLenUnicode};

fn refused(path: &Path) -> String {
    let text = Dataset::open(path).unwrap_err().to_string();
    assert!(text.contains(&path.display().to_string()), "the file is not named: {text}");
    assert!(!text.contains('\n') && text.len() < 400, "{text}");
    text
}

/// A file whose root attributes are right; the rest is up to the test.
fn schema(place: &Place, kind: &str, fill: impl FnOnce(&hdf5::File)) -> PathBuf {
    let path = place.path("a.h5");
    let file = hdf5::File::create(&path).unwrap();
    file.new_attr::<i64>().create("dtkc_schema").unwrap().write_scalar(&1).unwrap();
    let kind: VarLenUnicode = kind.parse().unwrap();
    file.new_attr::<VarLenUnicode>().create("kind").unwrap().write_scalar(&kind).unwrap();
    fill(&file);
    file.close().unwrap();
    path
}

fn images(file: &hdf5::File, n: usize) {
    file.new_dataset_builder().with_data(&ndarray::Array4::<u8>::zeros((n, 4, 4, 1))).create("images").unwrap();
}

#[test]
fn missing_folder_and_foreign_files() {
    let place = Place::new();
    assert!(refused(&place.path("none.h5")).contains("there is no file"));
    assert!(refused(place.folder()).contains("is a folder"));
    for (name, bytes) in [("empty.h5", &b""[..]), ("text.h5", b"not HDF5 at all, but text of some length")] {
        std::fs::write(place.path(name), bytes).unwrap();
        assert!(refused(&place.path(name)).contains("is not an HDF5 file"));
    }
}

#[test]
fn a_file_cut_anywhere_is_refused_or_fails_on_reading() {
    let place = Place::new();
    let whole = Set::new(SHAPE, 50).labelled(&["a", "b"]).with_paths().write(&place.path("whole.h5"));
    let bytes = std::fs::read(whole).unwrap();
    let cut = place.path("cut.h5");
    for part in 1..20 {
        std::fs::write(&cut, &bytes[..bytes.len() * part / 20]).unwrap();
        let text = refused(&cut);
        assert!(text.contains("damaged or incomplete (it is cut off)"), "{text}");
    }
}

#[test]
fn foreign_and_future_hdf5() {
    let place = Place::new();
    let path = place.path("a.h5");
    hdf5::File::create(&path).unwrap().close().unwrap();
    assert!(refused(&path).contains("not a DTKC dataset (it has no attribute dtkc_schema)"));
    let file = hdf5::File::create(&path).unwrap();
    file.new_attr::<i32>().create("dtkc_schema").unwrap().write_scalar(&2).unwrap();
    file.close().unwrap();
    assert!(matches!(Dataset::open(&path), Err(DataError::Schema { found: 2, .. })));
    assert!(refused(&path).contains("schema 2"));
    let file = hdf5::File::create(&path).unwrap();
    let word: VarLenUnicode = "one".parse().unwrap();
    file.new_attr::<VarLenUnicode>().create("dtkc_schema").unwrap().write_scalar(&word).unwrap();
    file.close().unwrap();
    assert!(refused(&path).contains("not a number"));
}

#[test]
fn wrong_kinds_shapes_and_types() {
    let place = Place::new();
    let open = |fill: &dyn Fn(&hdf5::File)| refused(&schema(&place, "images", fill));
    assert!(refused(&schema(&place, "sounds", |_| {})).contains("its kind is 'sounds'"));
    assert!(open(&|_| {}).contains("/images is missing"));
    let zoom: VarLenUnicode = "zoom".parse().unwrap();
    let text = open(&|f| f.new_attr::<VarLenUnicode>().create("resize").unwrap().write_scalar(&zoom).unwrap());
    assert!(text.contains("its attribute resize: 'zoom' is not a way to resize; use fit, stretch or crop"), "{text}");
    assert!(open(&|f| drop(f.create_group("images").unwrap())).contains("/images is not a dataset"));
    let three = ndarray::Array3::<u8>::zeros((3, 4, 4));
    let text = open(&|f| drop(f.new_dataset_builder().with_data(&three).create("images").unwrap()));
    assert!(text.contains("/images has the shape [3, 4, 4], not [n, h, w, c]"), "{text}");
    let floats = ndarray::Array4::<f32>::zeros((3, 4, 4, 1));
    let text = open(&|f| drop(f.new_dataset_builder().with_data(&floats).create("images").unwrap()));
    assert!(text.contains("/images holds float32, not u8"), "{text}");
    let two = ndarray::Array4::<u8>::zeros((3, 4, 4, 2));
    let text = open(&|f| drop(f.new_dataset_builder().with_data(&two).create("images").unwrap()));
    assert!(text.contains("2 channels"), "{text}");
    assert!(open(&|f| images(f, 0)).contains("/images is empty"));
}

#[test]
fn wrong_labels_names_and_paths() {
    let place = Place::new();
    let with = |fill: &dyn Fn(&hdf5::File)| {
        schema(&place, "images", |file| {
            images(file, 3);
            fill(file);
        })
    };
    let labels = |values: &'static [i64]| {
        with(&move |f| drop(f.new_dataset_builder().with_data(values).create("labels").unwrap()))
    };
    assert!(refused(&labels(&[1, 2])).contains("it has 3 items but 2 labels"));
    assert!(Dataset::open(labels(&[1, 2, 3])).is_ok());
    let floats = with(&|f| drop(f.new_dataset_builder().with_data(&[0.5, 1.0, 2.0]).create("labels").unwrap()));
    assert!(refused(&floats).contains("/labels holds float64, not whole numbers"));
    let names: Vec<VarLenUnicode> = vec!["a".parse().unwrap(); 2];
    let paths = with(&|f| drop(f.new_dataset_builder().with_data(&names).create("paths").unwrap()));
    assert!(refused(&paths).contains("it has 3 items but 2 paths"));
    let numbers = with(&|f| drop(f.new_dataset_builder().with_data(&[1, 2]).create("label_names").unwrap()));
    assert!(refused(&numbers).contains("/label_names is not a list of strings"));
    let lists = vec![VarLenArray::from_slice(&[1i32]); 3];
    let odd = with(&|f| drop(f.new_dataset_builder().with_data(&lists).create("paths").unwrap()));
    assert!(refused(&odd).contains("/paths is not a list of strings"));
    // A label without a name is found when the labels are read.
    let unnamed = with(&|f| {
        f.new_dataset_builder().with_data(&[0i64, 1, 5]).create("labels").unwrap();
        f.new_dataset_builder().with_data(&names).create("label_names").unwrap();
    });
    let text = Dataset::open(unnamed).unwrap().labels().unwrap_err().to_string();
    assert!(text.contains("label 5 has no name, there are 2 label names"), "{text}");
}

#[test]
fn a_small_file_cannot_claim_much() {
    let place = Place::new();
    let claim = |rows: usize, chunk: usize, gzip: bool| {
        schema(&place, "images", |file| {
            let mut builder = file.new_dataset_builder().chunk((chunk, 100, 100, 1));
            if gzip {
                builder = builder.deflate(1);
            }
            builder.empty::<u8>().shape((rows, 100, 100, 1)).create("images").unwrap();
        })
    };
    let terabytes = 1 << 30;
    for gzip in [false, true] {
        let text = refused(&claim(terabytes, 10, gzip));
        assert!(text.contains("only 0 of"), "{text}");
    }
    assert!(refused(&claim(terabytes, 200_000, true)).contains("too large to be unpacked"));
    // The same for lists: labels of a set that is itself fine.
    let labels = schema(&place, "sequences", |file| {
        file.new_dataset_builder().with_data(&ndarray::Array2::<f32>::zeros((2, 2))).create("values").unwrap();
        let list = file.new_dataset_builder().chunk(1024);
        list.empty::<u64>().shape(1usize << 40).create("offsets").unwrap();
    });
    assert!(refused(&labels).contains("/offsets: only 0 of"));
}

#[test]
fn other_files_are_never_read() {
    let place = Place::new();
    let secret = place.path("secret.bin");
    std::fs::write(&secret, [42; 48]).unwrap();
    let external = schema(&place, "images", |file| {
        let builder = file.new_dataset_builder().external(&secret.display().to_string(), 0, 48);
        builder.empty::<u8>().shape((3, 4, 4, 1)).create("images").unwrap();
    });
    assert!(refused(&external).contains("its values lie in other files"));
    let link = schema(&place, "images", |file| {
        file.link_external("other.h5", "/images", "images").unwrap();
    });
    assert!(refused(&link).contains("/images is a link to another file"));
}

#[test]
fn what_lies_inside_a_network_must_fit_its_features() {
    let place = Place::new();
    let open = |fill: &dyn Fn(&hdf5::Group)| {
        refused(&schema(&place, "features", |file| {
            let features = ndarray::Array3::<f32>::zeros((3, 2, 4));
            file.new_dataset_builder().with_data(&features).create("features").unwrap();
            fill(&file.create_group("taps").unwrap());
        }))
    };
    let put = |group: &hdf5::Group, name: &str, shape: &[usize]| {
        let values = ndarray::ArrayD::<f32>::zeros(shape);
        group.new_dataset_builder().with_data(&values).create(name).unwrap();
    };
    for shape in [&[2, 4][..], &[3, 4, 4], &[3], &[4, 1, 2, 2]] {
        let text = open(&|group| put(group, "0", shape));
        assert!(text.contains("/taps/0 has the shape") && text.contains("not [3, channels, height, width]"), "{text}");
    }
    assert!(open(&|group| put(group, "1", &[3, 4])).contains("/taps/0 is not a dataset"));
    assert!(open(&|group| drop(group.create_group("0").unwrap())).contains("/taps/0 is not a dataset"));
    assert!(open(&|group| group.link_external("other.h5", "/x", "0").unwrap()).contains("link to another file"));
    let many = open(&|group| (0..9).for_each(|place| put(group, &place.to_string(), &[3, 4])));
    assert!(many.contains("holds 9 datasets, more than 8"), "{many}");
    assert!(open(&|group| put(group, "0", &[3, 70_000])).contains("/taps has sizes above 65,535"));
    let bytes = open(&|group| {
        group.new_dataset_builder().with_data(&[1u8, 2, 3]).create("0").unwrap();
    });
    assert!(bytes.contains("/taps/0 holds uint8, not f32"), "{bytes}");
}

#[test]
fn sequences_must_add_up() {
    let place = Place::new();
    let with = |offsets: &'static [u64]| {
        schema(&place, "sequences", |file| {
            file.new_dataset_builder().with_data(&ndarray::Array2::<f32>::zeros((6, 2))).create("values").unwrap();
            file.new_dataset_builder().with_data(offsets).create("offsets").unwrap();
        })
    };
    assert_eq!(Dataset::open(with(&[0, 2, 6])).unwrap().len(), 2);
    for offsets in [&[0, 2][..], &[1, 6], &[0, 7], &[0, 5, 3, 6], &[0], &[0, u64::MAX, 6]] {
        assert!(refused(&with(offsets)).contains("/offsets does not lead from 0 to the 6 rows"));
    }
}

#[test]
fn a_damaged_chunk_is_an_error_when_read() {
    let place = Place::new();
    let shape = ImageShape { height: 64, width: 64, channels: 1 };
    let path = Set::new(shape, 100).gzip(4).write(&place.path("a.h5"));
    let chunk = hdf5::File::open(&path).unwrap().dataset("images").unwrap().chunk_info(1).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[chunk.addr as usize + 20..][..64].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let dataset = Dataset::open(&path).unwrap();
    assert!(dataset.read_range(0..10).is_ok());
    let text = dataset.read_range(0..100).map(drop).unwrap_err().to_string();
    assert!(text.contains("is damaged or incomplete"), "{text}");
}

#[test]
fn random_damage_never_panics() {
    let place = Place::new();
    let shape = ImageShape { height: 8, width: 8, channels: 1 };
    let files = [
        Set::new(shape, 20).labelled(&["a", "b"]).with_paths().write(&place.path("i.h5")),
        write_sequences(&place.path("s.h5"), 9),
    ];
    let mut state = 1u32;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    for file in files {
        let whole = std::fs::read(&file).unwrap();
        // HDF5 2.2 never returns from a string heap that has an empty free block, so the heap is left alone.
        let heap = whole.windows(4).position(|w| w == b"GCOL").unwrap();
        let path = place.path("damaged.h5");
        for _ in 0..300 {
            let mut bytes = whole.clone();
            for _ in 0..=random(8) {
                // Most of the structure is in the first few kilobytes and at the end.
                let place = if random(2) == 0 { random(4096.min(bytes.len())) } else { random(bytes.len()) };
                if !(heap..heap + 4096).contains(&place) {
                    bytes[place] = random(256) as u8;
                }
            }
            std::fs::write(&path, &bytes).unwrap();
            let Ok(dataset) = Dataset::open(&path) else { continue };
            let _ = (dataset.labels(), dataset.paths(0..dataset.len()), dataset.fingerprint());
        }
    }
}
