//! Figures against SciPy, and the texts that are made of them.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::choice::By;
use crate::compare::files;
use crate::summary::{Timing, finite};

fn restart(number: usize, loss: f64, scores: Option<(f64, f64)>) -> RestartFigures {
    RestartFigures {
        restart: number,
        seed: 100 + number as u64,
        ended: Ended::Epochs,
        epochs: 3,
        best_epoch: 3,
        training_loss: finite(loss),
        loss: finite(loss),
        acc: scores.map(|(acc, _)| acc),
        nmi: scores.map(|(_, nmi)| nmi),
        ari: None,
        used_clusters: 4,
        pretrained: None,
        machines: Vec::new(),
        skipped_steps: 0,
    }
}

fn summary(best_restart: usize, restarts: Vec<RestartFigures>, seconds: f64, memory: Option<u64>) -> Summary {
    Summary {
        version: "1".into(),
        method: String::new(),
        preset: "plus".into(),
        dataset: "x".into(),
        dataset_fingerprint: String::new(),
        kind: ItemKind::Images,
        items: 100,
        clusters: 4,
        chosen: None,
        seed: 0,
        config_hash: String::new(),
        best_restart,
        best_by: By::Loss,
        cluster_sizes: vec![60, 30, 10, 0],
        acc: None,
        nmi: None,
        warnings: Vec::new(),
        restarts,
        timing: Timing { wall_seconds: Some(seconds), peak_memory_bytes: memory, ..Timing::default() },
    }
}

/// Four restarts that count, and one that was pruned though its loss is high and its scores are wonderful.
fn dtkc() -> Summary {
    let scores = [(0.3, 0.8, 0.7), (0.1, 0.9, 0.8), (0.2, 0.7, 0.75), (0.4, 0.6, 0.5), (9.0, 1.0, 1.0)];
    let mut restarts: Vec<_> =
        scores.iter().enumerate().map(|(i, &(loss, acc, nmi))| restart(i, loss, Some((acc, nmi)))).collect();
    restarts[4].ended = Ended::Pruned;
    summary(1, restarts, 185.0, Some(3 << 29))
}

fn ddc() -> Summary {
    let scores = [(1.0, 0.6, 0.5), (2.0, 0.7, 0.55), (3.0, 0.65, 0.6), (1.5, 0.7, 0.65), (1.2, 0.1, 0.1)];
    let restarts = scores.iter().enumerate().map(|(i, &(loss, acc, nmi))| restart(i, loss, Some((acc, nmi)))).collect();
    let mut summary = summary(0, restarts, 4.2, None);
    // A fifth restart without a partner would change every figure.
    summary.restarts.truncate(4);
    summary
}

fn cell(name: &str, state: State) -> CellRecord {
    let variant = name.parse().unwrap();
    CellRecord { set: "a_b".into(), variant, settings: vec![], restarts: 4, pretrained_by: None, state }
}

/// A table of these summaries; one that is missing failed.
fn made(set: &SetRecord, dtkc: Option<Summary>, ddc: Option<Summary>, with_paper: bool) -> Table {
    let state = |summary: &Option<Summary>| match summary {
        Some(_) => State::Done,
        None => State::Failed("too few | images".into()),
    };
    let cells = [cell("dtkc", state(&dtkc)), cell("ddc", state(&ddc))];
    table(set, &[(&cells[0], dtkc.map(Ok)), (&cells[1], ddc.map(Ok))], with_paper)
}

fn labelled() -> SetRecord {
    SetRecord { classes: Some(4), ..SetRecord::named("a_b") }
}

#[track_caller]
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-12, "{found}, SciPy says {expected}");
}

