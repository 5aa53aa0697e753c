//! Which column of a Parquet file is what, by the schema.

use std::path::Path;

use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::file::reader::FileReader;
use parquet::schema::types::ColumnDescriptor;

use super::features::Features;
use super::file::Reader;
use super::{listed, shown};
use crate::SourceError;

/// Names of columns with encoded images, without `_` and the like.
const IMAGES: [&str; 17] = [
    "image",
    "img",
    "images",
    "picture",
    "photo",
    "pixels",
    "imagebytes",
    "imgbytes",
    "imagedata",
    "bytes",
    "jpg",
    "jpeg",
    "png",
    "webp",
    "content",
    "data",
    "file",
];
/// Names of columns that say how an image is called.
const NAMES: [&str; 14] = [
    "filename",
    "filepath",
    "imagepath",
    "imgpath",
    "path",
    "imagename",
    "imagefile",
    "imageid",
    "imgid",
    "key",
    "id",
    "uid",
    "uuid",
    "file",
];
/// Names of columns with the class.
const LABELS: [&str; 9] =
    ["label", "class", "target", "category", "labels", "classlabel", "classes", "finelabel", "cls"];

/// The columns as the user names them; what is not named is found by the schema.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowColumns {
    /// The encoded images.
    pub image: Option<String>,
    /// The names of the images.
    pub name: Option<String>,
    /// The classes.
    pub label: Option<String>,
}

/// Which column is what: places among the leaves of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The bytes of images.
    pub image: usize,
    /// The path beside the bytes, in a column of both.
    pub path: Option<usize>,
    /// Another column with names.
    pub name: Option<usize>,
    /// Whether that one was named by the user, and so comes before the path.
    pub chosen: bool,
    /// The class.
    pub label: Option<LabelColumn>,
}

/// The column of the class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelColumn {
    /// Its name.
    pub column: String,
    /// Its place among the leaves.
    pub leaf: usize,
    /// Whether it holds words and not numbers.
    pub words: bool,
    /// What the numbers are called, where the file says it.
    pub names: Option<Vec<String>>,
}

impl LabelColumn {
    /// The class that a cell stands for; nothing, or a negative number, says that it is not known. `Err` is a number that has
    /// no name where numbers have names.
    pub fn class(&self, cell: &str) -> Result<Option<String>, i64> {
        if self.words {
            return Ok(Some(shown(cell)).filter(|class| !class.is_empty()));
        }
        let Some(number) = self.number(cell) else { return Ok(None) };
        match &self.names {
            None => Ok(Some(number.to_string())),
            Some(names) => match usize::try_from(number).ok().and_then(|place| names.get(place)) {
                Some(name) => Ok(Some(name.clone())),
                None => Err(number),
            },
        }
    }

    /// The number in a cell; `None` where it is negative or none, so that the class is not known.
    pub fn number(&self, cell: &str) -> Option<i64> {
        cell.parse().ok().filter(|number: &i64| *number >= 0)
    }
}

impl Plan {
    /// Finds the columns; `None` where there is no column that could be images and none was named.
    pub fn of(path: &Path, reader: &Reader, columns: &RowColumns) -> Result<Option<Self>, SourceError> {
        let schema = reader.metadata().file_metadata().schema_descr();
        let leaves = Leaves { path, leaves: schema.columns().iter().map(|leaf| leaf.as_ref()).collect() };
        let Some(image) = leaves.image(columns.image.as_deref())? else { return Ok(None) };
        let parts = leaves.parts(image);
        let beside = |leaf: &usize| leaves.parts(*leaf) == [parts[0].as_str(), "path"];
        let beside = (0..leaves.leaves.len()).find(|leaf| parts.len() == 2 && beside(leaf) && leaves.is_cell(*leaf));
        let name = match &columns.name {
            Some(name) => Some(leaves.cell(name, "--id-column")?),
            None => leaves.guess(&NAMES).filter(|leaf| *leaf != image),
        };
        let label = leaves.label(columns.label.as_deref(), &Features::of(reader))?;
        Ok(Some(Self { image, path: beside, name, chosen: columns.name.is_some(), label }))
    }
}

/// The leaves of a schema.
struct Leaves<'a> {
    path: &'a Path,
    leaves: Vec<&'a ColumnDescriptor>,
}

