//! `dtkc-data preview`: a contact sheet of images, or of sequences as curves, strokes or maps.

use std::path::PathBuf;

use anyhow::Context;
use dtkc_cli::Usage;
use dtkc_dataset::{Dataset, sample};
use dtkc_draw::Style;
use dtkc_human as human;
use dtkc_item::{Color, ItemKind, ItemShape};

use super::ForceArgs;
use super::copy::{check_output, find_classes};
use super::draw::Drawer;
use super::sheet::{Row, Sheet};

/// Flags of `preview`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The dataset file
    file: PathBuf,
    /// The PNG file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Items per row [default: 16 images or 10 sequences]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    columns: Option<u16>,
    /// Rows at most: classes where labelled [default: 10, or up to 40 classes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=400))]
    rows: Option<u16>,
    /// Only these classes, by name or number
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    classes: Vec<String>,
    /// How sequences are drawn: curves, pen (strokes of the first two dimensions, the third is the line's width) or map
    /// (values as colours) [default: pen for 2 dimensions, curves for up to 8, map for more]
    #[arg(long, value_name = "STYLE")]
    draw: Option<Style>,
    /// Draw the sums of all steps so far: places where the values are velocities; up to 3 dimensions then are pen strokes
    #[arg(long)]
    cumulative: bool,
    /// Seed of the choice of items
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    force: ForceArgs,
}

const EXAMPLES: &str = "\
Items are chosen at random; the same seed gives the same sheet. Curves and maps have the same scales all over
the sheet; a stroke fills its place, and a dot marks where it begins.

Examples:
  dtkc-data preview mnist.h5 --out mnist.png
  dtkc-data preview photos.h5 --columns 24 --rows 12 --seed 7 --out photos.png
  dtkc-data preview vowels.h5 --out vowels.png
  dtkc-data preview letters.h5 --cumulative --out letters.png";

/// The place of items whose class is not known: behind all classes.
const UNLABELLED: i64 = i64::MAX;

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<()> {
    check_output([&args.file], &args.out, args.force.force)?;
    let dataset = Dataset::open(&args.file)?;
    if dataset.kind() == ItemKind::Images && (args.draw.is_some() || args.cumulative) {
        let text = format!("--draw and --cumulative are for sequences, and {} holds images", args.file.display());
        return Err(Usage(text).into());
    }
    let (rows, more): (Chosen, usize) = match dataset.labels()? {
        Some(labels) => by_class(&args, &dataset, &labels)?,
        None if args.classes.is_empty() => (at_random(&args, &dataset), 0),
        None => return Err(Usage(format!("{} has no labels to choose by", args.file.display())).into()),
    };
    let mut title = format!("{}: {} {}", dataset.name(), human::count(dataset.len() as u64), dataset.shape());
    if more > 0 {
        title += &format!(", {} of {} classes", rows.len(), rows.len() + more);
    }
    let (rows, indices): (Vec<Row>, Vec<Vec<usize>>) = rows.into_iter().unzip();
    match dataset.shape() {
        ItemShape::Image(shape) => {
            let color = shape.color().context("only gray and RGB images can be drawn")?;
            let (height, width) = (shape.height, shape.width);
            let columns = columns(&args, &dataset);
            let sheet = Sheet { title, rows, columns, apart: 0, height, width, color, drawn: false };
            sheet.write(&args.out, |row| dataset.read(&indices[row]))
        }
        ItemShape::Features(_) => {
            let text =
                format!("{} holds features, of which there is no picture; preview its images", args.file.display());
            Err(Usage(text).into())
        }
        ItemShape::Sequence { .. } => {
            let drawer = Drawer::new(&dataset, args.draw, args.cumulative, &indices.concat())?;
            let title = format!("{title}; {}", drawer.described());
            let ((height, width), color) = (drawer.size(), Color::Rgb);
            let columns = columns(&args, &dataset);
            let sheet = Sheet { title, rows, columns, apart: 0, height, width, color, drawn: true };
            sheet.write(&args.out, |row| {
                let pictures = indices[row].iter().map(|&index| drawer.picture(index));
                pictures.collect::<Result<Vec<_>, _>>().map(|pictures| pictures.concat())
            })
        }
    }
}

/// Items per row.
fn columns(args: &Args, dataset: &Dataset) -> usize {
    let usual = if dataset.kind() == ItemKind::Images { 16 } else { 10 };
    args.columns.map_or(usual, usize::from)
}

/// Rows with the items to draw.
type Chosen = Vec<(Row, Vec<usize>)>;

/// One row per class with some of its items, and the number of classes that found no room.
fn by_class(args: &Args, dataset: &Dataset, labels: &[i64]) -> anyhow::Result<(Chosen, usize)> {
    let names = dataset.label_names()?.unwrap_or_default();
    // All negative labels say the same, and come last.
    let class_of = |label: i64| if label < 0 { UNLABELLED } else { label };
    let all = || labels.iter().map(|&label| class_of(label)).collect();
    let mut classes: Vec<i64> = if args.classes.is_empty() { all() } else { find_classes(dataset, &args.classes)? };
    classes.sort_unstable();
    classes.dedup();
    let most = usize::from(args.rows.unwrap_or(40));
    let more = classes.len().saturating_sub(most);
    classes.truncate(most);
    let rows = classes.into_iter().map(|class| {
        let members: Vec<usize> = (0..labels.len()).filter(|&i| class_of(labels[i]) == class).collect();
        let name = match class {
            UNLABELLED => "unlabelled".to_owned(),
            _ => names.get(class as usize).cloned().unwrap_or_else(|| class.to_string()),
        };
        let count = human::count(members.len() as u64);
        (Row { name, count }, sample(&members, columns(args, dataset), args.seed))
    });
    Ok((rows.collect(), more))
}

fn at_random(args: &Args, dataset: &Dataset) -> Chosen {
    let columns = columns(args, dataset);
    let all: Vec<usize> = (0..dataset.len()).collect();
    let chosen = sample(&all, columns * usize::from(args.rows.unwrap_or(10)), args.seed);
    chosen.chunks(columns).map(|row| (Row::default(), row.to_vec())).collect()
}
