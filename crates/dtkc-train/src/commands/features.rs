//! `dtkc-train features`, and the flags about a backbone.

use std::path::PathBuf;

use dtkc_cli::{Terminal, Usage};
use dtkc_files::Sources;
use dtkc_infer::Device;
use dtkc_train::backbone::{self, BackboneOptions, Engine, VIEWS};

const EXAMPLES: &str = "\
Examples:
  dtkc-train features --data photos.h5 --backbone net.onnx --out photos-features.h5
  dtkc-train fit --data photos-features.h5 --clusters 12 --out runs/photos
  dtkc-train compare --data photos-features.h5 --methods kmeans,spectral,ddc --out cmp

`fit --backbone net.onnx` does the first two in one. The file holds the network, too, so that a run on it exports one model
that takes images. Stopped, the same command goes on where it was.";

/// How a network of others is used.
#[derive(clap::Args)]
#[command(next_help_heading = "Backbone")]
pub(crate) struct BackboneArgs {
    /// The value of the network that describes an image [default: what its last layer is given, or its output].
    #[arg(long, value_name = "NAME")]
    backbone_layer: Option<String>,
    /// Values inside the network that companion objectives look at (--method dtkc): maps or vectors, at most 8.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    backbone_taps: Vec<String>,
    /// Size that images get for the network, such as 224x224 [default: what it was made for, or theirs].
    #[arg(long, value_name = "HxW", value_parser = size)]
    backbone_size: Option<[usize; 2]>,
    /// Taken away from pixels between 0 and 1, one number or one for each channel [default: 0.485,0.456,0.406].
    #[arg(long, value_name = "X,..", value_delimiter = ',', allow_negative_numbers = true)]
    backbone_mean: Option<Vec<f32>>,
    /// What is left is divided by it, one number or one for each channel [default: 0.229,0.224,0.225].
    #[arg(long, value_name = "X,..", value_delimiter = ',')]
    backbone_std: Option<Vec<f32>>,
    /// Random views of each image that are described beside it: each takes as long as the image.
    #[arg(long, value_name = "N", default_value_t = VIEWS, value_parser = views)]
    backbone_views: usize,
    /// Where the network runs: cpu, cuda, cuda:N, tensorrt or tensorrt:N (with an ONNX Runtime that has it).
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Cpu)]
    backbone_device: Device,
}

impl BackboneArgs {
    /// With the network itself.
    pub(super) fn options(&self, network: PathBuf, threads: usize, onnxruntime: Option<PathBuf>) -> BackboneOptions {
        BackboneOptions {
            network,
            layer: self.backbone_layer.clone(),
            taps: self.backbone_taps.clone(),
            size: self.backbone_size,
            mean: self.backbone_mean.clone(),
            deviation: self.backbone_std.clone(),
            views: self.backbone_views,
            engine: Engine { onnxruntime, device: self.backbone_device, threads },
        }
    }

    /// Whether anything was asked for.
    pub(super) fn is_given(&self) -> bool {
        let Self {
            backbone_layer,
            backbone_taps,
            backbone_size,
            backbone_mean,
            backbone_std,
            backbone_views,
            backbone_device,
        } = self;
        backbone_layer.is_some()
            || !backbone_taps.is_empty()
            || backbone_size.is_some()
            || backbone_mean.is_some()
            || backbone_std.is_some()
            || *backbone_views != VIEWS
            || *backbone_device != Device::Cpu
    }
}

/// Flags of `features`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Dataset of images (HDF5, from dtkc-data).
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// A trained network (ONNX) that describes the images.
    #[arg(long, value_name = "FILE")]
    backbone: PathBuf,
    /// Dataset of features to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    how: BackboneArgs,
    /// Threads; 0 takes all cores.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// The ONNX Runtime library, or the folder that holds it.
    #[arg(long, value_name = "PATH")]
    onnxruntime: Option<PathBuf>,
    /// Replace the file that --out names if it exists; a file that is read is never replaced.
    #[arg(long)]
    force: bool,
    /// Say nothing but errors.
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let refused = Sources::of([&args.data, &args.backbone]).check(&args.out, args.force);
    refused.map_err(|refused| Usage(refused.to_string()))?;
    let terminal = Terminal::new(args.quiet);
    let options = args.how.options(args.backbone.clone(), args.threads, args.onnxruntime.clone());
    let plan = backbone::inspect(&args.data, &options, &terminal)?;
    backbone::make(&plan, &args.out, &terminal)?;
    super::print(&format!("{}: {}\n", args.out.display(), dtkc_item::ItemShape::Features(plan.shape)))
}

fn size(text: &str) -> Result<[usize; 2], String> {
    let wrong = || format!("{text:?} is no size; give rows and columns, such as 224x224");
    let (height, width) = text.split_once(['x', 'X']).unwrap_or((text, text));
    let side = |text: &str| text.trim().parse().ok().filter(|side| (1..=4096).contains(side)).ok_or_else(wrong);
    Ok([side(height)?, side(width)?])
}

fn views(text: &str) -> Result<usize, String> {
    let wrong = || format!("{text:?} is not between 0 and 64");
    text.parse().ok().filter(|views| *views <= 64).ok_or_else(wrong)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_two_sides_or_one() {
        assert_eq!((size("224x112"), size("96")), (Ok([224, 112]), Ok([96, 96])));
        assert!(["", "0x4", "4x", "axb", "9999x9"].iter().all(|text| size(text).is_err()));
        assert!(views("65").is_err() && views("0") == Ok(0));
    }
}