#[test]
fn figures_are_those_of_scipy() {
    let table = made(&labelled(), Some(dtkc()), Some(ddc()), false);
    let [one, other] = &table.methods[..] else { panic!("{table:?}") };
    assert_eq!((one.restarts, one.pruned, other.restarts, other.pruned), (4, 1, 4, 0));
    let (acc, nmi) = (one.acc.unwrap(), one.nmi.unwrap());
    assert_eq!((acc.best, nmi.best, one.loss.unwrap().best), (0.9, 0.8, 0.1));
    close(acc.mean, 0.75);
    close(acc.sd.unwrap(), 0.129_099_444_873_580_58);
    close(nmi.mean, 0.6875);
    close(nmi.sd.unwrap(), 0.131_497_781_983_829_17);
    close(one.loss_acc.unwrap(), -0.8);
    close(one.loss_nmi.unwrap(), -1.0);
    close(other.loss_acc.unwrap(), 0.316_227_766_016_838);
    assert_eq!(other.acc.unwrap().best, 0.6, "the lowest loss, not the highest accuracy");
    let [difference] = &table.differences[..] else { panic!("{table:?}") };
    assert_eq!((difference.method.as_str(), difference.minus.as_str(), difference.pairs), ("dtkc", "ddc", 4));
    close(difference.acc.mean, 0.0875);
    close(difference.acc.interval.unwrap()[0], -0.141_022_027_124_321_85);
    close(difference.acc.interval.unwrap()[1], 0.316_022_027_124_321_9);
    close(difference.nmi.mean, 0.1125);
    close(difference.nmi.interval.unwrap()[1], 0.398_440_926_239_232);
}

#[test]
fn pairs_have_the_same_seed_and_none_is_pruned() {
    let pairs = |change: &dyn Fn(&mut Summary)| {
        let mut other = ddc();
        change(&mut other);
        made(&labelled(), Some(dtkc()), Some(other), false).differences.first().map_or(0, |difference| difference.pairs)
    };
    assert_eq!(pairs(&|_| {}), 4);
    assert_eq!(pairs(&|other| other.restarts[2].ended = Ended::Pruned), 3);
    assert_eq!(pairs(&|other| other.restarts[1].seed = 7), 3);
    assert_eq!(pairs(&|other| other.restarts.truncate(1)), 1);
    assert_eq!(pairs(&|other| other.restarts.iter_mut().for_each(|restart| restart.seed += 1)), 0);
}

#[test]
fn few_restarts_have_no_spread_and_no_ranks() {
    let mut few = dtkc();
    few.restarts.truncate(2);
    let figures = |summary: Summary| made(&labelled(), Some(summary), None, false).methods.remove(0);
    let two = figures(few.clone());
    assert!(two.loss_acc.is_none() && two.acc.unwrap().sd.is_some());
    few.restarts.remove(0);
    assert!(figures(few).acc.unwrap().sd.is_none());
}

