//! Numbers as they lie in a file, turned into the two forms that we work with: bytes and floats.

/// How one number is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// Its type.
    pub kind: NumberKind,
    /// Whether the most significant byte comes first.
    pub big_endian: bool,
}

/// The type of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum NumberKind {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
}

impl NumberKind {
    /// Bytes of one number.
    pub const fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
}

/// Values read from an array.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Bytes that are pixels already.
    Bytes(Vec<u8>),
    /// Anything else; pixels after scaling.
    Floats(Vec<f32>),
}

impl Block {
    /// True where nothing was left to read.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many values.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(values) => values.len(),
            Self::Floats(values) => values.len(),
        }
    }
}

impl Number {
    /// The values of `bytes`, whose length is a multiple of the number's size.
    pub fn block(self, bytes: Vec<u8>) -> Block {
        if self.kind == NumberKind::U8 {
            return Block::Bytes(bytes);
        }
        Block::Floats(self.values(&bytes))
    }

    /// The values as floats: exact for small integers, which is what pixels are.
    fn values(self, bytes: &[u8]) -> Vec<f32> {
        macro_rules! decode {
            ($type:ty) => {
                bytes
                    .chunks_exact(size_of::<$type>())
                    .map(|chunk| {
                        let mut raw = [0; size_of::<$type>()];
                        raw.copy_from_slice(chunk);
                        if self.big_endian { <$type>::from_be_bytes(raw) } else { <$type>::from_le_bytes(raw) }
                    })
                    .map(|value| value as f32)
                    .collect()
            };
        }
        match self.kind {
            NumberKind::Bool => bytes.iter().map(|&b| f32::from(u8::from(b != 0))).collect(),
            NumberKind::U8 => bytes.iter().map(|&b| f32::from(b)).collect(),
            NumberKind::I8 => bytes.iter().map(|&b| f32::from(b as i8)).collect(),
            NumberKind::U16 => decode!(u16),
            NumberKind::I16 => decode!(i16),
            NumberKind::U32 => decode!(u32),
            NumberKind::I32 => decode!(i32),
            NumberKind::U64 => decode!(u64),
            NumberKind::I64 => decode!(i64),
            NumberKind::F32 => decode!(f32),
            NumberKind::F64 => decode!(f64),
            NumberKind::F16 => {
                bytes
                    .chunks_exact(2)
                    .map(|c| {
                        if self.big_endian {
                            u16::from_be_bytes([c[0], c[1]])
                        } else {
                            u16::from_le_bytes([c[0], c[1]])
                        }
                    })
                    .map(half_to_float)
                    .collect()
            }
        }
    }

    /// The values as whole numbers; `None` where one of them is not.
    pub fn integers(self, bytes: &[u8]) -> Option<Vec<i64>> {
        let size = self.kind.size();
        bytes.chunks_exact(size).map(|chunk| self.integer(chunk)).collect()
    }

    fn integer(self, chunk: &[u8]) -> Option<i64> {
        match self.kind {
            NumberKind::F16 | NumberKind::F32 => whole(f64::from(*self.values(chunk).first()?)),
            NumberKind::F64 => {
                let mut raw: [u8; 8] = chunk.try_into().ok()?;
                if self.big_endian {
                    raw.reverse();
                }
                whole(f64::from_le_bytes(raw))
            }
            _ => {
                // Sign-extend by hand, which serves every integer size at once.
                let mut raw = [0; 8];
                raw[..chunk.len()].copy_from_slice(chunk);
                if self.big_endian {
                    raw[..chunk.len()].reverse();
                }
                let value = u64::from_le_bytes(raw);
                let unused = 64 - 8 * chunk.len() as u32;
                match self.kind {
                    NumberKind::I8 | NumberKind::I16 | NumberKind::I32 | NumberKind::I64 => {
                        Some(((value << unused) as i64) >> unused)
                    }
                    NumberKind::Bool => Some(i64::from(value != 0)),
                    _ => i64::try_from(value).ok(),
                }
            }
        }
    }
}

/// A float as a whole number, where it is one.
pub fn whole(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i64)
}

/// IEEE 754 binary16.
fn half_to_float(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f32::from(bits & 0x3ff);
    sign * match exponent {
        0 => fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f32.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(kind: NumberKind, big_endian: bool) -> Number {
        Number { kind, big_endian }
    }

    #[test]
    fn both_byte_orders_are_read() {
        assert_eq!(number(NumberKind::I16, true).block(vec![0xff, 0xfe, 0, 5]), Block::Floats(vec![-2.0, 5.0]));
        assert_eq!(number(NumberKind::I16, false).integers(&[0xfe, 0xff, 5, 0]), Some(vec![-2, 5]));
        assert_eq!(number(NumberKind::I16, true).integers(&[0xff, 0xfe, 0, 5]), Some(vec![-2, 5]));
        assert_eq!(number(NumberKind::U32, false).integers(&[1, 0, 0, 0x80]), Some(vec![0x8000_0001]));
        assert_eq!(number(NumberKind::F64, true).integers(&10f64.to_be_bytes()), Some(vec![10]));
        assert_eq!(number(NumberKind::F64, false).integers(&0.5f64.to_le_bytes()), None);
        assert_eq!(number(NumberKind::U64, false).integers(&u64::MAX.to_le_bytes()), None);
    }

    #[test]
    fn bytes_stay_bytes() {
        assert_eq!(number(NumberKind::U8, false).block(vec![0, 200]), Block::Bytes(vec![0, 200]));
        assert_eq!(number(NumberKind::Bool, false).block(vec![0, 1]), Block::Floats(vec![0.0, 1.0]));
    }

    #[test]
    fn half_floats_match_numpy() {
        // np.array([1, -2, 65504, 6e-8, 0.333], dtype=np.float16).view(np.uint16)
        for (bits, value) in
            [(0x3c00, 1.0), (0xc000, -2.0), (0x7bff, 65504.0), (0x0001, 5.960_464_5e-8), (0x3554, 0.333_007_8)]
        {
            assert!((half_to_float(bits) - value).abs() <= f32::EPSILON * value.abs(), "{bits:x}");
        }
        assert!(half_to_float(0x7e00).is_nan() && half_to_float(0xfc00) == f32::NEG_INFINITY);
    }
}
