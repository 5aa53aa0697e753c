//! `dtkc-train fit`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, builder::PossibleValuesParser};
use dtkc_cli::Terminal;
use dtkc_human as human;
use dtkc_item::ItemShape;
use dtkc_methods::Method;
use dtkc_observe::{Observer as _, Silent};
use dtkc_train::backbone::Plan;
use dtkc_train::config::{self, Clusters, KRange, RunConfig};
use dtkc_train::device::DeviceName;
use dtkc_train::run_dir::{self, Existing, RunDir};
use dtkc_train::{TrainError, backbone, pipeline, pretrained};
use toml::{Table, Value};

use super::features::BackboneArgs;
use super::resume::{self, After};

const EXAMPLES: &str = "\
Examples:
  dtkc-train fit --data usps.h5 --clusters 10 --out runs/usps
  dtkc-train fit --data usps.h5 --clusters 10 --out runs/paper --preset authors --runs 20
  dtkc-train fit --data usps.h5 --clusters auto --k-range 5..15 --out runs/auto
  dtkc-train fit --data big.h5 --clusters 50 --out runs/big --budget 8h --device cuda:0
  dtkc-train fit --data photos.h5 --backbone net.onnx --clusters 20 --out runs/photos
  dtkc-train fit --config my.toml --set loss.consistency=0.5 --set network.hidden=64

Settings: flags win over --config, --config wins over the preset. The run directory keeps all of them in
config.toml, which is also the list of what --config and --set can change.
Methods, and when to use them:
  ddc          the default: images whose classes differ in shape; a network that is trained as a whole
  dtkc         the same with the paper's companion objectives: the same groups wherever we compared them, in more time
  kmeans       a first look in seconds, any number of images; classes that differ pixel by pixel
  spectral     up to some ten thousand images that change gradually within a class (turned objects, handwriting)
  dec          centred images of one kind (digits, glyphs): autoencoder, then clusters that sharpen themselves
  idec         dec that keeps its decoder: slower, and codes keep more of the image
  dcn          an autoencoder whose codes suit k-means: when centres and distances matter to you
  spectralnet  clusters of winding shape in more images than spectral can take
  dbc          dec with convolutions: classes that move about in the image
--lambda X adds companion objectives to dec, idec, dcn, spectralnet and dbc, too. --pretrained RUN takes the autoencoder of
a run of dec, idec, dcn or spectralnet (of dbc for dbc).
Sequences: dtkc and ddc have recurrent layers instead of convolutions (RDTKC and RDDC); all others but dbc take sequences
that were resampled to one length.
Presets of dtkc and ddc:
  plus     ours, the default: random views and near neighbours must agree; restarts begin in turn with clusters of
           the graph of near neighbours (always with those where there are more than 25, and where items are sequences)
           and with fine clusters
  paper    the paper's text
  authors  its code (DanielTrosten/DTKC), but for its gradient of the pairwise distance, which is wrong there
  tk-uco   the PyTorch code of its successor, but every image is scaled by its own range, biases start at 0 and the
           last partial batch of an epoch is used
Presets of dec, idec and dbc: any (Adam, epochs by the number of images), mnist and usps (what was published for them);
of dcn: any, published (250 epochs of pretraining, 50 after it); of kmeans: published; of spectral: published, outlines (near
by the directions of edges, which is far better for most images); of spectralnet: any.";

