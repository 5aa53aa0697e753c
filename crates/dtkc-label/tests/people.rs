//! What people see: table, summary, gallery, messages for mistakes.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Place, column, json, png, refused, rows};

#[test]
fn the_table_counts_what_the_rows_say() {
    let place = Place::new();
    place.images("photos", 60);
    let base = ["--model", "model.onnx", "--input", "photos", "--output", "out.csv", "--force"];
    let run = |more: &[&str]| {
        let said = place.run([&base, more].concat());
        assert_eq!(said.code, 0, "{said:?}");
        said
    };
    let said = run(&[]);
    let table = &said.out;
    assert!(table.starts_with("cluster  name       images"), "{table}");
    assert!(said.err.contains("60 images in "), "{said:?}");
    let clusters = column(&place.text("out.csv"), "cluster");
    for cluster in 0..common::CLUSTERS {
        let count = clusters.iter().filter(|c| **c == cluster.to_string()).count();
        let line = table.lines().find(|line| line.trim_start().starts_with(&cluster.to_string())).unwrap();
        assert_eq!(line.split_whitespace().nth(3), Some(count.to_string().as_str()), "{line}");
    }
    let summary = json(&run(&["--json", "--min-confidence", "0.6"]).out);
    let rows = rows(&place.text("out.csv"));
    let sure: Vec<f64> = rows
        .iter()
        .filter(|row| row["cluster_name"] == "cluster 2")
        .map(|row| row["confidence"].parse::<f64>().unwrap())
        .collect();
    assert_eq!(summary["clusters"][2]["images"], sure.len());
    let mean = summary["clusters"][2]["mean_confidence"].as_f64().unwrap();
    assert!((mean - sure.iter().sum::<f64>() / sure.len() as f64).abs() < 1e-6);
    let unsure = rows.iter().filter(|row| row["cluster_name"] == "unsure").count();
    assert_eq!(summary["unsure"]["images"], unsure);
    assert_eq!(summary["images"], 60);
    let quiet = run(&["--quiet"]);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("", ""));
}

#[test]
fn truth_is_compared_by_folder_names_and_by_labels() {
    let place = Place::new();
    place.images("photos", 60);
    place.ok(&["--input", "photos", "--output", "out.csv"]);
    // Folders that are exactly the clusters, and one image in the wrong one.
    let clusters = column(&place.text("out.csv"), "cluster");
    for (i, cluster) in clusters.iter().enumerate() {
        place.write(&format!("sorted/class-{cluster}/{i:04}.png"), png(i));
    }
    let scores = |input: &str| -> serde_json::Value {
        json(&place.ok(&["--input", input, "--output", "t.csv", "--truth", "--json"]).out)["scores"].clone()
    };
    let perfect = scores("sorted");
    assert_eq!((&perfect["acc"], &perfect["nmi"], &perfect["ari"]), (&1.0.into(), &1.0.into(), &1.0.into()));
    assert_eq!(perfect["counted"], 60);
    let other = clusters.iter().find(|c| **c != clusters[0]).unwrap();
    std::fs::rename(
        place.path(&format!("sorted/class-{}/0000.png", clusters[0])),
        place.path(&format!("sorted/class-{other}/0000.png")),
    )
    .unwrap();
    assert!((scores("sorted")["acc"].as_f64().unwrap() - 59.0 / 60.0).abs() < 1e-12);
    place.dataset("set.h5", 60);
    let labels: Vec<i64> = (0..60).map(|i| i % 3).collect();
    let numbers: Vec<i64> = clusters.iter().map(|c| c.parse().unwrap()).collect();
    let expected = dtkc_metrics::scores(&labels, &numbers).unwrap();
    assert_eq!(scores("set.h5")["ari"], expected.ari);
    let text =
        place.run(["--model", "model.onnx", "--input", "sorted", "--output", "t.csv", "--truth", "--force"]).ok();
    assert!(text.contains("ACC 0.9833") && text.contains("mostly") && text.contains("class-"), "{text}");
}

