//! `dtkc-data import` of sequence files.
#![allow(clippy::unwrap_used)]

use dtkc_testing::files::gz;
use dtkc_testing::{Place, labels};

const TRAIN: &str = "@problemName V\n@timeStamps false\n@classLabel true a b c\n@data\n1,2:3,4:b\n5:6:c\n";
const TEST: &str = "@problemName V\n@timeStamps false\n@classLabel true a b c\n@data\n7,8,9:0,0,0:a\n";

#[test]
fn ts_files_are_joined_and_classes_chosen() {
    let place = Place::of("dtkc-data");
    place.write("v/V_TEST.ts", TEST.as_bytes());
    place.write("v/V_TRAIN.ts.gz", gz(TRAIN.as_bytes()));
    let dataset = place.made(&["import", "v", "--out", "a.h5"], "a.h5");
    assert_eq!((dataset.len(), dataset.shape().dim()), (3, Some(2)));
    assert_eq!(dataset.label_names().unwrap().unwrap(), ["a", "b", "c"]);
    assert_eq!(labels(&dataset), [1, 2, 0]);
    assert_eq!(dataset.read_sequence(0).unwrap(), [1.0, 3.0, 2.0, 4.0]);
    assert_eq!(dataset.read_sequence(2).unwrap(), [7.0, 0.0, 8.0, 0.0, 9.0, 0.0]);
    let dataset = place.made(&["import", "v", "--classes", "c,a", "--out", "a.h5"], "a.h5");
    assert_eq!(dataset.label_names().unwrap().unwrap(), ["a", "c"]);
    assert_eq!(labels(&dataset), [1, 0]);
    let said = place.run(["import", "v", "--out", "a.h5", "--force"]);
    assert!(said.out.contains("3 sequences of 2 dimensions") && said.out.contains("b: 1"), "{}", said.out);
    let error = place.fails(&["import", "a.h5", "--out", "b.h5"], 1);
    assert!(error.contains("a dataset of sequences already"), "{error}");
}

#[test]
fn arabic_digits_follow_from_the_order() {
    let place = Place::of("dtkc-data");
    let row = |v: usize| format!("{}\n", [v.to_string().as_str(); 13].join(" "));
    let text: String = (0..20).map(|k| format!("            \n{}{}", row(k), row(k + 100))).collect();
    place.write("Train_Arabic_Digit.txt.gz", gz(text.as_bytes()));
    let dataset = place.made(&["import", "Train_Arabic_Digit.txt.gz", "--out", "a.h5"], "a.h5");
    assert_eq!((dataset.len(), dataset.shape().dim()), (20, Some(13)));
    assert_eq!(labels(&dataset), (0..20).map(|k| k / 2).collect::<Vec<i64>>());
    assert_eq!(dataset.read_sequence(3).unwrap(), [vec![3.0; 13], vec![103.0; 13]].concat());
}

#[test]
fn faults_are_one_sentence() {
    let place = Place::of("dtkc-data");
    place.write("a.ts", TRAIN.replace("5:6:c", "5:x:c").as_bytes());
    let error = place.fails(&["import", "a.ts", "--out", "a.h5"], 1);
    assert!(error.contains("line 6 holds 'x'"), "{error}");
    place.write("b.ts", TRAIN.as_bytes());
    place.write("c.ts", TRAIN.replace("1,2:3,4:b", "1:2:3:b").replace("5:6:c", "5:6:7:c").as_bytes());
    let error = place.fails(&["import", "b.ts", "c.ts", "--out", "a.h5"], 2);
    assert!(error.contains("different dimensions"), "{error}");
    std::fs::create_dir(place.path("v")).unwrap();
    std::fs::copy(place.path("b.ts"), place.path("v/Letters.ts")).unwrap();
    std::fs::copy(place.path("b.ts"), place.path("v/LettersTrimmed.ts")).unwrap();
    let error = place.fails(&["import", "v", "--out", "a.h5"], 2);
    assert!(error.contains("2 different datasets"), "{error}");
}
