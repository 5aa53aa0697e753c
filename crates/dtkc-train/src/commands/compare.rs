//! `dtkc-train compare`.

use clap::ValueEnum;
use dtkc_methods::Method;
use dtkc_train::TrainError;
use dtkc_train::compare::{Asked, PassedOn, Selection, Variant, files, table};

use super::cells::{self, CellArgs, Tables};

const EXAMPLES: &str = "\
Examples:
  dtkc-train compare --data mnist.h5 usps.h5 coil.h5 --methods all --runs 20 --out cmp
  dtkc-train compare --data usps.h5 --methods dtkc,ddc --runs 5 --budget 2h --against paper --out cmp
  dtkc-train compare --data photos.h5 usps.h5 --clusters photos=12 --out cmp
  dtkc-train compare --data usps.h5 --preset dtkc=authors --set ddc.loss.sigma=0.3 --set plan.batch=240 --out cmp
  dtkc-train compare --data usps.h5 --methods dec,dec+lambda=0.01,ddc,ddc+preset=authors --runs 10 --out cmp
  dtkc-train compare --data usps.h5 --methods all --epochs 20 --set spectral.plan.epochs=5 --out cmp
  dtkc-train compare --data usps.h5 coil.h5 --skip coil/dtkc --out cmp
  dtkc-train compare --tables --against paper --out cmp       only writes the tables again

A variant is a method with changes, each +KEY=VALUE as --set KEY=VALUE of fit (lambda for loss.lambda, preset for --preset).
It is a cell with that name. Its settings win over --set of its method, its preset over --preset; a setting always wins over
a preset. Methods and variants that would pretrain the same autoencoder take it over from one of them, restart by restart.
Every cell is an ordinary run in OUT/DATASET/METHOD, made by a process of its own: a method that fails costs its cell,
which is listed with the reason and tried again by the same command. After Ctrl-C or a crash the same command goes on. A
larger --runs adds restarts, other --data and --methods add cells. Restart i of every method has the same seed. Restarts
are not pruned unless --prune is given, because means are over all of them.
Writes comparison.md, .csv, .json, .tex and comparison-differences.csv to OUT, after every cell.";

/// Flags of `compare`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    cells: CellArgs,
    /// Methods, variants of methods (METHOD+KEY=VALUE+...), or `all`.
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',', default_value = "all", value_parser = methods)]
    methods: Vec<Chosen>,
    /// Restarts of every cell.
    #[arg(long, value_name = "N", visible_alias = "restarts", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only cells with these names: a method or variant, a dataset, or dataset/method.
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    only: Vec<String>,
    /// No cells with these names.
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    skip: Vec<String>,
    /// Preset of a method; may be repeated.
    #[arg(long, value_name = "METHOD=NAME")]
    preset: Vec<String>,
    /// Any setting of a method (`dtkc.loss.sigma=0.3`, `dec.plan.epochs=20`), or of all (`plan`, `run`, `prune`); may be
    /// repeated. A method's own wins.
    #[arg(long, value_name = "METHOD.KEY=VALUE")]
    set: Vec<String>,
    /// Most epochs of a restart, but for methods with their own (--set dec.plan.epochs=20) [default: as the preset says].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    epochs: Option<u32>,
    /// Drop restarts that are behind early; those do not count.
    #[arg(long)]
    prune: bool,
    /// Do not write the model files (no ONNX Runtime is needed then).
    #[arg(long)]
    no_export: bool,
    /// Add published figures for datasets that have some.
    #[arg(long, value_name = "WHOM")]
    against: Option<Against>,
}

/// Whose figures stand beside ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Against {
    /// Those of the paper.
    Paper,
}

/// A value of `--methods`.
#[derive(Debug, Clone)]
enum Chosen {
    All,
    One(Variant),
}

fn methods(text: &str) -> Result<Chosen, String> {
    match text {
        "all" => Ok(Chosen::All),
        name => name.parse().map(Chosen::One).map_err(|error| match error {
            TrainError::Config(error) => format!("{error}, or all"),
            error => error.to_string(),
        }),
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let with_paper = args.against == Some(Against::Paper);
    let tables = Tables {
        make: &|root, record| table::compare(root, record, with_paper),
        write: files::write,
        markdown: files::markdown,
        paths: |root, _| files::paths(root).to_vec(),
    };
    cells::run(&args.cells, &args.asked(), &tables)
}

impl Args {
    fn asked(&self) -> Asked {
        let mut variants: Vec<Variant> = Vec::new();
        for chosen in &self.methods {
            let more = match chosen {
                Chosen::All => Method::ALL.map(Variant::from).to_vec(),
                Chosen::One(variant) => vec![variant.clone()],
            };
            variants.extend(more.into_iter().filter(|variant| !variants.contains(variant)).collect::<Vec<_>>());
        }
        let passed_on = PassedOn {
            presets: self.preset.clone(),
            sets: self.set.clone(),
            epochs: self.epochs,
            prune: self.prune,
            no_export: self.no_export,
            ..self.cells.passed_on()
        };
        let selection = Selection { only: self.only.clone(), skip: self.skip.clone() };
        Asked { selection, ..self.cells.asked(variants, self.runs, passed_on) }
    }
}
