//! Tables and shards of images: files that others wrote, shards that are one dataset, and files that lie.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use dtkc_formats::open::{self, ReadOptions};
use dtkc_formats::record::{Classes, Content, Importer, Record};
use dtkc_formats::sequences::table::Columns;
use dtkc_formats::{LabelsFrom, ReadError, detect};
use dtkc_image::Limits;
use dtkc_testing::Place;
use dtkc_testing::files::{gray_png, gz, tar};
use dtkc_testing::parquet::{Compression, GzipLevel, ImageTable};
use sha2::{Digest, Sha256};

fn open_all(paths: &[PathBuf], options: &ReadOptions) -> Result<Vec<Box<dyn Importer>>, ReadError> {
    open::open(detect::detect(paths, None, Limits::default())?, options)
}

fn records(importer: &mut dyn Importer) -> Result<Vec<Record>, ReadError> {
    let mut records = Vec::new();
    importer.stream(&mut |record| {
        records.push(record);
        ControlFlow::Continue(())
    })?;
    Ok(records)
}

/// The only source, and its records.
fn read(paths: &[PathBuf], options: &ReadOptions) -> Result<(Box<dyn Importer>, Vec<Record>), ReadError> {
    let mut sources = open_all(paths, options)?;
    assert_eq!(sources.len(), 1);
    let mut source = sources.remove(0);
    let records = records(source.as_mut())?;
    Ok((source, records))
}

fn failure(paths: &[PathBuf], options: &ReadOptions) -> String {
    read(paths, options).map(|(_, records)| records.len()).unwrap_err().to_string()
}

fn names(records: &[Record]) -> Vec<&str> {
    records.iter().map(|record| record.path.as_deref().unwrap()).collect()
}

fn labels(records: &[Record]) -> Vec<Option<i64>> {
    records.iter().map(|record| record.label).collect()
}

/// What a script found in a file that it wrote with a library of others.
#[derive(serde::Deserialize)]
struct Golden {
    images: Vec<Option<String>>,
    labels: Vec<i64>,
    classes: Option<Vec<String>>,
    names: Vec<String>,
}

fn golden() -> (PathBuf, BTreeMap<String, Golden>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tables");
    let golden = serde_json::from_slice(&std::fs::read(folder.join("tables.json")).unwrap()).unwrap();
    (folder, golden)
}

fn check(name: &str, records: &[Record], golden: &[&Golden]) {
    let sum = |bytes: &[u8]| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let images: Vec<Option<String>> = records
        .iter()
        .map(|record| match &record.content {
            Content::Encoded(bytes) => Some(sum(bytes)),
            Content::Unreadable(_) => None,
            other => panic!("{name}: {other:?}"),
        })
        .collect();
    assert_eq!(images, golden.iter().flat_map(|golden| golden.images.clone()).collect::<Vec<_>>(), "{name}");
    let expected: Vec<Option<i64>> = golden.iter().flat_map(|golden| golden.labels.iter().map(|l| Some(*l))).collect();
    assert_eq!(labels(records), expected, "{name}");
}

/// scripts/golden/image_tables_golden.py wrote them with `datasets`, pyarrow and `webdataset`.
#[test]
fn what_others_wrote_is_read() {
    let (folder, golden) = golden();
    assert_eq!(golden.len(), 11);
    for (name, golden) in &golden {
        let (mut source, found) = read(&[folder.join(name)], &ReadOptions::default()).unwrap();
        check(name, &found, &[golden]);
        assert_eq!(names(&found), golden.names, "{name}");
        let description = source.describe();
        assert_eq!(description.count, Some(found.len() as u64), "{name}");
        match (&golden.classes, &description.classes) {
            (Some(expected), Classes::Names(names)) => assert_eq!(names, expected, "{name}"),
            (None, Classes::Numbers(numbers)) => {
                let known = golden.labels.iter().copied().filter(|label| *label >= 0);
                assert_eq!(*numbers, known.collect(), "{name}");
            }
            (expected, found) => panic!("{name}: {found:?} instead of {expected:?}"),
        }
        let samples = source.samples(4).unwrap();
        assert!(!samples.is_empty() && samples.iter().all(|s| (s.height, s.width, s.rgb) == (6, 5, true)), "{name}");
        // A source can be read as often as needed.
        assert_eq!(records(source.as_mut()).unwrap(), found, "{name}");
    }
}

