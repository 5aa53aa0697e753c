//! A name for the content, whatever the chunking and compression.

use dtkc_item::Items;
use sha2::{Digest, Sha256};

use super::{Dataset, Values};
use crate::DataError;

/// Bytes that are read at once.
const BLOCK_BYTES: usize = 4 << 20;

/// SHA-256 over a description of the shape, the values in order, and the labels.
pub fn of(dataset: &Dataset) -> Result<String, DataError> {
    let mut hash = Sha256::new();
    match &dataset.values {
        Values::Images { shape, rows } => {
            hash.update(format!("dtkc images {} {shape}\n", rows.len()));
            let step = rows.rows_for(BLOCK_BYTES);
            let mut buffer = vec![0; step.min(rows.len()) * rows.row_bytes()];
            for start in (0..rows.len()).step_by(step) {
                let end = rows.len().min(start + step);
                let part = &mut buffer[..(end - start) * rows.row_bytes()];
                rows.read(start..end, part)?;
                hash.update(&*part);
            }
        }
        Values::Sequences { dim, offsets, .. } => {
            hash.update(format!("dtkc sequences {} {dim}\n", dataset.len()));
            for &offset in offsets {
                hash.update((offset as u64).to_le_bytes());
            }
            let steps = offsets.last().copied().unwrap_or(0);
            let block = (BLOCK_BYTES / (dim * size_of::<f32>())).max(1);
            for start in (0..steps).step_by(block) {
                for value in dataset.read_steps(start..steps.min(start + block))? {
                    hash.update(value.to_le_bytes());
                }
            }
        }
        Values::Features { shape, len, .. } => {
            hash.update(format!("dtkc features {len} {} {}\n", shape.rows(), shape.dim));
            for tap in shape.taps.iter() {
                hash.update(format!("tap {:?}\n", tap.sizes()));
            }
            let step = dataset.chunk_rows();
            for start in (0..*len).step_by(step) {
                let Items::Features { values, .. } = dataset.items_of(start..(start + step).min(*len))? else {
                    continue;
                };
                values.iter().for_each(|value| hash.update(value.to_le_bytes()));
            }
        }
    }
    if let Some(labels) = dataset.labels()? {
        hash.update(b"labels\n");
        for label in labels {
            hash.update(label.to_le_bytes());
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
