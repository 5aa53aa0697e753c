//! `dtkc-data import`: whatever images or sequences a person has, as one dataset.

use std::path::PathBuf;

use dtkc_cli::{Terminal, Usage, interrupt};
use dtkc_data::import::arrays::layout::FlatShape;
use dtkc_data::import::arrays::pair::Keys;
use dtkc_data::import::{
    Columns, Format, ImportOptions, LabelsFrom, Missing, ReadOptions, Size, SoundKind, SoundOptions, Wanted, import,
};
use dtkc_formats::sequences::sound::milliseconds;
use dtkc_image::Limits;
use dtkc_item::{Color, Resize};

use super::outgoing::Outgoing;
use super::{ForceArgs, StorageArgs, report};

/// Flags of `import`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folders, archives, data files, quoted patterns, addresses (s3://, gs://, az://, https://), or - for a list of paths;
    /// several are joined
    #[arg(required = true, value_name = "SOURCE")]
    pub sources: Vec<PathBuf>,
    /// The dataset file to write, here or in a store
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    #[command(flatten)]
    look: LookArgs,
    /// Take the folder that an image lies in as its label
    #[arg(long)]
    labels_from_folders: bool,
    /// What the sources are, where their content does not tell: folder, image, zip, tar, coil, idx, mat, hdf5,
    /// npy, npz, ts, arabic, libsvm, csv, csv-long (a row for every step), csv-wide (a row for every sequence),
    /// csv-each (every file is a sequence), wav, parquet
    #[arg(long)]
    format: Option<Format>,
    /// Name of the array of images in HDF5, MAT and .npz files; a name that several groups have joins them
    #[arg(long, value_name = "NAME")]
    images_key: Option<String>,
    /// Name of the array of labels
    #[arg(long, value_name = "NAME")]
    labels_key: Option<String>,
    /// Shape of flat images: HxW, HxWxC, or CxHxW for whole planes [default: a square]
    #[arg(long)]
    shape: Option<FlatShape>,
    /// Name of the dataset [default: that of the first source]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    sequences: SequenceArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Headings in the help.
const TABLES: &str = "Tables";
const SEQUENCES: &str = "Sequences";

/// How tables and sequences are read.
#[derive(Debug, clap::Args)]
pub struct SequenceArgs {
    /// Arrays of .npy and .npz files are sequences [n, time, dim], not images; NaN at their end is no step
    #[arg(long, help_heading = SEQUENCES)]
    sequences: bool,
    /// Column of a Parquet file that holds encoded images [default: found by its type and name]
    #[arg(long, value_name = "COLUMN", help_heading = TABLES)]
    image_column: Option<String>,
    /// Column of a table with the names of images, or that says which sequence a row belongs to; columns of sequences are
    /// named by name or number, from 1
    #[arg(long, value_name = "COLUMN", help_heading = TABLES)]
    id_column: Option<String>,
    /// Column with the time: steps are put in its order
    #[arg(long, value_name = "COLUMN", help_heading = SEQUENCES)]
    time_column: Option<String>,
    /// Column with the class
    #[arg(long, value_name = "COLUMN", help_heading = TABLES)]
    label_column: Option<String>,
    /// Columns with the values of a step [default: all others]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', help_heading = SEQUENCES)]
    value_columns: Vec<String>,
    /// Values of a step that stand side by side, where a row is a sequence
    #[arg(long, value_name = "N", help_heading = SEQUENCES)]
    dim: Option<usize>,
    /// What the windows of a sound become: spectrogram or mfcc (13 coefficients)
    #[arg(long, value_name = "KIND", default_value = "spectrogram", help_heading = SEQUENCES)]
    sound: SoundKind,
    /// Milliseconds of a window
    #[arg(long, value_name = "MS", default_value = "25", value_parser = milliseconds, help_heading = SEQUENCES)]
    window: f64,
    /// Milliseconds from one window to the next
    #[arg(long, value_name = "MS", default_value = "10", value_parser = milliseconds, help_heading = SEQUENCES)]
    hop: f64,
}

impl SequenceArgs {
    fn columns(&self) -> Columns {
        Columns {
            id: self.id_column.clone(),
            time: self.time_column.clone(),
            label: self.label_column.clone(),
            values: self.value_columns.clone(),
            dim: self.dim,
            image: self.image_column.clone(),
        }
    }

    fn sound(&self) -> SoundOptions {
        SoundOptions { kind: self.sound, window: self.window, hop: self.hop }
    }
}

/// Size and colour.
#[derive(Debug, clap::Args)]
pub struct LookArgs {
    /// Size of every image, height x width [default: that of the images; where these differ the most common one,
    /// or 64x64 if there is none or if it is over 256 pixels]
    #[arg(long, value_name = "HxW")]
    size: Option<Size>,
    /// How images of another size are brought to it: fit (pad with black), stretch, or crop (cut the edges)
    /// [default: fit]
    #[arg(long)]
    resize: Option<Resize>,
    /// gray or rgb [default: rgb if any image has colour]
    #[arg(long)]
    color: Option<Color>,
}

impl LookArgs {
    /// As the library wants it.
    pub fn wanted(&self) -> Wanted {
        Wanted { size: self.size, color: self.color, resize: self.resize }
    }
}

/// The heading in the help: one for the struct would go on behind it.
const LIMITS: &str = "Limits";

