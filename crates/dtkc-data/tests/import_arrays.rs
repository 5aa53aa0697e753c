//! `dtkc-data import` of IDX, NumPy, MAT, foreign HDF5 and LIBSVM files.
#![allow(clippy::unwrap_used)]

use dtkc_dataset::Dataset;
use dtkc_testing::files::{self, gz, idx, mat};
use dtkc_testing::{Place, first_pixels, labels};
use ndarray::{Array1, Array2, Array4};
use ndarray_npy::write_npy;

fn pixels(dataset: &Dataset) -> Vec<u8> {
    dataset.read_range(0..dataset.len()).unwrap()
}

#[test]
fn idx_pairs_are_found_and_joined() {
    let place = Place::of("dtkc-data");
    place.write("mnist/t10k-images-idx3-ubyte.gz", gz(&idx(&[1, 2, 2], &[9; 4])));
    place.write("mnist/t10k-labels-idx1-ubyte.gz", gz(&idx(&[1], &[7])));
    place.write("mnist/train-images-idx3-ubyte", idx(&[2, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8]));
    place.write("mnist/train-labels-idx1-ubyte", idx(&[2], &[3, 4]));
    let train = "mnist/train-images-idx3-ubyte";
    for sources in [
        vec!["mnist"],
        vec![train, "mnist/t10k-images-idx3-ubyte.gz"],
        vec![train, "mnist/train-labels-idx1-ubyte", "mnist/t10k-images-idx3-ubyte.gz"],
    ] {
        let args = [&["import"][..], &sources, &["--out", "a.h5"]].concat();
        let dataset = place.made(&args, "a.h5");
        assert_eq!(dataset.name(), "mnist");
        assert_eq!(labels(&dataset), [3, 4, 7]);
        assert_eq!(pixels(&dataset), [1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9]);
    }
    let dataset = place.made(&["import", "mnist", "--classes", "4,7", "--out", "a.h5"], "a.h5");
    assert_eq!(labels(&dataset), [4, 7]);
    let dataset = place.made(&["import", "mnist", "--size", "4x4", "--color", "rgb", "--out", "a.h5"], "a.h5");
    assert_eq!(dataset.image_shape().unwrap().to_string(), "4x4x3");
    let error = place.fails(&["import", "mnist/train-labels-idx1-ubyte", "--out", "b.h5"], 1);
    assert!(error.contains("holds labels"), "{error}");
}

#[test]
fn idx_faults_are_named() {
    let place = Place::of("dtkc-data");
    place.write("train-images-idx3-ubyte", idx(&[2, 2, 2], &[1, 2, 3, 4, 5]));
    let error = place.fails(&["import", "train-images-idx3-ubyte", "--out", "a.h5"], 1);
    assert!(error.contains("after 1 of 2 images"), "{error}");
    place.write("train-labels-idx1-ubyte", idx(&[3], &[1, 2, 3]));
    let error = place.fails(&["import", "train-images-idx3-ubyte", "--out", "a.h5"], 1);
    assert!(error.contains("3 labels for the 2 images"), "{error}");
    let whole = gz(&idx(&[40, 20, 20], &[7; 16000]));
    place.write("x-images-idx3-ubyte.gz", &whole[..whole.len() - 12]);
    let error = place.fails(&["import", "x-images-idx3-ubyte.gz", "--out", "a.h5"], 1);
    assert!(error.contains("x-images-idx3-ubyte.gz") && error.contains("cut off"), "{error}");
}

#[test]
fn numpy_files_with_labels_beside() {
    let place = Place::of("dtkc-data");
    let planes = Array4::from_shape_fn((2, 3, 2, 2), |(n, c, y, x)| (n * 100 + c * 10 + y * 2 + x) as u8);
    write_npy(place.path("x_train.npy"), &planes).unwrap();
    write_npy(place.path("y_train.npy"), &Array1::from(vec![5i64, 6])).unwrap();
    let dataset = place.made(&["import", "x_train.npy", "--out", "a.h5"], "a.h5");
    assert_eq!(dataset.image_shape().unwrap().to_string(), "2x2x3");
    assert_eq!(labels(&dataset), [5, 6]);
    assert_eq!(pixels(&dataset)[..6], [0, 10, 20, 1, 11, 21]);
    write_npy(place.path("y_train.npy"), &Array1::from(vec![5i64, 6, 7])).unwrap();
    let error = place.fails(&["import", "x_train.npy", "--out", "a2.h5"], 1);
    assert!(error.contains("3 labels for 2 images"), "{error}");
}

