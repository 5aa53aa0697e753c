//! `--export FORMAT=PATH`: the labels as a labelling tool imports them, with clusters as suggested labels.
//!
//! Everything is written from the journal, image by image, so memory does not grow with their number. What a tool sees is
//! each image that was labelled; one below `--min-confidence` comes without a label, for people to decide.

mod coco;
mod cvat;
mod fiftyone;
mod label_studio;
mod naming;
mod text;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use dtkc_files::Pending;
use dtkc_observe::Observer;
pub use naming::Naming;

use crate::error::{LabelError, Result};
use crate::journal;
use crate::layout::Layout;
use crate::row::{Label, Row};

/// A tool that imports labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Label Studio: tasks with predictions.
    LabelStudio,
    /// CVAT: tags of images.
    Cvat,
    /// FiftyOne: a dataset of classified images.
    FiftyOne,
    /// Datumaro, and who else reads labels in the words of COCO.
    Coco,
}

impl Tool {
    const ALL: [Self; 4] = [Self::LabelStudio, Self::Cvat, Self::FiftyOne, Self::Coco];

    /// As the flag names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::LabelStudio => "label-studio",
            Self::Cvat => "cvat",
            Self::FiftyOne => "fiftyone",
            Self::Coco => "coco",
        }
    }

    /// Whether it opens the files of images by their paths, and not by names that its user gives it with the images.
    pub fn opens_files(self) -> bool {
        matches!(self, Self::LabelStudio | Self::FiftyOne)
    }
}

/// One file, or a few, for a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// For whom.
    pub tool: Tool,
    /// Where.
    pub path: PathBuf,
}

impl FromStr for Export {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let forms = "label-studio=FILE.json, cvat=FILE.xml, fiftyone=FILE.json or coco=FOLDER";
        let Some((name, path)) = text.split_once('=') else {
            return Err(format!("'{text}' is not a format and a path; write {forms}"));
        };
        let plain = |name: &str| name.replace(['-', '_', ' '], "").to_ascii_lowercase();
        let asked = plain(name);
        let tool = Tool::ALL.into_iter().find(|tool| plain(tool.name()) == asked).ok_or_else(|| {
            let alike = |tool: &Tool| asked.len() > 1 && plain(tool.name()).starts_with(asked.get(..2).unwrap_or("\0"));
            match Tool::ALL.into_iter().find(alike) {
                Some(tool) => format!("there is no export for '{name}'; did you mean {}? write {forms}", tool.name()),
                None => format!("there is no export for '{name}'; write {forms}"),
            }
        })?;
        let ending = match tool {
            Tool::LabelStudio | Tool::FiftyOne => ".json",
            Tool::Cvat => ".xml",
            Tool::Coco => "",
        };
        if path.is_empty() || !path.to_ascii_lowercase().ends_with(ending) {
            return Err(format!("the file for {} ends in {ending}; write {forms}", tool.name()));
        }
        Ok(Self { tool, path: path.into() })
    }
}

impl Export {
    /// What is made first: the file, or a folder on the way to it.
    pub fn first(&self) -> PathBuf {
        match self.tool {
            Tool::Coco => coco::first(&self.path),
            _ => self.path.clone(),
        }
    }

    /// The files that are made.
    pub fn files(&self) -> Vec<PathBuf> {
        match self.tool {
            Tool::LabelStudio => vec![self.path.clone(), label_studio::config_path(&self.path)],
            Tool::Cvat => vec![self.path.clone(), cvat::labels_path(&self.path)],
            Tool::FiftyOne => vec![self.path.clone()],
            Tool::Coco => vec![coco::file(&self.path)],
        }
    }
}

/// What every export must know.
pub struct About<'a> {
    /// The output whose journal is read.
    pub output: &'a Path,
    /// What clusters are called.
    pub layout: &'a Layout,
    /// The model.
    pub model: &'a str,
    /// Its checksum.
    pub sha256: &'a str,
    /// How images are named.
    pub naming: &'a Naming,
    /// How many images are labelled.
    pub images: u64,
}

/// An image that is exported.
struct Image<'a> {
    row: &'a Row,
    label: &'a Label,
    /// What it is labelled with, as a place among [`Labels`]; `None` where that is not sure enough.
    class: Option<usize>,
}

impl Image<'_> {
    /// Width and height, which the journal of an older version does not have.
    fn size(&self) -> Result<(u32, u32)> {
        self.label.size.ok_or_else(|| {
            let text = "the run was begun by an older version, which did not keep the sizes of images; \
                        start it over with --force instead of --resume, or leave this --export out";
            LabelError::Settings(text.to_owned())
        })
    }
}

