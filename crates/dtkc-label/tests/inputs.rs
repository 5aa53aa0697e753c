//! Every kind of input gives the same clusters for the same images.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Place, column, json, png, rows};
use dtkc_testing::names;

/// Index, cluster and confidence: what must not depend on where an image lies.
fn answers(text: &str) -> Vec<(String, String, String)> {
    let pick = |mut row: std::collections::BTreeMap<String, String>| {
        assert_eq!(row["error"], "");
        (row.remove("index").unwrap(), row.remove("cluster").unwrap(), row.remove("confidence").unwrap())
    };
    rows(text).into_iter().map(pick).collect()
}

#[test]
fn all_containers_agree() {
    let place = Place::new();
    place.images("photos", 70);
    place.dataset("set.h5", 70);
    let entries: Vec<(String, Vec<u8>)> = (0..70).map(|i| (format!("inner/{i:04}.png"), png(i))).collect();
    let entries: Vec<(&str, Vec<u8>)> = entries.iter().map(|(n, b)| (n.as_str(), b.clone())).collect();
    place.zip("all.zip", &entries);
    place.tar("all.tar", &entries);
    place.tar("all.tar.gz", &entries);
    place.tar("all.tar.bz2", &entries);
    // The content tells, not the name.
    place.write("archive.dat", place.read("all.tar.bz2"));
    place.write("archive", place.read("all.zip"));
    place.write("numbers", place.read("set.h5"));
    place.ok(&["--input", "photos", "--output", "folder.csv"]);
    let expected = answers(&place.text("folder.csv"));
    assert_eq!(expected.len(), 70);
    let clusters: std::collections::BTreeSet<&String> = expected.iter().map(|(_, cluster, _)| cluster).collect();
    assert!(clusters.len() >= 3, "a test on one cluster shows little: {clusters:?}");
    for input in [
        "set.h5",
        "all.zip",
        "all.tar",
        "all.tar.gz",
        "all.tar.bz2",
        "archive.dat",
        "archive",
        "numbers",
        "photos/*.png",
        "**/photos/?*.png",
    ] {
        place.ok(&["--input", input, "--output", "other.csv"]);
        assert_eq!(answers(&place.text("other.csv")), expected, "{input}");
    }
    let list: String = (0..70).map(|i| format!("photos/{i:04}.png\n")).collect();
    let said = place.ok_with_input(&["--input", "-", "--output", "-"], &list);
    assert_eq!(answers(&said.out), expected);
}

#[test]
fn paths_say_where_an_image_is() {
    let place = Place::new();
    place.write("photos/b/2.png", png(2));
    place.write("photos/a.png", png(1));
    place.write("photos/notes.txt", "no image");
    place.zip("some.zip", &[("x/1.png", png(3)), ("__MACOSX/x/._1.png", vec![1]), ("readme.md", vec![2])]);
    place.tar("web.tar", &[("0001.png", png(4)), ("0001.cls", b"7".to_vec()), ("0001.json", b"{}".to_vec())]);
    place.dataset("set.h5", 2);
    place.ok(&["--input", "photos", "--input", "some.zip", "web.tar", "set.h5", "photos/a.png", "--output", "all.csv"]);
    let expected = [
        "photos/a.png",
        "photos/b/2.png",
        "some.zip/x/1.png",
        "web.tar/0001.png",
        "set.h5#0",
        "set.h5#1",
        "photos/a.png",
    ];
    let text = place.text("all.csv");
    assert_eq!(column(&text, "path"), expected);
    assert_eq!(column(&text, "index"), ["0", "1", "2", "3", "4", "5", "6"]);
}

#[test]
fn images_of_other_sizes_and_colours_are_brought_to_the_models() {
    let place = Place::new();
    let photo = image::RgbImage::from_fn(60, 40, |x, y| image::Rgb([x as u8 * 4, y as u8 * 6, 99]));
    std::fs::create_dir(place.path("photos")).unwrap();
    photo.save(place.path("photos/a.png")).unwrap();
    photo.save(place.path("photos/b.bmp")).unwrap();
    place.ok(&["--input", "photos", "--output", "out.csv"]);
    let clusters = column(&place.text("out.csv"), "confidence");
    assert_eq!(clusters.len(), 2);
    assert_eq!(clusters[0], clusters[1], "the same pixels in two formats");
}

#[test]
fn a_list_may_name_missing_files_folders_and_archives() {
    let place = Place::new();
    place.images("photos", 3);
    place.zip("some.zip", &[("1.png", png(1))]);
    let list = "photos/0000.png\nno/such.png\nphotos\nsome.zip\n";
    let said = place.ok_with_input(&["--input", "-", "--output", "out.csv"], list);
    assert!(said.err.contains("1 of 6 images could not be labelled (1 unreadable)"), "{said:?}");
    let text = place.text("out.csv");
    assert_eq!(column(&text, "path")[1], "no/such.png");
    assert!(column(&text, "error")[1].starts_with("unreadable: "), "{text}");
    assert_eq!(column(&text, "path")[5], "some.zip/1.png");
}