#[test]
fn flat_arrays_need_a_shape_unless_square() {
    let place = Place::of("dtkc-data");
    write_npy(place.path("data.npy"), &Array2::from_shape_fn((3, 6), |(i, j)| (i * 6 + j) as f32 / 17.0)).unwrap();
    let error = place.fails(&["import", "data.npy", "--out", "a.h5"], 1);
    assert!(error.contains("--shape"), "{error}");
    let error = place.fails(&["import", "data.npy", "--shape", "2x2", "--out", "a.h5"], 1);
    assert!(error.contains("2x2x1"), "{error}");
    let dataset = place.made(&["import", "data.npy", "--shape", "2x3", "--out", "a.h5"], "a.h5");
    assert_eq!(dataset.image_shape().unwrap().to_string(), "2x3x1");
    assert_eq!(pixels(&dataset), (0..18).map(|v| (v as f32 * 15.0).round() as u8).collect::<Vec<_>>());
}

#[test]
fn a_scipy_mat_file_is_read() {
    let place = Place::of("dtkc-data");
    for bytes in [
        &include_bytes!("../../dtkc-formats/tests/fixtures/scipy_plain.mat")[..],
        include_bytes!("../../dtkc-formats/tests/fixtures/scipy_packed.mat"),
    ] {
        place.write("digits.mat", bytes);
        let dataset = place.made(&["import", "digits.mat", "--out", "a.h5"], "a.h5");
        assert_eq!(dataset.image_shape().unwrap().to_string(), "2x3x3");
        assert_eq!((dataset.len(), labels(&dataset)), (4, vec![1, 10, 2, 10]));
        // numpy: X[:, :, :, 0] of arange(72).reshape(2, 3, 3, 4).
        assert_eq!(pixels(&dataset)[..18], (0..72).step_by(4).collect::<Vec<u8>>());
        place.write("cut.mat", &bytes[..bytes.len() / 2]);
        place.fails(&["import", "cut.mat", "--out", "b.h5"], 1);
    }
}

/// Ten images of 32 x 32 x 3 with the labels 1 to 10, as SVHN has them, and anything else may.
fn ten_colour_images() -> Vec<u8> {
    mat(&[("X", &[32, 32, 3, 10], &[7; 30_720]), ("y", &[10, 1], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])])
}

#[test]
fn labels_are_what_the_file_says() {
    let place = Place::of("dtkc-data");
    place.write("photos.mat", ten_colour_images());
    let dataset = place.made(&["import", "photos.mat", "--out", "a.h5"], "a.h5");
    assert_eq!(labels(&dataset), (1..=10).collect::<Vec<i64>>());
    place.write("svm", (1..=10).map(|label| format!("{label} 1:0.5 2:0 256:1\n")).collect::<String>());
    let dataset = place.made(&["import", "svm", "--out", "a.h5"], "a.h5");
    assert_eq!(dataset.image_shape().unwrap().to_string(), "16x16x1");
    assert_eq!(labels(&dataset), (1..=10).collect::<Vec<i64>>());
}

#[test]
fn fetch_knows_what_labels_mean() {
    let place = Place::of("dtkc-data");
    place.write("mine/train_32x32.mat", ten_colour_images());
    let digits = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0];
    let dataset = place.made(&["fetch", "svhn", "--from", "mine", "--out", "a.h5"], "a.h5");
    assert_eq!((labels(&dataset), dataset.label_names().unwrap()), (digits.to_vec(), None));
    let dataset = place.made(&["fetch", "svhn", "--from", "mine", "--classes", "0", "--out", "a.h5"], "a.h5");
    assert_eq!(labels(&dataset), [0]);
    place.write("mine/usps", "10 1:0 2:0 256:1\n1 1:1\n");
    place.write("mine/usps.t", "2 1:0 2:0 256:1\n");
    let dataset = place.made(&["fetch", "usps", "--from", "mine", "--out", "a.h5"], "a.h5");
    assert_eq!(labels(&dataset), [9, 0, 1]);
}

