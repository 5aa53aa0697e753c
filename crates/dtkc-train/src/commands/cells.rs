//! What commands share that run cells: `compare`, `sweep` and `mismatch`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dtkc_cli::{Terminal, Usage};
use dtkc_files::Sources;
use dtkc_human as human;
use dtkc_train::TrainError;
use dtkc_train::compare::{self, Asked, ClustersFor, Failed, PassedOn, Place, Record, Selection, Variant, plan};
use dtkc_train::device::DeviceName;

use super::print;

/// Flags that they share.
#[derive(clap::Args)]
pub(super) struct CellArgs {
    /// Datasets (HDF5, from dtkc-data). Each goes by the name of its file: usps for usps.h5.
    #[arg(long, value_name = "FILE", num_args = 1.., required_unless_present = "tables")]
    pub data: Vec<PathBuf>,
    /// Folder of all runs and of the tables; it may hold some that go on.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Numbers of clusters, such as 10 or mnist=10,coil=100 [default: the number of classes].
    #[arg(long, value_name = "K|SET=K", num_args = 1.., value_delimiter = ',')]
    pub clusters: Vec<ClustersFor>,
    /// Limit of the time of all runs together, such as 8h: each gets an equal part of what is left.
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration)]
    pub budget: Option<Duration>,
    /// Seed of every run.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// cpu, cuda:N, wgpu, vulkan, metal or rocm:N.
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<DeviceName>,
    /// Threads; 0 takes all cores.
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// The ONNX Runtime library, or the folder that holds it.
    #[arg(long, value_name = "PATH")]
    pub onnxruntime: Option<PathBuf>,
    /// Train nothing: write tables and plots again from what is there.
    #[arg(long)]
    pub tables: bool,
    /// Train nothing: write down what is asked for, and print as JSON which runs can be made now, each in words of this program; none where all are done.
    #[arg(long, conflicts_with = "tables")]
    pub ready: bool,
    /// Begin runs anew that were begun with other settings; what they had is lost.
    #[arg(long)]
    pub force: bool,
    /// No progress and no tables on the terminal.
    #[arg(long)]
    pub quiet: bool,
}

impl CellArgs {
    /// All of what is asked for, with every cell selected.
    pub(super) fn asked(&self, variants: Vec<Variant>, restarts: u32, passed_on: PassedOn) -> Asked {
        Asked {
            data: self.data.clone(),
            variants,
            clusters: self.clusters.clone(),
            restarts: restarts as usize,
            selection: Selection::default(),
            passed_on,
            budget: self.budget,
            force: self.force,
        }
    }

    /// What all runs are told, with nothing that differs between commands.
    pub(super) fn passed_on(&self) -> PassedOn {
        PassedOn {
            seed: self.seed,
            device: self.device,
            threads: self.threads,
            onnxruntime: self.onnxruntime.clone(),
            ..PassedOn::default()
        }
    }
}

/// The tables of a command.
pub(super) struct Tables<'a, T> {
    /// Makes them from what the runs below a folder have so far.
    pub make: &'a dyn Fn(&Path, &Record) -> T,
    /// Writes all files.
    pub write: fn(&Path, &T) -> Result<(), TrainError>,
    /// The tables for a terminal.
    pub markdown: fn(&T) -> String,
    /// The files that are written for these datasets, the one with the reasons of failures first.
    pub paths: fn(&Path, &[&str]) -> Vec<PathBuf>,
}

/// Runs all cells, or only writes the tables again.
pub(super) fn run<T>(args: &CellArgs, asked: &Asked, tables: &Tables<'_, T>) -> anyhow::Result<()> {
    let (out, quiet) = (&args.out, args.quiet);
    if args.tables {
        let made = (tables.make)(out, &Record::read(out)?);
        (tables.write)(out, &made)?;
        return if quiet { Ok(()) } else { print(&(tables.markdown)(&made)) };
    }
    asked.passed_on.check(&asked.variants)?;
    let sets = plan::look_at(asked)?;
    let cells = plan::cells(asked, &sets)?;
    let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
    let (sources, paths) = (Sources::of(&asked.data), (tables.paths)(out, &names));
    for path in &paths {
        sources.refuse(path).map_err(|refused| Usage(refused.to_string()))?;
    }
    let mut place = Place::open(out)?;
    place.add_sets(&sets)?;
    if args.ready {
        return super::print_json(&compare::ready(&mut place, asked, &cells)?);
    }
    let written = |place: &Place| (tables.write)(place.root(), &(tables.make)(place.root(), &place.record));
    let program = std::env::current_exe()?;
    let failed = compare::run(&mut place, asked, &cells, &program, &Terminal::new(quiet), &written)?;
    if !quiet {
        print(&(tables.markdown)(&(tables.make)(out, &place.record)))?;
    }
    let table = paths.first().and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy().into_owned();
    complaint(&failed, cells.len(), &table).map_or(Ok(()), |text| Err(TrainError::Mismatch(text).into()))
}

/// What to say where cells failed; `table` lists the reasons.
fn complaint(failed: &[Failed], cells: usize, table: &str) -> Option<String> {
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
