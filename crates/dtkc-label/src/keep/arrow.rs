//! What a Parquet file says about itself, with the columns of the labels added.
//!
//! Arrow's libraries put their own description of the columns beside that of Parquet, which alone knows time zones,
//! dictionaries, durations and the like. It goes by the places of columns, so it must be mended or left out where columns
//! change. It is a FlatBuffer: tables that point forward to others. The new description is put before the old one, and
//! points into it for the columns that are kept; nothing of theirs has to be understood.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dtkc_source::parquet::Chosen;

use crate::output::{FieldKind, LabelField};

/// Where Arrow's description stands.
const ARROW: &str = "ARROW:schema";
/// What else stays true when columns come and go: the names of classes, and what pandas knows of its index and types. Other
/// programs' descriptions would hide the new columns.
const KEPT: [&str; 2] = ["huggingface", "pandas"];

/// What an output with some columns of a file, and labels behind them, says about itself.
pub(super) fn about(chosen: &Chosen, labels: &[LabelField]) -> Vec<(String, String)> {
    let extended = |text: &str| extend(text, chosen, labels);
    let pairs = chosen.about.iter().filter_map(|(key, text)| match key.as_str() {
        ARROW => Some((key.clone(), extended(text)?)),
        key if KEPT.contains(&key) => Some((key.to_owned(), text.clone())),
        _ => None,
    });
    pairs.collect()
}

/// The same of a file that was made so.
pub(super) fn own(chosen: &Chosen) -> Vec<(String, String)> {
    let ours = |(key, _): &&(String, String)| key == ARROW || KEPT.contains(&key.as_str());
    chosen.about.iter().filter(ours).cloned().collect()
}

/// `None` where the description is not one of all columns of the file, or damaged.
fn extend(text: &str, chosen: &Chosen, labels: &[LabelField]) -> Option<String> {
    let message = STANDARD.decode(text).ok()?;
    let (head, rest) = message.split_first_chunk::<8>()?;
    let [a, b, c, d, e, f, g, h] = *head;
    let length = usize::try_from(u32::from_le_bytes([e, f, g, h])).ok()?;
    let old = Old(rest.get(..length).filter(|_| [a, b, c, d] == [0xff; 4])?);
    let description = old.description().filter(|description| description.fields.len() == chosen.of)?;
    let kept: Vec<usize> =
        chosen.places.iter().map(|place| description.fields.get(*place).copied()).collect::<Option<_>>()?;
    let new = New::default().description(&description, &kept, labels, old.0)?;
    let mut out = vec![0xff; 4];
    out.extend(u32::try_from(new.len()).ok()?.to_le_bytes());
    out.extend(new);
    Some(STANDARD.encode(out))
}

/// The old description. Every place in it is checked: anybody may have written it.
struct Old<'a>(&'a [u8]);

/// What is needed of it.
struct Description {
    version: i16,
    endianness: i16,
    /// Where the tables of the columns are.
    fields: Vec<usize>,
    /// Where the texts are that stay true: readers take them from here.
    texts: Vec<usize>,
}

impl Old<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk::<N>().copied()
    }

    fn u16(&self, at: usize) -> Option<usize> {
        self.bytes(at).map(|bytes| usize::from(u16::from_le_bytes(bytes)))
    }

    /// What the offset at a place leads to.
    fn follow(&self, at: usize) -> Option<usize> {
        at.checked_add(usize::try_from(u32::from_le_bytes(self.bytes(at)?)).ok()?)
    }

    /// Where a table has its field of that number, if it has.
    fn field(&self, table: usize, number: usize) -> Option<Option<usize>> {
        let back = i64::from(i32::from_le_bytes(self.bytes(table)?));
        let list = usize::try_from(i64::try_from(table).ok()? - back).ok()?;
        if 4 + 2 * number >= self.u16(list)? {
            return Some(None);
        }
        let offset = self.u16(list + 4 + 2 * number)?;
        Some(Some(table + offset).filter(|_| offset > 0))
    }

    fn number(&self, table: usize, number: usize) -> Option<i16> {
        match self.field(table, number)? {
            Some(at) => self.bytes(at).map(i16::from_le_bytes),
            None => Some(0),
        }
    }

    /// A message whose header is a schema.
    fn description(&self) -> Option<Description> {
        let message = self.follow(0)?;
        let [kind] = self.bytes(self.field(message, 1)??)?;
        let schema = self.follow(self.field(message, 2)?.filter(|_| kind == 1)?)?;
        let fields = self.list(self.field(schema, 1)??)?;
        let mut texts = match self.field(schema, 2)? {
            Some(at) => self.list(at)?,
            None => Vec::new(),
        };
        texts.retain(|pair| self.key(*pair).is_some_and(|key| KEPT.iter().any(|kept| kept.as_bytes() == key)));
        Some(Description { version: self.number(message, 0)?, endianness: self.number(schema, 0)?, fields, texts })
    }

    /// What the list leads to that the offset at a place leads to.
    fn list(&self, at: usize) -> Option<Vec<usize>> {
        let list = self.follow(at)?;
        let count = usize::try_from(u32::from_le_bytes(self.bytes(list)?)).ok()?;
        // As many as there is room for, whatever it says.
        let places = (0..count).take_while(|_| count <= self.0.len() / 4);
        let found = places.map(|place| self.follow(list + 4 + 4 * place)).collect::<Option<Vec<_>>>()?;
        Some(found).filter(|found| found.len() == count && found.iter().all(|at| *at < self.0.len()))
    }

    /// The key of a pair of texts.
    fn key(&self, pair: usize) -> Option<&[u8]> {
        let text = self.follow(self.field(pair, 0)??)?;
        let length = usize::try_from(u32::from_le_bytes(self.bytes(text)?)).ok()?;
        self.0.get(text + 4..)?.get(..length)
    }
}

