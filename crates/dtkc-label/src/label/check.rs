//! What is looked at before a run begins.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use dtkc_files::{Sources, real, refuse_existing, refuse_twins};
use dtkc_observe::Observer;
use dtkc_source::classes::FolderClasses;
use dtkc_source::parquet::RowColumns;

use super::{LabelOptions, Outcome, Output};
use crate::duplicates::{self, sidecar};
use crate::error::{LabelError, Result};
use crate::export::{Export, Naming, Tool};
use crate::failures;
use crate::feed::Fed;
use crate::finish;
use crate::job::{self, Head, Job, Settings, State};
use crate::journal;
use crate::label::Replaced;
use crate::layout::{Layout, UNSURE};
use crate::output::{self, Format};
use crate::source::Inputs;
use crate::tally::Tally;

/// What can be said against a run before it begins.
pub(super) fn check(options: &LabelOptions, inputs: &Inputs) -> Result<()> {
    if options.model.metadata().clusters.iter().any(|c| c.name.as_deref() == Some(UNSURE)) {
        return Err(LabelError::Settings(format!(
            "a cluster is called '{UNSURE}', the word for items below --min-confidence; give it another name with --names"
        )));
    }
    duplicates_possible(options)?;
    exports_possible(options, inputs)?;
    keeping_possible(options)?;
    outputs(options, inputs)?;
    if let Some((root, _)) = &options.sort {
        let root = real(root);
        if let Some(folder) = inputs.folders().find(|folder| root.starts_with(real(folder))) {
            let text = format!(
                "--sort-into {} lies in the input {}, which would then grow while it is read; choose a folder outside",
                root.display(),
                folder.display()
            );
            return Err(LabelError::Usage(text));
        }
    }
    if options.truth {
        if let Some(files) = inputs.files().find(|files| !files.has_classes()) {
            let text = format!("{} has no labels to compare with; leave --truth out", files.text());
            return Err(LabelError::Settings(text));
        }
        for table in inputs.tables() {
            if !table.load_truth()? {
                return Err(LabelError::Settings(format!(
                    "{} has no labels to compare with; leave --truth out",
                    table.path()
                )));
            }
        }
    }
    let paths = [options.gallery.as_ref().map(|(path, _)| path), options.failed.as_ref()];
    paths.into_iter().flatten().try_for_each(|path| finish::check_folder(path))?;
    options.exports.iter().try_for_each(|export| {
        let first = export.first();
        if first.is_file() && !export.files().contains(&first) {
            let tool = export.tool.name();
            let text = format!("{} is a file, and --export {tool} makes a folder there; name another", first.display());
            return Err(LabelError::Usage(text));
        }
        finish::check_folder(&first)
    })
}

/// Copies are found by what images look like, and listed beside a file.
fn duplicates_possible(options: &LabelOptions) -> Result<()> {
    match (options.duplicates, &options.output) {
        (Some(_), _) if options.model.image().is_none() => Err(LabelError::Usage(
            "--duplicates compares what images look like, and the model takes sequences; leave it out".into(),
        )),
        (Some(_), Output::Stream(_)) => Err(LabelError::Usage(
            "--duplicates lists copies beside an output file, and rows go to standard output; name a file with --output"
                .into(),
        )),
        _ => Ok(()),
    }
}

/// Columns of any type go from Parquet to Parquet.
fn keeping_possible(options: &LabelOptions) -> Result<()> {
    match (&options.keep, &options.output) {
        (None, _) => Ok(()),
        (Some(_), _) if options.model.image().is_none() => Err(LabelError::Usage(
            "--keep-columns keeps what stands beside images, and the model takes sequences; leave it out".into(),
        )),
        (Some(_), Output::File(_, Format::Parquet)) => Ok(()),
        (Some(_), _) => Err(LabelError::Usage(
            "--keep-columns keeps columns of any type, which only Parquet can hold; give --output the ending .parquet"
                .into(),
        )),
    }
}