#[test]
fn the_gallery_is_one_page_that_needs_nothing_else() {
    let place = Place::new();
    place.images("photos", 80);
    place.zip("some.zip", &[("x/<b>.png", png(90))]);
    place.dataset("set.h5", 20);
    place.write("names.csv", "0,<i>cats</i>\n");
    let list: String = (0..3).map(|i| format!("photos/{i:04}.png\n")).collect();
    let arguments = ["--input", "photos", "some.zip", "set.h5", "-", "--output", "out.csv", "--gallery", "page.html"];
    let more = ["--names", "names.csv", "--gallery-images", "4"];
    place.ok_with_input(&[&arguments[..], &more].concat(), &list);
    let html = place.text("page.html");
    // The thumbnails' own letters are no references.
    let bare: String = html
        .split("base64,")
        .enumerate()
        .map(|(i, part)| if i == 0 { part } else { part.split_once('"').unwrap().1 })
        .collect();
    for outside in ["http:", "https:", "//", "url(", "@import", "<link", "href", "<iframe", "fetch(", "import("] {
        assert!(!bare.contains(outside), "{outside}");
    }
    let sources: Vec<&str> = html.split("src=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(sources.len() >= 16, "{}", sources.len());
    assert!(sources.iter().all(|source| source.starts_with("data:image/")));
    assert!(!html.contains("not readable"));
    assert!(html.contains("&lt;i&gt;cats&lt;/i&gt;") && !html.contains("<i>cats"));
    assert_eq!(html.matches("<section class=\"cluster\"").count(), common::CLUSTERS);
    // The most certain image of each cluster is there, by its path.
    for cluster in 0..common::CLUSTERS {
        let rows = rows(&place.text("out.csv"));
        let in_cluster = rows.iter().filter(|row| row["cluster"] == cluster.to_string());
        let confidence = |row: &&std::collections::BTreeMap<String, String>| row["confidence"].parse::<f32>().unwrap();
        let Some(best) = in_cluster.max_by(|a, b| confidence(a).total_cmp(&confidence(b))) else { continue };
        let path = best["path"].replace('<', "&lt;").replace('>', "&gt;");
        assert!(html.contains(&format!("alt=\"{path}\"")), "{path}");
    }
}

#[test]
fn mistakes_are_told_in_one_sentence() {
    let place = Place::new();
    place.images("photos", 2);
    place.write("empty/readme.txt", "x");
    place.write("bad.onnx", "no model");
    place.write("bad.zip", "no zip");
    place.write("bad.tar", "no tar");
    place.write("bad.h5", "no dataset");
    place.write("names.csv", "9,x\n");
    place.write("unsure.csv", "1,unsure\n");
    let base = ["--model", "model.onnx", "--input", "photos", "--output", "out.csv"];
    let cases: &[(&[&str], i32, &str)] = &[
        (&[], 2, "--model <MODEL>"),
        (&["--model", "model.onnx", "--input", "photos", "--output", "out.txt"], 2, ".csv, .jsonl, .parquet or .h5"),
        (
            &["--model", "model.onnx", "--input", "photos", "--output", "-", "--format", "parquet"],
            2,
            "use csv or jsonl",
        ),
        (&["--model", "model.onnx", "--input", "photos", "--output", "-", "--json"], 2, "both want standard output"),
        (&["--model", "model.onnx", "--input", "photos", "--output", "-", "--resume"], 2, "needs an output file"),
        (&["--model", "model.onnx", "--input", "nowhere", "--output", "out.csv"], 1, "nowhere does not exist"),
        (&["--model", "model.onnx", "--input", "empty", "--output", "out.csv"], 1, "no image in empty: its 1 file"),
        (&["--model", "model.onnx", "--input", "photos/*.gif", "--output", "out.csv"], 1, "no image in photos/*.gif"),
        (&["--model", "model.onnx", "--input", "bad.zip", "--output", "out.csv"], 1, "not a readable zip"),
        (&["--model", "model.onnx", "--input", "bad.tar", "--output", "out.csv"], 1, "not a readable tar"),
        (&["--model", "model.onnx", "--input", "bad.h5", "--output", "out.csv"], 1, "not an HDF5 file"),
        (&["--model", "model.onnx", "--input", "photos", "--output", "no/such/out.csv"], 1, "no/such"),
        (&["--model", "bad.onnx", "--input", "photos", "--output", "out.csv"], 1, "bad.onnx"),
        (&["--model", "nothing", "--input", "photos", "--output", "out.csv"], 1, "there is no model"),
        (&["--shard", "3/2"], 2, "2/8"),
        (&["--min-confidence", "2"], 2, "from 0 to 1"),
        (&["--batch", "0"], 2, "--batch"),
        (&["--threads", "x"], 2, "--threads"),
        (&["--device", "toaster"], 2, "not a device"),
        (&["--device", "cuda"], 1, "cuda"),
        (&["--sort-how", "copy"], 2, "--sort-into"),
        (&["--max-bytes", "many"], 2, "2GiB"),
        (&["--names", "names.csv"], 1, "clusters 0 to 4"),
        (&["--names", "unsure.csv"], 1, "give it another name"),
        (&["--onnxruntime", "/no/such/lib.so"], 1, "/no/such/lib.so"),
        (&["--gallery", "no/such/page.html"], 1, "no/such"),
    ];
    for (arguments, code, part) in cases {
        let full = if arguments.first().is_some_and(|a| *a == "--model") {
            arguments.to_vec()
        } else if arguments.is_empty() {
            vec![]
        } else {
            [&base[..], arguments].concat()
        };
        let said = place.run(&full);
        assert!(!said.err.contains("panicked"), "{said:?}");
        refused(said, *code, part);
        assert!(
            !place.path("out.csv").exists() && !place.path("out.csv.journal").exists(),
            "{full:?} left something behind"
        );
    }
}

#[test]
fn help_has_examples() {
    let place = Place::new();
    let help = place.run(["--help"]).ok();
    for part in ["dtkc-label --model mnist --input digits.h5", "--resume", "--shard", "merge", "Exit codes"] {
        assert!(help.contains(part), "{part}");
    }
    let help = place.run(["merge", "--help"]).ok();
    assert!(help.contains("dtkc-label merge part-*.csv"));
}