#[test]
fn a_tar_means_the_same_packed_or_not() {
    let (folder, golden) = golden();
    let place = Place::new();
    let mut plain = Vec::new();
    let packed = std::fs::File::open(folder.join("web.tar.gz")).unwrap();
    std::io::copy(&mut flate2::read::GzDecoder::new(packed), &mut plain).unwrap();
    place.write("web.tar", plain);
    let (source, found) = read(&[place.path("web.tar")], &ReadOptions::default()).unwrap();
    check("web.tar", &found, &[&golden["web.tar.gz"]]);
    let passed: Vec<&str> = source.passed_over().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(passed, ["a/001.txt", "a/002.json"]);
    let folders = ReadOptions { labels: LabelsFrom::Folders, ..ReadOptions::default() };
    let (source, _) = read(&[place.path("web.tar")], &folders).unwrap();
    assert_eq!(source.describe().classes, Classes::Names(vec!["a".into(), "b".into()]));
}

#[test]
fn shards_are_one_dataset() {
    let (folder, golden) = golden();
    let shards = ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"];
    let (source, found) = read(&shards.map(|name| folder.join(name)), &ReadOptions::default()).unwrap();
    check("both", &found, &shards.map(|name| &golden[name]));
    assert_eq!(source.describe().count, Some(7));
    assert_eq!(
        (names(&found)[3], names(&found)[4]),
        ("train-00000-of-00002.parquet/3", "train-00001-of-00002.parquet/photo-4.png")
    );
}

fn table() -> ImageTable {
    let images: Vec<(String, Vec<u8>)> = (0..5).map(|i| (format!("{i}.png"), gray_png(4, 4, i))).collect();
    ImageTable::new(&images.iter().map(|(name, bytes)| (name.as_str(), bytes)).collect::<Vec<_>>())
}

