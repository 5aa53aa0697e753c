//! Kept columns on their way into a Parquet table.

use std::fs::File;

use ::parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type, Int96Type,
};
use ::parquet::errors::{ParquetError, Result as Written};
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::{Type, TypePtr};
use dtkc_source::parquet::{Leaf, Values};

use crate::error::Result;
use crate::keep::{KeptColumns, KeptRows};

/// What the columns of a row group wait with in memory: a group is closed when it comes to so many bytes.
const GROUP_BYTES: u64 = 64 << 20;

/// What the file says about itself.
pub(super) fn about(kept: &KeptColumns) -> Vec<KeyValue> {
    kept.about.iter().map(|(key, text)| KeyValue::new(key.clone(), text.clone())).collect()
}

/// A schema with those columns before its own.
pub(super) fn before(fields: &[TypePtr], schema: &Type) -> Written<Type> {
    let all = fields.iter().chain(schema.get_fields()).cloned().collect();
    Type::group_type_builder(schema.name()).with_fields(all).build()
}

/// The kept columns of the rows that wait for their row group.
pub(super) struct Kept {
    source: Box<dyn KeptRows>,
    leaves: Vec<Leaf>,
    bytes: u64,
}

impl Kept {
    pub(super) fn new(kept: KeptColumns, writer: &SerializedFileWriter<File>) -> Self {
        let schema = writer.schema_descr();
        let is_kept = |leaf: &usize| schema.get_column_root_idx(*leaf) < kept.fields.len();
        let leaves = (0..schema.num_columns()).take_while(is_kept);
        let leaves = leaves.map(|leaf| Leaf::of(schema.column(leaf).physical_type())).collect();
        Self { source: kept.source, leaves, bytes: 0 }
    }

    /// Reads the columns of a row, and says whether its row group is full.
    pub(super) fn add(&mut self, index: u64) -> Result<bool> {
        self.bytes += self.source.read(index, &mut self.leaves)?;
        Ok(self.bytes >= GROUP_BYTES)
    }

    /// Writes the columns of all rows that were added since.
    pub(super) fn write(&mut self, group: &mut SerializedRowGroupWriter<'_, File>) -> Written<()> {
        for leaf in &mut self.leaves {
            let Some(mut out) = group.next_column()? else {
                return Err(ParquetError::General("the table has too few columns".to_owned()));
            };
            write_leaf(&mut out, leaf)?;
            out.close()?;
        }
        self.bytes = 0;
        Ok(())
    }
}

fn write_leaf(out: &mut SerializedColumnWriter<'_>, leaf: &mut Leaf) -> Written<()> {
    let Leaf { values, def, rep } = leaf;
    let rep = Some(rep).filter(|rep| !rep.is_empty());
    match values {
        Values::Bool(values) => write_values::<BoolType>(out, values, def, rep),
        Values::I32(values) => write_values::<Int32Type>(out, values, def, rep),
        Values::I64(values) => write_values::<Int64Type>(out, values, def, rep),
        Values::I96(values) => write_values::<Int96Type>(out, values, def, rep),
        Values::F32(values) => write_values::<FloatType>(out, values, def, rep),
        Values::F64(values) => write_values::<DoubleType>(out, values, def, rep),
        Values::Bytes(values) => write_values::<ByteArrayType>(out, values, def, rep),
        Values::Fixed(values) => write_values::<FixedLenByteArrayType>(out, values, def, rep),
    }
}

/// Writes and forgets values. Columns that may be missing have levels, and all kept ones may.
fn write_values<T: DataType>(
    out: &mut SerializedColumnWriter<'_>,
    values: &mut Vec<T::T>,
    def: &mut Vec<i16>,
    rep: Option<&mut Vec<i16>>,
) -> Written<()> {
    out.typed::<T>().write_batch(values, Some(def), rep.as_deref().map(Vec::as_slice))?;
    values.clear();
    def.clear();
    if let Some(rep) = rep {
        rep.clear();
    }
    Ok(())
}
