//! `dtkc-train sweep`.

use std::path::PathBuf;
use std::time::Duration;

use dtkc_cli::{Terminal, Usage};
use dtkc_files::Sources;
use dtkc_human as human;
use dtkc_methods::Method;
use dtkc_train::TrainError;
use dtkc_train::compare::{self, Asked, ClustersFor, PassedOn, Place, Record, Selection, plan};
use dtkc_train::config;
use dtkc_train::device::DeviceName;
use dtkc_train::sweep::{self, Axis, Join, Like, Point, files};

use super::compare::complaint;
use super::print;

const EXAMPLES: &str = "\
Examples:
  dtkc-train sweep --data usps.h5 --vary loss.lambda=1,0.1,0.01,0 --vary loss.sigma=0.15,0.45 --runs 20 --out sweep
  dtkc-train sweep --data photos.h5 --clusters 12 --method ddc --vary plan.batch=120,240 --budget 2h --out sweep
  dtkc-train sweep --data usps.h5 --vary loss.sigma=0.15,0.45 --vary loss.companions.sigma=0.5,1 --join list --out sweep
  dtkc-train sweep --data mnist.h5 --like paper-lambda --out lambda
  dtkc-train sweep --data mnist.h5 usps.h5 --like paper-sigma --out sigma

Every value of a setting with every value of the others is a point (--join grid), or the first values together, the second
ones together, .. (--join list). A point is a cell of a comparison, an ordinary run in OUT/DATASET/METHOD+KEY=VALUE.., and
restart i of every point has the same seed. dtkc with loss.lambda=0 has no companion objectives: it is run as ddc.
After Ctrl-C or a crash the same command goes on; a larger --runs adds restarts, more values add points.
Writes sweep.md, .csv, .json and a plot for each dataset (sweep-DATASET.svg) to OUT, after every point.";

/// Flags of `sweep`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Datasets (HDF5, from dtkc-data). Each goes by the name of its file: usps for usps.h5.
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    data: Vec<PathBuf>,
    /// Folder of the sweep; it may hold one that goes on.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// A setting and its values, separated by commas; may be repeated.
    #[arg(long, value_name = "KEY=V,V,..", required_unless_present = "like")]
    vary: Vec<Axis>,
    /// How values of several settings are put together.
    #[arg(long, value_name = "HOW", default_value = "grid")]
    join: Join,
    /// A sweep of the paper: its values, its preset, 20 runs; its figures stand beside ours.
    #[arg(long, value_name = "SWEEP", conflicts_with = "vary")]
    like: Option<Like>,
    /// The method [default: as fit has it: ddc, or dtkc where companion objectives vary].
    #[arg(long, value_name = "NAME", conflicts_with = "like")]
    method: Option<Method>,
    /// Preset of all points.
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Restarts of every point [default: 5; 20 with --like].
    #[arg(long, value_name = "N", visible_alias = "restarts", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Numbers of clusters, such as 10 or mnist=10,coil=100 [default: the number of classes].
    #[arg(long, value_name = "K|SET=K", num_args = 1.., value_delimiter = ',')]
    clusters: Vec<ClustersFor>,
    /// Limit of the time of all points together, such as 8h: each gets an equal part of what is left.
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration)]
    budget: Option<Duration>,
    /// Any other setting of all points (`loss.kernel=naive`); may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Most epochs of a restart [default: as the preset says].
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
    /// Write the model file of every point, too.
    #[arg(long)]
    export: bool,
    /// The ONNX Runtime library, or the folder that holds it.
    #[arg(long, value_name = "PATH")]
    onnxruntime: Option<PathBuf>,
    /// Train nothing: write tables and plots again from what is there.
    #[arg(long)]
    tables: bool,
    /// Begin points anew that were begun with other settings; what they had is lost.
    #[arg(long)]
    force: bool,
    /// No progress and no tables on the terminal.
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let (out, quiet, like, tables) = (args.out.clone(), args.quiet, args.like, args.tables);
    let axes = args.axes();
    let points = sweep::points(args.method(&axes), &axes, args.join)?;
    let made = |record: &Record| sweep::table(&out, record, &axes, &points, like);
    if tables {
        let sweep = made(&Record::read(&out)?);
        files::write(&out, &sweep)?;
        return if quiet { Ok(()) } else { print(&files::markdown(&sweep)) };
    }
    let asked = args.asked(&points);
    asked.passed_on.check(&asked.variants)?;
    let sets = plan::look_at(&asked)?;
    let cells = plan::cells(&asked, &sets)?;
    let sources = Sources::of(&asked.data);
    for path in files::paths(&out, sets.iter().map(|set| set.name.as_str())) {
        sources.refuse(&path).map_err(|refused| Usage(refused.to_string()))?;
    }
    let mut place = Place::open(&out)?;
    place.add_sets(&sets)?;
    let written = |place: &Place| files::write(place.root(), &made(&place.record));
    let program = std::env::current_exe()?;
    let failed = compare::run(&mut place, &asked, &cells, &program, &Terminal::new(quiet), &written)?;
    if !quiet {
        print(&files::markdown(&made(&place.record)))?;
    }
    complaint(&failed, cells.len(), "sweep.md").map_or(Ok(()), |text| Err(TrainError::Mismatch(text).into()))
}

impl Args {
    fn axes(&self) -> Vec<Axis> {
        self.like.map_or_else(|| self.vary.clone(), |like| vec![like.axis()])
    }

    fn method(&self, axes: &[Axis]) -> Method {
        let companions =
            axes.iter().any(Axis::is_of_companions) || self.preset_name().is_some_and(config::is_published);
        self.method.unwrap_or(if companions { Method::WITH_COMPANIONS } else { Method::USUAL })
    }

    fn preset_name(&self) -> Option<&str> {
        self.preset.as_deref().or(self.like.map(|_| Like::PRESET))
    }

    fn asked(self, points: &[Point]) -> Asked {
        // A sweep of dtkc may hold ddc: what is said of all points is said of both.
        let mut methods: Vec<Method> = points.iter().map(|point| point.variant.method()).collect();
        methods.sort_unstable_by_key(|method| method.name());
        methods.dedup();
        let preset = self.preset_name().map(str::to_owned);
        let preset_of = |method: &Method| preset.as_ref().map(|name| format!("{method}={name}"));
        Asked {
            data: self.data,
            variants: points.iter().map(|point| point.variant.clone()).collect(),
            clusters: self.clusters,
            restarts: self.runs.unwrap_or(if self.like.is_some() { Like::RUNS } else { 5 }) as usize,
            selection: Selection::default(),
            passed_on: PassedOn {
                presets: methods.iter().filter_map(preset_of).collect(),
                sets: self.set.iter().flat_map(|word| compare::of_all(word, &methods)).collect(),
                epochs: self.epochs,
                seed: self.seed,
                device: self.device,
                threads: self.threads,
                prune: false,
                no_export: !self.export,
                onnxruntime: self.onnxruntime,
            },
            budget: self.budget,
            force: self.force,
        }
    }
}