#[test]
fn shards_of_other_classes_are_refused_in_one_sentence() {
    let place = Place::new();
    let with = |names: Option<&[&'static str]>| table().labelled(&[0, 1, 1, 0, 1], names);
    place.write("a.parquet", with(Some(&["cat", "dog"])).file());
    place.write("more.parquet", with(Some(&["cat", "dog", "eel"])).file());
    place.write("other.parquet", with(Some(&["cat", "cow"])).file());
    place.write("bare.parquet", with(None).file());
    place.write("none.parquet", table().file());
    let failed = |name: &str| failure(&[place.path("a.parquet"), place.path(name)], &ReadOptions::default());
    for (name, words) in [
        ("more.parquet", "class 2 is 'eel' here and nothing in a.parquet; import shards of one dataset"),
        ("other.parquet", "class 1 is 'cow' here and 'dog' in a.parquet"),
        ("bare.parquet", "its classes have no names and those of a.parquet have"),
        ("none.parquet", "it has no column label as a.parquet has"),
    ] {
        let error = failed(name);
        assert!(error.contains(words) && error.contains(name), "{error}");
    }
    let (source, found) =
        read(&[place.path("bare.parquet"), place.path("bare.parquet")], &ReadOptions::default()).unwrap();
    assert_eq!((source.describe().classes.clone(), found.len()), (Classes::Numbers([0, 1].into()), 10));
    // Numbers in one tar and words in another would become names of the same kind.
    place.write("numbers.tar", tar(&[("1.png", &gray_png(4, 4, 1)[..]), ("1.cls", b"3")]));
    place.write("words.tar", tar(&[("1.png", &gray_png(4, 4, 1)[..]), ("1.cls", b"cat")]));
    let tars = [place.path("numbers.tar"), place.path("words.tar")];
    let error = open_all(&tars, &ReadOptions::default()).err().unwrap().to_string();
    assert!(error.contains("its classes are names and those of") && error.contains("are numbers"), "{error}");
}

#[test]
fn labels_mean_what_they_mean_elsewhere() {
    let place = Place::new();
    let of = |labels: &[i64], names: Option<&[&'static str]>| {
        place.write("a.parquet", table().labelled(labels, names).file());
        let (source, found) = read(&[place.path("a.parquet")], &ReadOptions::default()).unwrap();
        (source.describe().classes.clone(), found)
    };
    let (classes, found) = of(&[1, -1, 1, -1, 1], None);
    assert_eq!(classes, Classes::Names(vec!["-1".into(), "1".into()]));
    assert_eq!(labels(&found), [1, 0, 1, 0, 1].map(Some));
    let (classes, found) = of(&[7, -1, 3, -2, 7], None);
    assert_eq!((classes, labels(&found)), (Classes::Numbers([3, 7].into()), [7, -1, 3, -1, 7].map(Some).to_vec()));
    assert_eq!(of(&[-1; 5], None).0, Classes::None);
    // A number without a name fails alone.
    let (_, found) = of(&[0, 1, 2, 0, 1], Some(&["cat", "dog"]));
    let Content::Unreadable(error) = &found[2].content else { panic!("{:?}", found[2]) };
    assert_eq!(error.message, "its label is 2 and the file names 2 classes");
    assert!(matches!(found[3].content, Content::Encoded(_)));
}

#[test]
fn columns_can_be_named_and_what_is_not_there_is_told() {
    let place = Place::new();
    let path = [place.path("a.parquet")];
    place.write("a.parquet", table().labelled(&[0, 1, 1, 0, 1], None).file());
    let with = |columns: Columns| ReadOptions { columns, ..ReadOptions::default() };
    let named = |image: &str| with(Columns { image: Some(image.into()), ..Columns::default() });
    assert_eq!(read(&path, &named("image")).unwrap().1.len(), 5);
    for (options, words) in [
        (named("scan"), "there is no column 'scan' (--image-column); there are image, label"),
        (named("label"), "the column 'label' holds no bytes of images (--image-column)"),
        (with(Columns { label: Some("kind".into()), ..Columns::default() }), "no column 'kind' (--label-column)"),
        (with(Columns { id: Some("key".into()), ..Columns::default() }), "no column 'key' (--id-column)"),
        (with(Columns { id: Some("image".into()), ..Columns::default() }), "'image' has no single text or number"),
        (ReadOptions { sequences: true, ..ReadOptions::default() }, "lists of numbers, but there are image"),
    ] {
        let error = failure(&path, &options);
        assert!(error.contains("a.parquet: ") && error.contains(words), "{error}");
    }
    let by_label = with(Columns { id: Some("label".into()), ..Columns::default() });
    assert_eq!(names(&read(&path, &by_label).unwrap().1)[..2], ["0", "1"]);
}

#[test]
fn folders_in_names_can_be_classes() {
    let place = Place::new();
    let image = gray_png(4, 4, 1);
    let files = ["x/dog/1.png", "x/cat/2.png", "x/dog/3.png"].map(|name| (name, &image));
    place.write("a.parquet", ImageTable::new(&files).labelled(&[5, 6, 7], None).file());
    let folders = ReadOptions { labels: LabelsFrom::Folders, ..ReadOptions::default() };
    let (source, found) = read(&[place.path("a.parquet")], &folders).unwrap();
    assert_eq!(source.describe().classes, Classes::Names(vec!["cat".into(), "dog".into()]));
    assert_eq!(labels(&found), [1, 0, 1].map(Some));
    place.write("flat.parquet", table().file());
    assert!(failure(&[place.path("flat.parquet")], &folders).contains("--labels-from-folders"));
}

#[test]
fn damage_is_one_sentence_and_never_a_part_of_a_dataset() {
    let place = Place::new();
    let path = [place.path("a.parquet")];
    let whole = table().labelled(&[0, 1, 1, 0, 1], None).file();
    for cut in [5, whole.len() / 2, whole.len() - 1] {
        place.write("a.parquet", &whole[..cut]);
        let error = failure(&path, &ReadOptions::default());
        assert!(error.contains("a.parquet: the file is cut off") && error.contains("download it again"), "{error}");
    }
    // Any byte: the file is read, refused, or an image in it differs; no more.
    for place_of in (0..whole.len()).step_by(3) {
        let mut bytes = whole.clone();
        bytes[place_of] ^= 0x55;
        place.write("a.parquet", &bytes);
        if let Err(error) = read(&path, &ReadOptions::default()) {
            let text = error.to_string();
            assert!(text.contains("a.parquet") && text.len() < 500, "{place_of}: {text}");
        }
    }
    place.write("a.parquet", gz(&whole));
    assert!(open_all(&path, &ReadOptions::default()).is_err());
}

/// A page of gzip that unpacks to more than it says.
#[test]
fn a_page_that_lies_about_its_size_is_refused() {
    let place = Place::new();
    let big = vec![7u8; 1 << 20];
    let table = ImageTable {
        compression: Compression::GZIP(GzipLevel::default()),
        ..ImageTable::new(&[("1.png", &big[..]), ("2.png", b"x")])
    };
    let bytes = table.file();
    // 1 MiB and the lengths and levels around it, as the header of the page has it.
    let header = |size: u32| {
        let zigzag = size << 1;
        (0..4).map(|i| ((zigzag >> (7 * i)) & 0x7f) as u8 | if i < 3 { 0x80 } else { 0 }).collect::<Vec<u8>>()
    };
    let claims: Vec<Vec<u8>> = (1u32 << 20..(1 << 20) + 64).map(header).collect();
    // The first such number is that of the page; what stands at the end of the file says it once more.
    let at = bytes.windows(4).position(|window| claims.iter().any(|claim| claim == window)).unwrap();
    let mut bytes = bytes;
    bytes[at..at + 4].copy_from_slice(&header((1 << 20) - 5000));
    place.write("a.parquet", bytes);
    let error = failure(&[place.path("a.parquet")], &ReadOptions::default());
    assert!(error.contains("larger than it says"), "{error}");
}
