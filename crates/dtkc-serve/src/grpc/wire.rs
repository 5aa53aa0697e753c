//! Protobuf's wire format, as far as the inference protocol needs it.
//!
//! Read by hand and field by field. A generated reader makes a list of whatever length a client writes: two bytes of a
//! message become an entry of a hundred and more, before anybody has counted them.

use actix_web::web::Bytes;

/// A message that breaks the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// The value of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number, an enumeration or a truth value.
    Number(u64),
    /// A text, bytes, a message or a packed list; a part of the message that it came in.
    Bytes(Bytes),
    /// Four bytes, as a number with a point has them.
    Four([u8; 4]),
    /// Eight bytes; no field that means something here has them.
    Eight,
}

/// The fields of a message, in the order in which they come.
#[derive(Debug)]
pub struct Fields(Bytes);

impl Fields {
    /// The fields of that message.
    pub fn of(message: Bytes) -> Self {
        Self(message)
    }

    fn read(&mut self) -> Result<(u64, Value), Malformed> {
        let key = varint(&mut self.0)?;
        let value = match key & 7 {
            0 => Value::Number(varint(&mut self.0)?),
            1 => self.take(8).map(|_| Value::Eight)?,
            2 => {
                let length = usize::try_from(varint(&mut self.0)?).map_err(|_| Malformed)?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).and_then(|raw| raw[..].try_into().map_err(|_| Malformed)).map(Value::Four)?,
            // Groups were given up long ago.
            _ => return Err(Malformed),
        };
        Ok((key >> 3, value))
    }

    fn take(&mut self, length: usize) -> Result<Bytes, Malformed> {
        if length > self.0.len() { Err(Malformed) } else { Ok(self.0.split_to(length)) }
    }
}

impl Iterator for Fields {
    type Item = Result<(u64, Value), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.0.clear();
        }
        Some(read)
    }
}

/// The numbers of a field that may hold several: one, or a packed list.
pub fn numbers(value: Value) -> impl Iterator<Item = Result<u64, Malformed>> {
    let (single, mut packed) = match value {
        Value::Number(number) => (Some(Ok(number)), Bytes::new()),
        Value::Bytes(packed) => (None, packed),
        Value::Four(_) | Value::Eight => (Some(Err(Malformed)), Bytes::new()),
    };
    let packed = std::iter::from_fn(move || {
        let number = (!packed.is_empty()).then(|| varint(&mut packed));
        if number == Some(Err(Malformed)) {
            packed.clear();
        }
        number
    });
    single.into_iter().chain(packed)
}

/// The numbers with a point of a field that may hold several: one, or a packed list.
pub fn floats(value: Value) -> Result<impl Iterator<Item = f32>, Malformed> {
    let packed = match value {
        Value::Four(raw) => Bytes::copy_from_slice(&raw),
        Value::Bytes(packed) if packed.len() % 4 == 0 => packed,
        _ => return Err(Malformed),
    };
    let numbers = packed.len() / 4;
    Ok((0..numbers).map(move |i| {
        let mut raw = [0; 4];
        raw.copy_from_slice(&packed[4 * i..4 * i + 4]);
        f32::from_le_bytes(raw)
    }))
}

/// The value of a field that holds bytes, a text or a message.
pub fn bytes(value: Value) -> Result<Bytes, Malformed> {
    if let Value::Bytes(bytes) = value { Ok(bytes) } else { Err(Malformed) }
}

/// The value of a field that holds a text.
pub fn text(value: Value) -> Result<String, Malformed> {
    std::str::from_utf8(&bytes(value)?).map(str::to_owned).map_err(|_| Malformed)
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn varint(bytes: &mut Bytes) -> Result<u64, Malformed> {
    let mut number = 0;
    for (at, &byte) in bytes.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            let _ = bytes.split_to(at + 1);
            return Ok(number);
        }
    }
    Err(Malformed)
}

