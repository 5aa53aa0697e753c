//! The bytes of a checkpoint.
//!
//! ```text
//! 8 bytes   "DTKCCKPT"
//! 4 bytes   version, little-endian
//! 8 bytes   length of the header
//! header    JSON: {"meta": .., "arrays": [{"name", "kind", "shape"}, ..]}
//! arrays    little-endian values, one after another in the order of the header
//! 32 bytes  SHA-256 of everything before
//! ```
//!
//! Numbers that must come back to the last bit are arrays; the header holds integers and words only, because
//! decimal text is not the place for a float that has to survive a round trip.

use std::path::Path;

use dtkc_core::{NamedArray, Values};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use crate::error::TrainError;

const MAGIC: &[u8; 8] = b"DTKCCKPT";
const VERSION: u32 = 2;
const PREFIX: usize = MAGIC.len() + 4 + 8;
const CHECKSUM: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Number {
    F32,
    F64,
    U32,
    U64,
}

impl Number {
    fn of(values: &Values) -> Self {
        match values {
            Values::F32(_) => Self::F32,
            Values::F64(_) => Self::F64,
            Values::U32(_) => Self::U32,
            Values::U64(_) => Self::U64,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::F32 | Self::U32 => 4,
            Self::F64 | Self::U64 => 8,
        }
    }

    fn read(self, bytes: &[u8]) -> Values {
        let (four, eight) = (bytes.as_chunks::<4>().0, bytes.as_chunks::<8>().0);
        match self {
            Self::F32 => Values::F32(four.iter().map(|&b| f32::from_le_bytes(b)).collect()),
            Self::F64 => Values::F64(eight.iter().map(|&b| f64::from_le_bytes(b)).collect()),
            Self::U32 => Values::U32(four.iter().map(|&b| u32::from_le_bytes(b)).collect()),
            Self::U64 => Values::U64(eight.iter().map(|&b| u64::from_le_bytes(b)).collect()),
        }
    }
}