/// Labelling tools show images, which they must find.
fn exports_possible(options: &LabelOptions, inputs: &Inputs) -> Result<()> {
    let Some(first) = options.exports.first() else { return Ok(()) };
    let refused = |text: String| Err(LabelError::Usage(text));
    let tool = first.tool.name();
    if options.model.image().is_none() {
        return refused(format!("--export {tool} is for a tool that shows images, and the model takes sequences"));
    }
    if let Output::Stream(_) = options.output {
        return refused(format!(
            "--export {tool} is written beside an output file, and rows go to standard output; name a file with --output"
        ));
    }
    for table in inputs.tables() {
        if !table.has_paths()? {
            return refused(format!(
                "{} holds images without their paths, so {tool} cannot find them; label the folder that they came from, or \
                 bring them into one with --sort-into and label that",
                table.path()
            ));
        }
    }
    if let Some(table) = inputs.tables().next().filter(|_| !inputs.only_tables()) {
        return refused(format!(
            "the paths in {} go from the folder that it was made of, and those of the other inputs from the current one, so \
             an export cannot name both; label it apart",
            table.path()
        ));
    }
    let opens = options.exports.iter().find(|export| {
        export.tool.opens_files() && !(export.tool == Tool::LabelStudio && options.export_url.is_some())
    });
    match opens.and_then(|export| Some((export.tool.name(), inputs.packed().next()?))) {
        Some((tool, packed)) => refused(format!(
            "{tool} opens images as files, and those of {} lie inside it; unpack it and label the folder{}",
            packed.display(),
            if tool == Tool::LabelStudio.name() { ", or say where they can be found with --export-url" } else { "" }
        )),
        None => Ok(()),
    }
}

/// How exports name images. What lies elsewhere than the user says is refused before any work is done.
pub(super) fn naming(options: &LabelOptions, inputs: &Inputs) -> Result<Naming> {
    let places = inputs.places();
    let naming = Naming::new(options.export_root.as_deref(), options.export_url.as_deref(), &places)?;
    let naming = if inputs.only_tables() { naming.from_root() } else { naming };
    if !options.exports.is_empty() {
        naming.check(&places)?;
    }
    Ok(naming)
}

/// Where copies are listed, or what a shard leaves for that.
fn duplicates_path(options: &LabelOptions, output: &Path) -> Option<PathBuf> {
    options.duplicates?;
    Some(if options.shard.count > 1 { sidecar::path_for(output) } else { duplicates::path_for(output) })
}

/// Everything that a run writes, whether the user named it or not.
fn written(options: &LabelOptions) -> Vec<PathBuf> {
    let mut written = named(options);
    if let Output::File(path, _) = &options.output {
        let journal = journal::path_for(path);
        written.extend([journal::items_path(path), journal, job::path_for(path)]);
        written.push(failures::passed_path_for(path));
        written.extend(duplicates_path(options, path));
        if options.failed.is_none() {
            written.push(failures::path_for(path));
        }
    }
    written
}

/// The outputs that the user named, and what belongs to them.
fn named(options: &LabelOptions) -> Vec<PathBuf> {
    let output = if let Output::File(path, _) = &options.output { Some(path) } else { None };
    let page = options.gallery.as_ref().map(|(path, _)| path);
    let named = [output, options.failed.as_ref(), page].into_iter().flatten().cloned();
    named.chain(options.exports.iter().flat_map(Export::files)).collect()
}

/// No output may be an input, lie among the inputs, or be another output.
fn outputs(options: &LabelOptions, inputs: &Inputs) -> Result<()> {
    let mut written = written(options);
    // A folder is no file, and cannot be one of the others.
    written.extend(options.exports.iter().filter(|e| !e.files().contains(&e.path)).map(|e| e.path.clone()));
    let mut sources = inputs.sources();
    options.reads.iter().for_each(|path| sources.add(path));
    for out in &written {
        sources.refuse(out)?;
        if inputs.patterns().any(|pattern| pattern.names(out)) {
            let text = format!(
                "{} matches a pattern of --input, so it would be read, too; choose another name",
                out.display()
            );
            return Err(LabelError::Usage(text));
        }
    }
    Ok(refuse_twins(&written.iter().map(PathBuf::as_path).collect::<Vec<_>>())?)
}

/// What is there already must be gone on with, or the user must say that it may be replaced. To be asked under the lock.
pub(super) fn existing(options: &LabelOptions) -> Result<()> {
    let mut may = options.force;
    if let Output::File(path, _) = &options.output
        && journal::exists(path)
    {
        if !options.resume && !options.force {
            let reason = "an unfinished run is kept here; add --resume to go on with it, or --force to start over";
            return Err(LabelError::file(&journal::path_for(path), reason));
        }
        may |= options.resume;
    }
    if let Output::File(path, _) = &options.output
        && let Some(list) = duplicates_path(options, path)
    {
        refuse_existing(&list, may)?;
    }
    named(options).iter().try_for_each(|out| Ok(refuse_existing(out, may)?))
}

