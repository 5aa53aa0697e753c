//! `dtkc-train sweep`.

use dtkc_methods::Method;
use dtkc_train::compare::{self, Asked, PassedOn, Variant};
use dtkc_train::config;
use dtkc_train::sweep::{self, Axis, Join, Like, Point, files};

use super::cells::{self, CellArgs, Tables};

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
    #[command(flatten)]
    cells: CellArgs,
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
    /// Any other setting of all points (`loss.kernel=naive`); may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Most epochs of a restart [default: as the preset says].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    epochs: Option<u32>,
    /// Write the model file of every point, too.
    #[arg(long)]
    export: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let axes = args.axes();
    let points = sweep::points(args.method(&axes), &axes, args.join)?;
    let tables = Tables {
        make: &|root, record| sweep::table(root, record, &axes, &points, args.like),
        write: files::write,
        markdown: files::markdown,
        paths: files::paths,
    };
    cells::run(&args.cells, &args.asked(&points), &tables)
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

    fn asked(&self, points: &[Point]) -> Asked {
        let variants: Vec<Variant> = points.iter().map(|point| point.variant.clone()).collect();
        // A sweep of dtkc may hold ddc: what is said of all points is said of both.
        let methods = compare::methods_of(&variants);
        let preset_of = |method: &Method| self.preset_name().map(|name| format!("{method}={name}"));
        let passed_on = PassedOn {
            presets: methods.iter().filter_map(preset_of).collect(),
            sets: self.set.iter().flat_map(|word| compare::of_all(word, &methods)).collect(),
            epochs: self.epochs,
            no_export: !self.export,
            ..self.cells.passed_on()
        };
        let restarts = self.runs.unwrap_or(if self.like.is_some() { Like::RUNS } else { 5 });
        self.cells.asked(variants, restarts, passed_on)
    }
}
