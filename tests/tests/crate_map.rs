//! The table of crates in ARCHITECTURE.md is true: who uses whom, and what nobody may reach.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Left out of the table: it has no code and is used for its features alone.
const FEATURES: &str = "dtkc-features";

/// One row of the table.
struct Row {
    name: String,
    must_not_know: Vec<String>,
    uses: BTreeSet<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The names in a cell.
fn names(cell: &str) -> Vec<String> {
    cell.split(',').map(|name| name.trim().trim_matches('`').to_owned()).filter(|name| !name.is_empty()).collect()
}

fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table =
        text.lines().skip_while(|line| !line.starts_with("| crate |")).skip(2).take_while(|l| l.starts_with('|'));
    table
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            Row {
                name: cells[0].trim_matches('`').to_owned(),
                must_not_know: names(cells[2]),
                uses: names(cells[3]).into_iter().collect(),
            }
        })
        .collect()
}

/// What rustc calls this machine: packages that only others need may never have been downloaded.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--filter-platform", &host()])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The names of the packages that every package links, without those of tests; packages of one name count as one.
fn links(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let packages = metadata["packages"].as_array().unwrap();
    let name_of: BTreeMap<&str, &str> =
        packages.iter().map(|p| (p["id"].as_str().unwrap(), p["name"].as_str().unwrap())).collect();
    let mut links: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        let linked = links.entry(name_of[node["id"].as_str().unwrap()].to_owned()).or_default();
        for dependency in node["deps"].as_array().unwrap() {
            let kinds = dependency["dep_kinds"].as_array().unwrap();
            if kinds.iter().any(|kind| kind["kind"].is_null()) {
                linked.insert(name_of[dependency["pkg"].as_str().unwrap()].to_owned());
            }
        }
    }
    links
}

/// Everything that a crate links on this machine, by way of something else too. `cargo metadata` would count what other
/// crates of the workspace switch on.
fn reached(name: &str) -> BTreeSet<String> {
    let tree = ["tree", "--offline", "--edges", "normal", "--prefix", "none", "--format", "{p}", "--package", name];
    let output = Command::new(env!("CARGO")).args(tree).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split(' ').next()).filter(|found| *found != name).map(str::to_owned).collect()
}

#[test]
fn the_table_names_every_crate_and_what_it_uses() {
    let metadata = metadata();
    let links = links(&metadata);
    let ours = |name: &String| name.starts_with("dtkc-") && name != FEATURES;
    let rows = rows();
    assert!(rows.len() > 15, "the table was not found");
    let described: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let members: BTreeSet<&str> =
        links.keys().filter(|name| ours(name) && *name != "dtkc-tests").map(String::as_str).collect();
    assert_eq!(described, members.iter().copied().chain(["tests"]).collect());
    for row in rows.iter().filter(|row| row.name != "tests") {
        let uses: BTreeSet<String> = links[&row.name].iter().filter(|name| ours(name)).cloned().collect();
        assert_eq!(row.uses, uses, "{}", row.name);
    }
}

#[test]
fn nobody_reaches_what_it_must_not_know() {
    let metadata = metadata();
    let links = links(&metadata);
    // Words of the table that are crates under other names.
    let crates = |word: &str| match word {
        "hdf5" => vec!["hdf5-metno"],
        "actix" => vec!["actix-web"],
        "burn" => vec!["burn", "burn-tensor"],
        "clap" => vec!["clap"],
        "ureq" => vec!["ureq"],
        "object_store" => vec!["object_store"],
        "zip" => vec!["zip"],
        "tar" => vec!["tar"],
        "image" => vec!["image"],
        "everything else" => links.keys().filter(|name| name.starts_with("dtkc-")).map(String::as_str).collect(),
        // Things, not crates.
        _ => vec![],
    };
    let mut checked = 0;
    for row in rows().iter().filter(|row| row.name != "tests") {
        let reached = reached(&row.name);
        for word in &row.must_not_know {
            for forbidden in crates(word) {
                assert!(!reached.contains(forbidden), "{} must not know {word}, but links {forbidden}", row.name);
                checked += 1;
            }
        }
    }
    assert!(checked > 40, "{checked}");
}