#[test]
fn negative_labels_are_no_class() {
    let place = Place::of("dtkc-data");
    place.write("svm", "1 1:0.5 2:0 4:1\n-1 1:0.5 4:1\n0 4:1 1:0\n");
    let said = place.run(["import", "svm", "--out", "a.h5"]).ok();
    assert!(said.contains("classes: 2 (0: 1, 1: 1)\nunlabelled: 1 (negative labels)"), "{said}");
    assert_eq!(labels(&place.open("a.h5")), [1, -1, 0]);
    let info = place.run_line("info a.h5").ok();
    assert!(info.contains("classes      2\n") && info.contains("  unlabelled   1\n"), "{info}");
    let json: serde_json::Value = serde_json::from_str(&place.run_line("info a.h5 --json").ok()).unwrap();
    assert_eq!((json["classes"].as_array().unwrap().len(), &json["unlabelled"]), (2, &1.into()));
    assert_eq!(labels(&place.made(&["import", "svm", "--classes", "0,1", "--out", "b.h5"], "b.h5")), [1, 0]);
    // Where classes have names it is the same.
    let named = place.path("named.h5");
    let file = hdf5::File::create(&named).unwrap();
    file.new_dataset_builder().with_data(&Array2::<u8>::zeros((4, 16))).create("data").unwrap();
    file.new_dataset_builder().with_data(&Array1::from(vec![-1i64, 1, 0, 1])).create("labels").unwrap();
    let names: Vec<hdf5::types::VarLenUnicode> = ["cat", "dog"].iter().map(|n| n.parse().unwrap()).collect();
    file.new_dataset_builder().with_data(&Array1::from(names)).create("label_names").unwrap();
    file.close().unwrap();
    let dataset = place.made(&["import", "named.h5", "--out", "n.h5"], "n.h5");
    assert_eq!((labels(&dataset), dataset.label_names().unwrap().unwrap().len()), (vec![-1, 1, 0, 1], 2));
    let subset = |flags: &str| {
        place.run_line(&format!("subset n.h5 {flags} --force --out b.h5")).ok();
        (labels(&place.open("b.h5")), place.open("b.h5").label_names().unwrap().unwrap())
    };
    assert_eq!(subset("--range ..2"), (vec![-1, 0], vec!["dog".to_owned()]));
    assert_eq!(subset("--per-class 1").0.len(), 2);
    place.run_line("subset n.h5 --classes=-1 --force --out b.h5").fails(2, "it has cat, dog");
    place.run_line("merge n.h5 a.h5 --out m.h5").fails(1, "images of 4x4x1");
    place.run_line("merge n.h5 n.h5 --out m.h5").ok();
    assert_eq!(labels(&place.open("m.h5")), [-1, 1, 0, 1, -1, 1, 0, 1]);
    place.run_line("preview n.h5 --out n.png").ok();
}

fn usps(path: &std::path::Path, labels: usize) {
    let file = hdf5::File::create(path).unwrap();
    for (name, n) in [("test", 2usize), ("train", 3)] {
        let group = file.create_group(name).unwrap();
        let data = Array2::from_shape_fn((n, 16), |(i, j)| if (i, j) == (0, 1) { 0.25 } else { (i + n) as f32 / 8.0 });
        group.new_dataset_builder().with_data(&data).create("data").unwrap();
        let target = Array1::from_shape_fn(n + labels, |i| (i + n) as i32);
        group.new_dataset_builder().with_data(&target).create("target").unwrap();
    }
}

#[test]
fn foreign_hdf5_groups_are_joined() {
    let place = Place::of("dtkc-data");
    usps(&place.path("usps.h5"), 0);
    let said = place.run(["import", "usps.h5", "--out", "a.h5"]);
    assert!(said.out.contains("values from 0 to 1 scaled"), "{}", said.out);
    let dataset = Dataset::open(place.path("a.h5")).unwrap();
    assert_eq!(dataset.image_shape().unwrap().to_string(), "4x4x1");
    assert_eq!(labels(&dataset), [3, 4, 5, 2, 3]);
    // 3/8, 4/8, 5/8, 2/8 and 3/8 of 255, rounded half up.
    assert_eq!(first_pixels(&dataset), [96, 128, 159, 64, 96]);
    let dataset = place.made(
        &["import", "usps.h5", "--images-key", "test/data", "--labels-key", "test/target", "--out", "a.h5"],
        "a.h5",
    );
    assert_eq!(labels(&dataset), [2, 3]);
    let error = place.fails(&["import", "usps.h5", "--images-key", "pictures", "--out", "b.h5"], 1);
    assert!(error.contains("no array 'pictures'") && error.contains("train/data [3, 16]"), "{error}");
    usps(&place.path("wrong.h5"), 1);
    let error = place.fails(&["import", "wrong.h5", "--out", "b.h5"], 1);
    assert!(error.contains("4 labels for 3 images"), "{error}");
}