/// Files that the run will replace: an input that only a list or a link leads to must not be one of them.
pub(super) fn replaced(options: &LabelOptions) -> Replaced {
    Replaced::new(Sources::of(written(options).into_iter().filter(|path| path.is_file())))
}

/// The classes that folders stand for. Where nothing has a class there is nothing to compare with.
pub(super) fn classes(inputs: &Inputs, observer: &dyn Observer) -> Result<FolderClasses> {
    observer.begin("find classes", "images", None);
    let classes = inputs.classes(&mut || {
        observer.advance(1);
        if observer.stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    observer.end();
    match classes.any() || inputs.tables().next().is_some() || inputs.files().next().is_some() || observer.stop() {
        true => Ok(classes),
        false => {
            let text = "the images have no labels and lie in no folders that could be classes to compare with; \
                        leave --truth out, or name a column of labels with --label-column";
            Err(LabelError::Settings(text.into()))
        }
    }
}

pub(super) fn settings(options: &LabelOptions) -> Settings {
    let model = &options.model;
    let layout = Layout {
        names: (0..model.clusters()).map(|id| model.metadata().cluster_name(id)).collect(),
        min_confidence: options.min_confidence,
        probabilities: options.probabilities,
        embedding: if options.embedding { model.embedding_size() } else { 0 },
        truth: options.truth,
        outlier: model.outlier().map(|outlier| outlier.threshold),
    };
    let columns = if model.image().is_some() { options.columns.clone() } else { RowColumns::default() };
    Settings {
        model: model.name().to_owned(),
        model_sha256: model.fingerprint(),
        inputs: options.inputs.clone(),
        layout,
        shape: model.image().map(|image| image.shape()),
        dim: model.shape().dim(),
        sequences: model.shape().dim().map(|_| options.sequences.clone()),
        image_column: columns.image,
        id_column: columns.name,
        label_column: columns.label,
        max_bytes: options.limits.max_bytes,
        max_side: options.limits.max_side,
        max_pixels: options.limits.max_pixels,
        sort_into: options.sort.as_ref().map(|(root, _)| root.clone()),
        keep: options.keep.clone(),
        tables: None,
        duplicates: options.duplicates,
    }
}

/// `--resume` of a run that had come to its end: nothing to do but to show the figures again.
pub(super) fn complete_already(options: &LabelOptions, head: &Head) -> Result<Option<Outcome>> {
    let Output::File(path, format) = &options.output else { return Ok(None) };
    if !options.resume || journal::exists(path) || !path.exists() {
        return Ok(None);
    }
    let Some(job) = Job::find(path)?.filter(|job| job.state == State::Complete) else { return Ok(None) };
    if let Some(difference) = job::difference(&Head { shard: job.shard, settings: job.settings }, head) {
        let reason = format!(
            "it is complete, but was made with other settings ({difference}); leave --resume out and add --force to make it anew"
        );
        return Err(LabelError::file(path, reason));
    }
    if let Some(gone) = options.exports.iter().flat_map(Export::files).find(|file| !file.exists()) {
        let reason = format!(
            "it is complete, and {} is not there: exports are made when a run ends; leave --resume out and add --force to make both",
            gone.display()
        );
        return Err(LabelError::file(path, reason));
    }
    let mut tally = Tally::new(&head.settings.layout);
    for stored in output::read(path, *format, &head.settings.layout)? {
        tally.add(&stored?.0);
    }
    let summary = tally.summary()?;
    let list = options.failed.clone().unwrap_or_else(|| failures::path_for(path));
    let failed_list = (summary.failed > 0).then_some(list);
    let fed = Fed { seen: summary.images, ..Fed::default() };
    let passed_list = Some(failures::passed_path_for(path)).filter(|list| list.exists());
    let (processed, seconds, complete_already) = (0, 0.0, true);
    let duplicates = None;
    Ok(Some(Outcome { summary, fed, failed_list, passed_list, duplicates, processed, seconds, complete_already }))
}
