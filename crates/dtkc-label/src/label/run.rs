//! A run under way: rows to the journal (or standard output), figures beside them, and what is made at the end.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use dtkc_infer::Pool;
use dtkc_item::Items;
use dtkc_observe::Observer;
use dtkc_source::{ListFile, PassedOver};

use super::{LabelOptions, Outcome, Output};
use crate::duplicates::sidecar::SidecarWriter;
use crate::duplicates::{Found, Print, Store};
use crate::error::{LabelError, Result};
use crate::export::{self, Naming};
use crate::failures::{self, FailureList};
use crate::feed::{Fed, Item, Past};
use crate::finish::{self, Target};
use crate::gallery::{self, About, CopyPicks, Picks, Shown};
use crate::job::{Head, Job, State};
use crate::journal::{self, Journal};
use crate::keep::Kept;
use crate::layout::Layout;
use crate::output::{self, Format, Held, RowWriter};
use crate::pipeline::{self, Plan};
use crate::row::Row;
use crate::source::Inputs;
use crate::tally::{Summary, Tally};

pub(super) struct Run<'a> {
    options: &'a LabelOptions,
    head: Head,
    /// How exports name images.
    naming: Naming,
    observer: &'a dyn Observer,
    sink: Sink,
    past: Option<Earlier>,
    figures: Figures,
    /// Images of this run.
    processed: u64,
    started: Instant,
}

/// Where finished rows go.
#[allow(clippy::large_enum_variant)] // There is one in a run.
enum Sink {
    Journal { journal: Journal, target: Target },
    Stream { writer: Box<dyn RowWriter>, failures: Option<FailureList> },
}

/// What earlier runs did.
#[derive(Clone, Copy)]
struct Earlier {
    rows: u64,
    last: u64,
}

/// What is counted and remembered of rows as they go by.
struct Figures {
    tally: Tally,
    picks: Picks,
}

impl Figures {
    fn add(&mut self, row: &Row) {
        self.tally.add(row);
        self.picks.add(row);
    }
}

impl<'a> Run<'a> {
    pub(super) fn start(
        options: &'a LabelOptions,
        head: Head,
        naming: Naming,
        observer: &'a dyn Observer,
    ) -> Result<Self> {
        let layout = &head.settings.layout;
        let each = options.gallery.as_ref().map_or(0, |(_, each)| *each);
        let mut figures =
            Figures { tally: Tally::new(layout), picks: Picks::new(layout.clusters(), each).above(layout.outlier) };
        let mut past = None;
        let sink = match &options.output {
            Output::Stream(format) => Sink::Stream {
                writer: output::stream(std::io::stdout().lock(), *format, layout)?,
                failures: options.failed.as_deref().map(FailureList::new),
            },
            Output::File(path, format) => {
                finish::check_folder(path)?;
                let journal = open_journal(options, &head, (path, *format), &mut |row| {
                    let rows = past.map_or(0, |done: Earlier| done.rows);
                    past = Some(Earlier { rows: rows + 1, last: row.index });
                    figures.add(row);
                })?;
                Sink::Journal { journal, target: target(options, &head, path, *format) }
            }
        };
        observer.begin("label", options.model.shape().kind().name(), None);
        observer.skip(past.map_or(0, |done| done.rows));
        Ok(Self { options, head, naming, observer, sink, past, figures, processed: 0, started: Instant::now() })
    }

    pub(super) fn is_resumed(&self) -> bool {
        self.past.is_some()
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.head.settings.layout
    }

    pub(super) fn label(&mut self, plan: &Plan<'_>, pool: Pool<Vec<Item>>) -> Result<Fed> {
        let past = match (&self.sink, self.past) {
            (Sink::Journal { target, .. }, Some(done)) => Some(Past::open(&target.path, done.last)?),
            _ => None,
        };
        let Self { observer, sink, figures, processed, .. } = self;
        let done = AtomicBool::new(false);
        let fed = std::thread::scope(|scope| {
            // Counting runs beside the work: the time left is known soon, and nobody waits for it.
            let counting = scope.spawn(|| {
                let total = plan.inputs.count(&|| done.load(Ordering::Relaxed));
                total.map(|total| observer.set_total(plan.feed.shard.size(total)))
            });
            let fed = pipeline::run(plan, pool, past, &|| observer.stop(), &mut |rows, items| {
                sink.write(&rows, items)?;
                rows.iter().for_each(|row| figures.add(row));
                if figures.tally.failed() > 0 {
                    observer.note(format_args!("{} failed", dtkc_human::count(figures.tally.failed())));
                }
                *processed += rows.len() as u64;
                observer.advance(rows.len() as u64);
                Ok(())
            });
            done.store(true, Ordering::Relaxed);
            // A count that broke down only costs the time left.
            let _ = counting.join();
            fed
        });
        self.observer.end();
        fed
    }

