//! Rows to Arrow columns and back.

use std::sync::Arc;

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float32Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::error::{LabelError, Result};
use crate::layout::Layout;
use crate::row::{Label, Row, error_text, parse_error};

fn vector_type(size: usize) -> DataType {
    DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Float32, true)), size as i32)
}

/// The columns of a table.
pub(super) fn schema(layout: &Layout) -> Schema {
    let mut fields = vec![
        Field::new("index", DataType::Int64, false),
        Field::new("path", DataType::Utf8, false),
        Field::new("cluster", DataType::Int32, true),
        Field::new("cluster_name", DataType::Utf8, true),
        Field::new("confidence", DataType::Float32, true),
        Field::new("second_cluster", DataType::Int32, true),
        Field::new("second_confidence", DataType::Float32, true),
        Field::new("margin", DataType::Float32, true),
    ];
    if layout.truth {
        fields.push(Field::new("truth", DataType::Utf8, true));
    }
    fields.push(Field::new("error", DataType::Utf8, true));
    if layout.probabilities {
        fields.push(Field::new("probabilities", vector_type(layout.clusters()), true));
    }
    if layout.embedding > 0 {
        fields.push(Field::new("embedding", vector_type(layout.embedding), true));
    }
    Schema::new(fields)
}

/// Rows as one batch of columns.
pub(super) fn to_batch(rows: &[Row], layout: &Layout, schema: &Arc<Schema>) -> Result<RecordBatch> {
    let labels = || rows.iter().map(|row| row.outcome.as_ref().ok());
    let floats =
        |get: fn(&Label) -> f32| -> ArrayRef { Arc::new(labels().map(|l| l.map(get)).collect::<Float32Array>()) };
    let ids = |get: fn(&Label) -> u32| -> ArrayRef {
        Arc::new(labels().map(|l| l.map(|l| get(l) as i32)).collect::<Int32Array>())
    };
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| Some(row.index as i64)).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| Some(row.path.as_str())).collect::<StringArray>()),
        ids(|l| l.cluster),
        Arc::new(labels().map(|l| l.map(|l| layout.name(l))).collect::<StringArray>()),
        floats(|l| l.confidence),
        ids(|l| l.second),
        floats(|l| l.second_confidence),
        floats(|l| l.margin),
    ];
    if layout.truth {
        columns.push(Arc::new(rows.iter().map(|row| row.truth.as_deref()).collect::<StringArray>()));
    }
    columns.push(Arc::new(rows.iter().map(|row| row.outcome.as_ref().err().map(error_text)).collect::<StringArray>()));
    if layout.probabilities {
        columns.push(vectors(rows, layout.clusters(), |l| &l.probabilities));
    }
    if layout.embedding > 0 {
        columns.push(vectors(rows, layout.embedding, |l| &l.embedding));
    }
    let batch = RecordBatch::try_new(schema.clone(), columns);
    batch.map_err(|e| LabelError::Settings(format!("the rows do not fit the table ({e})")))
}

fn vectors(rows: &[Row], size: usize, get: fn(&Label) -> &Vec<f32>) -> ArrayRef {
    let mut builder = FixedSizeListBuilder::new(Float32Builder::with_capacity(rows.len() * size), size as i32);
    for row in rows {
        match &row.outcome {
            Ok(label) => builder.values().append_slice(get(label)),
            Err(_) => builder.values().append_nulls(size),
        }
        builder.append(row.outcome.is_ok());
    }
    Arc::new(builder.finish())
}

/// The rows of a batch; `None` where a column is missing or of another type.
pub(super) fn to_rows(batch: &RecordBatch, layout: &Layout) -> Option<Vec<Row>> {
    let column = |name: &str| batch.column_by_name(name);
    let ids = |name: &str| column(name)?.as_primitive_opt::<Int32Type>();
    let floats = |name: &str| column(name)?.as_primitive_opt::<Float32Type>();
    let texts = |name: &str| column(name)?.as_string_opt::<i32>();
    let index = column("index")?.as_primitive_opt::<Int64Type>()?;
    let (path, error) = (texts("path")?, texts("error")?);
    let truth = if layout.truth { Some(texts("truth")?) } else { None };
    let (cluster, second) = (ids("cluster")?, ids("second_cluster")?);
    let (confidence, second_confidence) = (floats("confidence")?, floats("second_confidence")?);
    let margin = floats("margin")?;
    let vector = |name: &str, row: usize| -> Option<Vec<f32>> {
        let list = column(name)?.as_fixed_size_list_opt()?.value(row);
        Some(list.as_primitive_opt::<Float32Type>()?.values().to_vec())
    };
    let row = |i: usize| {
        let outcome = match error.is_null(i) {
            false => Err(parse_error(error.value(i))),
            true => Ok(Label {
                cluster: cluster.value(i) as u32,
                confidence: confidence.value(i),
                second: second.value(i) as u32,
                second_confidence: second_confidence.value(i),
                margin: margin.value(i),
                probabilities: if layout.probabilities { vector("probabilities", i)? } else { vec![] },
                embedding: if layout.embedding > 0 { vector("embedding", i)? } else { vec![] },
            }),
        };
        let truth = truth.filter(|t| t.is_valid(i)).map(|t| t.value(i).to_owned());
        Some(Row { index: index.value(i) as u64, path: path.value(i).to_owned(), truth, outcome })
    };
    (0..batch.num_rows()).map(row).collect()
}