#[test]
fn the_markdown_reads_well() {
    let both = made(&labelled(), Some(dtkc()), Some(ddc()), false);
    let text = files::markdown(&Comparison { version: "1".into(), datasets: vec![both] });
    let expected = "\
# Comparison

## a_b: 100 images, 4 classes, 4 clusters

| method | ACC best | ACC mean |   ACC sd | NMI best | NMI mean |   NMI sd |   rho ACC |    rho NMI |      time |  memory | restarts |
| ------ | -------: | -------: | -------: | -------: | -------: | -------: | --------: | ---------: | --------: | ------: | -------: |
| dtkc   | **.900** | **.750** |     .129 | **.800** | **.688** |     .131 | **-.800** | **-1.000** | 3 min 5 s | 1.5 GiB |        4 |
| ddc    |     .600 |     .662 | **.048** |     .500 |     .575 | **.065** |      .316 |       .400 | **4.2 s** |       - |        4 |

| method | minus |                    ACC |                    NMI | pairs |
| ------ | ----- | ---------------------: | ---------------------: | ----: |
| dtkc   | ddc   | +.088 (-.141 to +.316) | +.112 (-.173 to +.398) |     4 |

- dtkc: 1 of 5 restarts were pruned and do not count

best: ";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn latex_and_csv_have_the_same_figures() {
    let folder = tempfile::tempdir().unwrap();
    let both = made(&labelled(), Some(dtkc()), Some(ddc()), false);
    files::write(folder.path(), &Comparison { version: "1".into(), datasets: vec![both] }).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let tex = read("comparison.tex");
    let rows = "\\begin{tabular}{lrrrrrrrrrrr}\n\\hline\nmethod & ACC best & ACC mean & ACC sd & NMI best & NMI mean & \
                NMI sd & rho ACC & rho NMI & time & memory & restarts \\\\\n\\hline\n\
                dtkc & \\textbf{.900} & \\textbf{.750} & .129 & \\textbf{.800} & \\textbf{.688} & .131 & \
                \\textbf{$-$.800} & \\textbf{$-$1.000} & 3 min 5 s & 1.5 GiB & 4 \\\\\n\
                ddc & .600 & .662 & \\textbf{.048} & .500 & .575 & \\textbf{.065} & .316 & .400 & \\textbf{4.2 s} & -- & 4 \
                \\\\\n\\hline\n\\end{tabular}\n";
    assert!(tex.contains(rows), "{tex}");
    assert!(tex.contains("dtkc & ddc & +.088 ($-$.141 to +.316) & "), "{tex}");
    let csv = read("comparison.csv");
    let [heads, one, other] = &csv.lines().map(|line| line.split(',').collect::<Vec<_>>()).collect::<Vec<_>>()[..]
    else {
        panic!("{csv}")
    };
    assert!(one.len() == heads.len() && other.len() == heads.len(), "{csv}");
    let value = |row: &[&str], name: &str| row[heads.iter().position(|head| *head == name).unwrap()].to_owned();
    assert_eq!([value(one, "dataset"), value(one, "acc_best"), value(one, "pruned")], ["a_b", "0.9", "1"]);
    assert_eq!(
        [value(other, "method"), value(other, "peak_memory_bytes"), value(other, "seconds")],
        ["ddc", "", "4.2"]
    );
    assert_eq!(
        [value(one, "smallest_cluster"), value(one, "clusters_used"), value(one, "paper_acc_sd")],
        ["0", "3", ""]
    );
    let differences = read("comparison-differences.csv");
    assert!(differences.lines().nth(1).unwrap().starts_with("a_b,dtkc,ddc,4,0.0875"), "{differences}");
    let json: serde_json::Value = serde_json::from_str(&read("comparison.json")).unwrap();
    assert_eq!(json["datasets"][0]["methods"][0]["acc"]["best"], 0.9);
    assert_eq!(json["datasets"][0]["differences"][0]["pairs"], 4);
}

#[test]
fn without_labels_there_are_losses_and_sizes() {
    let bare = |mut summary: Summary| {
        summary.restarts.iter_mut().for_each(|restart| (restart.acc, restart.nmi) = (None, None));
        summary
    };
    let table = made(&SetRecord::named("a_b"), Some(bare(dtkc())), Some(bare(ddc())), false);
    assert!(table.differences.is_empty());
    let text = files::markdown(&Comparison { version: "1".into(), datasets: vec![table] });
    assert!(text.contains("100 images, no labels, 4 clusters"), "{text}");
    let row = "| dtkc   |    0.1000 |    0.2500 |  0.1291 |             3 |      60 |        0 | 3 min 5 s | 1.5 GiB |        4 |";
    assert!(text.contains(row) && !text.contains("| ACC"), "{text}");
}

#[test]
fn what_failed_or_waits_is_listed() {
    let table = made(&labelled(), None, Some(ddc()), false);
    assert_eq!((table.methods.len(), table.open.len()), (1, 1));
    let text = files::markdown(&Comparison { version: "1".into(), datasets: vec![table] });
    assert!(text.contains("\n- dtkc failed: too few \\| images\n"), "{text}");
    assert!(!text.contains("**"), "nothing is the best of one: {text}");
    let open = |state: State, summary: Option<Result<Summary, String>>| {
        table_of(&cell("dtkc", state), summary).open.first().map(|open| (open.failed, open.reason.clone()))
    };
    assert_eq!(open(State::Begun, None), Some((false, "not finished yet".into())));
    assert_eq!(open(State::Waiting, None), Some((false, "not begun yet".into())));
    assert_eq!(open(State::Done, None), Some((false, "not begun yet".into())), "its folder is gone");
    assert_eq!(open(State::Done, Some(Err("damaged".into()))), Some((true, "damaged".into())));
    assert_eq!(open(State::Done, Some(Ok(ddc()))), None);
}