fn write_values(values: &Values, out: &mut Vec<u8>) {
    match values {
        Values::F32(v) => v.iter().for_each(|x| out.extend_from_slice(&x.to_le_bytes())),
        Values::F64(v) => v.iter().for_each(|x| out.extend_from_slice(&x.to_le_bytes())),
        Values::U32(v) => v.iter().for_each(|x| out.extend_from_slice(&x.to_le_bytes())),
        Values::U64(v) => v.iter().for_each(|x| out.extend_from_slice(&x.to_le_bytes())),
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    name: String,
    kind: Number,
    shape: Vec<usize>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Header<M> {
    meta: M,
    arrays: Vec<Entry>,
}

/// Encodes `meta` and `arrays`.
pub fn encode<M: Serialize>(meta: &M, arrays: &[NamedArray]) -> serde_json::Result<Vec<u8>> {
    let entries = arrays.iter().map(|a| {
        debug_assert_eq!(a.shape.iter().product::<usize>(), a.values.len(), "{}", a.name);
        Entry { name: a.name.clone(), kind: Number::of(&a.values), shape: a.shape.clone() }
    });
    let header = Header { meta, arrays: entries.collect() };
    let header = serde_json::to_vec(&header)?;
    let size: usize = arrays.iter().map(|a| a.values.len() * Number::of(&a.values).bytes()).sum();
    let mut out = Vec::with_capacity(PREFIX + header.len() + size + CHECKSUM);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(header.len() as u64).to_le_bytes());
    out.extend_from_slice(&header);
    arrays.iter().for_each(|a| write_values(&a.values, &mut out));
    let checksum = Sha256::digest(&out);
    out.extend_from_slice(&checksum);
    Ok(out)
}

/// Decodes a checkpoint; `path` is only for the message.
pub fn decode<M: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<(M, Vec<NamedArray>), TrainError> {
    let damaged = |reason: &str| TrainError::DamagedCheckpoint { path: path.to_owned(), reason: reason.to_owned() };
    if bytes.len() < PREFIX + CHECKSUM {
        return Err(damaged("it is too short"));
    }
    if !bytes.starts_with(MAGIC) {
        return Err(damaged("it is not a checkpoint of dtkc-train"));
    }
    let version = u32::from_le_bytes(bytes[8..12].try_into().unwrap_or_default());
    if version != VERSION {
        return Err(TrainError::CheckpointVersion { path: path.to_owned(), found: version, known: VERSION });
    }
    let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
    if Sha256::digest(content).as_slice() != checksum {
        return Err(damaged("its checksum does not match its content"));
    }
    let length = u64::from_le_bytes(content[12..20].try_into().unwrap_or_default());
    let end = usize::try_from(length).ok().and_then(|n| n.checked_add(PREFIX)).filter(|&end| end <= content.len());
    let end = end.ok_or_else(|| damaged("its header runs past its end"))?;
    let header: Header<M> = serde_json::from_slice(&content[PREFIX..end])
        .map_err(|e| damaged(&format!("its header does not parse ({e})")))?;
    let arrays = read_arrays(header.arrays, &content[end..]).ok_or_else(|| damaged("its arrays do not fill it"))?;
    Ok((header.meta, arrays))
}

fn read_arrays(entries: Vec<Entry>, mut rest: &[u8]) -> Option<Vec<NamedArray>> {
    let mut arrays = Vec::with_capacity(entries.len());
    for Entry { name, kind, shape } in entries {
        let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
        let (bytes, after) = rest.split_at_checked(count.checked_mul(kind.bytes())?)?;
        arrays.push(NamedArray { name, shape, values: kind.read(bytes) });
        rest = after;
    }
    rest.is_empty().then_some(arrays)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> (Vec<u64>, Vec<NamedArray>) {
        let arrays = vec![
            NamedArray {
                name: "w".into(),
                shape: vec![2, 2],
                values: Values::F32(vec![1.5, -0.0, f32::MIN_POSITIVE, 3e38]),
            },
            NamedArray { name: "sums".into(), shape: vec![2], values: Values::F64(vec![0.1 + 0.2, 1e-300]) },
            NamedArray { name: "order".into(), shape: vec![3], values: Values::U32(vec![0, 7, u32::MAX]) },
            NamedArray { name: "count".into(), shape: vec![1], values: Values::U64(vec![u64::MAX]) },
            NamedArray { name: "empty".into(), shape: vec![0], values: Values::F32(vec![]) },
        ];
        (vec![1, 2, u64::MAX], arrays)
    }

    fn reason(bytes: &[u8]) -> String {
        decode::<Vec<u64>>(Path::new("a.ckpt"), bytes).unwrap_err().to_string()
    }

    #[test]
    fn everything_comes_back_to_the_bit() {
        let (meta, arrays) = sample();
        let (meta_back, arrays_back) = decode::<Vec<u64>>(Path::new("a"), &encode(&meta, &arrays).unwrap()).unwrap();
        assert_eq!((meta, arrays), (meta_back, arrays_back));
    }

    #[test]
    fn damage_is_named() {
        let (meta, arrays) = sample();
        let good = encode(&meta, &arrays).unwrap();
        assert!(reason(b"").contains("too short"));
        assert!(reason(&[7; 100]).contains("not a checkpoint"));
        assert!(reason(&good[..good.len() - 5]).contains("checksum"));
        let mut future = good.clone();
        future[8] = 9;
        assert!(reason(&future).contains("version 9"), "{}", reason(&future));
    }

    #[test]
    fn a_well_signed_lie_is_refused() {
        // A header that claims more values than there are, with a right checksum.
        let entry = Entry { name: "w".into(), kind: Number::F32, shape: vec![usize::MAX, 2] };
        let header = serde_json::to_vec(&Header { meta: vec![0u64], arrays: vec![entry] }).unwrap();
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(header.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&header);
        let checksum = Sha256::digest(&bytes);
        bytes.extend_from_slice(&checksum);
        assert!(reason(&bytes).contains("do not fill"));
    }

    proptest! {
        #[test]
        fn a_flipped_bit_never_passes(position in 0usize..10_000, bit in 0u8..8) {
            let (meta, arrays) = sample();
            let mut bytes = encode(&meta, &arrays).unwrap();
            let position = position % bytes.len();
            bytes[position] ^= 1 << bit;
            prop_assert!(decode::<Vec<u64>>(Path::new("a"), &bytes).is_err());
        }
    }
}