#[test]
fn our_own_files_can_be_imported_again() {
    let place = Place::of("dtkc-data");
    place.made(&["synth", "--count", "20", "--out", "g.h5"], "g.h5");
    let dataset = place.made(&["import", "g.h5", "--size", "16x16", "--classes", "ring,star", "--out", "a.h5"], "a.h5");
    assert_eq!(dataset.image_shape().unwrap().to_string(), "16x16x1");
    assert_eq!(dataset.label_names().unwrap().unwrap(), ["ring", "star"]);
    assert_eq!(dataset.len(), 4);
}

#[test]
fn damaged_hdf5_is_one_sentence() {
    let place = Place::of("dtkc-data");
    usps(&place.path("usps.h5"), 0);
    let bytes = std::fs::read(place.path("usps.h5")).unwrap();
    for end in [0, 4, 100, bytes.len() / 2, bytes.len() - 1] {
        place.write("cut.h5", &bytes[..end]);
        let error = place.fails(&["import", "cut.h5", "--out", "a.h5"], 1);
        assert!(error.contains("cut.h5"), "{error}");
    }
}

/// The range was always taken as 0 to 1, because the file had been read to its end before: values below 0 became black.
#[test]
fn libsvm_text_is_scaled_by_its_own_range() {
    let place = Place::of("dtkc-data");
    // Beside each the bytes that NumPy gives: floor((v - min) / (max - min) * 255 + 0.5), and zeros for what is missing.
    for (text, said, expected) in [
        ("7 1:-1 2:-1 3:1 4:1\n8 1:1 2:-1 3:-1 4:-1\n", "from -1 to 1", [0, 0, 255, 255, 255, 0, 0, 0]),
        ("7 1:-1 2:-0.5 3:0.25 4:1\n8 2:0.9 4:-0.2\n", "from -1 to 1", [0, 64, 159, 255, 128, 242, 128, 102]),
        ("7 1:-0.7 2:0.1 4:0.6\n8 4:0.2\n", "from -1 to 1", [38, 140, 128, 204, 128, 128, 128, 153]),
        ("7 1:0.1 2:0.5 4:1\n8 3:0.75 4:0.3\n", "from 0 to 1", [26, 128, 0, 255, 0, 0, 191, 77]),
        ("7 1:3 2:128 4:255\n8 3:77 4:200\n", "kept as they are", [3, 128, 0, 255, 0, 0, 77, 200]),
        ("7 1:3.4 2:127.6 4:254.5\n8 3:77.49 4:200\n", "kept as they are", [3, 128, 0, 255, 0, 0, 77, 200]),
    ] {
        place.write("usps", text);
        let out = place.run(["import", "usps", "--out", "a.h5", "--force"]).ok();
        assert!(out.contains(said), "{text}: {out}");
        let dataset = place.open("a.h5");
        assert_eq!((labels(&dataset), pixels(&dataset)), (vec![7, 8], expected.to_vec()), "{text}");
    }
}

/// Zeros are left out in such files, those at the end, too; a file in which no image reached its last pixel was refused.
#[test]
fn libsvm_text_may_lack_zeros_at_the_end() {
    let place = Place::of("dtkc-data");
    place.write("mnist", "5 1:255 780:128\n3 7:1\n");
    let out = place.run(["import", "mnist", "--out", "a.h5"]).ok();
    assert!(out.contains("the largest index of mnist is 780; the images are taken as 28x28x1"), "{out}");
    let dataset = place.open("a.h5");
    assert_eq!((dataset.len(), dataset.image_shape().unwrap().to_string().as_str()), (2, "28x28x1"));
    let mut expected = vec![0; 2 * 784];
    (expected[0], expected[779], expected[784 + 6]) = (255, 128, 1);
    assert_eq!(pixels(&dataset), expected);
    place.write("wide", "5 1:255 13:128\n");
    let dataset = place.made(&["import", "wide", "--shape", "4x5", "--out", "b.h5"], "b.h5");
    assert_eq!(dataset.image_shape().unwrap().to_string(), "4x5x1");
    place.write("odd", "5 1:1 170:1\n");
    assert!(place.fails(&["import", "odd", "--out", "c.h5"], 1).contains("--shape"));
}