/// What one encoded image may cost; a larger one is skipped.
#[derive(Debug, clap::Args)]
pub struct LimitArgs {
    /// Skip image files that are larger
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = dtkc_human::parse_bytes, help_heading = LIMITS)]
    max_bytes: u64,
    /// Skip images that are wider or higher
    #[arg(long, value_name = "PIXELS", default_value_t = Limits::default().max_side, help_heading = LIMITS)]
    max_side: u32,
    /// Skip images with more pixels in all
    #[arg(long, value_name = "PIXELS", default_value_t = Limits::default().max_pixels, help_heading = LIMITS)]
    max_pixels: u64,
}

impl LimitArgs {
    fn limits(&self) -> Limits {
        Limits { max_bytes: self.max_bytes, max_side: self.max_side, max_pixels: self.max_pixels }
    }
}

/// What `import` and `fetch` have in common.
#[derive(Debug, clap::Args)]
pub struct CommonArgs {
    /// At most so many items, the first ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Only these classes, by name or number
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    classes: Vec<String>,
    /// Fail at the first item that cannot be imported instead of skipping it
    #[arg(long)]
    strict: bool,
    /// Sequences with values that are missing or not finite: refuse them all, drop such sequences, or fill the values
    /// along a line between their neighbours in time
    #[arg(long, value_name = "WAY", default_value = "refuse")]
    missing: Missing,
    #[command(flatten)]
    storage: StorageArgs,
    #[command(flatten)]
    pub force: ForceArgs,
    #[command(flatten)]
    limits: LimitArgs,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    /// No progress and no summary
    #[arg(long, short)]
    pub quiet: bool,
}

impl CommonArgs {
    /// Fills in the flags that `import` and `fetch` share.
    pub fn apply(&self, options: &mut ImportOptions) {
        options.limit = self.limit;
        options.classes.clone_from(&self.classes);
        options.strict = self.strict;
        options.missing = self.missing;
        options.compression = self.storage.compression();
        options.force = self.force.force;
        options.read.limits = self.limits.limits();
    }
}

const EXAMPLES: &str = "\
Examples:
  dtkc-data import photos/ --out photos.h5
  dtkc-data import photos/ --size 96x96 --resize crop --labels-from-folders --out photos.h5
  dtkc-data import images.zip --color gray --out images.h5
  dtkc-data import 'train-*.parquet' --size 32x32 --out train.h5
  dtkc-data import rows.parquet --image-column scan --label-column finding --out scans.h5
  dtkc-data import 'shard-{000..099}.tar' --out set.h5
  dtkc-data import s3://bucket/photos/ --size 64x64 --out photos.h5
  dtkc-data import 's3://bucket/train-*.parquet' --size 32x32 --out s3://bucket/train.h5
  dtkc-data import https://example.com/images.tar --out images.h5
  dtkc-data import train-images-idx3-ubyte.gz t10k-images-idx3-ubyte.gz --out mnist.h5
  dtkc-data import train_32x32.mat test_32x32.mat --out svhn.h5
  dtkc-data import usps.h5 --out usps-dtkc.h5
  dtkc-data import faces.h5 --images-key pixels --labels-key person --shape 32x32 --out faces-dtkc.h5
  dtkc-data import CharacterTrajectories.ts.gz --classes a,b,c,d,e,g,h,l,m,n --out letters.h5
  dtkc-data import steps.csv --id-column machine --time-column day --missing fill --out machines.h5
  dtkc-data import rows.tsv --format csv-wide --label-column 1 --out rows.h5
  dtkc-data import X.npy --sequences --out set.h5
  dtkc-data import words/ --sound mfcc --out words.h5

Labels are found by themselves beside IDX and .npy files, in MAT, HDF5, .npz, .ts and LIBSVM files, in columns
of that name, beside the images of a tar (.cls, .json) and in COIL's file names. Several Parquet files or tars are one
dataset; {000..099} stands for a hundred names. A folder of tables or sounds has a sequence in every file and a class in
every folder. In folders and archives (.zip, .tar, .tar.gz, .tar.bz2) images are known by their
extension, or without one by their first bytes; hidden files are passed over. --labels-from-folders takes
the first folder below what all images have in common and below train, test and the like.
A bad image is skipped and listed in FILE.skipped.csv, a file that is no image is passed over and listed in
FILE.passed-over.csv. Nothing is written unless all went well, never over one of the sources, and never
into a folder that is read.
Credentials for stores come from the usual environment (AWS_..., GOOGLE_..., AZURE_...): docs/stores.md.
Where labels are exactly -1 and 1 they are two classes; other negative labels mean unlabelled.";

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<()> {
    interrupt::install();
    if args.labels_from_folders && args.format == Some(Format::Coil) {
        return Err(Usage("--labels-from-folders and --format coil contradict each other".into()).into());
    }
    let delivery = Outgoing::of(&args)?;
    let mut options = ImportOptions::new(delivery.as_ref().map_or_else(|| args.out.clone(), Outgoing::target));
    args.common.apply(&mut options);
    options.name = args.name;
    options.format = args.format;
    options.wanted = args.look.wanted();
    options.read = ReadOptions {
        labels: if args.labels_from_folders { LabelsFrom::Folders } else { LabelsFrom::Detect },
        keys: Keys { images: args.images_key, labels: args.labels_key },
        shape: args.shape,
        sequences: args.sequences.sequences,
        columns: args.sequences.columns(),
        sound: args.sequences.sound(),
        ..options.read
    };
    let terminal = Terminal::new(args.common.quiet);
    let mut summary = import(&args.sources, &options, &terminal).map_err(report::failed)?;
    if let Some(delivery) = delivery {
        delivery.send(&mut summary, &terminal)?;
    }
    report::done(&summary, args.common.json, args.common.quiet)
}
