//! `--keep-columns`: the columns of the input's tables in the output, whatever they hold and however the run went.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Place, png, refused};
use dtkc_label::journal::Reader;
use dtkc_testing::parquet::ImageTable;
use dtkc_testing::wait_until;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

/// `keep.py` with the Python of `DTKC_PYTHON` (else `python3`) and the packages of `scripts/setup.sh --tests` where they
/// are; what it printed. `None`, with a message, where it has no pyarrow.
fn python(place: &Place, arguments: &[&str]) -> Option<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(std::env::var_os("DTKC_PYTHON").unwrap_or_else(|| "python3".into()));
    let packages = std::env::var_os("DTKC_PYTHONPATH").map_or_else(|| here.join("../../.tools/python"), PathBuf::from);
    if packages.is_dir() {
        command.env("PYTHONPATH", packages);
    }
    let said = command.arg(here.join("tests/keep.py")).args(arguments).current_dir(place.folder()).output().unwrap();
    if said.status.code() == Some(3) {
        eprintln!("SKIPPED: no Python with pyarrow; scripts/setup.sh --tests installs it");
        return None;
    }
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    Some(String::from_utf8(said.stdout).unwrap().trim().to_owned())
}

#[test]
fn every_kind_of_column_comes_through_as_pyarrow_reads_it() {
    let place = Place::new();
    place.write("photo.png", png(5));
    let Some(_) = python(&place, &["make", ".", "photo.png", "100", "50", "133"]) else { return };
    let compare = |out: &str| python(&place, &["compare", out, "s-0.parquet", "s-1.parquet", "s-2.parquet"]).unwrap();
    let common = ["--input", "s-*.parquet", "--keep-columns", "--embedding"];
    place.ok(&[&common[..], &["--output", "whole.parquet"]].concat());
    let names = compare("whole.parquet");
    assert!(names.starts_with("path,large,u8,") && !names.contains("image"), "{names}");
    // A column of that name was there before.
    assert!(names.contains(",id,whole,index,dtkc_path,cluster,cluster_name,confidence,"), "{names}");
    assert!(names.ends_with(",error,embedding"), "{names}");
    let parts: Vec<String> = (1..=3).map(|i| format!("part-{i}.parquet")).collect();
    for (i, part) in parts.iter().enumerate().rev() {
        let shard = format!("{}/3", i + 1);
        place.ok(&[&common[..], &["--output", part, "--shard", &shard, "--batch", "5"]].concat());
    }
    place.merge(&[&parts[1], &parts[2], &parts[0]], "merged.parquet");
    assert!(place.read("merged.parquet") == place.read("whole.parquet"));
    place.refused_merge(
        &["part-1.parquet", "part-2.parquet", "part-3.parquet"],
        "merged.csv",
        2,
        "only Parquet can hold",
    );
    place.ok(&["--input", "s-*.parquet", "--keep-columns", "--keep-images", "--output", "all.parquet"]);
    assert!(compare("all.parquet").starts_with("image,path,large,"));
    place.ok(&["--input", "s-*.parquet", "--keep-columns", "kind, image", "--output", "some.parquet"]);
    assert!(compare("some.parquet").starts_with("image,kind,index,path,cluster,"));
}

/// Shards of images with a column `label`, which counts from 0.
fn shards(place: &Place, counts: &[usize]) {
    let mut start = 0;
    for (shard, count) in counts.iter().enumerate() {
        place.write(&format!("s-{shard}.parquet"), table(start..start + count).file());
        start += count;
    }
}

fn table(numbers: std::ops::Range<usize>) -> ImageTable {
    let images: Vec<(String, Vec<u8>)> = numbers.clone().map(|i| (format!("{i}.png"), png(i % 9))).collect();
    let named: Vec<(&str, &Vec<u8>)> = images.iter().map(|(name, bytes)| (name.as_str(), bytes)).collect();
    let labels: Vec<i64> = numbers.map(|i| i as i64).collect();
    ImageTable { group: 50, ..ImageTable::new(&named).labelled(&labels, None) }
}

/// The kept column and the position of every row, and whether it has a cluster.
fn kept(place: &Place, name: &str) -> Vec<(Option<i64>, i64, bool)> {
    let reader = SerializedFileReader::new(std::fs::File::open(place.path(name)).unwrap()).unwrap();
    let names: Vec<String> =
        reader.metadata().file_metadata().schema().get_fields().iter().map(|f| f.name().to_owned()).collect();
    assert_eq!(names[..4], ["label", "index", "path", "cluster"]);
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    rows.map(|row| (row.get_long(0).ok(), row.get_long(1).unwrap(), row.get_int(3).is_ok())).collect()
}

const KEEP: [&str; 3] = ["--input", "s-*.parquet", "--keep-columns"];

#[test]
fn a_table_that_cannot_be_read_leaves_a_row_of_its_own() {
    let place = Place::new();
    shards(&place, &[60, 0, 70]);
    place.write("s-1.parquet", &table(0..9).file()[..200]);
    place.ok(&[&KEEP[..], &["--output", "out.parquet"]].concat());
    let rows = kept(&place, "out.parquet");
    let expected = (0..60).map(|i| (Some(i), i, true)).chain([(None, 60, false)]);
    assert_eq!(rows, expected.chain((0..70).map(|i| (Some(60 + i), 61 + i, true))).collect::<Vec<_>>());
    // Images that are no rows have none of the columns, either.
    place.images("photos", 3);
    place.ok(&["--input", "photos", "s-0.parquet", "--keep-columns", "--output", "out.parquet"]);
    let rows = kept(&place, "out.parquet");
    assert_eq!(rows[..4], [(None, 0, true), (None, 1, true), (None, 2, true), (Some(0), 3, true)]);
    assert_eq!(rows.len(), 63);
}

