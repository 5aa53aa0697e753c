//! `--sort-into DIR`: a folder per cluster with the images in it.

use std::fs;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use dtkc_files::real;
use dtkc_item::ImageShape;
use image::ExtendedColorType;

use crate::error::{LabelError, Result};
use crate::feed::Item;
use crate::layout::{Layout, UNSURE};
use crate::row::Label;
use crate::source::Origin;

/// How an image gets into its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum How {
    /// A hard link, or a copy where the file system cannot link.
    Auto,
    /// A hard link: no space, and it stays when the original is deleted.
    Hardlink,
    /// A symbolic link to the original.
    Symlink,
    /// A copy.
    Copy,
}

/// The image to put there.
pub enum Content<'a> {
    /// A file of its own.
    File(&'a Path),
    /// The bytes of an archive's entry.
    Bytes(&'a [u8]),
    /// Pixels of a dataset's row, written as PNG.
    Pixels(ImageShape, &'a [u8]),
    /// Steps of so many values each, written as a table with a row for every step.
    Steps(usize, &'a [f32]),
}

/// Puts images into folders; shared by the workers.
pub struct Sorter {
    root: PathBuf,
    how: How,
    layout: Layout,
    folders: Vec<String>,
}

impl Sorter {
    /// Prepares the folder. It must be new or empty, unless `shared` (a resumed run, or one of several shards).
    pub fn create(root: &Path, how: How, layout: &Layout, shared: bool) -> Result<Self> {
        fs_err::create_dir_all(root)?;
        if !shared && fs_err::read_dir(root)?.next().is_some() {
            return Err(LabelError::file(root, "this folder is not empty; choose a new one for --sort-into"));
        }
        let folders = layout.names.iter().enumerate().map(|(id, name)| folder_name(id, name, layout.clusters()));
        Ok(Self { root: root.to_owned(), how, layout: layout.clone(), folders: folders.collect() })
    }

    /// Puts one image where it belongs. Doing it twice gives the same.
    pub fn place(&self, item: &Item, label: &Label, content: Content<'_>) -> Result<()> {
        let folder = match self.layout.is_unsure(label) {
            true => UNSURE,
            false => self.folders.get(label.cluster as usize).map_or(UNSURE, String::as_str),
        };
        let target = self.root.join(folder).join(place_of(item));
        self.put(&content, &target).map_err(|e| LabelError::unwritable(target.display(), &e, ""))
    }

    fn put(&self, content: &Content<'_>, target: &Path) -> io::Result<()> {
        match self.put_once(content, target) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                // The first image of its folder.
                fs::create_dir_all(target.parent().unwrap_or(target))?;
                self.put_once(content, target)
            }
            // The folder that is sorted into holds the original, which must not be removed.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && is_the_original(content, target) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(target)?;
                self.put_once(content, target)
            }
            result => result,
        }
    }

    fn put_once(&self, content: &Content<'_>, target: &Path) -> io::Result<()> {
        match (content, self.how) {
            (Content::File(path), How::Hardlink) => hard_link(path, target),
            (Content::File(path), How::Auto) => match hard_link(path, target) {
                Err(e) if !matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists) => {
                    copy(path, target)
                }
                result => result,
            },
            (Content::File(path), How::Symlink) => symlink(&std::path::absolute(path)?, target),
            (Content::File(path), How::Copy) => copy(path, target),
            (Content::Bytes(bytes), _) => write_new(target, bytes),
            (Content::Pixels(shape, pixels), _) => {
                let color = if shape.channels == 1 { ExtendedColorType::L8 } else { ExtendedColorType::Rgb8 };
                let mut png = io::Cursor::new(Vec::new());
                let (width, height) = (shape.width as u32, shape.height as u32);
                image::write_buffer_with_format(&mut png, pixels, width, height, color, image::ImageFormat::Png)
                    .map_err(io::Error::other)?;
                write_new(target, &png.into_inner())
            }
            (Content::Steps(dim, steps), _) => write_new(target, steps_as_text(*dim, steps).as_bytes()),
        }
    }
}

/// A row for every step, as `dtkc-data import --format csv-each` reads it.
fn steps_as_text(dim: usize, steps: &[f32]) -> String {
    let names: Vec<String> = (1..=dim).map(|place| format!("x{place}")).collect();
    let row = |step: &[f32]| step.iter().map(f32::to_string).collect::<Vec<_>>().join(",") + "\n";
    names.join(",") + "\n" + &steps.chunks_exact(dim.max(1)).map(row).collect::<String>()
}

/// Whether a place is that of the file itself, and not only of another link to it.
fn is_the_original(content: &Content<'_>, target: &Path) -> bool {
    let Content::File(path) = content else { return false };
    let place = |path: &Path| Some(real(path.parent()?).join(path.file_name()?));
    let there = place(target);
    there.is_some() && (there == place(path) || there == path.canonicalize().ok())
}

/// Never writes through what is there already: that may be a link to the original.
fn create_new(target: &Path) -> io::Result<fs::File> {
    fs::File::options().write(true).create_new(true).open(target)
}

fn copy(path: &Path, target: &Path) -> io::Result<()> {
    let mut source = fs::File::open(path)?;
    io::copy(&mut source, &mut create_new(target)?).map(|_| ())
}

