//! `dtkc-data import` of folders, archives and files of images.
#![allow(clippy::unwrap_used)]

use dtkc_item::Resize;
use dtkc_testing::files::{bz2, gray_png, gz, idx, png_that_claims, rgb_image, tar, zip};
use dtkc_testing::{Place, first_pixels, labels, paths};
use image::ImageFormat;

/// The lines of a list of skipped images, without the heading.
fn skipped(place: &Place, name: &str) -> Vec<String> {
    place.text(name).lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_folder_comes_in_natural_order_with_paths() {
    let place = Place::of("dtkc-data");
    for (name, value) in [("photos/img10.png", 100), ("photos/img9.png", 90), ("photos/sub/a.png", 5)] {
        place.write(name, gray_png(6, 8, value));
    }
    place.write("photos/notes.txt", b"hello");
    let dataset = place.made(&["import", "photos", "--out", "a.h5"], "a.h5");
    assert_eq!(dataset.name(), "photos");
    assert_eq!(dataset.image_shape().unwrap().to_string(), "6x8x1");
    assert_eq!(paths(&dataset), ["img9.png", "img10.png", "sub/a.png"]);
    assert_eq!(first_pixels(&dataset), [90, 100, 5]);
    assert!(dataset.labels().unwrap().is_none());
}

#[test]
fn folders_become_labels() {
    let place = Place::of("dtkc-data");
    for (name, value) in [("set/dog/1.png", 1), ("set/cat/1.png", 2), ("set/cat/2.png", 3), ("set/loose.png", 4)] {
        place.write(name, gray_png(4, 4, value));
    }
    let dataset = place.made(&["import", "set", "--labels-from-folders", "--out", "a.h5"], "a.h5");
    assert_eq!(dataset.label_names().unwrap().unwrap(), ["cat", "dog"]);
    assert_eq!(labels(&dataset), [0, 0, 1]);
    assert_eq!(first_pixels(&dataset), [2, 3, 1]);
    assert_eq!(skipped(&place, "a.h5.skipped.csv"), ["loose.png,no_class,it lies in no class folder"]);
    let said = place.run(["import", "set", "--out", "b.h5"]);
    assert!(said.out.contains("--labels-from-folders"), "{}", said.out);
    place.write("flat/a.png", gray_png(4, 4, 1));
    let error = place.fails(&["import", "flat", "--labels-from-folders", "--out", "c.h5"], 1);
    assert!(error.contains("no folders that could be labels"), "{error}");
}

#[test]
fn classes_are_chosen_by_name_or_number() {
    let place = Place::of("dtkc-data");
    for (name, value) in [("set/a/1.png", 1), ("set/b/1.png", 2), ("set/c/1.png", 3)] {
        place.write(name, gray_png(4, 4, value));
    }
    let import = ["import", "set", "--labels-from-folders", "--force", "--out", "a.h5", "--classes"];
    let dataset = place.made(&[&import[..], &["c,a"]].concat(), "a.h5");
    assert_eq!(dataset.label_names().unwrap().unwrap(), ["a", "c"]);
    assert_eq!((labels(&dataset), first_pixels(&dataset)), (vec![0, 1], vec![1, 3]));
    let dataset = place.made(&[&import[..], &["1"]].concat(), "a.h5");
    assert_eq!(dataset.label_names().unwrap().unwrap(), ["b"]);
    let error = place.fails(&[&import[..], &["z"]].concat(), 2);
    assert!(error.contains("no class 'z'") && error.contains("a, b, c"), "{error}");
}

#[test]
fn zip_and_tar_give_what_the_folder_gives() {
    let place = Place::of("dtkc-data");
    let (one, two) = (gray_png(4, 4, 1), rgb_image(4, 4, [2, 2, 2], ImageFormat::Bmp));
    let files: [(&str, &[u8]); 3] = [("x/b/2.bmp", &two), ("x/a/1.png", &one), ("x/readme.txt", b"no")];
    for (name, bytes) in [("a.zip", zip(&files)), ("a.tar", tar(&files)), ("a.tgz", gz(&tar(&files)))] {
        place.write(name, &bytes);
        let dataset = place.made(&["import", name, "--labels-from-folders", "--out", "a.h5"], "a.h5");
        assert_eq!(dataset.image_shape().unwrap().to_string(), "4x4x3", "{name}");
        assert_eq!(dataset.label_names().unwrap().unwrap(), ["a", "b"], "{name}");
        let mut rows: Vec<_> = first_pixels(&dataset).into_iter().zip(labels(&dataset)).zip(paths(&dataset)).collect();
        rows.sort();
        let expected = [((1, 0), "x/a/1.png".to_owned()), ((2, 1), "x/b/2.bmp".to_owned())];
        assert_eq!(rows, expected, "{name}");
    }
}

/// Images without extension counted only where no image has one, and what was left out was not told.
#[test]
fn files_without_extension_are_known_by_content_and_the_rest_is_counted_and_listed() {
    let place = Place::of("dtkc-data");
    let (one, two) = (gray_png(4, 4, 1), gray_png(4, 4, 2));
    let files: &[(&str, &[u8])] =
        &[("a/1.png", &one), ("a/photo", &two), ("a/README", b"no"), ("a/notes.txt", b"no"), (".x/1.png", b"no")];
    files.iter().for_each(|(name, bytes)| {
        place.write(&format!("folder/{name}"), bytes);
    });
    for (name, bytes) in [("a.zip", zip(files)), ("a.tar", tar(files)), ("a.tar.bz2", bz2(&tar(files)))] {
        place.write(name, bytes);
    }
    for source in ["folder", "a.zip", "a.tar", "a.tar.bz2"] {
        let said = place.run(["import", source, "--out", "a.h5", "--json", "--force"]).ok();
        assert_eq!(paths(&place.open("a.h5")), ["a/1.png", "a/photo"], "{source}");
        let summary: serde_json::Value = serde_json::from_str(&said).unwrap();
        let expected = serde_json::json!({"hidden": 1, "other_content": 1, "other_extension": 1});
        assert_eq!(summary["passed_over"], expected, "{source}");
        assert_eq!(summary["passed_over_file"], "a.h5.passed-over.csv");
        let mut list = skipped(&place, "a.h5.passed-over.csv");
        list.sort();
        let hidden = if source == "folder" { ".x," } else { ".x/1.png," };
        for (line, start) in list.iter().zip([hidden, "a/README,other_content,", "a/notes.txt,other_extension,"]) {
            assert!(line.starts_with(start), "{source}: {list:?}");
        }
        let said = place.run(["import", source, "--out", "a.h5", "--force"]).ok();
        assert!(said.contains("passed over: 3 files that are no images (1 hidden, 1 other_content"), "{said}");
    }
    place.made(&["import", "folder/a/1.png", "--out", "a.h5"], "a.h5");
    assert!(!place.path("a.h5.passed-over.csv").exists());
}

#[test]
fn folders_side_by_side_are_classes() {
    let place = Place::of("dtkc-data");
    for (name, value) in [("set/dog/1.png", 1), ("set/cat/1.png", 2), ("set/cat/2.png", 3)] {
        place.write(name, gray_png(4, 4, value));
    }
    let import = ["import", "set/cat", "set/dog", "--labels-from-folders", "--out", "a.h5"];
    let dataset = place.made(&import, "a.h5");
    assert_eq!(dataset.label_names().unwrap().unwrap(), ["cat", "dog"]);
    assert_eq!((labels(&dataset), first_pixels(&dataset)), (vec![0, 0, 1], vec![2, 3, 1]));
}

#[test]
fn patterns_and_lists_stand_for_files() {
    let place = Place::of("dtkc-data");
    for (name, value) in [("set/10.png", 10), ("set/2.png", 2), ("set/2.jpg.txt", 0)] {
        place.write(name, gray_png(4, 4, value));
    }
    let dataset = place.made(&["import", "set/*.png", "--out", "a.h5"], "a.h5");
    assert_eq!(first_pixels(&dataset), [2, 10]);
    assert!(place.fails(&["import", "set/*.gif", "--out", "b.h5"], 1).contains("matches no file"));
    let list = place.write("list.txt", "set/10.png\nset/2.png\n");
    let stdin = std::fs::File::open(list).unwrap();
    let status = place.command().args(["import", "-", "--out", "a.h5", "--quiet", "--force"]).stdin(stdin).status();
    assert!(status.unwrap().success());
    assert_eq!(first_pixels(&place.open("a.h5")), [10, 2]);
}

#[test]
fn coil_names_give_labels_in_folders_and_archives() {
    let place = Place::of("dtkc-data");
    let image = rgb_image(5, 5, [9, 8, 7], ImageFormat::Png);
    let names = ["coil-100/obj10__0.png", "coil-100/obj2__0.png", "coil-100/obj2__5.png"];
    names.iter().for_each(|n| {
        place.write(n, &image);
    });
    place.write("coil.zip", zip(&names.map(|n| (n, &image[..]))));
    for source in ["coil-100", "coil.zip"] {
        let dataset = place.made(&["import", source, "--out", "a.h5"], "a.h5");
        assert_eq!(labels(&dataset), [2, 2, 10], "{source}");
        assert!(dataset.label_names().unwrap().is_none());
    }
    let error = place.fails(&["import", "coil-100", "--format", "idx", "--out", "b.h5"], 1);
    assert!(error.contains("no idx file"), "{error}");
    place.write("other/a.png", &image);
    let error = place.fails(&["import", "other", "--format", "coil", "--out", "b.h5"], 1);
    assert!(error.contains("objN__ANGLE"), "{error}");
}

#[test]
fn bad_images_are_skipped_counted_and_listed() {
    let place = Place::of("dtkc-data");
    place.write("set/good.png", gray_png(4, 4, 1));
    place.write("set/text.png", b"this is not an image");
    let jpeg = rgb_image(512, 512, [200, 10, 10], ImageFormat::Jpeg);
    place.write("set/cut.jpg", &jpeg[..jpeg.len() - 200]);
    place.write("set/empty.png", b"");
    place.write("set/huge.png", png_that_claims(60_000, 60_000));
    let said = place.run(["import", "set", "--out", "a.h5", "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let summary: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&summary["count"], &summary["skipped"]), (&1.into(), &4.into()));
    assert_eq!(summary["skipped_file"], "a.h5.skipped.csv");
    let list = skipped(&place, "a.h5.skipped.csv");
    let codes: Vec<Vec<&str>> = list.iter().map(|l| l.split(',').take(2).collect()).collect();
    let expected =
        [["cut.jpg", "truncated"], ["empty.png", "empty"], ["huge.png", "too_large"], ["text.png", "not_an_image"]];
    assert_eq!(codes, expected, "{list:?}");
    let error = place.fails(&["import", "set", "--strict", "--out", "b.h5"], 1);
    assert!(error.contains("cut.jpg") && error.contains("--strict"), "{error}");
    // Without bad images the old list is gone.
    place.made(&["import", "set/good.png", "--out", "a.h5"], "a.h5");
    assert!(!place.path("a.h5.skipped.csv").exists());
}

#[test]
fn only_bad_images_are_an_error() {
    let place = Place::of("dtkc-data");
    place.write("set/a.png", b"no");
    place.write("set/b.png", b"no");
    let error = place.fails(&["import", "set", "--out", "a.h5"], 1);
    assert!(error.contains("none of 2 images") && error.contains("a.png"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_symlink_loop_survives() {
    let place = Place::of("dtkc-data");
    place.write("set/a/1.png", gray_png(4, 4, 1));
    std::os::unix::fs::symlink(place.path("set"), place.path("set/a/loop")).unwrap();
    let dataset = place.made(&["import", "set", "--out", "a.h5"], "a.h5");
    assert_eq!(paths(&dataset), ["a/1.png"]);
}

#[test]
fn sizes_and_colours_are_chosen_and_can_be_given() {
    let place = Place::of("dtkc-data");
    for i in 0..4 {
        place.write(&format!("set/{i}.png"), gray_png(10, 12, i));
    }
    place.write("set/odd.png", rgb_image(20, 20, [50, 60, 70], ImageFormat::Png));
    let said = place.run(["import", "set", "--out", "a.h5"]);
    assert!(said.out.contains("5 images of 10x12x3") && said.out.contains("most common"), "{}", said.out);
    let dataset = place.made(&["import", "set", "--out", "a.h5", "--size", "6x7", "--color", "gray"], "a.h5");
    assert_eq!(dataset.image_shape().unwrap().to_string(), "6x7x1");
    place.write("mixed/a.png", gray_png(300, 400, 1));
    place.write("mixed/b.png", gray_png(200, 100, 1));
    let said = place.run(["import", "mixed", "--out", "a.h5", "--force"]);
    assert!(said.out.contains("2 images of 64x64x1") && said.out.contains("--size"), "{}", said.out);
    // A wide image: fit pads with black, crop and stretch fill.
    for (resize, corner) in [("fit", 0), ("crop", 1), ("stretch", 1)] {
        let args = ["import", "mixed/a.png", "--size", "8x8", "--resize", resize, "--out", "a.h5"];
        assert_eq!(first_pixels(&place.made(&args, "a.h5")), [corner], "{resize}");
    }
    for flags in [["--size", "0x4"], ["--resize", "zoom"], ["--color", "cmyk"], ["--format", "docx"], ["--limit", "0"]]
    {
        assert_eq!(place.run([&["import", "set", "--out", "b.h5"][..], &flags].concat()).code, 2, "{flags:?}");
    }
}

#[test]
fn the_rule_for_resizing_is_kept() {
    let place = Place::of("dtkc-data");
    place.write("set/a.png", gray_png(8, 8, 1));
    place.write("set/b.png", gray_png(8, 8, 2));
    place.write("images-idx3-ubyte", idx(&[2, 8, 8], &[7; 128]));
    let import = |args: &[&str], out| place.made(&[&["import"][..], args, &["--out", out]].concat(), out).resize();
    // Files may have any size, so that a rule belongs to them; arrays that stay as they are follow none.
    assert_eq!(import(&["set"], "fit.h5"), Some(Resize::Fit));
    assert_eq!(import(&["set", "--resize", "crop"], "crop.h5"), Some(Resize::Crop));
    assert_eq!(import(&["images-idx3-ubyte"], "array.h5"), None);
    assert_eq!(import(&["images-idx3-ubyte", "--color", "rgb"], "a.h5"), None);
    assert_eq!(import(&["images-idx3-ubyte", "--size", "4x4"], "a.h5"), Some(Resize::Fit));
    assert_eq!(import(&["images-idx3-ubyte", "--resize", "stretch"], "a.h5"), Some(Resize::Stretch));
    // Our own files keep theirs.
    assert_eq!(import(&["crop.h5"], "a.h5"), Some(Resize::Crop));
    assert_eq!(import(&["crop.h5", "--size", "4x6"], "a.h5"), Some(Resize::Crop));
    assert_eq!(import(&["crop.h5", "--resize", "fit"], "a.h5"), Some(Resize::Fit));
    let said = place.run(["import", "crop.h5", "fit.h5", "--out", "a.h5", "--force"]).ok();
    assert!(said.contains("several ways (crop, fit); fit is taken"), "{said}");
    assert_eq!(place.made(&["synth", "--count", "10", "--out", "g.h5"], "g.h5").resize(), None);

    let resize = |line: &str| {
        let said = place.run_line(&format!("{line} --out a.h5 --force")).ok();
        (place.open("a.h5").resize(), said.contains("note: "))
    };
    assert_eq!(resize("subset crop.h5 --count 1"), (Some(Resize::Crop), false));
    assert_eq!(resize("merge crop.h5 crop.h5"), (Some(Resize::Crop), false));
    assert_eq!(resize("merge array.h5 crop.h5 --drop-labels"), (Some(Resize::Crop), false));
    assert_eq!(resize("merge crop.h5 fit.h5"), (None, true));
    assert!(place.run_line("info crop.h5").ok().contains("  resize       crop\n"));
    let json: serde_json::Value = serde_json::from_str(&place.run_line("info crop.h5 --json").ok()).unwrap();
    assert_eq!(json["resize"], "crop");
    assert!(!place.run_line("info array.h5").ok().contains("resize"));
}

#[test]
fn several_folders_are_joined_and_named_apart() {
    let place = Place::of("dtkc-data");
    place.write("one/a.png", gray_png(4, 4, 1));
    place.write("two/a.png", gray_png(4, 4, 2));
    let dataset = place.made(&["import", "one", "two", "--out", "a.h5"], "a.h5");
    assert_eq!(paths(&dataset), ["one/a.png", "two/a.png"]);
    let dataset = place.made(&["import", "two/a.png", "one/a.png", "--out", "a.h5"], "a.h5");
    assert_eq!(first_pixels(&dataset), [2, 1]);
}

#[test]
fn many_images_keep_their_order_and_the_limit_holds() {
    let place = Place::of("dtkc-data");
    for i in 0..300u32 {
        let side = 4 + i % 3;
        place.write(&format!("set/{i}.png"), gray_png(side, side, (i % 256) as u8));
    }
    let dataset = place.made(&["import", "set", "--size", "4x4", "--out", "a.h5"], "a.h5");
    let expected: Vec<u8> = (0..300u32).map(|i| (i % 256) as u8).collect();
    assert_eq!(first_pixels(&dataset), expected);
    let dataset = place.made(&["import", "set", "--size", "4x4", "--limit", "33", "--out", "a.h5"], "a.h5");
    assert_eq!(first_pixels(&dataset), expected[..33]);
    let packed = place.made(&["import", "set", "--size", "4x4", "--compress", "--out", "b.h5"], "b.h5");
    assert_eq!(first_pixels(&packed), expected);
}

/// A file of more than 64 MiB could not be let in.
#[test]
fn limits_are_flags() {
    let place = Place::of("dtkc-data");
    place.write("set/a.png", gray_png(4, 4, 1));
    // 24 million black pixels that take no room on the disk.
    let path = place.write("set/large.ppm", "P6 6000 4000 255\n");
    std::fs::File::options().write(true).open(path).unwrap().set_len(17 + 72_000_000).unwrap();
    let dataset = place.made(&["import", "set", "--size", "4x4", "--out", "a.h5"], "a.h5");
    assert_eq!(paths(&dataset), ["a.png"]);
    assert!(skipped(&place, "a.h5.skipped.csv")[0].starts_with("large.ppm,too_large,"));
    let more = ["import", "set", "--size", "4x4", "--out", "a.h5", "--max-bytes", "80MB"];
    assert_eq!(paths(&place.made(&more, "a.h5")), ["a.png", "large.ppm"]);
    for limit in [["--max-pixels", "1000000"], ["--max-side", "5999"]] {
        assert_eq!(paths(&place.made(&[&more[..], &limit].concat(), "a.h5")), ["a.png"], "{limit:?}");
    }
    place.write("a.zip", zip(&[("1.png", &gray_png(40, 40, 1)[..]), ("2.png", &gray_png(4, 4, 1))]));
    let dataset = place.made(&["import", "a.zip", "--max-pixels", "100", "--out", "a.h5"], "a.h5");
    assert_eq!(paths(&dataset), ["2.png"]);
}

/// White strokes on transparency became white on white.
#[test]
fn white_drawings_on_transparency_stay_visible() {
    let place = Place::of("dtkc-data");
    for (name, value) in [("white", 255u8), ("black", 0)] {
        let mut drawing = image::RgbaImage::new(2, 1);
        drawing.put_pixel(1, 0, image::Rgba([value, value, value, 255]));
        std::fs::create_dir_all(place.path("set")).unwrap();
        drawing.save(place.path(&format!("set/{name}.png"))).unwrap();
    }
    let dataset = place.made(&["import", "set", "--color", "gray", "--out", "a.h5"], "a.h5");
    assert_eq!(paths(&dataset), ["black.png", "white.png"]);
    assert_eq!(dataset.read_range(0..2).unwrap(), [255, 0, 0, 255]);
}