    /// Leaves nothing behind.
    pub(super) fn discard(self) -> Result<()> {
        self.sink.discard()
    }

    /// Makes what was asked for. The journal is removed last: until then a kill can be resumed.
    pub(super) fn finish(self, inputs: &Inputs, kept: Option<&Kept>, mut fed: Fed) -> Result<Outcome> {
        if fed.seen == 0 && !fed.stopped {
            self.sink.discard()?;
            return Err(LabelError::NoImages(nothing(self.options, &fed.passed)));
        }
        let summary = self.figures.tally.summary()?;
        let mut copies = None;
        if !fed.stopped {
            // Before the output is made: who stops the search has a run that can go on.
            copies = self.find_copies()?;
            fed.stopped = copies.is_none() && self.looks_for_copies();
        }
        let (failed_list, journal) = match self.sink {
            Sink::Stream { writer, failures } => {
                writer.finish().map_err(unstreamable)?;
                (failures.map(FailureList::finish).transpose()?.flatten(), None)
            }
            Sink::Journal { journal, target } => {
                journal.check_there()?;
                let state = if fed.stopped { State::Interrupted } else { State::Complete };
                let job = Job::new(state, summary.images, self.head.shard, &self.head.settings);
                let columns = kept.map(|kept| kept.columns(std::mem::take(&mut fed.places)));
                let made = finish::from_journal(&target, columns, summary.images, self.observer);
                let list =
                    made.and_then(|list| job.write(&target.path).map(|()| list)).map_err(|e| unmade(&target, e))?;
                (list, Some(journal))
            }
        };
        let (mut passed_list, mut duplicates) = (None, None);
        if !fed.stopped {
            if let (Some(copies), Output::File(path, _)) = (&copies, &self.options.output) {
                duplicates = Some(copies.write(path)?);
            }
            passed_list = fed.list.take().map(ListFile::finish).transpose()?.flatten();
            if let Output::File(path, _) = &self.options.output {
                let settings = &self.head.settings;
                let about = export::About {
                    output: path,
                    layout: &settings.layout,
                    model: &settings.model,
                    sha256: &settings.model_sha256,
                    naming: &self.naming,
                    images: summary.labelled,
                };
                export::write(&self.options.exports, &about, self.observer).map_err(|e| unexported(path, e))?;
            }
            if let Some((page, _)) = &self.options.gallery {
                write_gallery(page, self.options, inputs, &self.figures.picks, &summary, copies.as_ref())?;
            }
            journal.map_or(Ok(()), Journal::remove)?;
        }
        let seconds = self.started.elapsed().as_secs_f64();
        let processed = self.processed;
        let complete_already = false;
        Ok(Outcome { summary, fed, failed_list, passed_list, duplicates, processed, seconds, complete_already })
    }

    /// Whether this run itself finds copies: a shard knows only its own images.
    fn looks_for_copies(&self) -> bool {
        self.options.duplicates.is_some() && self.head.shard.count == 1
    }

    /// Copies among the rows of the journal; `None` where nobody asked for them, or the search was stopped. A shard
    /// leaves its prints for `merge`.
    fn find_copies(&self) -> Result<Option<Found>> {
        let (Some(most), Sink::Journal { journal, target }) = (self.options.duplicates, &self.sink) else {
            return Ok(None);
        };
        journal.check_there()?;
        if !self.looks_for_copies() {
            let mut sidecar = SidecarWriter::start(&target.path)?;
            journal::for_each(&target.path, &mut |row| match print_of(row) {
                Some(print) => sidecar.push(row.index, print),
                None => Ok(()),
            })?;
            sidecar.finish()?;
            return Ok(None);
        }
        let mut store = Store::for_images(self.figures.tally.labelled());
        journal::for_each(&target.path, &mut |row| match print_of(row) {
            Some(print) => store.push(row.index, print),
            None => Ok(()),
        })?;
        let Some(mut found) = Found::search(store, most, self.observer) else { return Ok(None) };
        journal::for_each(&target.path, &mut |row| {
            found.hear(row, &target.layout);
            Ok(())
        })?;
        Ok(Some(found))
    }
}

