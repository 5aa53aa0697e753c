//! Every kind of input gives the same clusters for the same images.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Place, column, png, rows};
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
    place.ok(&["--input", "photos", "--output", "folder.csv"]);
    let expected = answers(&place.text("folder.csv"));
    assert_eq!(expected.len(), 70);
    let clusters: std::collections::BTreeSet<&String> = expected.iter().map(|(_, cluster, _)| cluster).collect();
    assert!(clusters.len() >= 3, "a test on one cluster shows little: {clusters:?}");
    for input in ["set.h5", "all.zip", "all.tar", "all.tar.gz", "photos/*.png", "**/photos/?*.png"] {
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
    place.refused(&[&inputs[..], &["--sort-into", "sorted-copy"]].concat(), 1, "not empty");
    place.refused(&[&inputs[..], &["--sort-into", "photos/sorted"]].concat(), 2, "lies in the input");
    assert!(!place.path("photos/sorted").exists());
}

fn walk(folder: &std::path::Path) -> usize {
    names(folder).iter().map(|name| folder.join(name)).map(|p| if p.is_dir() { walk(&p) } else { 1 }).sum()
}