fn table_of(cell: &CellRecord, summary: Option<Result<Summary, String>>) -> Table {
    table(&labelled(), &[(cell, summary)], false)
}

#[test]
fn the_paper_has_its_columns_where_it_knows_the_set() {
    let usps = SetRecord { items: 9298, classes: Some(10), ..SetRecord::named("usps") };
    let text = |set: &SetRecord| {
        let table = made(set, Some(dtkc()), Some(ddc()), true);
        files::markdown(&Comparison { version: "1".into(), datasets: vec![table] })
    };
    let known = text(&usps);
    assert!(
        known.contains("| paper ACC   | paper NMI   |") || known.contains("|   paper ACC |   paper NMI |"),
        "{known}"
    );
    assert!(
        known.contains("| .78 .70 .06 | .80 .73 .05 |") && known.contains("| .81 .69 .06 | .77 .70 .03 |"),
        "{known}"
    );
    let unknown = text(&labelled());
    assert!(unknown.contains("- the paper has no figures for a_b") && !unknown.contains("paper ACC"), "{unknown}");
}

#[test]
fn what_the_time_limit_cost_is_told() {
    let mut short = ddc();
    short.restarts.truncate(3);
    short.restarts[2].ended = Ended::Budget;
    let notes = |summary: Summary| table_of(&cell("ddc", State::Done), Some(Ok(summary))).notes;
    let expected =
        ["ddc: 3 of 4 restarts that were asked for are there", "ddc: 1 of 3 restarts were cut short by the time limit"];
    assert_eq!(notes(short), expected);
    assert!(notes(ddc()).is_empty());
}

#[test]
fn a_shared_pretraining_is_told() {
    let sharing = CellRecord { pretrained_by: Some("ddc".parse().unwrap()), ..cell("dtkc", State::Done) };
    let table = table_of(&sharing, Some(Ok(dtkc())));
    assert!(table.notes.iter().any(|note| note.contains("pretraining of ddc")), "{:?}", table.notes);
}

#[test]
fn restarts_that_share_an_autoencoder_are_told() {
    let notes = |taken: [usize; 5]| {
        let mut summary = dtkc();
        summary.restarts.iter_mut().zip(taken).for_each(|(restart, number)| restart.pretrained = Some(number));
        table_of(&cell("dec", State::Done), Some(Ok(summary))).notes.join("\n")
    };
    assert!(notes([0, 1, 0, 1, 2]).contains("dec: 4 restarts share 2 pretrained autoencoders"));
    assert!(!notes([0, 1, 2, 3, 3]).contains("share"), "a pruned one does not count");
}

#[test]
fn a_variant_stands_beside_its_method() {
    let usps = SetRecord { items: 9298, classes: Some(10), ..SetRecord::named("usps") };
    let cells = [cell("ddc", State::Done), cell("ddc+loss.d_a=-0.5+preset=paper", State::Done)];
    let table = table(&usps, &[(&cells[0], Some(Ok(ddc()))), (&cells[1], Some(Ok(dtkc())))], true);
    assert!(table.methods[0].paper.is_some() && table.methods[1].paper.is_none(), "the paper knows no variants");
    let folder = tempfile::tempdir().unwrap();
    files::write(folder.path(), &Comparison { version: "1".into(), datasets: vec![table] }).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let markdown = read("comparison.md");
    assert!(markdown.contains("| ddc    | ddc+loss.d_a=-0.5+preset=paper |"), "{markdown}");
    assert!(
        read("comparison.tex").contains("\nddc & ddc+loss.d\\_a=-0.5+preset=paper & $-$.088 "),
        "{}",
        read("comparison.tex")
    );
    assert!(read("comparison.csv").contains("\nusps,9298,10,4,ddc+loss.d_a=-0.5+preset=paper,plus,4,"));
    assert!(read("comparison-differences.csv").contains("\nusps,ddc,ddc+loss.d_a=-0.5+preset=paper,4,-0.0875"));
    let json: serde_json::Value = serde_json::from_str(&read("comparison.json")).unwrap();
    assert_eq!(json["datasets"][0]["methods"][1]["method"], "ddc+loss.d_a=-0.5+preset=paper");
}
