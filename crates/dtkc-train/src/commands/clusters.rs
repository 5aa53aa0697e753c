//! `dtkc-train clusters`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use dtkc_human as human;
use dtkc_infer::ModelFile;
use dtkc_onnx::Metadata;
use dtkc_train::clusters::Wishes;
use dtkc_train::outliers::{self, Seen};
use serde::Serialize;

use super::writing::Writing;
use super::{print, print_json};

const EXAMPLES: &str = "\
Examples:
  dtkc-train clusters photos.onnx                                       lists them
  dtkc-train clusters photos.onnx --merge 3,7 --name 4=shoes --out new.onnx
  dtkc-train clusters photos.onnx --split 2 --data photos.h5 --out new.onnx
  dtkc-train clusters new.onnx --undo --out before.onnx

All ids are those of MODEL, also where several things are done at once. A merged cluster has the lowest id of its parts, and ids above
those that are gone move down. Of a split cluster the larger part keeps the id, and the smaller one gets a new one, the last. The
new file gives the edited answers in any ONNX runtime, and holds its history: --undo takes the last edit back, to the same bytes.

A split cuts where two-means of the cluster's items do, in the embedding; each part gets its share of the probability, so that an item that
was hardly in the cluster can go to another one.";

/// Flags of `clusters`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Model file, or the name of a bundled one.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Make one cluster of several; may be given more than once.
    #[arg(long, value_name = "ID,ID")]
    merge: Vec<Ids>,
    /// Make two clusters of one; may be given more than once. Needs --data.
    #[arg(long, value_name = "ID")]
    split: Vec<usize>,
    /// Give a cluster a name; may be given more than once.
    #[arg(long, value_name = "ID=NAME")]
    name: Vec<Named>,
    /// Take the last edit back.
    #[arg(long, conflicts_with_all = ["merge", "split", "name"])]
    undo: bool,
    /// The dataset that the model was trained on, or one like it, for --split.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// File to write [default: MODEL with .edited.onnx at its end].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    writing: Writing,
}

/// Ids with commas between them.
#[derive(Debug, Clone)]
struct Ids(Vec<usize>);

impl FromStr for Ids {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ids: Result<Vec<usize>, _> = text.split(',').map(|id| id.trim().parse()).collect();
        match ids {
            Ok(ids) if ids.len() >= 2 => Ok(Self(ids)),
            _ => Err("write the ids of two or more clusters, as in 3,7".into()),
        }
    }
}

/// An id and a name.
#[derive(Debug, Clone)]
struct Named(usize, String);

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').and_then(|(id, name)| Some((id.trim().parse().ok()?, name)));
        let (id, name): (usize, &str) = parts.ok_or("write an id and a name, as in 4=shoes")?;
        Ok(Self(id, name.to_owned()))
    }
}

/// The clusters of a file.
#[derive(Debug, Serialize)]
struct Listed {
    path: PathBuf,
    clusters: Vec<Line>,
    /// What was done since training, the last one at the end.
    edits: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Line {
    cluster: usize,
    name: String,
    items: u64,
    share: f64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let model = ModelFile::open(&args.model)?;
    let wishes = Wishes {
        merge: args.merge.iter().map(|ids| ids.0.clone()).collect(),
        split: args.split.clone(),
        name: args.name.iter().map(|Named(id, name)| (*id, name.clone())).collect(),
    };
    let from = model.path().unwrap_or(&args.model).to_owned();
    if wishes.is_empty() && !args.undo {
        return show(args, Listed::of(&from, model.metadata()));
    }
    let out = args.out.clone().unwrap_or_else(|| from.with_extension("edited.onnx"));
    let read = [Some(from), args.data.clone()].into_iter().flatten();
    args.writing.check(&out, read)?;
    let bytes = match args.undo {
        true => dtkc_onnx::undo(model.bytes())?,
        false => edited(args, &model, &wishes)?,
    };
    dtkc_files::write(&out, &bytes)?;
    show(args, Listed::of(&out, &dtkc_onnx::read_metadata(&bytes)?))
}

fn edited(args: &Args, model: &ModelFile, wishes: &Wishes) -> anyhow::Result<Vec<u8>> {
    let seen = match (&args.data, wishes.split.is_empty()) {
        (Some(data), false) => {
            let dataset = outliers::dataset_for(model, data)?;
            let runtime = args.writing.runtime()?;
            Some(Seen::of_model(&runtime, model, &dataset, outliers::ITEMS, &args.writing.terminal())?)
        }
        _ => None,
    };
    let mut bytes = model.bytes().to_vec();
    for edit in wishes.edits(model.metadata(), seen.as_ref())? {
        bytes = dtkc_onnx::edit(&bytes, &edit)?;
    }
    Ok(bytes)
}

fn show(args: &Args, listed: Listed) -> anyhow::Result<()> {
    if args.writing.json { print_json(&listed) } else { print(&listed.text()) }
}

impl Listed {
    fn of(path: &Path, metadata: &Metadata) -> Self {
        let line = |id: usize| Line {
            cluster: id,
            name: metadata.cluster_name(id),
            items: metadata.clusters[id].size,
            share: metadata.cluster_share(id),
        };
        Self {
            path: path.to_owned(),
            clusters: (0..metadata.k()).map(line).collect(),
            edits: metadata.edits.iter().map(|past| past.what.clone()).collect(),
        }
    }

    fn text(&self) -> String {
        let mut out = format!("{}: {}\n", self.path.display(), human::many(self.clusters.len(), "cluster"));
        for Line { cluster, name, items, share } in &self.clusters {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{cluster:>7}  {:>10}  {:>5.1} %  {name}", human::count(*items), 100.0 * share);
        }
        if !self.edits.is_empty() {
            let _ = writeln!(out, "edits: {}", self.edits.join("; "));
        }
        out
    }
}