fn print_of(row: &Row) -> Option<&Print> {
    row.outcome.as_ref().ok()?.print.as_deref()
}

impl Sink {
    fn write(&mut self, rows: &[Row], items: &Items) -> Result<()> {
        match self {
            Self::Journal { journal, .. } => journal.append(rows, items),
            Self::Stream { writer, failures } => {
                // Whoever reads the stream wants rows when they are ready.
                writer.write(rows, items).and_then(|()| writer.flush()).map_err(unstreamable)?;
                match failures {
                    Some(list) => rows.iter().try_for_each(|row| list.add(row)),
                    None => Ok(()),
                }
            }
        }
    }

    fn discard(self) -> Result<()> {
        match self {
            Self::Journal { journal, .. } => journal.remove(),
            Self::Stream { .. } => Ok(()),
        }
    }
}

/// The rows are not lost with the file that could not be made.
fn unmade(target: &Target, error: LabelError) -> LabelError {
    if let LabelError::Lost(_) = error {
        return error;
    }
    let journal = journal::path_for(&target.path);
    let remedy = format!("the same command with --resume makes it from {}, where all rows are safe", journal.display());
    LabelError::unwritable(target.path.display(), &error, &remedy)
}

/// All that was asked for is there but an export, which can be made again.
fn unexported(output: &Path, error: LabelError) -> LabelError {
    let remedy = format!("{} is complete; the same command with --resume makes the exports", output.display());
    match error {
        LabelError::Usage(text) => LabelError::Usage(format!("{text} ({remedy})")),
        other => LabelError::Settings(format!("{other} ({remedy})")),
    }
}

/// A closed pipe stays what it is: its reader has seen enough, and nothing is wrong.
fn unstreamable(error: LabelError) -> LabelError {
    match error {
        LabelError::Io(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            LabelError::unwritable("standard output", &error, "")
        }
        other => other,
    }
}

/// A new journal, or that of an interrupted run, whose rows are shown to `seen`.
fn open_journal(
    options: &LabelOptions,
    head: &Head,
    (output, format): (&Path, Format),
    seen: &mut dyn FnMut(&Row),
) -> Result<Journal> {
    let items = format.wants_items().then(|| head.settings.item());
    let path = journal::path_for(output);
    match journal::exists(output) && options.resume {
        true => Journal::resume(output, items, |line| head.check(line, &path), seen),
        // What is there may be replaced: that was asked before.
        false => Journal::create(output, &head.line()?, items.is_some()),
    }
}

fn target(options: &LabelOptions, head: &Head, path: &Path, format: Format) -> Target {
    Target {
        path: path.to_owned(),
        format,
        layout: head.settings.layout.clone(),
        held: Held { shape: head.settings.item(), resize: options.model.image().map(|image| image.resize) },
        failed: options.failed.clone().unwrap_or_else(|| failures::path_for(path)),
    }
}

fn write_gallery(
    page: &Path,
    options: &LabelOptions,
    inputs: &Inputs,
    picks: &Picks,
    summary: &Summary,
    copies: Option<&Found>,
) -> Result<()> {
    let names = summary.clusters.iter().map(|c| c.name.clone()).collect();
    let about = About {
        model: options.model.name().to_owned(),
        inputs: options.inputs.clone(),
        names,
        min_confidence: options.min_confidence,
        kind: options.model.shape().kind(),
    };
    let shown = Shown { summary, picks, copies: CopyPicks::of(copies) };
    gallery::write(page, inputs, options.limits, &shown, &about)
}

fn nothing(options: &LabelOptions, passed: &PassedOver) -> String {
    let what = options.inputs.join(", ");
    let item = if options.model.image().is_some() { "image" } else { "sequence" };
    match passed.total() {
        0 => format!("there is no {item} in {what}; check the path or the pattern"),
        total => format!(
            "there is no {item} in {what}: its {} are passed over ({}); \
             name files of any ending with a pattern, as in --input 'folder/*'",
            if total == 1 { "1 file".to_owned() } else { format!("{} files", dtkc_human::count(total)) },
            passed.kinds()
        ),
    }
}
