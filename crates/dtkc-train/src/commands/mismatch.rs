//! `dtkc-train mismatch`.

use dtkc_methods::Method;
use dtkc_train::compare::{self, Asked, PassedOn, Variant};
use dtkc_train::mismatch::{self, Schedule, Subject, files};

use super::cells::{self, CellArgs, Tables};

const EXAMPLES: &str = "\
Examples:
  dtkc-train mismatch --data mnist.h5 --epochs 100 --out mismatch
  dtkc-train mismatch --data usps.h5 --methods autoencoder,ddc,dtkc+loss.lambda=0.1,idec --epochs 50 --every 2 --out mismatch

Does what a network is trained for serve the clusters? Every few epochs k-means on the last block's output is compared with the
labels (NMI), beside the loss; and the gradient of the terms that make clusters with that of every other term (reconstruction,
companions, views): a cosine below 0 says that it works against them. `autoencoder` is the paper's: the blocks of ddc and dtkc,
mirrored; it reconstructs for --epochs, and then clusters its codes for a tenth as long while it still reconstructs. Methods
with a pretraining are trained in the same way. ddc and dtkc have the paper's preset unless --preset says otherwise.
The runs are those of a comparison (OUT/DATASET/METHOD): after Ctrl-C or a crash the same command goes on.
Writes mismatch.md, .csv, .json and a plot for each dataset (mismatch-DATASET.svg) to OUT, after every run. Any run can be
looked into: fit --set run.inside_every=5 writes the same numbers to its log.jsonl.";

/// Flags of `mismatch`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    cells: CellArgs,
    /// Networks to look into: `autoencoder`, methods with blocks or layers, or variants of them (METHOD+KEY=VALUE+...).
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',', default_value = "autoencoder,ddc,dtkc")]
    methods: Vec<Subject>,
    /// Epochs of reconstruction, and of methods without a pretraining.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    epochs: u32,
    /// Epochs between two looks.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// Restarts of every network.
    #[arg(long, value_name = "N", visible_alias = "restarts", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Preset of ddc and dtkc.
    #[arg(long, value_name = "NAME", default_value = "paper")]
    preset: String,
    /// Any setting of a method (`dbc.plan.batch=120`), or of all (`plan`, `run`); may be repeated.
    #[arg(long, value_name = "METHOD.KEY=VALUE")]
    set: Vec<String>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let tables = Tables {
        make: &|root, record| mismatch::table(root, record, &args.methods),
        write: files::write,
        markdown: files::markdown,
        paths: files::paths,
    };
    cells::run(&args.cells, &args.asked(), &tables)
}

impl Args {
    fn asked(&self) -> Asked {
        let variants: Vec<Variant> = self.methods.iter().map(|subject| subject.variant.clone()).collect();
        let schedule = Schedule { epochs: self.epochs, every: self.every };
        let preset = |method: Method| format!("{method}={}", self.preset);
        let passed_on = PassedOn {
            presets: [Method::Ddc, Method::Dtkc].map(preset).to_vec(),
            sets: schedule.sets(&compare::methods_of(&variants)).into_iter().chain(self.set.iter().cloned()).collect(),
            no_export: true,
            ..self.cells.passed_on()
        };
        self.cells.asked(variants, self.runs, passed_on)
    }
}
