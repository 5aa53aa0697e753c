//! `compare` as a user meets it: cells that fail, stops, more of everything, the files.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::{Place, assert_same, failure, program};
use dtkc_testing::{wait_for, wait_until};
use serde_json::Value;

const BLOCKS: &str = "network.blocks=[{filters=4,kernel=3,convs=1},{filters=4,kernel=3,convs=1}]";
/// Too large for images of 12 pixels: such a cell fails when it begins.
const TOO_LARGE: &str = "network.blocks=[{filters=4,kernel=9,convs=1},{filters=4,kernel=9,convs=1}]";

/// `compare` of dtkc and ddc with networks that train in milliseconds.
fn compare(data: &[&Path], out: &Path, ddc: &str, more: &[&str]) -> assert_cmd::Command {
    let mut command = program();
    command.args(["compare", "--no-export", "--threads", "1", "--set", "plan.batch=24"]);
    for (method, blocks) in [("dtkc", BLOCKS), ("ddc", ddc)] {
        command.args(["--set", &format!("{method}.network.hidden=8"), "--set", &format!("{method}.{blocks}")]);
    }
    command.args(["--set", "run.comparison_batches=2", "--methods", "dtkc,ddc"]);
    command.arg("--out").arg(out).args(more).arg("--data").args(data);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

#[track_caller]
fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_failing_method_costs_its_cells_and_is_tried_again() {
    let place = Place::new();
    let (a, bare) = (place.dataset("a.h5", 90, true), place.dataset("bare.h5", 60, false));
    let out = place.path("cmp");
    let run = |ddc: &str, more: &[&str]| {
        let flags = [&["--runs", "2", "--epochs", "2", "--clusters", "bare=4"], more].concat();
        compare(&[&a, &bare], &out, ddc, &flags).output().unwrap()
    };
    let first = run(TOO_LARGE, &[]);
    let said = text(&first.stderr);
    assert_eq!(first.status.code(), Some(1), "{said}");
    assert!(said.contains("cell 1 of 4: a/dtkc begins") && said.contains("cell 4 of 4: bare/ddc begins"), "{said}");
    let last = said.trim_end().lines().last().unwrap();
    assert!(last.starts_with("error: 2 of 4 cells failed (a/ddc, bare/ddc)") && last.contains("again"), "{last}");
    let table = read(&out.join("comparison.md"));
    assert!(table.contains("- ddc failed: ") && table.contains("12x12"), "{table}");
    assert!(
        table.contains("## a: 90 images, 3 classes, 3 clusters") && table.contains("no labels, 4 clusters"),
        "{table}"
    );
    assert_eq!(text(&first.stdout), table, "what is printed is what is written");

    // Again: what is done is left alone, what failed is tried.
    let before = common::content(&out.join("a/dtkc"));
    let again = text(&run(TOO_LARGE, &[]).stderr);
    assert!(!again.contains("a/dtkc begins") && !again.contains("a/dtkc goes on"), "{again}");
    assert!(again.contains("a/ddc failed: "), "{again}");

    // With other settings for what failed, everything is there.
    let good = run(BLOCKS, &[]);
    succeeded(&good);
    assert!(before == common::content(&out.join("a/dtkc")));
    let all = json(&out.join("comparison.json"));
    let (labelled, unlabelled) = (&all["datasets"][0], &all["datasets"][1]);
    assert_eq!((&labelled["name"], &unlabelled["name"]), (&Value::from("a"), &Value::from("bare")));
    for (at, method) in ["dtkc", "ddc"].iter().enumerate() {
        let (row, summary) = (&labelled["methods"][at], json(&out.join("a").join(method).join("summary.json")));
        assert_eq!((&row["method"], &row["restarts"]), (&Value::from(*method), &Value::from(2)));
        assert_eq!(row["acc"], summary["acc"], "no restart is pruned, so the run says the same");
        assert_eq!(row["nmi"], summary["nmi"]);
        assert!(row["seconds"].as_f64().unwrap() > 0.0 && row["acc"]["mean"].as_f64().unwrap() > 0.0);
        assert!(unlabelled["methods"][at]["acc"].is_null() && unlabelled["methods"][at]["loss"]["best"].is_number());
        #[cfg(target_os = "linux")]
        assert!(row["peak_memory_bytes"].as_u64().unwrap() > 1 << 20, "{row}");
    }
    assert_eq!(labelled["differences"][0]["pairs"], 2);
    assert!(unlabelled["differences"].as_array().unwrap().is_empty());
    assert!(labelled["open"].as_array().unwrap().is_empty());
    assert_eq!(read(&out.join("comparison.csv")).lines().count(), 5);
    assert_eq!(read(&out.join("comparison-differences.csv")).lines().count(), 2);
    assert_eq!(read(&out.join("comparison.tex")).matches("\\begin{tabular}").count(), 3);

    // A cell is a run like any other.
    program().arg("evaluate").arg(out.join("a/dtkc")).arg("--data").arg(&a).assert().success();
}

#[test]
fn a_comparison_grows_and_its_tables_are_written_again() {
    let place = Place::new();
    let a = place.dataset("a.h5", 60, true);
    let out = place.path("cmp");
    let run = |more: &[&str]| compare(&[&a], &out, BLOCKS, more).output().unwrap();
    succeeded(&run(&["--runs", "1", "--epochs", "1", "--only", "ddc", "--quiet"]));
    assert!(!out.join("a/dtkc").exists());
    let losses = || {
        let summary = json(&out.join("a/ddc/summary.json"));
        summary["restarts"].as_array().unwrap().iter().map(|restart| restart["loss"].clone()).collect::<Vec<_>>()
    };
    let one = losses();
    let more = run(&["--runs", "3", "--epochs", "1"]);
    succeeded(&more);
    assert!(text(&more.stderr).contains("cell 2 of 2: a/ddc goes on"), "{}", text(&more.stderr));
    assert_eq!((losses().len(), &losses()[..1]), (3, &one[..]), "the restart that was there stays");
    let rows = json(&out.join("comparison.json"))["datasets"][0]["methods"].as_array().unwrap().len();
    assert_eq!(rows, 2);

    let other = run(&["--runs", "3", "--epochs", "2"]);
    let said = text(&other.stderr);
    assert_eq!((other.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("--epochs 1 then, --epochs 2 now") && said.contains("--force"), "{said}");
    succeeded(&run(&["--runs", "1", "--epochs", "2", "--only", "a/dtkc", "--force"]));
    assert_eq!(json(&out.join("a/dtkc/summary.json"))["restarts"].as_array().unwrap().len(), 1);

    std::fs::remove_file(out.join("comparison.md")).unwrap();
    let tables = program().args(["compare", "--tables", "--against", "paper", "--out"]).arg(&out).output().unwrap();
    succeeded(&tables);
    let table = read(&out.join("comparison.md"));
    assert!(table.contains("the paper has no figures for a") && text(&tables.stdout) == table, "{table}");
}

#[test]
fn the_time_is_shared_among_what_is_left() {
    let place = Place::new();
    let a = place.dataset("a.h5", 60, true);
    let out = place.path("cmp");
    let run = |budget: &str| {
        let more = ["--runs", "1", "--epochs", "1", "--budget", budget];
        compare(&[&a], &out, BLOCKS, &more).output().unwrap()
    };
    let none = run("0s");
    let said = text(&none.stderr);
    assert_eq!(none.status.code(), Some(1), "{said}");
    assert!(said.contains("a/dtkc failed: the time is used up") && !out.join("a").exists(), "{said}");
    succeeded(&run("10h"));
    let given = |method: &str| {
        let config: toml::Table = read(&out.join("a").join(method).join("config.toml")).parse().unwrap();
        config["run"]["budget_seconds"].as_float().unwrap()
    };
    assert_eq!(given("dtkc"), 18_000.0);
    // The first has left most of its part.
    assert!((18_000.0..36_000.0).contains(&given("ddc")) && given("ddc") > 18_000.0, "{}", given("ddc"));
}

/// The same command as the standard library's, which can be stopped.
#[cfg(unix)]
fn std_command(command: &assert_cmd::Command) -> Command {
    let mut std = Command::new(command.get_program());
    std.args(command.get_args()).stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    std
}

#[cfg(unix)]
#[test]
fn a_stop_reaches_the_cell_and_the_same_command_goes_on_to_the_same_bits() {
    let place = Place::new();
    let a = place.dataset("a.h5", 400, true);
    let more = ["--runs", "2", "--epochs", "30"];
    let (whole, broken) = (place.path("whole"), place.path("broken"));
    compare(&[&a], &whole, BLOCKS, &more).assert().success();

    // Only the comparison gets the signal, not its cell.
    let child = std_command(&compare(&[&a], &broken, BLOCKS, &more)).spawn().unwrap();
    let cell = broken.join("a/dtkc");
    wait_until("the first epoch", || cell.join("log.jsonl").metadata().is_ok_and(|log| log.len() > 0));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let last = said.trim_end().lines().last().unwrap();
    assert!(last.starts_with("stopped: 0 of 2 cells are done") && last.contains("same command again"), "{said}");
    assert!(!cell.join("summary.json").exists() && cell.join("checkpoints/restart-000.last.ckpt").exists());
    dtkc_files::Lock::take(&cell.join(".lock")).expect("the cell has ended before the comparison");
    let table = read(&broken.join("comparison.md"));
    assert!(table.contains("- dtkc: not finished yet") && table.contains("- ddc: not begun yet"), "{table}");

    // Killed without a chance to say anything: the cell notices, saves and ends by itself.
    let epochs = read(&cell.join("log.jsonl")).lines().count();
    let mut child = std_command(&compare(&[&a], &broken, BLOCKS, &more)).spawn().unwrap();
    wait_until("another epoch", || read(&cell.join("log.jsonl")).lines().count() > epochs);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the cell's end", || dtkc_files::Lock::take(&cell.join(".lock")).ok());

    compare(&[&a], &broken, BLOCKS, &more).assert().success();
    for method in ["dtkc", "ddc"] {
        assert_same(&whole.join("a").join(method), &broken.join("a").join(method));
    }
}

/// Settings with which dec and idec have epochs of milliseconds, and never converge, so that there is time for a stop.
fn small(method: &str) -> Vec<String> {
    let sets = ["network.hidden=[16,12]", "network.code=4", "pretraining.epochs=3", "update_interval=4", "tolerance=0"];
    sets.iter().flat_map(|set| ["--set".to_owned(), format!("{method}.{set}")]).collect()
}

/// `compare` of dec and idec, which begin with the same autoencoder.
#[cfg(unix)]
fn compare_sharing(data: &Path, out: &Path, more: &[&str]) -> assert_cmd::Command {
    let mut command = program();
    command.args(["compare", "--no-export", "--threads", "1", "--methods", "dec,idec", "--epochs", "100"]);
    command.args(["--set", "plan.batch=24", "--set", "run.comparison_batches=2"]);
    for method in ["dec", "idec"] {
        command.args(small(method));
    }
    command.arg("--out").arg(out).args(more).arg("--data").arg(data);
    command
}

#[cfg(unix)]
#[test]
fn a_cell_that_takes_over_a_pretraining_goes_on_after_a_stop_to_the_same_bits() {
    let place = Place::new();
    let a = place.dataset("a.h5", 240, true);
    // Both have the same name while they are made: a run remembers where its pretraining came from.
    let (out, whole) = (place.path("cmp"), place.path("whole"));
    let runs = ["--runs", "2"];
    compare_sharing(&a, &out, &runs).assert().success();
    std::fs::rename(&out, &whole).unwrap();

    let child = std_command(&compare_sharing(&a, &out, &runs)).spawn().unwrap();
    let cell = out.join("a/idec");
    wait_until("an epoch of idec", || cell.join("log.jsonl").metadata().is_ok_and(|log| log.len() > 0));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("stopped: 1 of 2 cells are done") && !cell.join("summary.json").exists(), "{said}");
    compare_sharing(&a, &out, &runs).assert().success();

    for run in [&whole, &out] {
        let log = read(&run.join("a/idec/log.jsonl"));
        assert!(!log.contains("\"pretraining\"") && log.lines().count() == 200, "idec pretrained again: {log}");
        for restart in ["restart-000", "restart-001"] {
            let file = |method: &str| {
                let folder = run.join("a").join(method).join("checkpoints");
                std::fs::read(folder.join(format!("{restart}.pretrained.ckpt"))).unwrap()
            };
            assert!(file("dec") == file("idec"), "{restart}");
        }
        let methods = &json(&run.join("comparison.json"))["datasets"][0]["methods"];
        assert_eq!((&methods[0]["pretrained_by"], &methods[1]["pretrained_by"]), (&Value::Null, &Value::from("dec")));
    }
    for method in ["dec", "idec"] {
        assert_same(&whole.join("a").join(method), &out.join("a").join(method));
    }

    // More restarts: each method has a pretraining for the new one, too.
    compare_sharing(&a, &out, &["--runs", "3"]).assert().success();
    let restarts = |method: &str| json(&out.join("a").join(method).join("summary.json"))["restarts"].clone();
    for method in ["dec", "idec"] {
        let before = json(&whole.join("a").join(method).join("summary.json"))["restarts"].clone();
        let after = restarts(method);
        assert_eq!(after.as_array().unwrap().len(), 3, "{method}");
        assert_eq!((&after[0], &after[1]), (&before[0], &before[1]), "{method}");
    }
    let third = |method: &str| {
        std::fs::read(out.join("a").join(method).join("checkpoints/restart-002.pretrained.ckpt")).unwrap()
    };
    assert!(third("dec") == third("idec"), "restarts of idec share autoencoders");
}

/// `compare` of these variants of dec.
fn compare_variants(data: &Path, out: &Path, methods: &str, more: &[&str]) -> assert_cmd::Command {
    let mut command = program();
    command.args(["compare", "--no-export", "--threads", "1", "--epochs", "3", "--set", "plan.batch=24"]);
    command.args(["--set", "run.comparison_batches=2"]).args(small("dec")).args(["--methods", methods]);
    command.arg("--out").arg(out).args(more).arg("--data").arg(data);
    command
}

fn pretrained(out: &Path, cell: &str, restart: usize) -> Vec<u8> {
    let name = format!("restart-{restart:03}.pretrained.ckpt");
    std::fs::read(out.join("a").join(cell).join("checkpoints").join(name)).unwrap()
}

#[test]
fn a_method_with_companions_stands_beside_itself_without() {
    const WITH: &str = "dec+lambda=0.5";
    let place = Place::new();
    let a = place.dataset("a.h5", 90, true);
    let out = place.path("cmp");
    let run = |methods: &str, more: &[&str]| compare_variants(&a, &out, methods, more).output().unwrap();
    let first = run("dec,dec+lambda=0.5,dec+loss.lambda=0.5,dec+pretraining.epochs=2", &["--runs", "2"]);
    succeeded(&first);
    let said = text(&first.stderr);
    assert!(said.contains("cell 2 of 3: a/dec+lambda=0.5 begins"), "the same changes are one cell: {said}");

    // Equal autoencoders at equal restarts, but for the one that changed them.
    let log = |cell: &str| read(&out.join("a").join(cell).join("log.jsonl"));
    assert!(log("dec").contains("\"pretraining\"") && !log(WITH).contains("\"pretraining\""));
    assert!(log(WITH).contains("companion_1") && !log("dec").contains("companion_1"));
    assert!(log("dec+pretraining.epochs=2").contains("\"pretraining\""));
    (0..2).for_each(|restart| assert!(pretrained(&out, "dec", restart) == pretrained(&out, WITH, restart)));
    let config: toml::Table = read(&out.join("a").join(WITH).join("config.toml")).parse().unwrap();
    assert_eq!(config["dec"]["loss"]["lambda"].as_float(), Some(0.5));
    assert_eq!(config["dec"]["network"]["code"].as_integer(), Some(4), "settings of the method count, too");

    let rows = |file: &str| read(&out.join(file)).lines().map(str::to_owned).collect::<Vec<_>>();
    let differences = rows("comparison-differences.csv");
    assert!(differences.len() == 4 && differences[1].starts_with("a,dec,dec+lambda=0.5,2,"), "{differences:?}");
    assert!(rows("comparison.csv")[2].starts_with("a,90,3,3,dec+lambda=0.5,any,2,"));
    let all = json(&out.join("comparison.json"));
    let row = &all["datasets"][0]["methods"][1];
    assert_eq!((&row["method"], &row["pretrained_by"]), (&Value::from(WITH), &Value::from("dec")));

    // Only the variant, under another name, with more restarts than dec has: they share autoencoders.
    let before = json(&out.join("a").join(WITH).join("summary.json"))["restarts"].clone();
    let alone = run("dec,dec+loss.lambda=0.5", &["--runs", "3", "--only", "a/dec+loss.lambda=0.5"]);
    succeeded(&alone);
    assert!(text(&alone.stderr).contains("cell 1 of 1: a/dec+lambda=0.5 goes on"), "{}", text(&alone.stderr));
    assert!(!out.join("a/dec+loss.lambda=0.5").exists());
    let note = "- dec+lambda=0.5: 3 restarts share 2 pretrained autoencoders";
    assert!(text(&alone.stdout).contains(note), "{}", text(&alone.stdout));
    // More of all, in any order: the new ones have their own.
    succeeded(&run("dec+lambda=0.5,dec", &["--runs", "4"]));
    let after = json(&out.join("a").join(WITH).join("summary.json"))["restarts"].clone();
    assert_eq!((&after[0], &after[1]), (&before[0], &before[1]), "what was there stays");
    let numbers: Vec<_> = (0..4).map(|restart| after[restart]["pretrained"].as_u64()).collect();
    assert_eq!(numbers, [Some(0), Some(1), Some(0), Some(3)]);
    (0..4).for_each(|restart| assert!(pretrained(&out, "dec", restart) == pretrained(&out, WITH, restart)));
    assert!(read(&out.join("comparison.md")).contains("4 restarts share 3 pretrained autoencoders"));
    let differences = rows("comparison-differences.csv");
    assert!(differences[1].starts_with("a,dec,dec+lambda=0.5,4,"), "{differences:?}");
}

#[test]
fn a_comparison_that_grew_is_the_same_as_one_made_at_once() {
    let place = Place::new();
    let a = place.dataset("a.h5", 60, true);
    // Both have the same name while they are made: a run remembers where its pretraining came from.
    let (out, whole) = (place.path("cmp"), place.path("whole"));
    let run = |runs: &str| {
        compare_variants(&a, &out, "dec,dec+lambda=0.5", &["--runs", runs, "--quiet"]).assert().success();
    };
    run("3");
    std::fs::rename(&out, &whole).unwrap();
    run("1");
    run("3");
    let weights = |root: &Path, cell: &str, restart: usize| {
        std::fs::read(root.join("a").join(cell).join(format!("checkpoints/restart-{restart:03}.best.ckpt"))).unwrap()
    };
    for cell in ["dec", "dec+lambda=0.5"] {
        for restart in 0..3 {
            assert!(weights(&whole, cell, restart) == weights(&out, cell, restart), "{cell} {restart}");
        }
    }
    assert!(!read(&out.join("comparison.md")).contains("share"));
}

#[test]
fn mistakes_get_one_sentence_and_leave_nothing() {
    let place = Place::new();
    let (a, bare) = (place.dataset("a.h5", 30, true), place.dataset("bare.h5", 30, false));
    let out = place.path("cmp");
    let cases: [(&[&str], i32, &[&str]); 16] = [
        (&["--clusters", "b=3"], 2, &["called b", "there are a"]),
        (&["--clusters", "a=one"], 2, &["a=one", "mnist=10"]),
        (&["--only", "usps"], 2, &["called usps", "dtkc"]),
        (&["--only", "a", "--skip", "a"], 2, &["nothing to do"]),
        (&["--methods", "dctk"], 2, &["dctk", "ddc"]),
        (&["--preset", "authors"], 2, &["--preset dtkc=authors"]),
        (&["--preset", "dtkc=autors"], 2, &["autors"]),
        (&["--set", "loss.sigma=1"], 2, &["whose setting"]),
        (&["--set", "ddc.loss.sigmo=1"], 2, &["sigmo"]),
        (&["--against", "nature"], 2, &["paper"]),
        (&["--methods", "dec+loss.lamda=1"], 2, &["dec+loss.lamda=1: ", "did you mean `lambda`"]),
        (&["--methods", "dec+lambda=-1"], 2, &["dec+lambda=-1: ", "between 0 and 1e6"]),
        (&["--methods", "ddc,ddc+preset=autors"], 2, &["ddc+preset=autors: ", "authors"]),
        (&["--methods", "dec+network.hidden=[5]"], 2, &["'['", "--set METHOD.KEY=VALUE"]),
        (&["--methods", "dec+lambda"], 2, &["+KEY=VALUE"]),
        (&["--only", "ddc+lambda=1"], 2, &["called ddc+lambda=1"]),
    ];
    for (flags, code, words) in cases {
        let (found, text) = failure(&mut compare(&[&a], &out, BLOCKS, flags));
        assert_eq!((found, text.lines().count()), (code, 1), "{flags:?}: {text}");
        assert!(words.iter().all(|word| text.contains(word)), "{flags:?}: {text}");
        assert!(!out.exists(), "{flags:?} left something behind");
    }
    let said = |data: &[&Path], out: &Path, words: &str| {
        let (_, text) = failure(&mut compare(data, out, BLOCKS, &["--runs", "1", "--epochs", "1"]));
        assert!(text.contains(words) && text.lines().count() == 1, "{text}");
    };
    said(&[&bare], &out, "--clusters bare=K");
    said(&[&place.path("gone.h5")], &out, "gone.h5");
    said(&[&a, &a], &out, "would both be called a");
    said(&[&a], &a, "is a file");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("thesis.tex"), "mine").unwrap();
    said(&[&a], &out, "holds other files and no comparison");
    let (code, text) = failure(program().args(["compare", "--tables", "--out"]).arg(&out));
    assert_eq!((code, text.lines().count()), (1, 1), "{text}");
    assert!(text.contains("holds no comparison"), "{text}");
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 1);
}
