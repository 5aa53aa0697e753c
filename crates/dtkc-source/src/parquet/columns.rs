//! Columns of a Parquet file that someone wants as they are, and by what the file is known again.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use flate2::Crc;
use parquet::basic::{Repetition, Type as Physical};
use parquet::errors::Result as Parsed;
use parquet::file::reader::FileReader;
use parquet::schema::types::{Type, TypePtr};

use super::file::{self, Reader};
use super::leaves::{Leaf, check_groups};
use super::plan::{Plan, RowColumns};
use super::{listed, shown};
use crate::{SourceError, remote};

/// The most bytes of a text that a file says about itself.
const MAX_ABOUT: usize = 16 << 20;

/// Which columns are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// By their names; all where nobody names any.
    pub names: Option<&'a [String]>,
    /// Whether the images are, too, where nobody names columns.
    pub images: bool,
    /// Which column holds the images.
    pub columns: &'a RowColumns,
    /// The flag that says it, for errors.
    pub flag: &'a str,
}

/// The columns of a file that were chosen.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// What they are called and hold. Each of them may be missing: rows of other files must find a place, too.
    pub fields: Vec<TypePtr>,
    /// Their places among the columns.
    pub places: Vec<usize>,
    /// How many columns there are.
    pub of: usize,
    /// What the file is known by.
    pub mark: Mark,
    /// What the file says about itself: keys and texts.
    pub about: Vec<(String, String)>,
    /// The leaves of the columns, and whether each needs one level more than it has: those of columns that are never
    /// missing in the file.
    pub(super) leaves: Vec<(usize, bool)>,
    kinds: Vec<Physical>,
    lists: Vec<bool>,
}

/// What a file is known by: its length, and a checksum of what stands at its end, where every column, row group and page is
/// described. It goes with the content, not with the time or the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Bytes of the file.
    pub length: u64,
    /// The checksum.
    pub sum: u32,
}

impl Mark {
    /// That of a file.
    pub fn of(path: &Path) -> Result<Self, SourceError> {
        Self::read(path).map_err(|error| SourceError::file(path, error.to_string()))
    }

    fn read(path: &Path) -> io::Result<Self> {
        let mut file = remote::File::open(path)?;
        let length = file.size()?;
        let mut tail = [0; 8];
        let mut sum = Crc::new();
        if let Some(at) = length.checked_sub(8) {
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut tail)?;
            let described = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
            file.seek(SeekFrom::Start(at.saturating_sub(described)))?;
            let mut buffer = [0; 1 << 14];
            loop {
                match file.read(&mut buffer)? {
                    0 => break,
                    read => sum.update(&buffer[..read]),
                }
            }
        }
        Ok(Self { length, sum: sum.sum() })
    }
}

impl Chosen {
    /// Looks at a file: finds the columns, and that its pages can be read within bounds. Nothing is unpacked.
    pub fn of(path: &Path, choice: &Choice<'_>) -> Result<Self, SourceError> {
        file::guarded(path, || {
            let reader = file::open(path)?;
            let places = places(path, &reader, choice)?;
            Self::at(path, &reader, places)
        })
    }

    /// The first columns of a file.
    pub fn first(path: &Path, count: usize) -> Result<Self, SourceError> {
        file::guarded(path, || Self::at(path, &file::open(path)?, (0..count).collect()))
    }