/// A message that is being written.
#[derive(Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// An empty one behind `front`, with room for so many bytes.
    pub fn behind(front: &[u8], bytes: usize) -> Self {
        let mut message = Vec::with_capacity(front.len() + bytes);
        message.extend_from_slice(front);
        Self(message)
    }

    /// The same message behind `front`.
    pub fn behind_space(&self, front: &[u8]) -> Self {
        Self([front, &self.0].concat())
    }

    /// A truth value.
    pub fn flag(mut self, field: u64, value: bool) -> Self {
        self.varint(field << 3);
        self.varint(u64::from(value));
        self
    }

    /// A text.
    pub fn text(self, field: u64, text: &str) -> Self {
        self.put(field, text.len(), |out| out.extend_from_slice(text.as_bytes()))
    }

    /// A message in the message.
    pub fn message(self, field: u64, inner: &Self) -> Self {
        self.put(field, inner.0.len(), |out| out.extend_from_slice(&inner.0))
    }

    /// A packed list of numbers.
    pub fn numbers(self, field: u64, numbers: impl Iterator<Item = i64>) -> Self {
        let mut packed = Self::default();
        numbers.for_each(|number| packed.varint(number as u64));
        self.message(field, &packed)
    }

    /// So many bytes, which `write` appends.
    pub fn put(mut self, field: u64, length: usize, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        self.varint(field << 3 | 2);
        self.varint(length as u64);
        write(&mut self.0);
        self
    }

    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<(u64, Value)>, Malformed> {
        Fields::of(Bytes::copy_from_slice(bytes)).collect()
    }

    /// The example of protobuf's own documentation, and one of each kind.
    #[test]
    fn fields_are_read() {
        assert_eq!(read(&[0x08, 0x96, 0x01]), Ok(vec![(1, Value::Number(150))]));
        let text = Value::Bytes(Bytes::from_static(b"testing"));
        assert_eq!(read(b"\x12\x07testing"), Ok(vec![(2, text)]));
        assert_eq!(read(&[0x0d, 1, 2, 3, 4, 0x09, 1, 2, 3, 4, 5, 6, 7, 8]).unwrap().len(), 2);
        assert_eq!(read(&[]), Ok(vec![]));
    }

    #[test]
    fn what_is_cut_short_or_too_long_is_malformed() {
        for wrong in [
            &[0x08][..],
            &[0x08, 0x80],
            &[0x12, 5, 1],
            &[0x0d, 1],
            &[0x0b],
            &[0x0c],
            &[0xff; 11],
            &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        ] {
            assert_eq!(read(wrong), Err(Malformed), "{wrong:?}");
        }
        let packed = Value::Bytes(Bytes::from_static(&[1, 0x80]));
        assert_eq!(numbers(packed).collect::<Vec<_>>(), [Ok(1), Err(Malformed)]);
        assert_eq!(numbers(Value::Eight).collect::<Vec<_>>(), [Err(Malformed)]);
        assert!(floats(Value::Number(1)).is_err() && floats(Value::Bytes(Bytes::from_static(&[0; 6]))).is_err());
    }

    #[test]
    fn numbers_with_a_point_come_alone_or_packed() {
        let raw = [1.5f32, -2.0].map(f32::to_le_bytes);
        let alone = read(&[&[0x35][..], &raw[0]].concat()).unwrap();
        assert_eq!(alone, [(6, Value::Four(raw[0]))]);
        assert_eq!(floats(Value::Four(raw[0])).unwrap().collect::<Vec<_>>(), [1.5]);
        assert_eq!(floats(Value::Bytes(raw.concat().into())).unwrap().collect::<Vec<_>>(), [1.5, -2.0]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(name in ".{0,300}", flag in any::<bool>(), list in prop::collection::vec(any::<i64>(), 0..50)) {
            let inner = Message::default().text(1, &name);
            let message = Message::behind(b"", 10).flag(3, flag).numbers(16, list.iter().copied()).message(2000, &inner);
            let mut fields = read(&message.into_bytes()).unwrap().into_iter();
            prop_assert_eq!(fields.next(), Some((3, Value::Number(u64::from(flag)))));
            let (field, value) = fields.next().unwrap();
            prop_assert_eq!(field, 16);
            let back: Vec<i64> = numbers(value).map(|number| number.unwrap() as i64).collect();
            prop_assert_eq!(back, list);
            let (field, Value::Bytes(inner)) = fields.next().unwrap() else { panic!("no message") };
            prop_assert_eq!((field, read(&inner).unwrap()), (2000, vec![(1, Value::Bytes(name.into()))]));
        }

        #[test]
        fn nothing_breaks_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for field in Fields::of(bytes.into()).flatten() {
                numbers(field.1.clone()).for_each(drop);
                floats(field.1).into_iter().flatten().for_each(drop);
            }
        }
    }
}