/// Flags of `fit`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Dataset to train on (HDF5, from dtkc-data).
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// A trained network (ONNX) that describes the images: groups are found in what it says, not in pixels.
    #[arg(long, value_name = "FILE")]
    backbone: Option<PathBuf>,
    /// File that keeps what the backbone says [default: beside --out; it is used again by the next run].
    #[arg(long, value_name = "FILE", requires = "backbone")]
    features: Option<PathBuf>,
    /// Number of clusters, or `auto` to look for it in a range.
    #[arg(long, value_name = "K|auto")]
    clusters: Option<Clusters>,
    /// Run directory to create.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Numbers of clusters that `--clusters auto` looks at, both ends included [default: 2..15].
    #[arg(long, value_name = "A..B")]
    k_range: Option<KRange>,
    /// How to cluster, see below [default: ddc; dtkc with --lambda and with a preset of the paper].
    #[arg(long, value_parser = PossibleValuesParser::new(Method::ALL.map(Method::name)))]
    method: Option<String>,
    /// Where the settings start from; each method has its own, see below.
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Independent restarts [default: 3; 20 with the published presets].
    #[arg(long, value_name = "N", visible_alias = "runs")]
    restarts: Option<u32>,
    /// Most epochs of a restart [default: about 3000 steps for 10,000 items, by the square root of their number; 100 epochs with the published presets].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    epochs: Option<u32>,
    /// Images per step (with random views: half of them images, half their views) [default: 240 with plus, more for more
    /// than 20 clusters; 120 with the published presets].
    #[arg(long, value_name = "N")]
    batch: Option<u32>,
    /// Learning rate.
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    lr: Option<f64>,
    /// Weight of the companion objectives (dtkc has 0.01).
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    lambda: Option<f64>,
    /// Kernel bandwidth as a part of the median distance.
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// End a restart after so many epochs without a lower loss; 0 never does.
    #[arg(long, value_name = "N")]
    patience: Option<u32>,
    /// Drop restarts that are behind early.
    #[arg(long, action = ArgAction::SetTrue, overrides_with = "no_prune")]
    prune: bool,
    /// Train every restart to its end.
    #[arg(long, action = ArgAction::SetTrue, overrides_with = "prune")]
    no_prune: bool,
    /// Seed of everything random: the same seed on the same machine gives the same bits.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// cpu, cuda:N, wgpu, vulkan, metal or rocm:N; see `dtkc-train devices`.
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceName>,
    /// Threads; 0 takes all cores.
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Limit of the training time, such as 30m or 8h: fewer restarts, if need be fewer epochs.
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration)]
    budget: Option<Duration>,
    /// Memory that the loader may use; larger datasets are streamed [default: 2GiB].
    #[arg(long, value_name = "SIZE", value_parser = human::parse_bytes)]
    memory_budget: Option<u64>,
    /// Least time between two checkpoints [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration)]
    checkpoint_every: Option<Duration>,
    /// Run whose pretraining (autoencoder) is taken over: dec, idec, dcn and spectralnet share one.
    #[arg(long, value_name = "RUN")]
    pretrained: Option<PathBuf>,
    /// Settings file (TOML).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Any setting of config.toml; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Replace a run that is already there.
    #[arg(long)]
    force: bool,
    /// Make the run directory and train nothing yet: `dtkc-train part` and `resume` do, on as many machines as there are.
    #[arg(long)]
    prepare: bool,
    #[command(flatten)]
    after: After,
    #[command(flatten)]
    how: BackboneArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    args.after.begin();
    let file = args.config.as_deref().map(config::read_file).transpose()?.unwrap_or_default();
    let layers = [file, args.layer()?];
    let mut config = RunConfig::resolve(&layers)?;
    if config.data.path.as_os_str().is_empty() {
        let text = "no dataset is given; name one with --data FILE.h5 (dtkc-data import makes it)";
        return Err(TrainError::Setting(text.into()).into());
    }
    if config.run.clusters == Clusters::Unset {
        let text = "the number of clusters is not given; name it with --clusters K, or --clusters auto";
        return Err(TrainError::Setting(text.into()).into());
    }
    let device = config.run.device;
    device.open()?;
    dtkc_ops::set_threads(config.run.threads);
    let terminal = args.after.terminal();
    let is_batch_given = layers.iter().any(names_batch);
    let data = args.described(&config, is_batch_given, &terminal)?;
    config.data = pipeline::describe_data(&data)?;
    pipeline::prepare(&mut config, is_batch_given, &terminal)?;
    // Before there is anything of the new run, and while there is all of the one that it may replace.
    pretrained::check(&args.out, &config)?;
    let run = RunDir::create(&args.out, args.existing())?;
    pretrained::adopt(&run, &mut config)?;
    config.write(&run.config())?;
    if args.prepare {
        terminal.say(&format!("the run is ready; `dtkc-train parts {}` lists its parts", args.out.display()));
        return Ok(());
    }
    resume::go_on(&run, config, &args.after, &terminal)
}

