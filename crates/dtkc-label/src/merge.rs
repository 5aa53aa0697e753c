//! `dtkc-label merge`: the parts of a sharded run joined to the undivided result.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use dtkc_files::{Sources, refuse_existing, refuse_twins};
use dtkc_item::{ItemKind, ItemShape, Items};
use dtkc_observe::Observer;

use crate::duplicates::{self, Counts, Found, Store, sidecar};
use crate::error::{LabelError, Result};
use crate::failures;
use crate::finish::{Target, Writing};
use crate::gallery::{self, About, CopyPicks, Picks, Shown};
use crate::job::{self, Job, Settings, State};
use crate::keep::{FromParts, KeptColumns};
use crate::output::{self, Format, Held, Stored};
use crate::row::Row;
use crate::shard::Shard;
use crate::tally::{Summary, Tally};

/// What to join.
pub struct MergeOptions {
    /// The parts, in any order.
    pub parts: Vec<PathBuf>,
    /// The whole.
    pub output: PathBuf,
    /// Where failures are listed; beside the output unless told otherwise.
    pub failed: Option<PathBuf>,
    /// Replace outputs that are there already.
    pub force: bool,
    /// A page of the whole, and how many images of each kind and cluster it shows. The inputs are read again.
    pub gallery: Option<(PathBuf, usize)>,
}

/// What came out.
pub struct Merged {
    /// The figures of all rows.
    pub summary: Summary,
    /// What the rows are about.
    pub kind: ItemKind,
    /// Where the failures are listed, if there are any.
    pub failed_list: Option<PathBuf>,
    /// The copies, where the parts were made to find them.
    pub duplicates: Option<Counts>,
    /// Whether it was stopped before the end; then nothing was written.
    pub interrupted: bool,
}

/// Rows that are written together.
const RUN: usize = 1024;

/// Or fewer, where their items take so many bytes.
const HELD: usize = 64 << 20;

type Rows = Peekable<Box<dyn Iterator<Item = Result<Stored>>>>;

/// Joins parts. All shards of one run must be there, each complete and once.
pub fn merge(options: &MergeOptions, observer: &dyn Observer) -> Result<Merged> {
    let format = Format::of(&options.output)?;
    let paths = without_lists(&options.parts);
    check_outputs(options)?;
    let jobs: Vec<Job> = paths.iter().map(|part| read_job(part)).collect::<Result<_>>()?;
    let settings = check_parts(&paths, &jobs)?;
    let kept = match &settings.keep {
        Some(_) => Some(kept_columns(format, &paths, &jobs, &settings)?),
        None => None,
    };
    let mut parts = Vec::new();
    for path in &paths {
        let part = Format::of(path)?;
        if format.wants_items() && !part.wants_items() {
            let reason = format!(
                "it has no {} in it, and a {format} output holds them; give the output the ending .{part}",
                settings.item().kind()
            );
            return Err(LabelError::file(path, reason));
        }
        parts.push(output::read(path, part, &settings.layout)?.peekable());
    }
    // All parts come from one model, so the first that says it speaks for all.
    let resize = paths.iter().find_map(|path| output::resize_of(path, Format::of(path).ok()?));
    let target = Target {
        path: options.output.clone(),
        format,
        layout: settings.layout.clone(),
        held: Held { shape: settings.item(), resize },
        failed: options.failed.clone().unwrap_or_else(|| failures::path_for(&options.output)),
    };
    let kind = settings.item().kind();
    let total = jobs.iter().map(|job| job.rows).sum();
    let mut copies = match settings.duplicates {
        // What was never divided has its table already.
        Some(most) if jobs.len() > 1 => find_copies(&paths, most, options, observer)?,
        _ => None,
    };
    observer.begin("merge", "rows", Some(total));
    let mut tally = Tally::new(&settings.layout);
    let each = options.gallery.as_ref().map_or(0, |(_, each)| *each);
    let mut picks = Picks::new(settings.layout.clusters(), each).above(settings.layout.outlier);
    let writing = Writing::start(&target, kept)?;
    let writing = join(parts, writing, (target.held.shape, total), observer, &mut |row| {
        tally.add(row);
        picks.add(row);
        if let Some(copies) = &mut copies {
            copies.hear(row, &settings.layout);
        }
    });
    observer.end();
    let summary = tally.summary()?;
    let Some(writing) = writing? else {
        return Ok(Merged { summary, kind, failed_list: None, duplicates: None, interrupted: true });
    };
    let failed_list = writing.finish()?;
    Job::new(State::Complete, summary.images, Shard::WHOLE, &settings).write(&options.output)?;
    let duplicates = copies.as_ref().map(|copies| copies.write(&options.output)).transpose()?;
    if let Some((page, _)) = &options.gallery {
        write_gallery(
            page,
            &settings,
            &Shown { summary: &summary, picks: &picks, copies: CopyPicks::of(copies.as_ref()) },
            observer,
        )?;
    }
    Ok(Merged { summary, kind, failed_list, duplicates, interrupted: false })
}

