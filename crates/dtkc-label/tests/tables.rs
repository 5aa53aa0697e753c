//! Parquet files of images and shards of samples: the same answers as for a folder, however they are cut up.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Place, column, png, refused};
use dtkc_testing::parquet::{ImageRow, ImageTable};

const COUNT: usize = 300;

/// The images of a folder in three shards, of which some rows hold none.
fn place() -> Place {
    let place = Place::new();
    place.images("photos", COUNT);
    for (shard, numbers) in [0..100, 100..199, 199..COUNT].into_iter().enumerate() {
        let images: Vec<(String, Vec<u8>)> = numbers.clone().map(|i| (format!("{i:04}.png"), png(i))).collect();
        let named: Vec<(&str, &Vec<u8>)> = images.iter().map(|(name, bytes)| (name.as_str(), bytes)).collect();
        let labels: Vec<i64> = numbers.map(|i| i as i64 % 3).collect();
        let names = ["cat", "dog", "eel"];
        let table = ImageTable { group: 70, ..ImageTable::new(&named).labelled(&labels, Some(&names)) };
        place.write(&format!("in/s-{}.parquet", shard + 9), table.file());
        let classes: Vec<(String, Vec<u8>)> = labels
            .iter()
            .zip(&images)
            .map(|(l, (n, _))| (n.replace("png", "cls"), l.to_string().into_bytes()))
            .collect();
        let both = images.iter().zip(&classes).flat_map(|(image, class)| [class, image]);
        place.tar(&format!("in/s-{}.tar", shard + 9), &both.map(|(n, b)| (n.as_str(), b.clone())).collect::<Vec<_>>());
    }
    place
}

/// What is said about images, without their places.
fn answers(text: &str) -> Vec<[String; 3]> {
    let columns = ["index", "cluster", "confidence"].map(|name| column(text, name));
    (0..columns[0].len()).map(|row| [0, 1, 2].map(|c: usize| columns[c][row].clone())).collect()
}

#[test]
fn tables_and_samples_give_what_a_folder_gives() {
    let place = place();
    place.ok(&["--input", "photos", "--output", "folder.csv"]);
    let expected = answers(&place.text("folder.csv"));
    for input in ["in/s-*.parquet", "in/s-{9..11}.parquet", "in/s-*.tar", "in/s-{09..11}.tar"] {
        // A range that fills with zeros names another file.
        if input.contains("{09") {
            place.refused(&["--input", input, "--output", "other.csv", "--force"], 1, "s-09.tar does not exist");
            continue;
        }
        place.ok(&["--input", input, "--output", "other.csv", "--truth"]);
        let text = place.text("other.csv");
        assert_eq!(answers(&text), expected, "{input}");
        let class =
            |i: usize| if input.contains("tar") { (i % 3).to_string() } else { ["cat", "dog", "eel"][i % 3].into() };
        assert_eq!(column(&text, "truth"), (0..COUNT).map(class).collect::<Vec<_>>(), "{input}");
        let ending = input.rsplit('.').next().unwrap();
        assert_eq!(column(&text, "path")[199], format!("in/s-11.{ending}/0199.png"));
    }
}

#[test]
fn shards_and_batches_of_a_table_do_not_matter() {
    let place = place();
    let common = ["--input", "in/s-*.parquet", "--truth", "--probabilities"];
    place.ok(&[&common[..], &["--output", "whole.parquet", "--gallery", "page.html"]].concat());
    assert!(place.text("page.html").contains("data:image"));
    let parts: Vec<String> = (1..=3).map(|i| format!("part-{i}.parquet")).collect();
    for (i, part) in parts.iter().enumerate() {
        let shard = format!("{}/3", i + 1);
        std::fs::create_dir_all(place.path("out")).unwrap();
        place.ok(&[&common[..], &["--output", &format!("out/{part}"), "--shard", &shard, "--batch", "5"]].concat());
    }
    let parts: Vec<String> = parts.iter().map(|part| format!("out/{part}")).collect();
    place.merge(&parts.iter().map(String::as_str).collect::<Vec<_>>(), "merged.parquet");
    assert!(place.read("merged.parquet") == place.read("whole.parquet"));
    place.ok(&[&common[..], &["--output", "one.parquet", "--threads", "1", "--batch", "1"]].concat());
    assert!(place.read("one.parquet") == place.read("whole.parquet"));
    place.ok(&[&common[..], &["--output", "sorted.csv", "--sort-into", "sorted"]].concat());
    let sorted: usize = dtkc_testing::names(&place.path("sorted"))
        .iter()
        .map(|folder| dtkc_testing::names(&place.path(&format!("sorted/{folder}"))).len())
        .sum();
    assert!(sorted > 0);
}

#[test]
fn a_row_without_an_image_fails_alone_and_a_cut_shard_too() {
    let place = Place::new();
    let mut table = ImageTable::new(&[("1.png", png(1)), ("2.png", png(2)), ("3.png", png(3)), ("../4.png", png(4))]);
    table.rows[1].bytes = None;
    table.rows[2] = ImageRow::default();
    place.write("a-1.parquet", table.file());
    let whole = table.file();
    place.write("a-2.parquet", &whole[..whole.len() - 20]);
    place.ok(&["--input", "a-*.parquet", "--output", "out.csv"]);
    let text = place.text("out.csv");
    assert_eq!(
        column(&text, "path"),
        ["a-1.parquet/1.png", "a-1.parquet/2.png", "a-1.parquet/2", "a-1.parquet/4.png", "a-2.parquet"]
    );
    let errors = column(&text, "error");
    assert!(errors[0].is_empty() && errors[3].is_empty(), "{errors:?}");
    assert!(errors[1].contains("not_embedded") && errors[2].contains("no_image"), "{errors:?}");
    let failed = place.text("out.csv.failed.csv");
    assert!(
        failed.contains("images are not embedded in this file") && failed.contains("the row has no image"),
        "{failed}"
    );
    assert!(failed.contains("a-2.parquet") && failed.contains("download it again"), "{failed}");
    // Alone it is refused.
    place.refused(&["--input", "a-2.parquet", "--output", "no.csv"], 1, "a-2.parquet: the file is cut off");
}

#[test]
fn columns_are_named_and_refused_before_any_work() {
    let place = place();
    let named = |input: &str, flags: &[&str], words: &str| {
        let said = place.label(&[&["--input", input, "--output", "no.csv"], flags].concat()).output().unwrap();
        refused(said.into(), 1, words);
        assert!(!place.path("no.csv").exists() && !place.path("no.csv.journal").exists());
    };
    for input in ["in/s-9.parquet", "in/s-*.parquet"] {
        named(input, &["--image-column", "scan"], "there is no column 'scan' (--image-column); there are image, label");
        named(input, &["--label-column", "kind", "--truth"], "there is no column 'kind' (--label-column)");
    }
    place.write("bare.parquet", ImageTable::new(&[("1.png", png(1))]).file());
    named("bare.parquet", &["--truth"], "leave --truth out");
    place.ok(&["--input", "in/s-9.parquet", "--image-column", "image", "--id-column", "label", "--output", "out.csv"]);
    assert_eq!(column(&place.text("out.csv"), "path")[..2], ["in/s-9.parquet/0", "in/s-9.parquet/1"]);
}
