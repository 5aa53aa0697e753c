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
    let text =
        |blocks: usize| -> String { (0..blocks).map(|k| format!("            \n{}{}", row(k), row(k + 1))).collect() };
    place.write("d/Train_Arabic_Digit.txt.gz", gz(text(6600).as_bytes()));
    place.write("d/Test_Arabic_Digit.txt", text(2200).as_bytes());
    let dataset = place.made(&["import", "d", "--out", "a.h5"], "a.h5");
    assert_eq!((dataset.len(), dataset.shape().dim()), (8800, Some(13)));
    let labels = labels(&dataset);
    assert_eq!((labels[659], labels[660], labels[6599], labels[6600], labels[6820], labels[8799]), (0, 1, 9, 0, 1, 9));
    assert_eq!(dataset.read_sequence(6603).unwrap(), [vec![3.0; 13], vec![4.0; 13]].concat());
    place.write("part.txt", text(20).as_bytes());
    let said = place.run(["import", "part.txt", "--out", "b.h5"]).ok();
    assert!(said.contains("has 20 sequences, not the 6,600 or 2,200") && !said.contains("classes"), "{said}");
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

#[test]
fn missing_values_are_refused_dropped_or_filled() {
    let place = Place::of("dtkc-data");
    place.write("a.ts", TRAIN.replace("5:6:c", "5,?,7:6,6,6:c\n::a\n8:9:a").as_bytes());
    let error = place.fails(&["import", "a.ts", "--out", "a.h5"], 1);
    assert!(error.contains("a.ts: in sequence 2, counted from 1, 1 of 6 values is missing or not finite"), "{error}");
    assert!(error.contains("dimension 1 of step 2") && error.contains("--missing fill"), "{error}");
    // The number is that of the file also where classes are chosen.
    assert!(place.fails(&["import", "a.ts", "--classes", "c", "--out", "a.h5"], 1).contains("in sequence 2"));
    let said = place.run(["import", "a.ts", "--missing", "drop", "--out", "a.h5"]).ok();
    assert!(said.contains("2 sequences of 2 dimensions") && said.contains("skipped: 2 sequences, listed in"), "{said}");
    let listed = place.text("a.h5.skipped.csv");
    assert!(
        listed.contains("a.ts/1,missing_values,\"1 of 6") && listed.contains("no_steps,the sequence has no steps"),
        "{listed}"
    );
    let dataset = place.made(&["import", "a.ts", "--missing", "fill", "--out", "a.h5"], "a.h5");
    assert_eq!(dataset.read_sequence(1).unwrap(), [5.0, 6.0, 6.0, 6.0, 7.0, 6.0]);
    let error = place.fails(&["import", "a.ts", "--missing", "fill", "--strict", "--out", "b.h5"], 1);
    assert!(error.contains("no steps (--strict)"), "{error}");
}

#[test]
fn a_very_long_sequence_goes_all_the_way() {
    let place = Place::of("dtkc-data");
    let long: Vec<String> = (0..1_000_000).map(|i| (i % 1000).to_string()).collect();
    let long = long.join(",");
    place.write("a.ts", format!("@problemName V\n@classLabel true a b\n@data\n{long}:{long}:a\n1:2:b\n"));
    let dataset = place.made(&["import", "a.ts", "--compress", "--out", "a.h5"], "a.h5");
    assert_eq!(dataset.sequence_lengths().unwrap(), [1_000_000, 1]);
    let said = place.run(["info", "a.h5"]).ok();
    assert!(said.contains("1 to 1000000 steps, median 1, 1,000,001 in all"), "{said}");
    for style in ["curves", "pen", "map"] {
        place.run(["preview", "a.h5", "--draw", style, "--out", "a.png", "--force"]).ok();
    }
    let part = place.made(&["subset", "a.h5", "--classes", "a", "--out", "b.h5"], "b.h5");
    assert_eq!(part.read_sequence(0).unwrap()[1998..2002], [999.0, 999.0, 0.0, 0.0]);
}
