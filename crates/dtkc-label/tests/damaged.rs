//! Bad images fail alone, with a reason; the rest is labelled.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Place, column, png, rows};
use dtkc_testing::files::png_that_claims;

/// 200 images of which 10 are damaged, in five ways.
fn place() -> Place {
    let place = Place::new();
    place.images("photos", 200);
    let huge = png_that_claims(60_000, 60_000);
    for (i, bytes) in [png(7)[..60].to_vec(), b"plain text".to_vec(), huge, Vec::new()].into_iter().enumerate() {
        place.write(&format!("photos/{:04}.png", 10 + 20 * i), &bytes);
        place.write(&format!("photos/{:04}.png", 110 + 20 * i), &bytes);
    }
    for name in ["0095", "0195"] {
        let path = place.path(&format!("photos/{name}.png"));
        std::fs::remove_file(&path).unwrap();
        // No right to read would not stop a test that runs as root.
        #[cfg(unix)]
        std::os::unix::fs::symlink("/no/such/file", &path).unwrap();
        #[cfg(not(unix))]
        std::fs::write(&path, b"").unwrap();
    }
    place
}

#[test]
fn a_folder_with_damaged_files_is_finished() {
    let place = place();
    let text = place.ok(&["--input", "photos", "--output", "out.csv"]).err;
    assert!(text.contains("warning: 10 of 200 images could not be labelled"), "{text}");
    assert!(text.contains("listed in out.csv.failed.csv"), "{text}");
    let failed = rows(&place.text("out.csv.failed.csv"));
    let codes: Vec<(&str, &str)> = failed.iter().map(|row| (row["path"].as_str(), row["code"].as_str())).collect();
    let expected = [
        ("photos/0010.png", "truncated"),
        ("photos/0030.png", "not_an_image"),
        ("photos/0050.png", "too_large"),
        ("photos/0070.png", "empty"),
        ("photos/0095.png", "unreadable"),
        ("photos/0110.png", "truncated"),
        ("photos/0130.png", "not_an_image"),
        ("photos/0150.png", "too_large"),
        ("photos/0170.png", "empty"),
        ("photos/0195.png", "unreadable"),
    ];
    assert_eq!(codes, expected);
    assert!(failed.iter().all(|row| row["reason"].len() > 10), "{failed:?}");
    // The good ones are what they are without the bad ones around them.
    place.dataset("set.h5", 200);
    place.ok(&["--input", "set.h5", "--output", "good.csv"]);
    let (all, good) = (rows(&place.text("out.csv")), rows(&place.text("good.csv")));
    assert_eq!(all.len(), 200);
    for (a, b) in all.iter().zip(&good).filter(|(a, _)| a["error"].is_empty()) {
        assert_eq!((&a["cluster"], &a["confidence"]), (&b["cluster"], &b["confidence"]));
    }
}

#[test]
fn strict_fails_after_all_is_done() {
    let place = place();
    let strict = ["--input", "photos", "--output", "out.csv", "--strict"];
    place.refused(&strict, 1, "10 of 200 images failed, and --strict asks for none");
    assert_eq!(column(&place.text("out.csv"), "path").len(), 200);
    let clean = Place::new();
    clean.images("photos", 3);
    clean.ok(&strict);
    assert!(!clean.path("out.csv.failed.csv").exists());
}

#[test]
fn an_old_list_of_failures_does_not_stay() {
    let place = Place::new();
    place.images("photos", 3);
    place.write("photos/0001.png", "bad");
    place.ok(&["--input", "photos", "--output", "out.csv"]);
    assert!(place.path("out.csv.failed.csv").exists());
    place.write("photos/0001.png", png(1));
    place.ok(&["--input", "photos", "--output", "out.csv"]);
    assert!(!place.path("out.csv.failed.csv").exists());
}

#[test]
fn nothing_but_failures_is_a_failure() {
    let place = Place::new();
    place.write("photos/a.png", "bad");
    place.write("photos/b.png", "worse");
    for output in ["out.csv", "out.h5"] {
        place.refused(&["--input", "photos", "--output", output], 1, "none of the 2 images could be labelled");
        assert_eq!(column(&place.text(&format!("{output}.failed.csv")), "code").len(), 2);
    }
}

#[test]
fn damaged_archives_give_what_lies_before_the_damage() {
    let place = Place::new();
    let entries: Vec<(String, Vec<u8>)> = (0..20).map(|i| (format!("{i:02}.png"), png(i))).collect();
    let entries: Vec<(&str, Vec<u8>)> = entries.iter().map(|(n, b)| (n.as_str(), b.clone())).collect();
    place.tar("a.tar", &entries);
    place.tar("b.tar.gz", &entries);
    for name in ["a.tar", "b.tar.gz"] {
        let bytes = place.read(name);
        place.write(name, &bytes[..bytes.len() / 2]);
        place.ok(&["--input", name, "--output", "out.csv"]);
        let errors = column(&place.text("out.csv"), "error");
        let good = errors.iter().filter(|e| e.is_empty()).count();
        assert!(good > 5 && good < 15, "{name}: {errors:?}");
        assert!(
            errors.iter().any(|e| e.starts_with("truncated: ") || e.starts_with("damaged_archive: ")),
            "{errors:?}"
        );
    }
    place.zip("c.zip", &entries);
    let mut bytes = place.read("c.zip");
    // One byte of the first image.
    bytes[80] ^= 0xff;
    place.write("c.zip", &bytes);
    place.ok(&["--input", "c.zip", "--output", "out.csv"]);
    let errors = column(&place.text("out.csv"), "error");
    assert!(errors[0].starts_with("damaged_archive: "), "{errors:?}");
    assert!(errors[1..].iter().all(String::is_empty), "{errors:?}");
}

#[test]
fn limits_are_flags() {
    let place = Place::new();
    place.write("photos/a.png", png(1));
    image::GrayImage::new(100, 20).save(place.path("photos/b.png")).unwrap();
    for (flag, value, part) in [("--max-side", "50", "50 per side"), ("--max-pixels", "1500", "1500 in all")] {
        place.ok(&["--input", "photos", "--output", "out.csv", flag, value]);
        let errors = column(&place.text("out.csv"), "error");
        assert!(errors[0].is_empty() && errors[1].starts_with("too_large: ") && errors[1].contains(part), "{errors:?}");
    }
    place.refused(&["--input", "photos", "--output", "out.csv", "--force", "--max-bytes", "10"], 1, "2 too_large");
}