impl Args {
    fn existing(&self) -> Existing {
        if self.force { Existing::Replace } else { Existing::Refuse }
    }

    /// The dataset that is trained on: the one that was named, or what the backbone says about it.
    fn described(&self, config: &RunConfig, is_batch_given: bool, terminal: &Terminal) -> anyhow::Result<PathBuf> {
        let data = &config.data.path;
        let Some(network) = &self.backbone else {
            return match self.how.is_given() {
                true => Err(TrainError::Setting("--backbone-.. flags need --backbone FILE".into()).into()),
                false => Ok(data.clone()),
            };
        };
        let options = self.how.options(network.clone(), config.run.threads, self.after.onnxruntime());
        // Describing images may take an hour: whatever else is wrong is said before.
        run_dir::check_new(&self.out, self.existing())?;
        let suit = |plan: &Plan| {
            let mut trial = config.clone();
            (trial.data.items, trial.data.input) = (plan.items, ItemShape::Features(plan.shape));
            pipeline::prepare(&mut trial, is_batch_given, &Silent)
        };
        Ok(backbone::features_for(&self.out, data, self.features.as_deref(), &options, suit, terminal)?)
    }

    /// The flags as the layer that wins over all others.
    fn layer(&self) -> anyhow::Result<Table> {
        let mut layer = Table::new();
        for assignment in &self.set {
            dtkc_settings::set(&mut layer, assignment).map_err(TrainError::from)?;
        }
        let path = self.data.as_ref().map(|path| Value::from(path.to_string_lossy().into_owned()));
        let word = |word: Option<String>| word.map(Value::from);
        let seconds = |time: Option<Duration>| time.map(|time| Value::from(time.as_secs_f64()));
        let prune = (self.prune || self.no_prune).then_some(Value::from(self.prune));
        let big = |number: Option<u64>| number.map(|n| Value::from(i64::try_from(n).unwrap_or(i64::MAX)));
        let pretrained = self.pretrained.as_ref().map(|path| Value::from(path.to_string_lossy().into_owned()));
        let flags: [(&str, Option<Value>); 20] = [
            ("data.path", path),
            ("run.clusters", self.clusters.map(clusters)),
            ("run.k_range", word(self.k_range.map(|range| range.to_string()))),
            ("method", word(self.method.clone())),
            ("preset", word(self.preset.clone())),
            ("plan.restarts", self.restarts.map(Value::from)),
            ("plan.epochs", self.epochs.map(Value::from)),
            ("plan.batch", self.batch.map(Value::from)),
            ("plan.patience", self.patience.map(Value::from)),
            ("plan.prune", prune),
            ("optim.lr", self.lr.map(Value::from)),
            ("loss.lambda", self.lambda.map(Value::from)),
            ("loss.sigma", self.sigma.map(Value::from)),
            ("run.seed", big(self.seed)),
            ("run.device", word(self.device.map(|device| device.to_string()))),
            ("run.threads", self.threads.map(Value::from)),
            ("run.budget_seconds", seconds(self.budget)),
            ("run.memory_budget", big(self.memory_budget)),
            ("run.checkpoint_seconds", seconds(self.checkpoint_every)),
            ("run.pretrained", pretrained),
        ];
        for (key, value) in flags {
            if let Some(value) = value {
                dtkc_settings::insert(&mut layer, key, value);
            }
        }
        Ok(layer)
    }
}

/// Whether a layer says how many rows a step has.
fn names_batch(layer: &Table) -> bool {
    layer.get("plan").and_then(|plan| plan.get("batch")).is_some()
}

fn clusters(clusters: Clusters) -> Value {
    match clusters {
        Clusters::Fixed(k) => Value::from(i64::try_from(k).unwrap_or(i64::MAX)),
        other => Value::from(other.to_string()),
    }
}
