//! `dtkc-train compare`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use dtkc_cli::{Terminal, Usage};
use dtkc_files::Sources;
use dtkc_human as human;
use dtkc_methods::Method;
use dtkc_train::TrainError;
use dtkc_train::compare::{
    self, Asked, ClustersFor, Failed, PassedOn, Place, Record, Selection, Variant, files, plan, table,
};
use dtkc_train::device::DeviceName;

use super::print;

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
    /// Datasets (HDF5, from dtkc-data). Each goes by the name of its file: usps for usps.h5.
    #[arg(long, value_name = "FILE", num_args = 1.., required_unless_present = "tables")]
    data: Vec<PathBuf>,
    /// Folder of the comparison; it may hold one that goes on.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Methods, variants of methods (METHOD+KEY=VALUE+...), or `all`.
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',', default_value = "all", value_parser = methods)]
    methods: Vec<Chosen>,
    /// Restarts of every cell.
    #[arg(long, value_name = "N", visible_alias = "restarts", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Numbers of clusters, such as 10 or mnist=10,coil=100 [default: the number of classes].
    #[arg(long, value_name = "K|SET=K", num_args = 1.., value_delimiter = ',')]
    clusters: Vec<ClustersFor>,
    /// Only cells with these names: a method or variant, a dataset, or dataset/method.
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    only: Vec<String>,
    /// No cells with these names.
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    skip: Vec<String>,
    /// Limit of the time of all cells together, such as 8h: each gets an equal part of what is left.
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration)]
    budget: Option<Duration>,
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
    /// Seed of every run.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// cpu, cuda:N, wgpu, vulkan, metal or rocm:N.
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceName>,
    /// Threads; 0 takes all cores.
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Drop restarts that are behind early; those do not count.
    #[arg(long)]
    prune: bool,
    /// Do not write the model files (no ONNX Runtime is needed then).
    #[arg(long)]
    no_export: bool,
    /// The ONNX Runtime library, or the folder that holds it.
    #[arg(long, value_name = "PATH")]
    onnxruntime: Option<PathBuf>,
    /// Add published figures for datasets that have some.
    #[arg(long, value_name = "WHOM")]
    against: Option<Against>,
    /// Train nothing: write the tables again from what is there.
    #[arg(long)]
    tables: bool,
    /// Begin cells anew that were begun with other settings; what they had is lost.
    #[arg(long)]
    force: bool,
    /// No progress and no tables on the terminal.
    #[arg(long)]
    quiet: bool,
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
    if args.tables {
        let comparison = table::compare(&args.out, &Record::read(&args.out)?, with_paper);
        files::write(&args.out, &comparison)?;
        return if args.quiet { Ok(()) } else { print(&files::markdown(&comparison)) };
    }
    let (out, quiet, asked) = (args.out.clone(), args.quiet, args.asked());
    asked.passed_on.check(&asked.variants)?;
    let sets = plan::look_at(&asked)?;
    let cells = plan::cells(&asked, &sets)?;
    let sources = Sources::of(&asked.data);
    for path in files::paths(&out) {
        sources.refuse(&path).map_err(|refused| Usage(refused.to_string()))?;
    }
    let mut place = Place::open(&out)?;
    place.add_sets(&sets)?;
    let written = |place: &Place| files::write(place.root(), &table::compare(place.root(), &place.record, with_paper));
    let program = std::env::current_exe()?;
    let failed = compare::run(&mut place, &asked, &cells, &program, &Terminal::new(quiet), &written)?;
    if !quiet {
        print(&files::markdown(&table::compare(&out, &place.record, with_paper)))?;
    }
    complaint(&failed, cells.len(), "comparison.md").map_or(Ok(()), |text| Err(TrainError::Mismatch(text).into()))
}

/// What to say where cells failed; `table` lists the reasons.
pub(super) fn complaint(failed: &[Failed], cells: usize, table: &str) -> Option<String> {
    let names: Vec<&str> = failed.iter().map(|failed| failed.cell.as_str()).collect();
    (!failed.is_empty()).then(|| {
        format!(
            "{} of {} failed ({}), for the reasons above and in {table}; run the same command again to try again",
            failed.len(),
            human::many(cells, "cell"),
            names.join(", ")
        )
    })
}

impl Args {
    fn asked(self) -> Asked {
        let mut variants: Vec<Variant> = Vec::new();
        for chosen in self.methods {
            let more = match chosen {
                Chosen::All => Method::ALL.map(Variant::from).to_vec(),
                Chosen::One(variant) => vec![variant],
            };
            variants.extend(more.into_iter().filter(|variant| !variants.contains(variant)).collect::<Vec<_>>());
        }
        Asked {
            data: self.data,
            variants,
            clusters: self.clusters,
            restarts: self.runs as usize,
            selection: Selection { only: self.only, skip: self.skip },
            passed_on: PassedOn {
                presets: self.preset,
                sets: self.set,
                epochs: self.epochs,
                seed: self.seed,
                device: self.device,
                threads: self.threads,
                prune: self.prune,
                no_export: self.no_export,
                onnxruntime: self.onnxruntime,
            },
            budget: self.budget,
            force: self.force,
        }
    }
}