/// The columns that the parts keep.
fn kept_columns(format: Format, paths: &[PathBuf], jobs: &[Job], settings: &Settings) -> Result<KeptColumns> {
    if format != Format::Parquet {
        let text =
            "the parts keep columns of their input, which only Parquet can hold; give --output the ending .parquet";
        return Err(LabelError::Usage(text.into()));
    }
    let mut ordered: Vec<(u64, &PathBuf)> = jobs.iter().map(|job| job.shard.number).zip(paths).collect();
    ordered.sort();
    let ordered: Vec<PathBuf> = ordered.into_iter().map(|(_, path)| path.clone()).collect();
    FromParts::open(&ordered, &settings.layout)
}

/// Copies among the images of all parts. `None` where the search was stopped: the observer then stops the rest, too.
fn find_copies(paths: &[PathBuf], most: u32, options: &MergeOptions, observer: &dyn Observer) -> Result<Option<Found>> {
    refuse_existing(&duplicates::path_for(&options.output), options.force)?;
    let mut store = Store::default();
    paths.iter().try_for_each(|part| sidecar::read(part, &mut store))?;
    Ok(Found::search(store, most, observer))
}

/// No output may be a part or what lies beside one, or another output; one that is there already must be meant.
fn check_outputs(options: &MergeOptions) -> Result<()> {
    let mut sources = Sources::of(&options.parts);
    for part in &options.parts {
        let beside = [job::path_for(part), failures::path_for(part), sidecar::path_for(part)];
        beside.iter().for_each(|path| sources.add(path));
    }
    let page = options.gallery.as_ref().map(|(path, _)| path);
    let named: Vec<&Path> =
        [Some(&options.output), options.failed.as_ref(), page].into_iter().flatten().map(PathBuf::as_path).collect();
    let list = failures::path_for(&options.output);
    let copies = duplicates::path_for(&options.output);
    let beside = [job::path_for(&options.output), options.failed.clone().unwrap_or(list), copies];
    for out in named.iter().copied().chain(beside.iter().map(PathBuf::as_path)) {
        sources.refuse(out)?;
    }
    refuse_twins(&named)?;
    named.into_iter().try_for_each(|out| Ok(refuse_existing(out, options.force)?))
}

/// The parts without the lists that lie beside them: `part-*.csv` means all.
fn without_lists(paths: &[PathBuf]) -> Vec<PathBuf> {
    let beside =
        |path: &PathBuf| [failures::path_for(path), failures::passed_path_for(path), duplicates::path_for(path)];
    let lists: BTreeSet<PathBuf> = paths.iter().flat_map(beside).collect();
    paths.iter().filter(|path| !lists.contains(*path)).cloned().collect()
}

fn write_gallery(page: &Path, settings: &Settings, shown: &Shown<'_>, observer: &dyn Observer) -> Result<()> {
    if settings.inputs.iter().any(|input| input == "-") {
        return Err(LabelError::Settings(
            "the inputs were listed on standard input, so --gallery cannot find them again".into(),
        ));
    }
    let about = About {
        model: settings.model.clone(),
        inputs: settings.inputs.clone(),
        names: settings.layout.names.clone(),
        min_confidence: settings.layout.min_confidence,
        kind: settings.item().kind(),
    };
    gallery::write(page, &settings.open_inputs(observer)?, settings.limits(), shown, &about)
}

