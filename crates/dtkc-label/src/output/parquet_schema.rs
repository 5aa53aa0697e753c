//! The columns of a Parquet table: one list that the schema, the writer and the reader follow.

use std::borrow::Cow;
use std::fmt::Write;

use ::parquet::errors::Result as Parsed;
use ::parquet::schema::parser::parse_message_type;
use ::parquet::schema::types::{Type, TypePtr};

use crate::layout::Layout;
use crate::row::{Label, Row, error_text};

pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) values: Values,
}

/// What a column holds. Rows that could not be labelled have neither ids nor numbers nor vectors.
pub(super) enum Values {
    Index,
    Path,
    Id(fn(&Label) -> u32),
    Number(fn(&Label) -> Option<f32>),
    Text(for<'a> fn(&'a Row, &'a Layout) -> Option<Cow<'a, str>>),
    /// A list of so many numbers.
    Vector(usize, fn(&Label) -> &[f32]),
}

/// A column of the labels, as others see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelField {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: FieldKind,
}

/// What a column holds: see `Values`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FieldKind {
    Index,
    Path,
    Id,
    Number,
    Text,
    Vector,
    /// An element of a vector.
    Element,
}

/// The columns of labels behind `kept` ones.
pub fn label_fields(layout: &Layout, kept: &[TypePtr]) -> Vec<LabelField> {
    let kind = |values: &Values| match values {
        Values::Index => FieldKind::Index,
        Values::Path => FieldKind::Path,
        Values::Id(_) => FieldKind::Id,
        Values::Number(_) => FieldKind::Number,
        Values::Text(_) => FieldKind::Text,
        Values::Vector(..) => FieldKind::Vector,
    };
    let columns = columns(layout, kept);
    columns.iter().map(|Column { name, values }| LabelField { name, kind: kind(values) }).collect()
}

/// The columns that a layout asks for, in order, behind `kept` ones. The position and the path make way for columns of the
/// same name; what the model says does not.
pub(super) fn columns(layout: &Layout, kept: &[TypePtr]) -> Vec<Column> {
    let column = |name: &'static str, values| {
        let taken = || kept.iter().any(|field| field.name() == name);
        let name = match name {
            "index" if taken() => "dtkc_index",
            "path" if taken() => "dtkc_path",
            name => name,
        };
        Column { name, values }
    };
    let mut columns = vec![
        column("index", Values::Index),
        column("path", Values::Path),
        column("cluster", Values::Id(|l| l.cluster)),
        column("cluster_name", Values::Text(|row, layout| Some(layout.name(row.outcome.as_ref().ok()?).into()))),
        column("confidence", Values::Number(|l| Some(l.confidence))),
        column("second_cluster", Values::Id(|l| l.second)),
        column("second_confidence", Values::Number(|l| Some(l.second_confidence))),
        column("margin", Values::Number(|l| Some(l.margin))),
    ];
    if layout.outlier.is_some() {
        columns.push(column("outlier", Values::Number(|l| l.outlier)));
    }
    if layout.truth {
        columns.push(column("truth", Values::Text(|row, _| row.truth.as_deref().map(Cow::from))));
    }
    columns.push(column("error", Values::Text(|row, _| row.outcome.as_ref().err().map(|e| error_text(e).into()))));
    if layout.probabilities {
        columns.push(column("probabilities", Values::Vector(layout.clusters(), |l| &l.probabilities)));
    }
    if layout.embedding > 0 {
        columns.push(column("embedding", Values::Vector(layout.embedding, |l| &l.embedding)));
    }
    columns
}

/// The columns in the format's own words.
pub(super) fn schema(columns: &[Column]) -> Parsed<Type> {
    let mut text = String::from("message labels {");
    for Column { name, values } in columns {
        let _ = match values {
            Values::Index => write!(text, "required int64 {name};"),
            Values::Path => write!(text, "required binary {name} (STRING);"),
            Values::Id(_) => write!(text, "optional int32 {name};"),
            Values::Number(_) => write!(text, "optional float {name};"),
            Values::Text(_) => write!(text, "optional binary {name} (STRING);"),
            Values::Vector(..) => {
                write!(text, "optional group {name} (LIST) {{ repeated group list {{ required float element; }} }}")
            }
        };
    }
    text.push('}');
    parse_message_type(&text)
}