/// The labels that a tool is told of, each name once: clusters may have the same.
struct Labels {
    names: Vec<String>,
    /// By cluster.
    places: Vec<usize>,
}

impl Labels {
    fn of(layout: &Layout) -> Self {
        let mut labels = Self { names: Vec::new(), places: Vec::new() };
        for (cluster, name) in layout.names.iter().enumerate() {
            let name = text::clean(name);
            let name = if name.trim().is_empty() { format!("cluster {cluster}") } else { name };
            let place = labels.names.iter().position(|known| *known == name).unwrap_or_else(|| {
                labels.names.push(name);
                labels.names.len() - 1
            });
            labels.places.push(place);
        }
        labels
    }

    fn name(&self, place: usize) -> &str {
        self.names.get(place).map_or("", String::as_str)
    }
}

impl About<'_> {
    /// The model and the beginning of its checksum: what a prediction comes from.
    fn version(&self) -> String {
        format!("{} {}", text::clean(self.model), self.sha256.get(..8).unwrap_or(self.sha256))
    }

    /// Shows every image that was labelled, in order.
    fn each(&self, labels: &Labels, seen: &mut dyn FnMut(&Image<'_>) -> Result<()>) -> Result<()> {
        journal::for_each(self.output, &mut |row| {
            let Ok(label) = &row.outcome else { return Ok(()) };
            let class = labels.places.get(label.cluster as usize).copied();
            seen(&Image { row, label, class: class.filter(|_| !self.layout.is_unsure(label)) })
        })
    }
}

/// Makes what was asked for.
pub fn write(exports: &[Export], about: &About<'_>, observer: &dyn Observer) -> Result<()> {
    let labels = Labels::of(about.layout);
    for export in exports {
        observer.begin(&format!("export for {}", export.tool.name()), "images", Some(about.images));
        let made = match export.tool {
            Tool::LabelStudio => label_studio::write(&export.path, about, &labels, observer),
            Tool::Cvat => cvat::write(&export.path, about, &labels, observer),
            Tool::FiftyOne => fiftyone::write(&export.path, about, &labels, observer),
            Tool::Coco => coco::write(&export.path, about, &labels, observer),
        };
        observer.end();
        made?;
    }
    Ok(())
}

/// A file on its way, whose errors name it.
struct Out {
    pending: Pending,
    file: BufWriter<File>,
}

impl Out {
    fn beside(target: &Path) -> Result<Self> {
        let pending = Pending::beside(target)?;
        let file = BufWriter::with_capacity(1 << 18, pending.open()?);
        Ok(Self { pending, file })
    }

    fn text(&mut self, text: &str) -> Result<()> {
        self.file.write_all(text.as_bytes()).map_err(|error| self.pending.failed(&error).into())
    }

    /// A value as JSON.
    fn json(&mut self, value: &impl serde::Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.file, value).map_err(|error| self.pending.failed(&error.into()).into())
    }

    fn finish(mut self) -> Result<()> {
        self.file.flush().map_err(|error| self.pending.failed(&error))?;
        drop(self.file);
        Ok(self.pending.commit()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_names() {
        let export = |text: &str| text.parse::<Export>();
        assert_eq!(export("cvat=a=b.xml"), Ok(Export { tool: Tool::Cvat, path: "a=b.xml".into() }));
        assert_eq!(export("Label_Studio=t.json").map(|export| export.tool), Ok(Tool::LabelStudio));
        for (text, words) in [
            ("tasks.json", "is not a format and a path"),
            ("labelstudoi=a.json", "did you mean label-studio?"),
            ("cvta=a.xml", "did you mean cvat?"),
            ("yolo=a", "there is no export for 'yolo'; write label-studio=FILE.json"),
            ("é=a", "there is no export"),
            ("cvat=a.json", "the file for cvat ends in .xml"),
            ("coco=", "the file for coco"),
        ] {
            assert!(export(text).is_err_and(|error| error.contains(words)), "{text}: {:?}", export(text));
        }
    }

    #[test]
    fn clusters_of_one_name_are_one_label() {
        let names = ["cat", "", "cat", "a\u{1}b"].map(str::to_owned).to_vec();
        let layout =
            Layout { names, min_confidence: None, probabilities: false, embedding: 0, truth: false, outlier: None };
        let labels = Labels::of(&layout);
        assert_eq!(labels.names, ["cat", "cluster 1", "a\u{fffd}b"]);
        assert_eq!(labels.places, [0, 1, 0, 2]);
    }
}
