//! Sequences in a table: CSV with a column of ids, a row for every sequence, or one sequence as a whole.

use std::ops::ControlFlow;

use actix_web::web::Bytes;
use dtkc_formats::record::{Content as Read, Record};
use dtkc_formats::sequences::lines::Text;
use dtkc_formats::sequences::taken;
use dtkc_infer::SequenceSpec;

use super::budget::Held;
use super::name::name;
use crate::engine::{Content, Upload};
use crate::error::ApiError;

/// While a table is read, a byte of it may be a part of so many bytes of values and times, twice where a list grows.
const PER_BYTE: u64 = 12;
/// And a byte of its longest line of so many bytes of fields.
const PER_LINE_BYTE: u64 = 16;

/// What reading a table takes at most, beside the table.
pub fn cost(bytes: &[u8]) -> u64 {
    let longest = bytes.split(|&byte| byte == b'\n').map(<[u8]>::len).max().unwrap_or(0);
    PER_BYTE * bytes.len() as u64 + PER_LINE_BYTE * longest as u64
}

/// Reads a table with at most `most` sequences. `file` names it among others; alone it has no name. The memory that
/// [`cost`] tells must be held already.
pub fn parse(file: Option<&str>, bytes: Bytes, spec: SequenceSpec, most: usize) -> Result<Vec<Upload>, ApiError> {
    let text = Text::memory(file.unwrap_or("the table"), bytes);
    let mut uploads: Vec<Upload> = Vec::new();
    let mut sink = |Record { content, path, .. }: Record| {
        let name = match (file, path) {
            (Some(file), Some(id)) => name(&format!("{file}#{id}")),
            (Some(file), None) => name(file),
            (None, Some(id)) => name(&id),
            (None, None) => uploads.len().to_string(),
        };
        let content = match content {
            Read::Sequence(mut values) => {
                values.shrink_to_fit();
                Content::Sequence { dim: spec.dim, values }
            }
            Read::Unreadable(error) => Content::Failed(error),
            Read::File(_) | Read::Encoded(_) | Read::Pixels(_) => return ControlFlow::Break(()),
        };
        uploads.push(Upload { name, content });
        if uploads.len() > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    taken::sequences(&text, spec.dim, &mut sink).map_err(|error| ApiError::BadTable(error.to_string()))?;
    match uploads.len() > most {
        true => Err(ApiError::TooManyImages { limit: most }),
        false => Ok(uploads),
    }
}

/// Holds what the sequences take, and no longer what reading them took.
pub fn settle(uploads: &[Upload], held: &mut Held) -> Result<(), ApiError> {
    let each = |upload: &Upload| (size_of::<Upload>() + upload.name.len() + upload.weight()) as u64;
    held.settle(uploads.iter().map(each).sum())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const SPEC: SequenceSpec = SequenceSpec { dim: 2, max_steps: 100 };

    fn read(file: Option<&str>, text: &'static str) -> Result<Vec<Upload>, ApiError> {
        parse(file, Bytes::from_static(text.as_bytes()), SPEC, 2)
    }

    fn names(uploads: &[Upload]) -> Vec<&str> {
        uploads.iter().map(|upload| upload.name.as_str()).collect()
    }

    #[test]
    fn tables_are_named_by_ids_places_and_files() {
        assert_eq!(names(&read(None, "id,x,y\na,1,2\nb,3,4\n").unwrap()), ["a", "b"]);
        assert_eq!(names(&read(Some("f.csv"), "id,x,y\na,1,2\nb,3,4\n").unwrap()), ["f.csv#a", "f.csv#b"]);
        assert_eq!(names(&read(None, "x,y\n1,2\n3,4\n").unwrap()), ["0"]);
        let whole = read(Some("f.csv"), "x,y\n1,2\n3,4\n").unwrap();
        assert_eq!((names(&whole), whole[0].sequence().unwrap()), (vec!["f.csv"], (2, &[1.0, 2.0, 3.0, 4.0][..])));
    }

    #[test]
    fn too_many_and_other_dimensions_are_refused() {
        let many = read(None, "id,x,y\na,1,2\nb,3,4\nc,5,6\n").unwrap_err();
        assert_eq!(many, ApiError::TooManyImages { limit: 2 });
        let error = read(None, "id,x\na,1\n").unwrap_err().to_string();
        assert!(error.contains("has 1 value a step and the model takes 2"), "{error}");
    }

    #[test]
    fn no_table_takes_more_than_was_booked() {
        // The worst: short rows with a time each, one sequence.
        let text = format!("id,t,x,y\n{}", "a,1,2,3\n".repeat(10_000));
        let (size, booked) = (text.len() as u64, cost(text.as_bytes()));
        let times = 10_000 * 32 * 2;
        assert!(booked > times + 10_000 * 2 * 4 * 2 && booked < 20 * size, "{booked} for {size}");
    }
}