#[test]
fn sorting_keeps_names_and_puts_each_image_into_one_folder() {
    let place = Place::new();
    place.images("photos/a", 6);
    place.images("photos/b", 6);
    place.zip("some.zip", &[("in/1.png", png(40)), ("../out.png", png(41))]);
    place.dataset("set.h5", 3);
    place.write("names.csv", "0,cats\n1,dogs/wolves\n");
    let inputs = ["--input", "photos", "some.zip", "set.h5", "--output", "out.csv"];
    for how in ["hardlink", "symlink", "copy", "auto"] {
        let sorted = format!("sorted-{how}");
        let more = ["--sort-into", &sorted, "--sort-how", how, "--names", "names.csv"];
        place.ok(&[&inputs[..], &more].concat());
        for row in rows(&place.text("out.csv")) {
            let folder = match row["cluster"].as_str() {
                "0" => "0-cats".to_owned(),
                "1" => "1-dogs_wolves".to_owned(),
                id => id.to_owned(),
            };
            let name = match row["path"].as_str() {
                path if path.starts_with("set.h5") => format!("{:08}.png", row["index"].parse::<u64>().unwrap()),
                path => path.trim_start_matches("photos/").trim_start_matches("some.zip/").replace("..", "up"),
            };
            let file = place.path(&sorted).join(&folder).join(&name);
            assert!(file.is_file(), "{} for {row:?}", file.display());
            if row["path"].starts_with("photos") {
                assert_eq!(std::fs::read(&file).unwrap(), place.read(&row["path"]));
                assert_eq!(file.is_symlink(), how == "symlink");
            }
        }
        let count: usize = walk(&place.path(&sorted));
        assert_eq!(count, 17, "{how}");
    }
    place.refused(&[&inputs[..], &["--force", "--sort-into", "sorted-copy"]].concat(), 1, "not empty");
    place.refused(&[&inputs[..], &["--force", "--sort-into", "photos/sorted"]].concat(), 2, "lies in the input");
    assert!(!place.path("photos/sorted").exists());
}

fn walk(folder: &std::path::Path) -> usize {
    names(folder).iter().map(|name| folder.join(name)).map(|p| if p.is_dir() { walk(&p) } else { 1 }).sum()
}

/// Rows came in the order of bytes, images without extension were left out, and nothing said which files these were.
#[test]
fn files_come_in_natural_order_and_what_is_passed_over_is_counted_and_listed() {
    let place = Place::new();
    let entries = [("a/10.png", png(1)), ("a/9.png", png(2)), ("a/photo", png(3))];
    let others = [("a/README", b"no".to_vec()), ("a/notes.txt", b"no".to_vec()), (".x/1.png", png(4))];
    let all = [&entries[..], &others].concat();
    all.iter().for_each(|(name, bytes)| {
        place.write(&format!("photos/{name}"), bytes);
    });
    place.zip("all.zip", &all);
    place.tar("all.tar.bz2", &all);
    for input in ["photos", "all.zip", "all.tar.bz2"] {
        let base = ["--model", "model.onnx", "--input", input, "--output", "out.csv", "--force"];
        let said = place.run(base);
        assert_eq!(said.code, 0, "{said:?}");
        let expected = "3 other files were passed over (1 hidden, 1 other_content, 1 other_extension), listed in out.csv.passed-over.csv";
        assert!(said.err.contains(expected), "{said:?}");
        let names = ["a/9.png", "a/10.png", "a/photo"].map(|name| format!("{input}/{name}"));
        let mut paths = column(&place.text("out.csv"), "path");
        if input.ends_with("bz2") {
            // A tar has an order of its own.
            paths.swap(0, 1);
        }
        assert_eq!(paths, names);
        let list = rows(&place.text("out.csv.passed-over.csv"));
        let readme = list.iter().find(|row| row["path"] == format!("{input}/a/README")).unwrap();
        assert_eq!((list.len(), readme["code"].as_str()), (3, "other_content"));
        let summary = json(&place.run([&base[..], &["--json"]].concat()).out);
        assert_eq!(summary["passed_over"]["other_extension"], 1);
        assert_eq!(summary["passed_over_list"], "out.csv.passed-over.csv");
    }
    place.ok(&["--input", "photos/a/9.png", "--output", "out.csv"]);
    assert!(!place.path("out.csv.passed-over.csv").exists(), "an old list does not stay");
}

/// `--truth` took the last folder, import the first that differs.
#[test]
fn truth_is_what_import_takes_as_labels() {
    let place = Place::new();
    for (i, name) in ["train/cat/a/1", "train/cat/b/2", "test/dog/3", "test/dog/c/4"].iter().enumerate() {
        place.write(&format!("set/{name}.png"), png(i));
    }
    let names = ["train/cat/a/1.png", "test/dog/2.png"];
    place.tar("set.tar.bz2", &names.map(|name| (name, png(7))));
    let list: String = ["set/train/cat/a/1.png", "set/test/dog/3.png"].map(|name| format!("{name}\n")).concat();
    let truth = |place: &Place| column(&place.text("out.csv"), "truth");
    place.ok(&["--input", "set", "--output", "out.csv", "--truth"]);
    assert_eq!(truth(&place), ["dog", "dog", "cat", "cat"]);
    place.ok(&["--input", "set.tar.bz2", "--output", "out.csv", "--truth"]);
    assert_eq!(truth(&place), ["cat", "dog"]);
    place.ok(&["--input", "set/**/*.png", "--output", "out.csv", "--truth"]);
    assert_eq!(truth(&place), ["dog", "dog", "cat", "cat"]);
    place.ok_with_input(&["--input", "-", "--output", "out.csv", "--truth"], &list);
    assert_eq!(truth(&place), ["cat", "dog"]);
    // Folders side by side are classes themselves; one alone is none.
    place.ok(&["--input", "set/train/cat/a", "set/test/dog/c", "--output", "out.csv", "--truth"]);
    assert_eq!(truth(&place), ["a", "c"]);
    let said = place.label(&["--input", "set/train/cat/a", "--output", "new.csv", "--truth"]).output().unwrap();
    let error = String::from_utf8(said.stderr).unwrap();
    assert!(error.contains("no folders that could be classes"), "{error}");
    assert!(!place.path("new.csv.journal").exists());
}