/// The class -1 of two silently counted as unlabelled.
#[test]
fn two_classes_may_be_called_minus_one_and_one() {
    let place = Place::of("dtkc-data");
    place.write("svm", "+1 1:0.5 2:0 4:1\n-1 1:0.5 4:1\n+1 4:1 1:0\n");
    let said = place.run(["import", "svm", "--out", "a.h5"]).ok();
    assert!(said.contains("classes: 2 (-1: 1, 1: 2)\n") && !said.contains("unlabelled"), "{said}");
    assert!(said.contains("note: the labels are -1 and 1 and nothing else, so they are two classes"), "{said}");
    let dataset = place.open("a.h5");
    assert_eq!((labels(&dataset), dataset.label_names().unwrap().unwrap().join(" ")), (vec![1, 0, 1], "-1 1".into()));
    let dataset = place.made(&["import", "svm", "--classes=-1", "--out", "b.h5"], "b.h5");
    assert_eq!((dataset.len(), labels(&dataset)), (1, vec![0]));
    // A set of ours says by -1 that a class is not known, and goes on to say so.
    write_npy(place.path("x.npy"), &Array2::<u8>::zeros((3, 4))).unwrap();
    write_npy(place.path("y.npy"), &Array1::from(vec![-1i64, 1, 2])).unwrap();
    place.run(["import", "x.npy", "--out", "ours.h5"]).ok();
    place.run(["subset", "ours.h5", "--range", "..2", "--out", "part.h5"]).ok();
    let said = place.run(["import", "part.h5", "--out", "again.h5"]).ok();
    assert!(said.contains("unlabelled: 1 (negative labels)"), "{said}");
    assert_eq!(labels(&place.open("again.h5")), [-1, 1]);
}

/// Labels that are words were left out without a word.
#[test]
fn words_are_labels_in_npz_files() {
    let place = Place::of("dtkc-data");
    let npy = |descr: &str, shape: &str, data: &[u8]| {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        let mut array = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        array.extend(format!("{header:<117}\n").bytes());
        array.extend(data);
        array
    };
    let wide = |words: &[&str]| -> Vec<u8> {
        let letters =
            |word: &&str| format!("{word:\0<3}").chars().flat_map(|c| u32::from(c).to_le_bytes()).collect::<Vec<_>>();
        words.iter().flat_map(letters).collect()
    };
    let images = npy("|u1", "(3, 2, 2)", &[0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]);
    let words = npy("<U3", "(3,)", &wide(&["dog", "", "cat"]));
    place.write("pets.npz", files::zip(&[("images.npy", &images[..]), ("labels.npy", &words[..])]));
    let said = place.run(["import", "pets.npz", "--out", "a.h5"]).ok();
    assert!(said.contains("classes: 2 (cat: 1, dog: 1)\nunlabelled: 1"), "{said}");
    let dataset = place.open("a.h5");
    assert_eq!(dataset.label_names().unwrap().unwrap(), ["cat", "dog"]);
    assert_eq!((labels(&dataset), first_pixels(&dataset)), (vec![1, -1, 0], vec![0, 10, 20]));
    // Numbers go before words, and names of classes are no labels.
    let (numbers, names) = (npy("|u1", "(3,)", &[4, 5, 6]), npy("|S3", "(2,)", b"catdog"));
    place.write(
        "pets.npz",
        files::zip(&[("images.npy", &images[..]), ("y.npy", &numbers[..]), ("label.npy", &words[..])]),
    );
    assert_eq!(labels(&place.made(&["import", "pets.npz", "--out", "a.h5"], "a.h5")), [4, 5, 6]);
    place.write("pets.npz", files::zip(&[("images.npy", &images[..]), ("classes.npy", &names[..])]));
    assert!(place.made(&["import", "pets.npz", "--out", "a.h5"], "a.h5").labels().unwrap().is_none());
    // The same beside a file of its own.
    place.write("x_train.npy", images);
    place.write("y_train.npy", words);
    let dataset = place.made(&["import", "x_train.npy", "--out", "a.h5"], "a.h5");
    assert_eq!((labels(&dataset), dataset.label_names().unwrap().unwrap().len()), (vec![1, -1, 0], 2));
}