fn read_job(part: &Path) -> Result<Job> {
    let file = job::path_for(part);
    if part.exists() && !file.exists() {
        let reason = format!("{} is missing beside it, which says what the part is; copy it, too", file.display());
        return Err(LabelError::file(part, reason));
    }
    match part.try_exists() {
        Ok(true) => Job::read(part),
        Ok(false) => Err(LabelError::file(part, "does not exist; check the path")),
        Err(error) => Err(LabelError::wrap(part, error)),
    }
}

/// Are these all the parts of one run? Gives what they have in common.
fn check_parts(paths: &[PathBuf], jobs: &[Job]) -> Result<Settings> {
    let (Some(first), Some(first_path)) = (jobs.first(), paths.first()) else {
        return Err(LabelError::Usage("there are no parts to join; name the files that the shards wrote".into()));
    };
    let mut seen = BTreeSet::new();
    for (path, job) in paths.iter().zip(jobs) {
        if job.state != State::Complete {
            return Err(LabelError::file(path, "this part is not complete; run its command again with --resume"));
        }
        if job.shard.count != first.shard.count {
            let reason = format!("it is shard {}, and {} is shard {}", job.shard, first_path.display(), first.shard);
            return Err(LabelError::file(path, format!("{reason}; all parts must come from one run")));
        }
        if let Some(difference) = job::difference(&first.settings, &job.settings) {
            let reason = format!("it was made with other settings than {} ({difference})", first_path.display());
            return Err(LabelError::file(path, reason));
        }
        if !seen.insert(job.shard.number) {
            return Err(LabelError::file(path, format!("shard {} is there twice", job.shard)));
        }
    }
    let missing: Vec<String> = (1..=first.shard.count).filter(|n| !seen.contains(n)).map(|n| n.to_string()).collect();
    if !missing.is_empty() {
        let text =
            format!("shard {} of {} is missing; name the files of all shards", missing.join(", "), first.shard.count);
        return Err(LabelError::Settings(text));
    }
    Ok(first.settings.clone())
}

/// Takes the row with the next index from whichever part has it, and shows it to `seen`. `None` where it was stopped.
fn join(
    mut parts: Vec<Rows>,
    mut writing: Writing,
    (shape, total): (ItemShape, u64),
    observer: &dyn Observer,
    seen: &mut dyn FnMut(&Row),
) -> Result<Option<Writing>> {
    let mut run: Vec<Row> = Vec::with_capacity(RUN);
    let mut items = Items::empty(shape);
    // The part that gave a row most likely gives the next one, too.
    let mut at = 0;
    for index in 0..total {
        if observer.stop() {
            return Ok(None);
        }
        let Some((row, item)) = take(&mut parts, &mut at, index)? else {
            return Err(LabelError::Settings(format!("no part has row {index}; label the parts again")));
        };
        seen(&row);
        observer.advance(1);
        run.push(row);
        if let Some(item) = item {
            items.append(&item);
        }
        if run.len() == RUN || held(&items) >= HELD || index + 1 == total {
            writing.write(&run, &items)?;
            run.clear();
            items.clear();
        }
    }
    Ok(Some(writing))
}

/// Bytes that items take.
fn held(items: &Items) -> usize {
    match items {
        Items::Images { pixels, .. } => pixels.len(),
        Items::Sequences { values, .. } | Items::Features { values, .. } => size_of_val(values.as_slice()),
    }
}

fn take(parts: &mut [Rows], at: &mut usize, index: u64) -> Result<Option<Stored>> {
    for step in 0..parts.len() {
        let part = (*at + step) % parts.len();
        let next = parts[part].next_if(|stored| stored.as_ref().map_or(true, |(row, _)| row.index == index));
        if let Some(stored) = next {
            *at = part;
            return stored.map(Some);
        }
    }
    Ok(None)
}