    fn at(path: &Path, reader: &Reader, places: Vec<usize>) -> Result<Self, SourceError> {
        let known = reader.metadata().file_metadata();
        let schema = known.schema_descr();
        let fields = schema.root_schema().get_fields();
        let mut wanted = vec![false; fields.len()];
        places.iter().for_each(|place| wanted[*place] = true);
        let kept = |leaf: usize| wanted[schema.get_column_root_idx(leaf)];
        let is_required =
            |leaf: usize| schema.get_column_root(leaf).get_basic_info().repetition() == Repetition::REQUIRED;
        let leaves: Vec<(usize, bool)> =
            (0..schema.num_columns()).filter(|leaf| kept(*leaf)).map(|leaf| (leaf, is_required(leaf))).collect();
        check_groups(path, reader, &leaves)?;
        let chosen = places.iter().map(|place| optional(&fields[*place])).collect::<Parsed<_>>();
        let pairs = known.key_value_metadata().into_iter().flatten();
        let about = pairs.filter_map(|pair| Some((pair.key.clone(), pair.value.clone()?)));
        Ok(Self {
            fields: chosen.map_err(|e| file::unreadable(path, &e))?,
            of: fields.len(),
            places,
            mark: Mark::of(path)?,
            about: about.filter(|(_, text)| text.len() <= MAX_ABOUT).collect(),
            kinds: leaves.iter().map(|(leaf, _)| schema.column(*leaf).physical_type()).collect(),
            lists: leaves.iter().map(|(leaf, _)| schema.column(*leaf).max_rep_level() > 0).collect(),
            leaves,
        })
    }

    /// The leaves of the columns, without rows.
    pub fn empty(&self) -> Vec<Leaf> {
        self.kinds.iter().map(|kind| Leaf::of(*kind)).collect()
    }

    /// For each leaf of the columns whether it lies in lists.
    pub fn has_lists(&self) -> impl Iterator<Item = bool> + '_ {
        self.lists.iter().copied()
    }

    /// The first column that another file has otherwise, or not at all.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let pairs = self.fields.iter().zip(&other.fields).find(|(a, b)| a != b).map(|(a, _)| a);
        let longer = if self.fields.len() > other.fields.len() { self } else { other };
        let extra = || longer.fields.get(self.fields.len().min(other.fields.len()));
        pairs.or_else(extra).map(|field| shown(field.name()))
    }
}

fn places(path: &Path, reader: &Reader, choice: &Choice<'_>) -> Result<Vec<usize>, SourceError> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let fields = schema.root_schema().get_fields();
    let all = 0..fields.len();
    let Some(names) = choice.names else {
        let images = Plan::of(path, reader, choice.columns)?.map(|plan| schema.get_column_root_idx(plan.image));
        return Ok(all.filter(|place| choice.images || Some(*place) != images).collect());
    };
    if let Some(gone) = names.iter().find(|name| fields.iter().all(|field| field.name() != name.as_str())) {
        let there = listed(&fields.iter().map(|field| field.name().to_owned()).collect::<Vec<_>>());
        let reason = format!("there is no column '{}' ({}); there are {there}", shown(gone), choice.flag);
        return Err(SourceError::file(path, reason));
    }
    Ok(all.filter(|place| names.iter().any(|name| name == fields[*place].name())).collect())
}

/// The same column, which may be missing.
fn optional(field: &TypePtr) -> Parsed<TypePtr> {
    let about = field.get_basic_info();
    if about.repetition() != Repetition::REQUIRED {
        return Ok(field.clone());
    }
    let (converted, logical) = (about.converted_type(), about.logical_type_ref().cloned());
    let id = about.has_id().then(|| about.id());
    let made = match &**field {
        Type::PrimitiveType { physical_type, type_length, scale, precision, .. } => {
            let builder = Type::primitive_type_builder(field.name(), *physical_type);
            let builder = builder.with_length(*type_length).with_scale(*scale).with_precision(*precision);
            let builder = builder.with_converted_type(converted).with_logical_type(logical).with_id(id);
            builder.with_repetition(Repetition::OPTIONAL).build()?
        }
        Type::GroupType { fields, .. } => {
            let builder = Type::group_type_builder(field.name()).with_fields(fields.clone());
            let builder = builder.with_converted_type(converted).with_logical_type(logical).with_id(id);
            builder.with_repetition(Repetition::OPTIONAL).build()?
        }
    };
    Ok(Arc::new(made))
}