fn write_new(target: &Path, bytes: &[u8]) -> io::Result<()> {
    create_new(target)?.write_all(bytes)
}

/// A link to the file itself, also where the path is a link.
fn hard_link(path: &Path, target: &Path) -> io::Result<()> {
    match path.is_symlink() {
        true => fs::hard_link(path.canonicalize()?, target),
        false => fs::hard_link(path, target),
    }
}

#[cfg(unix)]
fn symlink(path: &Path, target: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(path, target)
}

#[cfg(windows)]
fn symlink(path: &Path, target: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(path, target)
}

/// `03-cats`; only the number where nobody gave a name.
fn folder_name(id: usize, name: &str, clusters: usize) -> String {
    let digits = clusters.saturating_sub(1).to_string().len();
    let safe = |c: char| if c.is_control() || r#"/\:*?"<>|"#.contains(c) { '_' } else { c };
    let clean: String = name.chars().map(safe).take(60).collect();
    let clean = clean.trim_matches(['.', ' ']);
    match clean.is_empty() || name == format!("cluster {id}") {
        true => format!("{id:0digits$}"),
        false => format!("{id:0digits$}-{clean}"),
    }
}

/// Where below its cluster's folder an image goes: its path below the input, so that names stay what they were and
/// two images never meet. Rows of datasets go by their number.
fn place_of(item: &Item) -> PathBuf {
    let found = match &item.origin {
        Origin::Encoded(found) => found,
        Origin::Row { table, .. } if table.shape().image().is_some() => return format!("{:08}.png", item.index).into(),
        Origin::Row { .. } | Origin::Sequence(_) => return format!("{:08}.csv", item.index).into(),
    };
    // Nothing in an archive's names may lead out of the folder.
    let parts = Path::new(found.name()).components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("up".into()),
        _ => None,
    });
    let place: PathBuf = parts.collect();
    if place.as_os_str().is_empty() { format!("{:08}", item.index).into() } else { place }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use dtkc_source::{Body, Found};

    use super::*;

    fn item(path: &str, place: usize, body: Body) -> Item {
        Item { index: 7, truth: None, origin: Origin::Encoded(Found { path: path.into(), place, body, class: None }) }
    }

    #[test]
    fn folders_are_named_after_clusters() {
        assert_eq!(folder_name(3, "cats", 10), "3-cats");
        assert_eq!(folder_name(3, "cats/dogs: all", 11), "03-cats_dogs_ all");
        assert_eq!(folder_name(3, "cluster 3", 101), "003");
        assert_eq!(folder_name(3, "..", 10), "3");
    }

    #[test]
    fn names_cannot_lead_out_of_the_folder() {
        let place = |path: &str, from| place_of(&item(path, from, Body::Bytes(vec![])));
        assert_eq!(place("a.zip/x/1.png", 6), Path::new("x/1.png"));
        assert_eq!(place("a.zip/../../etc/1.png", 6), Path::new("up/up/etc/1.png"));
        assert_eq!(place("/abs/1.png", 0), Path::new("abs/1.png"));
        assert_eq!(place("..", 0), Path::new("up"));
        assert_eq!(place("/", 0), Path::new("00000007"));
    }

    #[test]
    fn placing_twice_is_placing_once() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("1.png");
        std::fs::write(&source, b"x").unwrap();
        let layout = Layout {
            names: vec!["cluster 0".into(), "b".into()],
            min_confidence: Some(0.5),
            probabilities: false,
            embedding: 0,
            truth: false,
            outlier: None,
        };
        let root = folder.path().join("sorted");
        let label = |cluster, confidence| Label { cluster, confidence, ..Label::default() };
        let first = item("in/1.png", 3, Body::File(source.clone()));
        for how in [How::Auto, How::Hardlink, How::Symlink, How::Copy] {
            let sorter = Sorter::create(&root, how, &layout, true).unwrap();
            for _ in 0..2 {
                sorter.place(&first, &label(1, 0.9), Content::File(&source)).unwrap();
                sorter.place(&first, &label(0, 0.2), Content::Bytes(b"y")).unwrap();
            }
            assert_eq!(std::fs::read(root.join("1-b/1.png")).unwrap(), b"x");
            assert_eq!(root.join("1-b/1.png").is_symlink(), how == How::Symlink);
            assert_eq!(std::fs::read(root.join("unsure/1.png")).unwrap(), b"y");
            assert_eq!(std::fs::read(&source).unwrap(), b"x", "the original is never written to");
        }
        // An original that lies where it would be sorted into stays.
        let original = root.join("1-b/2.png");
        std::fs::write(&original, b"z").unwrap();
        let second = item("1-b/2.png", 4, Body::File(original.clone()));
        for how in [How::Auto, How::Hardlink, How::Symlink, How::Copy] {
            let sorter = Sorter::create(&root, how, &layout, true).unwrap();
            sorter.place(&second, &label(1, 0.9), Content::File(&original)).unwrap();
            assert!(!original.is_symlink() && std::fs::read(&original).unwrap() == b"z", "{how:?}");
        }
        assert!(Sorter::create(&root, How::Auto, &layout, false).is_err_and(|e| e.to_string().contains("not empty")));
    }
}