#[test]
#[cfg(unix)]
fn killed_at_any_moment_it_resumes_to_the_same_bytes() {
    let place = Place::new();
    shards(&place, &[400, 333, 300]);
    place.ok(&[&KEEP[..], &["--output", "whole.parquet"]].concat());
    let kept_rows = || {
        let Ok(mut journal) = Reader::open(&place.path("cut.parquet")) else { return 0 };
        std::iter::from_fn(|| journal.next_block().unwrap()).map(|block| block.len()).sum::<usize>()
    };
    let more = ["--output", "cut.parquet", "--batch", "3", "--threads", "1", "--resume"];
    let arguments = [&KEEP[..], &more].concat();
    for _ in 0..3 {
        let before = kept_rows();
        let mut child = place.label(&arguments).spawn().unwrap();
        let mut ended = None;
        wait_until("some rows are in the journal", || {
            ended = child.try_wait().unwrap();
            ended.is_some() || kept_rows() > before
        });
        // On a machine where it was faster there is nothing to kill.
        let _ = child.kill();
        child.wait().unwrap();
    }
    let said = place.label(&arguments).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    assert!(place.read("cut.parquet") == place.read("whole.parquet"));
}

#[test]
fn damage_in_a_kept_column_costs_no_labels() {
    let place = Place::new();
    shards(&place, &[120, 80]);
    place.ok(&[&KEEP[..], &["--output", "whole.parquet"]].concat());
    let good = place.read("s-1.parquet");
    let mut bad = good.clone();
    // The end of the last page of the last column: what the file says about it stays true.
    let reader = SerializedFileReader::new(std::fs::File::open(place.path("s-1.parquet")).unwrap()).unwrap();
    let (start, length) = reader.metadata().row_group(1).column(2).byte_range();
    let end = (start + length) as usize;
    bad[end - 6..end].fill(0xff);
    place.write("s-1.parquet", &bad);
    let arguments = [&KEEP[..], &["--output", "out.parquet"]].concat();
    let said = place.label(&arguments).output().unwrap();
    refused(said.into(), 1, "out.parquet cannot be written (s-1.parquet: ");
    assert!(!place.path("out.parquet").exists());
    // What a kill in the middle leaves.
    let journal = place.read("out.parquet.journal");
    place.write("out.parquet.journal", &journal[..journal.len() / 2]);
    place.write("s-1.parquet", &good);
    place.ok(&[&arguments[..], &["--resume"]].concat());
    assert!(place.read("out.parquet") == place.read("whole.parquet"));
}

#[test]
fn tables_that_changed_are_noticed() {
    let place = Place::new();
    shards(&place, &[120, 80]);
    for shard in ["1/2", "2/2"] {
        let part = format!("part-{}.parquet", &shard[..1]);
        place.ok(&[&KEEP[..], &["--output", &part, "--shard", shard]].concat());
        place.write("s-1.parquet", table(500..580).file());
    }
    place.refused_merge(&["part-1.parquet", "part-2.parquet"], "all.parquet", 1, "tables was");
    // The journal of a run that was interrupted.
    let settings = place.text("part-2.parquet.job.json");
    let settings: serde_json::Value = serde_json::from_str(&settings).unwrap();
    let head = serde_json::json!({"shard": settings["shard"], "settings": settings["settings"]});
    place.write("part-2.parquet.journal", format!("dtkc-label journal 1\n{head}\n"));
    place.write("s-0.parquet", table(7..127).file());
    let again = [&KEEP[..], &["--output", "part-2.parquet", "--shard", "2/2", "--resume"]].concat();
    place.refused(&again, 1, "the tables of the input have changed since the run began");
}

#[test]
fn what_cannot_be_kept_is_said_before_any_work() {
    let place = Place::new();
    shards(&place, &[10, 10]);
    place.images("photos", 3);
    let mut other = table(20..30);
    other.label = "class";
    place.write("t-0.parquet", table(0..10).file());
    place.write("t-1.parquet", other.file());
    other.label = "cluster";
    place.write("clash.parquet", other.file());
    for (line, code, words) in [
        (
            "--input s-*.parquet --keep-columns lable --output no.parquet",
            1,
            "there is no column 'lable' (--keep-columns); there are image, label",
        ),
        ("--input s-*.parquet --keep-columns --output no.csv", 2, "give --output the ending .parquet"),
        ("--input s-*.parquet --keep-columns --output -", 2, "give --output the ending .parquet"),
        ("--input photos --keep-columns --output no.parquet", 2, "none of the inputs is one"),
        (
            "--input t-*.parquet --keep-columns --output no.parquet",
            1,
            "t-1.parquet: its column 'label' is not as in t-0.parquet",
        ),
        (
            "--input clash.parquet --keep-columns --output no.parquet",
            1,
            "it has a column 'cluster', which dtkc-label writes, too",
        ),
        ("--input s-*.parquet --keep-images --output no.parquet", 2, "--keep-columns"),
    ] {
        place.refused(&line.split(' ').collect::<Vec<_>>(), code, words);
        assert!(place.names().iter().all(|name| !name.starts_with("no.")), "{line}");
    }
    // The images alone are no column that clashes.
    place.ok(&["--input", "clash.parquet", "--keep-columns", "image", "--output", "yes.parquet"]);
    place.write("model.onnx", dtkc_testing::model::sequence_model(1, 2));
    place.write("a.csv", "id,x,y\na,1,2\na,3,4\n");
    let line = "--input a.csv --id-column id --keep-columns --output no.parquet";
    place.refused(&line.split(' ').collect::<Vec<_>>(), 2, "the model takes sequences");
}