impl Leaves<'_> {
    fn parts(&self, leaf: usize) -> &[String] {
        self.leaves[leaf].path().parts()
    }

    /// The names of the columns, each once.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.leaves.iter().filter_map(|leaf| leaf.path().parts().first().cloned()).collect();
        names.dedup();
        names
    }

    /// The leaf with the images, where there is one: that of the column of this name, or of one that looks like it.
    fn image(&self, wanted: Option<&str>) -> Result<Option<usize>, SourceError> {
        let images = || (0..self.leaves.len()).filter(|leaf| self.is_image(*leaf));
        if let Some(wanted) = wanted {
            if let Some(leaf) =
                images().find(|leaf| self.parts(*leaf)[0] == wanted || self.parts(*leaf).join(".") == wanted)
            {
                return Ok(Some(leaf));
            }
            let there = self.there(wanted, "--image-column")?;
            let lists = there.into_iter().any(|leaf| self.leaves[leaf].max_rep_level() > 0);
            let held = if lists { "holds lists; write one image in each row" } else { "holds no bytes of images" };
            let reason = format!("the column '{}' {held} (--image-column)", shown(wanted));
            return Err(SourceError::file(self.path, reason));
        }
        // What was made for images, then what is called so, then the only bytes there are.
        let twofold = images().find(|leaf| self.parts(*leaf).len() == 2);
        let called = || IMAGES.iter().find_map(|word| images().find(|leaf| plain(&self.parts(*leaf)[0]) == *word));
        let only = || Some(images().next()?).filter(|_| images().count() == 1);
        Ok(twofold.or_else(called).or_else(only))
    }

    /// Whether a leaf can be images: bytes that are no text, in a column of their own or called so in a column of two parts.
    fn is_image(&self, leaf: usize) -> bool {
        let descr = self.leaves[leaf];
        let text = matches!(descr.converted_type(), ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON)
            || matches!(descr.logical_type_ref(), Some(LogicalType::String | LogicalType::Enum | LogicalType::Json));
        let placed = match self.parts(leaf) {
            [_] => true,
            [_, part] => part == "bytes",
            _ => false,
        };
        descr.physical_type() == Physical::BYTE_ARRAY && !text && descr.max_rep_level() == 0 && placed
    }

    /// Whether a leaf has one value in a row that can be shown as text.
    fn is_cell(&self, leaf: usize) -> bool {
        let kind = self.leaves[leaf].physical_type();
        let odd = matches!(kind, Physical::INT96 | Physical::FIXED_LEN_BYTE_ARRAY);
        self.leaves[leaf].max_rep_level() == 0 && !odd
    }

    /// The leaves of the column of that name.
    fn there(&self, wanted: &str, flag: &str) -> Result<Vec<usize>, SourceError> {
        let found: Vec<usize> = (0..self.leaves.len()).filter(|leaf| self.parts(*leaf)[0] == wanted).collect();
        match found.is_empty() {
            false => Ok(found),
            true => {
                let names = listed(&self.names());
                let reason = format!("there is no column '{}' ({flag}); there are {names}", shown(wanted));
                Err(SourceError::file(self.path, reason))
            }
        }
    }

    /// The leaf of a column that the user names, which must have one value in a row.
    fn cell(&self, wanted: &str, flag: &str) -> Result<usize, SourceError> {
        let found = self.there(wanted, flag)?;
        match found[..] {
            [leaf] if self.is_cell(leaf) => Ok(leaf),
            _ => {
                let reason =
                    format!("the column '{}' has no single text or number in each row ({flag})", shown(wanted));
                Err(SourceError::file(self.path, reason))
            }
        }
    }

    /// The first of these words that is the name of a column with one value in a row.
    fn guess(&self, words: &[&str]) -> Option<usize> {
        let fits = |leaf: &usize| self.parts(*leaf).len() == 1 && self.is_cell(*leaf) && !self.is_image(*leaf);
        let called =
            |word: &&str| (0..self.leaves.len()).filter(fits).find(|leaf| plain(&self.parts(*leaf)[0]) == **word);
        words.iter().find_map(called)
    }

    fn label(&self, wanted: Option<&str>, features: &Features) -> Result<Option<LabelColumn>, SourceError> {
        let known = || (0..self.leaves.len()).find(|leaf| Some(self.parts(*leaf)[0].as_str()) == features.only_class());
        let leaf = match wanted {
            Some(wanted) => Some(self.cell(wanted, "--label-column")?),
            None => self.guess(&LABELS).or_else(known).filter(|leaf| self.is_cell(*leaf)),
        };
        Ok(leaf.map(|leaf| {
            let column = self.parts(leaf)[0].clone();
            let words = self.leaves[leaf].physical_type() == Physical::BYTE_ARRAY;
            let names = features.names(&column).filter(|_| !words).map(<[String]>::to_vec);
            LabelColumn { column, leaf, words, names }
        }))
    }
}

/// A name without what parts its words.
fn plain(name: &str) -> String {
    // Long ones are none of these words.
    name.chars().take(32).filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
}