/// A new description, written from the front: what points comes before what it points to.
#[derive(Default)]
struct New(Vec<u8>);

/// Kinds of types, as Arrow numbers them.
const INT: u8 = 2;
const FLOAT: u8 = 3;
const UTF8: u8 = 5;
const LIST: u8 = 12;

impl New {
    fn description(
        mut self,
        old: &Description,
        kept: &[usize],
        labels: &[LabelField],
        before: &[u8],
    ) -> Option<Vec<u8>> {
        self.0.extend([0; 4]);
        let message = self.table(&[4, 6, 8], 12);
        self.set(message + 4, &old.version.to_le_bytes());
        self.set(message + 6, &[1]);
        self.link(0, message)?;
        let schema = self.table(&[8, 4, 12], 16);
        self.set(schema + 8, &old.endianness.to_le_bytes());
        self.link(message + 8, schema)?;
        let list = self.list(kept.len() + labels.len())?;
        self.link(schema + 4, list)?;
        let texts = self.list(old.texts.len())?;
        self.link(schema + 12, texts)?;
        for (place, LabelField { name, kind }) in labels.iter().enumerate() {
            let field = self.field(name, *kind)?;
            self.link(list + 4 + 4 * (kept.len() + place), field)?;
        }
        // Numbers of eight bytes in the old one stay where they may be.
        self.fill(8);
        let start = self.0.len();
        self.0.extend(before);
        self.fill(8);
        for (place, at) in kept.iter().enumerate() {
            self.link(list + 4 + 4 * place, start + at)?;
        }
        for (place, at) in old.texts.iter().enumerate() {
            self.link(texts + 4 + 4 * place, start + at)?;
        }
        Some(self.0)
    }

    /// A column: its name, whether it may be missing, its type and the columns inside.
    fn field(&mut self, name: &str, kind: FieldKind) -> Option<usize> {
        let field = self.table(&[4, 16, 17, 8, 0, 12], 20);
        let nullable = !matches!(kind, FieldKind::Index | FieldKind::Path | FieldKind::Element);
        let (number, bits) = match kind {
            FieldKind::Index => (INT, 64),
            FieldKind::Id => (INT, 32),
            FieldKind::Number | FieldKind::Element => (FLOAT, 0),
            FieldKind::Path | FieldKind::Text => (UTF8, 0),
            FieldKind::Vector => (LIST, 0),
        };
        self.set(field + 16, &[u8::from(nullable), number]);
        let text = self.text(name)?;
        self.link(field + 4, text)?;
        let kind_at = match number {
            INT => {
                let kind = self.table(&[4, 8], 12);
                self.set(kind + 4, &i32::to_le_bytes(bits));
                self.set(kind + 8, &[1]);
                kind
            }
            FLOAT => {
                // Single precision.
                let kind = self.table(&[4], 8);
                self.set(kind + 4, &1i16.to_le_bytes());
                kind
            }
            _ => self.table(&[], 4),
        };
        self.link(field + 8, kind_at)?;
        let inside = self.list(usize::from(kind == FieldKind::Vector))?;
        self.link(field + 12, inside)?;
        if kind == FieldKind::Vector {
            let element = self.field("element", FieldKind::Element)?;
            self.link(inside + 4, element)?;
        }
        Some(field)
    }

    fn fill(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    fn set(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Lets the four bytes at a place lead to a later one.
    fn link(&mut self, at: usize, to: usize) -> Option<()> {
        let offset = u32::try_from(to - at).ok()?;
        self.set(at, &offset.to_le_bytes());
        Some(())
    }

    /// A table of `size` bytes with fields at these places in it, behind the list of the places.
    fn table(&mut self, fields: &[u16], size: u16) -> usize {
        self.fill(4);
        let list = self.0.len();
        let length = 4 + 2 * fields.len() as u16;
        for number in [length, size].iter().chain(fields) {
            self.0.extend(number.to_le_bytes());
        }
        self.fill(4);
        let table = self.0.len();
        self.0.extend(((table - list) as i32).to_le_bytes());
        self.0.resize(table + usize::from(size), 0);
        table
    }

    /// A list of places that are filled in later.
    fn list(&mut self, count: usize) -> Option<usize> {
        self.fill(4);
        let list = self.0.len();
        self.0.extend(u32::try_from(count).ok()?.to_le_bytes());
        self.0.resize(list + 4 + 4 * count, 0);
        Some(list)
    }

    fn text(&mut self, text: &str) -> Option<usize> {
        self.fill(4);
        let at = self.0.len();
        self.0.extend(u32::try_from(text.len()).ok()?.to_le_bytes());
        self.0.extend(text.as_bytes());
        self.0.push(0);
        Some(at)
    }
}
